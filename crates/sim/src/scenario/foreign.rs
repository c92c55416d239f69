//! Tables whose keys another crate defines: access patterns and options of trace readers.
//!
//! They stay data until they are needed, for two reasons. A pattern's `pages` may be left out: then it is the size of its object,
//! and only the whole scenario knows that. And an error in them names the key at fault, like any other error. serde loses the way
//! to the key when it looks for the pattern's name first.

use std::fmt;

use pageout_workload::{Pattern, ReadOptions};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::keys::{Accepts, Key, WORKLOAD_KEYS};
use super::{Scalar, Size};

/// A table that another crate will read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Table(pub serde_json::Map<String, Value>);

type Map = serde_json::Map<String, Value>;

/// An error inside a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct TableError {
    /// The way from the table to the key at fault, `.parts[1].of.alpha`; empty for the table itself.
    pub path: String,
    /// The problem of the table.
    pub message: String,
    /// The valid names at this place, if they are a list.
    pub candidates: Vec<String>,
    /// The key that is missing.
    pub missing: Option<&'static Key>,
}

impl TableError {
    fn new(path: impl Into<String>, message: impl Into<String>) -> TableError {
        TableError { path: path.into(), message: message.into(), candidates: Vec::new(), missing: None }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Patterns whose `pages` is simply the size of what they run over.
const SIZED_BY_OBJECT: &[&str] =
    &["sequential", "looping", "loop", "uniform", "zipf", "hot_set", "fill", "runs", "index"];

impl Table {
    /// The access pattern this table describes, over an object of `pages` pages; `None` when nothing gives a size.
    pub fn pattern(&self, pages: Option<u64>) -> Result<Pattern, TableError> {
        let mut table = self.0.clone();
        check_parts(&mut table, pages, "")?;
        let pattern: Pattern = read(&table, "")?;
        pattern.validate().map_err(|error| {
            let path = pattern_error_path(&error.pattern, error.key);
            TableError::new(path, format!("`{}` {}", error.key, error.reason))
        })?;
        Ok(pattern)
    }

    /// The options of a trace reader that this table describes.
    pub fn options(&self) -> Result<ReadOptions, TableError> {
        let mut table = self.0.clone();
        // A size as everywhere in a scenario; the reader wants bytes.
        if let Some(Value::String(text)) = table.get("page_size") {
            let size: Size = text
                .parse()
                .map_err(|error| TableError::new(".page_size", format!("`page_size`: {error}")))?;
            table.insert("page_size".to_string(), size.0.into());
        }
        check_ranges(&table, "read.", "")?;
        read(&table, "")
    }

    /// Returns true if the pattern writes at all: it fills, or some part of it has a `write_ratio` above 0.
    pub fn writes(&self) -> bool {
        writes(&Value::Object(self.0.clone()))
    }

    /// The text under `key`.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }
}

fn writes(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(writes),
        Value::Object(table) => {
            table.get("pattern").is_some_and(|kind| kind == "fill")
                || table.get("write_ratio").and_then(Value::as_f64).is_some_and(|ratio| ratio > 0.0)
                || table.values().any(writes)
        }
        _ => false,
    }
}

/// Fills in `pages`, and reads every inner pattern on its own so that an error there knows its path.
fn check_parts(
    table: &mut serde_json::Map<String, Value>,
    pages: Option<u64>,
    path: &str,
) -> Result<(), TableError> {
    let kind = table.get("pattern").and_then(Value::as_str).unwrap_or_default().to_string();
    check_ranges(table, &format!("workload.{kind}."), path)?;
    if let (true, Some(pages)) = (SIZED_BY_OBJECT.contains(&kind.as_str()), pages) {
        table.entry("pages").or_insert(pages.into());
    }
    if let Some(Value::Object(inner)) = table.get_mut("of") {
        let path = format!("{path}.of");
        check_parts(inner, pages, &path)?;
        read::<Pattern>(inner, &path)?;
    }
    if let Some(Value::Array(parts)) = table.get_mut("parts") {
        for (index, part) in parts.iter_mut().enumerate() {
            // A part on another object has that object's size, which this code must not fill in.
            let elsewhere = part.get("object").is_some();
            if let Some(Value::Object(inner)) = part.get_mut("of") {
                let path = format!("{path}.parts[{index}].of");
                check_parts(inner, pages.filter(|_| !elsewhere), &path)?;
                read::<Pattern>(inner, &path)?;
            }
        }
    }
    Ok(())
}

/// Checks whole numbers against their rows of the reference, lists and tables inside included. An inner pattern has rows of its
/// own, and `check_parts` comes by it.
fn check_ranges(table: &Map, rows: &str, path: &str) -> Result<(), TableError> {
    for (key, value) in table.iter().filter(|(key, _)| *key != "of") {
        let path = format!("{path}.{key}");
        match value {
            Value::Number(number) => {
                let row = WORKLOAD_KEYS.iter().find(|row| row.path.strip_prefix(rows) == Some(key));
                if let Some(accepts @ Accepts::Integer(..)) = row.map(|row| row.accepts)
                    && let Some(number) = number.as_i64()
                    && let Err(message) = accepts.check(&Scalar::Integer(number))
                {
                    return Err(TableError::new(path, format!("`{key}`: {message}")));
                }
            }
            Value::Object(inner) => check_ranges(inner, &format!("{rows}{key}."), &path)?,
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if let Value::Object(inner) = item {
                        check_ranges(inner, &format!("{rows}{key}[]."), &format!("{path}[{index}]"))?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn read<T: DeserializeOwned>(table: &Map, path: &str) -> Result<T, TableError> {
    read_as(table).map_err(|error| {
        let message = error.to_string();
        let quoted: Vec<String> = message.split('`').skip(1).step_by(2).map(str::to_string).collect();
        let (given, names) =
            (quoted.first().cloned().unwrap_or_default(), quoted.get(1..).unwrap_or_default().to_vec());
        // serde's own sentences: "unknown field `x`, expected one of `a`, `b`", "unknown variant `x`, ...".
        if message.starts_with("unknown field") {
            let error = TableError::new(format!("{path}.{given}"), format!("unknown key `{given}`"));
            return TableError { candidates: names, ..error };
        }
        if message.starts_with("unknown variant") {
            let key = key_of(table, &given).unwrap_or_else(|| "pattern".to_string());
            let said = format!("`{key}`: `{given}` is none of the allowed values");
            return TableError { candidates: names, ..TableError::new(format!("{path}.{key}"), said) };
        }
        if message.starts_with("missing field") {
            let kind = table.get("pattern").and_then(Value::as_str).unwrap_or_default();
            let rows = [format!("workload.{given}"), format!("workload.{kind}.{given}")];
            let missing = WORKLOAD_KEYS.iter().find(|row| rows.contains(&row.path));
            return TableError { missing, ..TableError::new(path, format!("the key `{given}` is missing")) };
        }
        let fails = |part: &Map| read_as::<T>(part).is_err_and(|error| error.to_string() == message);
        match culprit(table, &fails) {
            Some(key) => TableError::new(format!("{path}.{key}"), format!("`{key}`: {}", told(&message))),
            None => TableError::new(path, told(&message)),
        }
    })
}

/// The key whose value is this text, in the table or in one within.
fn key_of(table: &Map, text: &str) -> Option<String> {
    table.iter().find_map(|(key, value)| match value {
        Value::String(value) => (value == text).then(|| key.clone()),
        Value::Object(inner) => Some(format!("{key}.{}", key_of(inner, text)?)),
        _ => None,
    })
}

fn read_as<T: DeserializeOwned>(table: &Map) -> serde_json::Result<T> {
    serde_json::from_value(Value::Object(table.clone()))
}

/// The key that a sentence of serde's is about, which doesn't name it: the first that gives the same sentence when it is alone
/// with the pattern's name.
fn culprit(table: &Map, fails: &dyn Fn(&Map) -> bool) -> Option<String> {
    table.iter().filter(|(key, _)| *key != "pattern").find_map(|(key, value)| {
        let alone = |value: Value| {
            let mut part: Map =
                table.get("pattern").map(|kind| ("pattern".to_string(), kind.clone())).into_iter().collect();
            part.insert(key.clone(), value);
            part
        };
        if !fails(&alone(value.clone())) {
            return None;
        }
        let inner = value.as_object();
        let deeper =
            inner.and_then(|inner| culprit(inner, &|part| fails(&alone(Value::Object(part.clone())))));
        Some(deeper.map_or(key.clone(), |deeper| format!("{key}.{deeper}")))
    })
}

/// serde's names of types, in words.
fn told(message: &str) -> String {
    let words =
        [("f64", "a number"), ("u64", "a whole number"), ("u32", "a whole number"), ("a map", "a table")];
    let word = words
        .iter()
        .find_map(|(name, word)| Some((message.strip_suffix(&format!("expected {name}"))?, word)));
    word.map_or(message.to_string(), |(start, word)| format!("{start}expected {word}"))
}

/// Where a pattern's own check found the fault: `mix.parts[1].zipf` and `alpha` are `.parts[1].of.alpha`.
fn pattern_error_path(pattern: &str, key: &str) -> String {
    let mut path = String::new();
    let steps: Vec<&str> = pattern.split('.').collect();
    for (index, step) in steps.iter().enumerate() {
        let is_part = step.starts_with("parts[");
        let is_inner = index > 0 && !is_part;
        if is_part {
            path.push('.');
            path.push_str(step);
        } else if is_inner {
            path.push_str(".of");
        }
    }
    format!("{path}.{key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn pages_are_those_of_the_object_unless_given() {
        let zipf = table(r#"{"pattern": "zipf", "ops": 10}"#);
        assert_eq!(zipf.pattern(Some(77)).unwrap().object_pages(0)[&0], 77);
        let chain = table(
            r#"{"pattern": "chain", "parts": [{"of": {"pattern": "fill"}}, {"of": {"pattern": "uniform", "pages": 5, "ops": 1}}]}"#,
        );
        assert_eq!(chain.pattern(Some(77)).unwrap().object_pages(0)[&0], 77);
        let error = zipf.pattern(None).unwrap_err();
        assert!(error.message.contains("key `pages` is missing"), "{error}");
    }

    #[test]
    fn an_error_knows_its_path_and_what_would_be_right() {
        let error = table(r#"{"pattern": "zipf", "alhpa": 1, "ops": 10}"#).pattern(Some(8)).unwrap_err();
        assert_eq!(error.path, ".alhpa");
        assert!(error.candidates.contains(&"alpha".to_string()), "{error:?}");

        let error = table(r#"{"pattern": "zipff"}"#).pattern(Some(8)).unwrap_err();
        assert_eq!(error.path, ".pattern");
        assert!(error.candidates.contains(&"zipf".to_string()), "{error:?}");

        let error = table(r#"{"pattern": "zipf", "alpha": 1, "ops": "200k"}"#).pattern(Some(8)).unwrap_err();
        assert_eq!(error.path, ".ops");
        assert_eq!(error.message, "`ops`: invalid type: string \"200k\", expected a whole number");
        let read = table(r#"{"ignore_size": true, "csv": {"header": 1}}"#);
        let error = read.options().unwrap_err();
        assert_eq!(error.path, ".csv.header", "{error}");

        let read = table(r#"{"page_size": "64 things"}"#).options().unwrap_err();
        assert_eq!(read.path, ".page_size", "{read}");
        assert_eq!(table(r#"{"page_size": "64KiB"}"#).options().unwrap().page_size, Some(65536));

        let nested = r#"{"pattern": "repeat", "times": 2, "of": {"pattern": "mix", "parts": [{"of": {"pattern": "zipf", "ops": 1, "alpha": -1}}]}}"#;
        assert_eq!(table(nested).pattern(Some(8)).unwrap_err().path, ".of.parts[0].of.alpha");
    }
}
