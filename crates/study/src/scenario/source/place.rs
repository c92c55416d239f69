//! Places of keys: from a key of a scenario to its place in the file's text, and back.
//!
//! The checks speak of keys (`memcg[0].memory.max`), the text has places (line 12). A dotted key can be spelt in many ways
//! (`memory.max = 1`, `"memory.max" = 1`, `memory = { max = 1 }`). So the path is not split at dots: on the way down, names are
//! matched against what remains of it.

use std::ops::Range;

use toml_edit::{Item, TableLike, Value};

/// Where a key is: as far as it is there at all.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Place {
    /// The key itself, of the last step that was found.
    pub(super) key: Option<Range<usize>>,
    /// Its value.
    pub(super) value: Option<Range<usize>>,
    /// True if the whole path was found, or only a beginning of it.
    pub(super) is_exact: bool,
}

/// The keys of `table` that `path` may begin with, each with the rest of the path, longest first.
pub(super) fn steps_in_table<'p>(table: &dyn TableLike, path: &'p str) -> Vec<(String, &'p str)> {
    let mut steps: Vec<(String, &'p str)> = table
        .iter()
        .filter_map(|(key, _)| {
            let rest = path.strip_prefix(key)?;
            let rest = match rest.chars().next() {
                None => rest,
                Some('.') => &rest[1..],
                Some('[') => rest,
                Some(_) => return None,
            };
            Some((key.to_string(), rest))
        })
        .collect();
    steps.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
    steps
}

/// The index at the start of `path`: `[2].size` is 2 and `size`.
pub(super) fn index_step(path: &str) -> Option<(usize, &str)> {
    let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
    Some((index.parse().ok()?, rest.strip_prefix('.').unwrap_or(rest)))
}

/// The place of `path` below `item`; if it is missing, the place where it would be.
pub(super) fn find(item: &Item, path: &str) -> Place {
    let start = Place { key: None, value: item.span(), is_exact: path.is_empty() };
    if path.is_empty() {
        return start;
    }
    let mut best = start;
    let mut consider = |found: Place| {
        if found.is_exact || best.key.is_none() {
            best = found;
        }
    };
    if let Some(table) = item.as_table_like() {
        for (key, rest) in steps_in_table(table, path) {
            let Some((key_node, value)) = table.get_key_value(&key) else { continue };
            let mut found = find(value, rest);
            found.key = found.key.or_else(|| key_node.span());
            consider(found);
        }
    } else if let Some((index, rest)) = index_step(path) {
        let element = match item {
            Item::ArrayOfTables(tables) => tables.get(index).map(|table| Item::Table(table.clone())),
            Item::Value(Value::Array(values)) => values.get(index).map(|value| Item::Value(value.clone())),
            _ => None,
        };
        if let Some(element) = element {
            let mut found = find(&element, rest);
            found.value = found.value.or_else(|| element.span());
            consider(found);
        }
    }
    best
}

/// The path of the smallest key or value at `offset`.
pub(super) fn path_at(root: &Item, offset: usize) -> Option<String> {
    let mut best: Option<(usize, String)> = None;
    visit(root, String::new(), &mut |path, span| {
        if span.contains(&offset) && best.as_ref().is_none_or(|(length, _)| span.len() <= *length) {
            best = Some((span.len(), path.to_string()));
        }
    });
    best.map(|(_, path)| path)
}

/// The first number that is infinite or none at all, and its path. TOML has them; data formats in between don't.
pub(super) fn not_finite(item: &Item, path: &str) -> Option<(String, f64)> {
    let join = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
    if let Some(number) = item.as_float().filter(|number| !number.is_finite()) {
        return Some((path.to_string(), number));
    }
    if let Some(table) = item.as_table_like() {
        return table.iter().find_map(|(key, value)| not_finite(value, &join(key)));
    }
    match item {
        Item::ArrayOfTables(tables) => tables.iter().enumerate().find_map(|(at, table)| {
            table.iter().find_map(|(key, value)| not_finite(value, &format!("{path}[{at}].{key}")))
        }),
        Item::Value(Value::Array(values)) => values
            .iter()
            .enumerate()
            .find_map(|(at, value)| not_finite(&Item::Value(value.clone()), &format!("{path}[{at}]"))),
        _ => None,
    }
}

/// Calls `see` with the path and span of every key and value.
fn visit(item: &Item, path: String, see: &mut dyn FnMut(&str, Range<usize>)) {
    if let Some(span) = item.span() {
        see(&path, span);
    }
    if let Some(table) = item.as_table_like() {
        for (key, value) in table.iter() {
            let path = if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
            if let Some(span) = table.key(key).and_then(|key| key.span()) {
                see(&path, span);
            }
            visit(value, path, see);
        }
        return;
    }
    match item {
        Item::ArrayOfTables(tables) => {
            for (index, table) in tables.iter().enumerate() {
                visit(&Item::Table(table.clone()), format!("{path}[{index}]"), see);
            }
        }
        Item::Value(Value::Array(values)) => {
            for (index, value) in values.iter().enumerate() {
                visit(&Item::Value(value.clone()), format!("{path}[{index}]"), see);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use toml_edit::Document;

    use super::*;

    const TEXT: &str = r#"
seed = 1
[[memcg]]
path = "/a"
"memory.max" = "1GiB"
[[memcg]]
path = "/b"
memory.max = "2GiB"
memory.swap = { max = "3GiB" }
[[task]]
object = [{ size = 5 }, { size = 7 }]
"#;

    fn text_at(path: &str) -> Option<&'static str> {
        let document = Document::parse(TEXT).unwrap();
        let place = find(document.as_item(), path);
        if place.is_exact { place.value.map(|span| &TEXT[span]) } else { None }
    }

    #[test]
    fn a_key_is_found_however_it_is_spelt() {
        for (path, text) in [
            ("seed", "1"),
            ("memcg[0].memory.max", "\"1GiB\""),
            ("memcg[1].memory.max", "\"2GiB\""),
            ("memcg[1].memory.swap.max", "\"3GiB\""),
            ("task[0].object[1].size", "7"),
        ] {
            assert_eq!(text_at(path), Some(text), "{path}");
        }
        assert_eq!(text_at("memcg[2].memory.max"), None);
        assert_eq!(text_at("memcg[0].memory.low"), None);
    }

    #[test]
    fn a_place_leads_back_to_its_key() {
        let document = Document::parse(TEXT).unwrap();
        for path in ["seed", "memcg[0].memory.max", "memcg[1].memory.swap.max", "task[0].object[1].size"] {
            let place = find(document.as_item(), path);
            assert_eq!(path_at(document.as_item(), place.value.unwrap().start).as_deref(), Some(path));
            assert_eq!(path_at(document.as_item(), place.key.unwrap().start).as_deref(), Some(path));
        }
    }
}
