//! Settings, `KEY=VALUE`: one key of a scenario changed before it is read.
//!
//! ```text
//!   seed=7                                   a key at the top
//!   machine.memory=2GiB                      a key of a table
//!   sysctl.vm.swappiness=10                  a kernel name, dots and all
//!   memcg./web.memory.max=64MiB              an element by its name or path ...
//!   memcg.0.memory.max=64MiB                 ... by its number, from 0 ...
//!   task.*.think_time=1us                    ... or all of them
//!   task.reader.object.0.workload.alpha=0.8  and further down
//! ```
//!
//! The value is read as TOML (`0.8`, `true`, `"text"`, `[1, 2]`), or as a text if it is not TOML. So sizes and durations need no quotes.

use pageout_sim::scenario::keys::{Accepts, Key};
use pageout_sim::scenario::{DEFAULT_DEVICE, Scalar};
use toml_edit::{Array, ArrayOfTables, Item, Table, TableLike, Value};

use super::place::{index_step, steps_in_table};
use crate::scenario::nearest::nearest;

/// The option that gives one key several values.
pub const VARY: &str = "--vary";

/// The option that gives one key several values. All is done at each of them.
pub const OVER: &str = "--over";

/// The option that gives one key several values that it may have, for all that is known.
pub const UNKNOWN: &str = "--unknown";

/// One setting as it was given; as data, a text `KEY=VALUE`.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The key, from the top of the scenario.
    pub key: String,
    /// The value, not read yet.
    pub value: String,
    /// The option it came from, for messages.
    pub option: &'static str,
    /// The key of the file that it was read from, if it was not an option.
    pub written_at: Option<String>,
}

impl Setting {
    /// Returns true if it is one of several values of its key.
    pub fn is_variation(&self) -> bool {
        [VARY, OVER].contains(&self.option)
    }
}

crate::json::as_text!(Setting);

impl std::str::FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Setting, String> {
        let (key, value) = text.split_once('=').ok_or_else(|| {
            format!("found `{text}`, expected KEY=VALUE, for example sysctl.vm.swappiness=10")
        })?;
        // Blanks around a value are nothing, but a value of nothing else is a blank, as a delimiter may be.
        let (key, whole) = (key.trim(), value);
        let value = if whole.trim().is_empty() { whole } else { whole.trim() };
        if key.is_empty() || value.is_empty() {
            return Err(format!("found `{text}` without a key or a value, expected KEY=VALUE"));
        }
        Ok(Setting { key: unquoted(key), value: value.to_string(), option: "--set", written_at: None })
    }
}

/// A key without the quotes that TOML wants around names with dots, which are matched as they are here.
fn unquoted(key: &str) -> String {
    let mut rest = key;
    let mut unquoted = String::new();
    while let Some(first) = rest.chars().next() {
        let quoted = ['"', '\''].contains(&first).then(|| rest[1..].split_once(first)).flatten();
        let (step, behind) = match quoted {
            Some((name, behind)) if behind.is_empty() || behind.starts_with(['.', '[']) => (name, behind),
            _ => rest.split_at(rest.find('.').unwrap_or(rest.len())),
        };
        unquoted += step;
        rest = behind;
        if let Some(behind) = rest.strip_prefix('.') {
            unquoted.push('.');
            rest = behind;
        }
    }
    unquoted
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// The reason why a setting cannot be made.
#[derive(Debug, Clone, PartialEq)]
pub struct BadSetting {
    /// The problem.
    pub message: String,
    /// The help, one hint per line.
    pub help: Vec<String>,
}

/// Changes `root`; returns the keys changed as the checks name them (`memcg[0].memory.max`). Errors: the setting names a missing element.
pub fn apply(root: &mut Table, setting: &Setting) -> Result<Vec<String>, BadSetting> {
    let text = setting.value.as_str();
    let value = read(text);
    if value.is_str() && is_number_too_large(text) {
        let message = format!("found {text}, expected at most {}", i64::MAX);
        return Err(BadSetting { message, help: Vec::new() });
    }
    let mut changed = Vec::new();
    in_table(root, &setting.key, "", &value, &mut changed)?;
    Ok(changed)
}

/// TOML, or a text if it is not TOML.
fn read(text: &str) -> Value {
    let value = text.parse().ok().filter(|value| !matches!(value, Value::Datetime(_)));
    value.unwrap_or_else(|| Value::from(text))
}

/// Returns the value of a knob that this text sets.
pub fn scalar(text: &str) -> Scalar {
    match read(text) {
        Value::Boolean(value) => Scalar::Bool(*value.value()),
        Value::Integer(value) => Scalar::Integer(*value.value()),
        Value::Float(value) => Scalar::Float(*value.value()),
        Value::String(value) => Scalar::Text(value.into_value()),
        _ => Scalar::Text(text.to_string()),
    }
}

/// Returns the text that `scalar` reads as this value: a text that looks like a number keeps its quotes.
pub fn written(value: &Scalar) -> String {
    match value {
        Scalar::Text(text) if scalar(text) != *value => Value::from(text.as_str()).to_string(),
        value => value.to_string(),
    }
}

/// Read as a text it would be refused for being one.
fn is_number_too_large(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<i64>().is_err()
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

fn in_table(
    table: &mut dyn TableLike,
    rest: &str,
    path: &str,
    value: &Value,
    changed: &mut Vec<String>,
) -> Result<(), BadSetting> {
    for (key, rest) in steps_in_table(table, rest) {
        let path = join(path, &key);
        let item = table.get_mut(&key).expect("the step is one of its keys");
        if rest.is_empty() {
            *item = Item::Value(fitting(value, &path));
            changed.push(path);
            return Ok(());
        }
        match item {
            Item::ArrayOfTables(tables) => {
                let names = tables.iter().map(|table| name_of(table)).collect::<Vec<_>>();
                for (index, rest) in elements(&names, rest, &path)? {
                    let table = tables.get_mut(index).expect("the index is one of the list's");
                    in_table(table, &rest, &format!("{path}[{index}]"), value, changed)?;
                }
                return Ok(());
            }
            Item::Value(Value::Array(values)) if has_tables(values) => {
                let names = values
                    .iter()
                    .map(|value| value.as_inline_table().and_then(|table| name_of(table)))
                    .collect::<Vec<_>>();
                for (index, rest) in elements(&names, rest, &path)? {
                    let element = values.get_mut(index).expect("the index is one of the list's");
                    let table = element.as_inline_table_mut().expect("all elements are tables");
                    in_table(table, &rest, &format!("{path}[{index}]"), value, changed)?;
                }
                return Ok(());
            }
            _ => {}
        }
        if let Some(table) = item.as_table_like_mut() {
            return in_table(table, rest, &path, value, changed);
        }
    }
    insert(table, rest, path, value, changed)
}

/// A missing key. A list cannot grow this way: the element would be ambiguous.
fn insert(
    table: &mut dyn TableLike,
    rest: &str,
    path: &str,
    value: &Value,
    changed: &mut Vec<String>,
) -> Result<(), BadSetting> {
    const LISTS: &[&str] = &["memcg", "device", "swap", "file", "task", "event", "variant", "expect"];
    let first = rest.split('.').next().unwrap_or(rest);
    if path.is_empty()
        && first == "device"
        && let Some(key) =
            rest.strip_prefix("device.").and_then(|rest| rest.strip_prefix(DEFAULT_DEVICE)?.strip_prefix('.'))
    {
        // It is there without being listed.
        let mut device = Table::new();
        device.insert("name", Item::Value(Value::from(DEFAULT_DEVICE)));
        let mut devices = ArrayOfTables::new();
        devices.push(device);
        table.insert("device", Item::ArrayOfTables(devices));
        return in_table(table, &format!("device[0].{key}"), "", value, changed);
    }
    if path.is_empty() && LISTS.contains(&first) {
        return Err(BadSetting {
            message: format!("this scenario has no [[{first}]]"),
            help: vec!["add one to the file; a setting changes only existing elements".to_string()],
        });
    }
    changed.push(join(path, rest));
    match rest.split_once('.') {
        None => {
            table.insert(rest, Item::Value(fitting(value, &join(path, rest))));
        }
        Some((first, deeper)) => {
            let below = table.entry(first).or_insert_with(|| {
                let mut below = Table::new();
                below.set_dotted(!path.is_empty());
                below.set_implicit(true);
                Item::Table(below)
            });
            let Some(below) = below.as_table_like_mut() else {
                return Err(BadSetting {
                    message: format!("`{}` is a value without keys", join(path, first)),
                    help: Vec::new(),
                });
            };
            return in_table(below, deeper, &join(path, first), value, &mut Vec::new());
        }
    }
    Ok(())
}

/// The value as its key takes it: where only a text may stand a number is one, as a list of nodes is that has one node.
fn fitting(value: &Value, key: &str) -> Value {
    match (value, Key::find(key).map(|known| known.accepts)) {
        (Value::Integer(number), Some(Accepts::Text)) => Value::from(number.value().to_string()),
        // 6.10 is another version than 6.1.
        (Value::Float(number), Some(Accepts::Version)) => Value::from(number.display_repr().into_owned()),
        _ => value.clone(),
    }
}

fn has_tables(values: &Array) -> bool {
    !values.is_empty() && values.iter().all(Value::is_inline_table)
}

/// The name of an element of a list: its `name`, or a cgroup's `path`.
fn name_of(table: &dyn TableLike) -> Option<String> {
    ["name", "path"].iter().find_map(|key| table.get(key)?.as_str()).map(str::to_string)
}

/// Which elements the start of `rest` means, and the rest behind it.
fn elements(names: &[Option<String>], rest: &str, path: &str) -> Result<Vec<(usize, String)>, BadSetting> {
    if let Some(deeper) = rest.strip_prefix("*.") {
        return Ok((0..names.len()).map(|index| (index, deeper.to_string())).collect());
    }
    let by_number = match index_step(rest) {
        Some((index, deeper)) => Some((index, deeper)),
        None => rest.split_once('.').and_then(|(number, deeper)| Some((number.parse().ok()?, deeper))),
    };
    if let Some((index, deeper)) = by_number
        && index < names.len()
        && !deeper.is_empty()
    {
        return Ok(vec![(index, deeper.to_string())]);
    }
    let by_name = names.iter().enumerate().filter_map(|(index, name)| {
        let deeper = rest.strip_prefix(name.as_deref()?)?.strip_prefix('.')?;
        Some((index, deeper.to_string()))
    });
    // If both `/web` and `/web.slice` match, the longer one is meant: it leaves less text to parse.
    if let Some(found) = by_name.min_by_key(|(_, deeper)| deeper.len()) {
        return Ok(vec![found]);
    }
    let number = index_step(rest).map(|(index, _)| index).or_else(|| rest.parse().ok());
    let is_element = rest == "*"
        || number.is_some_and(|number| number < names.len())
        || names.iter().flatten().any(|name| name == rest);
    if is_element {
        return Err(BadSetting {
            message: format!("`{path}.{rest}` is an element of a list, not a key"),
            help: vec![format!(
                "a setting changes one key of an element: {path}.{rest}.KEY=VALUE; `pageout keys` lists the keys"
            )],
        });
    }
    let known: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(index, name)| name.clone().unwrap_or_else(|| index.to_string()))
        .collect();
    let given = rest.split('.').next().unwrap_or(rest);
    let mut help = Vec::new();
    if let Some(nearest) = nearest(given, known.iter().map(String::as_str)) {
        help.push(format!("did you mean `{path}.{nearest}`?"));
    }
    help.push(format!(
        "choose one: {}",
        known.iter().map(|name| format!("{path}.{name}")).collect::<Vec<_>>().join(", ")
    ));
    help.push(format!("or choose all: {path}.*"));
    Err(BadSetting { message: format!("`{path}` is a list without an element `{given}`"), help })
}

#[cfg(test)]
mod tests {
    use toml_edit::DocumentMut;

    use super::*;

    const TEXT: &str = r#"
[[memcg]]
path = "/web"
memory.max = "1GiB"
[[memcg]]
path = "/web.slice"
"memory.max" = "1GiB"
[[task]]
name = "reader"
object = [{ channel = "file", workload = { pattern = "zipf", alpha = 0.99 } }]
"#;

    fn set(setting: &str) -> Result<(Vec<String>, String), BadSetting> {
        let mut document: DocumentMut = TEXT.parse().unwrap();
        let changed = apply(document.as_table_mut(), &setting.parse().unwrap())?;
        Ok((changed, document.to_string()))
    }

    #[test]
    fn a_number_is_a_text_where_its_key_takes_only_texts() {
        let mut document: DocumentMut = "[[task]]\nname = \"reader\"".parse().unwrap();
        for setting in ["task.reader.membind=1", "task.reader.preferred_node=1"] {
            apply(document.as_table_mut(), &setting.parse().unwrap()).unwrap();
        }
        let told = document.to_string();
        assert!(told.contains("membind = \"1\"") && told.contains("preferred_node = 1"), "{told}");
    }

    #[test]
    fn a_text_that_looks_like_a_number_is_still_one_when_it_is_set() {
        for text in ["0", "1.5", "true", "0-1,3", "64MiB", "say \"0\""] {
            let value = Scalar::Text(text.to_string());
            assert_eq!(scalar(&written(&value)), value);
        }
        assert_eq!(written(&Scalar::Text("64MiB".to_string())), "64MiB");
        assert_eq!(written(&Scalar::Integer(0)), "0");
    }

    #[test]
    fn every_way_of_naming_a_key_changes_that_key_alone() {
        for (setting, key, line) in [
            ("memcg./web.memory.max=64MiB", "memcg[0].memory.max", "memory.max = \"64MiB\""),
            ("memcg.0.memory.max=64MiB", "memcg[0].memory.max", "memory.max = \"64MiB\""),
            ("memcg[0].memory.max=64MiB", "memcg[0].memory.max", "memory.max = \"64MiB\""),
            ("memcg./web.slice.memory.max=64MiB", "memcg[1].memory.max", "\"memory.max\" = \"64MiB\""),
            ("memcg./web.memory.high=64MiB", "memcg[0].memory.high", "memory.high = \"64MiB\""),
            ("task.reader.object.0.workload.alpha=0.8", "task[0].object[0].workload.alpha", "alpha = 0.8"),
            ("sysctl.vm.swappiness=10", "sysctl.vm.swappiness", "swappiness = 10"),
            ("sysctl.\"vm.swappiness\"=10", "sysctl.vm.swappiness", "swappiness = 10"),
            ("memcg.'/web'.\"memory.max\"=64MiB", "memcg[0].memory.max", "memory.max = \"64MiB\""),
            ("machine.memory=2GiB", "machine.memory", "memory = \"2GiB\""),
            ("seed=7", "seed", "seed = 7"),
        ] {
            let (changed, text) = set(setting).unwrap();
            assert_eq!(changed, [key], "{setting}");
            assert!(text.contains(line), "{setting}:\n{text}");
            assert!(text.parse::<DocumentMut>().is_ok(), "{setting}:\n{text}");
        }
    }

    #[test]
    fn a_star_changes_every_element() {
        let (changed, text) = set("memcg.*.memory.max=1MiB").unwrap();
        assert_eq!(changed, ["memcg[0].memory.max", "memcg[1].memory.max"]);
        assert_eq!(text.matches("1MiB").count(), 2);
    }

    #[test]
    fn an_unknown_element_is_answered_with_those_there_are() {
        let error = set("memcg./wbe.memory.max=1MiB").unwrap_err();
        assert_eq!(error.help[0], "did you mean `memcg./web`?");
        assert!(error.help[1].contains("memcg./web.slice"), "{error:?}");
        for element in ["memcg./web={}", "task.0.object.0={}", "task.*=1", "task[0]=1"] {
            let error = set(element).unwrap_err();
            assert!(error.message.contains("is an element of a list"), "{element}: {error:?}");
            assert!(error.help.len() == 1 && error.help[0].contains(".KEY=VALUE"), "{element}: {error:?}");
        }
        assert!(set("swap.0.size=1GiB").unwrap_err().message.contains("no [[swap]]"));
    }
}
