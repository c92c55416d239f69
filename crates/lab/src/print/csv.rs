//! CSV of a result: a row an element of its list, with what holds for all of them in front.
//!
//! ```text
//!   { "trace": "a", "cells": [{ "policy": "lru", "misses": 9 }, { "policy": "opt", "misses": 7 }] }
//!
//!   version,trace,policy,misses
//!   0.1.0,a,lru,9
//!   0.1.0,a,opt,7
//! ```
//! Keys are the columns, those of objects within joined by `_`. A list of objects within an element is gone into if it is the only one there;
//! where the result has several, `list` says of which a row is. Lists of values are joined by `;`. What JSON has of deeper lists is left out.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A row: columns with their values.
type Row = Vec<(String, String)>;

/// A result as CSV; of its columns only these, if there are any. Errors: the first that there is none of, and all that there are.
pub(super) fn csv(result: &Value, wanted: &[String]) -> Result<String, (String, Vec<String>)> {
    let mut rows: Vec<Row> = Vec::new();
    let front = vec![("version".to_string(), env!("CARGO_PKG_VERSION").to_string())];
    match result {
        Value::Array(list) => list.iter().for_each(|element| expand(element, &front, &mut rows)),
        _ => expand(result, &front, &mut rows),
    }
    let mut columns: Vec<String> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (name, _) in rows.iter().flatten() {
        places.entry(name.clone()).or_insert_with(|| {
            columns.push(name.clone());
            columns.len() - 1
        });
    }
    let chosen: Vec<usize> = match wanted {
        [] => (0..columns.len()).collect(),
        _ => {
            let place =
                |name: &String| places.get(name).copied().ok_or_else(|| (name.clone(), columns.clone()));
            wanted.iter().map(place).collect::<Result<_, _>>()?
        }
    };
    let line = |cells: Vec<&str>| cells.into_iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
    let mut text = line(chosen.iter().map(|&at| columns[at].as_str()).collect());
    for row in rows {
        let mut cells = vec![""; columns.len()];
        row.iter().for_each(|(name, value)| cells[places[name]] = value);
        text += &line(chosen.iter().map(|&at| cells[at]).collect());
    }
    Ok(text)
}

/// Rows of an object, each with `front` before it.
fn expand(value: &Value, front: &Row, rows: &mut Vec<Row>) {
    let Value::Object(members) = value else {
        let mut row = front.clone();
        push(&mut row, "value", scalar(value));
        rows.push(row);
        return;
    };
    let lists: Vec<(&String, &Vec<Value>)> = members.iter().filter_map(of_objects).collect();
    let is_outer = front.len() == 1;
    let mut row = front.clone();
    flatten(members, "", &mut row);
    match lists[..] {
        [(_, list)] => list.iter().for_each(|element| expand(element, &row, rows)),
        _ if is_outer && lists.len() > 1 => {
            for (name, list) in lists {
                for element in list {
                    let mut row = row.clone();
                    push(&mut row, "list", name.clone());
                    if let Value::Object(members) = element {
                        flatten(members, "", &mut row);
                    }
                    rows.push(row);
                }
            }
        }
        _ => rows.push(row),
    }
}

/// A member that is a list of objects, and not empty.
fn of_objects<'a>((name, value): (&'a String, &'a Value)) -> Option<(&'a String, &'a Vec<Value>)> {
    value.as_array().filter(|list| list.first().is_some_and(Value::is_object)).map(|list| (name, list))
}

/// The values of an object, and of objects within.
fn flatten(members: &Map<String, Value>, prefix: &str, row: &mut Row) {
    for (name, value) in members {
        let name = format!("{prefix}{name}");
        match value {
            Value::Object(members) => flatten(members, &format!("{name}_"), row),
            Value::Array(list) if list.iter().any(|value| value.is_object() || value.is_array()) => {}
            Value::Array(list) => {
                let values: Vec<String> = list.iter().map(scalar).collect();
                push(row, &name, values.join(";"));
            }
            _ if name == "format_version" => {}
            value => push(row, &name, scalar(value)),
        }
    }
}

/// Adds a column. What an outer object calls the same keeps its name, and this one says that it is the inner.
fn push(row: &mut Row, name: &str, value: String) {
    let mut name = name.to_string();
    while row.iter().any(|(known, _)| *known == name) {
        name = format!("own_{name}");
    }
    row.push((name, value));
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn quoted(cell: &str) -> String {
    let is_plain = !cell.contains([',', '"', '\n', '\r']);
    if is_plain { cell.to_string() } else { format!("\"{}\"", cell.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_element_is_a_row_with_what_holds_for_all_in_front() {
        let result = json!({
            "format_version": 1,
            "traces": [
                { "trace": "a,b", "doubts": [], "cells": [{ "policy": "lru", "misses": 9 }, { "policy": "opt", "of": { "x_ns": 1 } }] },
                { "trace": "c", "doubts": ["one", "two"], "cells": [{ "policy": "lru", "misses": null }] },
            ],
        });
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            csv(&result, &[]).unwrap(),
            format!(
                "version,trace,doubts,policy,misses,of_x_ns\n{version},\"a,b\",,lru,9,\n{version},\"a,b\",,opt,,1\n{version},c,one;two,lru,,\n"
            )
        );
        assert_eq!(
            csv(&result, &["policy".into(), "misses".into()]).unwrap(),
            "policy,misses\nlru,9\nopt,\nlru,\n"
        );
        let (unknown, known) = csv(&result, &["runtime".into()]).unwrap_err();
        assert_eq!((unknown.as_str(), known[1].as_str()), ("runtime", "trace"));
    }

    #[test]
    fn rows_of_several_lists_say_of_which_they_are() {
        let result =
            json!({ "seed": 1, "tasks": [{ "name": "a", "seed": 2 }], "devices": [{ "name": "d" }] });
        let text = csv(&result, &["list".into(), "name".into(), "seed".into(), "own_seed".into()]).unwrap();
        assert_eq!(text, "list,name,seed,own_seed\ntasks,a,1,2\ndevices,d,1,\n");
    }
}
