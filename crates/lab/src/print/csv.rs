//! CSV of a result: a row an element of its list, with what holds for all of them in front.
//!
//! ```text
//!   { "trace": "a", "cells": [{ "policy": "lru", "misses": 9 }, { "policy": "opt", "misses": 7 }] }
//!
//!   version,trace,policy,misses
//!   0.1.0,a,lru,9
//!   0.1.0,a,opt,7
//! ```
//! Keys are the columns; keys of nested objects are joined by `_`. A list of objects within an element is expanded if it is the only one. If the
//! result has several, `list` names the list of each row. Lists of values are joined by `;`. Deeper lists of the JSON are omitted.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::figures;
use super::layout::Layout;

/// A row: columns with their values.
type Row = Vec<(String, Value)>;

/// A result in rows.
#[derive(Debug)]
pub(crate) struct Cells {
    /// The names of the columns.
    pub(crate) columns: Vec<String>,
    /// As many values in each; nothing where a row has none.
    pub(crate) rows: Vec<Vec<Value>>,
}

/// Returns a result in rows, with the selected columns only. Errors: the first unknown column, and all known ones.
pub(crate) fn cells(result: &Value, wanted: &[String]) -> Result<Cells, (String, Vec<String>)> {
    let Cells { columns, rows } = all_cells(result);
    if wanted.is_empty() {
        return Ok(Cells { columns, rows });
    }
    let place = |name: &String| columns.iter().position(|column| column == name);
    let chosen = wanted.iter().map(|name| place(name).ok_or_else(|| (name.clone(), columns.clone())));
    let chosen = chosen.collect::<Result<Vec<usize>, _>>()?;
    let row = |row: Vec<Value>| chosen.iter().map(|&at| row[at].clone()).collect();
    Ok(Cells { columns: wanted.to_vec(), rows: rows.into_iter().map(row).collect() })
}

/// A result in rows, with all of its columns.
pub(crate) fn all_cells(result: &Value) -> Cells {
    let mut rows: Vec<Row> = Vec::new();
    let mut front = vec![("version".to_string(), env!("CARGO_PKG_VERSION").into())];
    match result {
        Value::Array(list) => list.iter().for_each(|element| expand(element, &front, true, &mut rows)),
        // An incomplete result has rows for its complete part.
        Value::Object(members) if members.get("so_far").is_some_and(Value::is_object) => {
            flatten(members.iter().filter(|(name, _)| *name != "so_far"), "", &mut front);
            expand(&members["so_far"], &front, true, &mut rows);
        }
        _ => expand(result, &front, true, &mut rows),
    }
    let mut columns: Vec<String> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (name, _) in rows.iter().flatten() {
        places.entry(name.clone()).or_insert_with(|| {
            columns.push(name.clone());
            columns.len() - 1
        });
    }
    let row = |row: Row| {
        let mut cells = vec![Value::Null; columns.len()];
        row.into_iter().for_each(|(name, value)| cells[places[&name]] = value);
        cells
    };
    let rows = rows.into_iter().map(row).collect();
    Cells { columns, rows }
}

impl Cells {
    /// As CSV.
    pub(super) fn csv(&self) -> String {
        let line =
            |cells: Vec<String>| cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n";
        let head = line(self.columns.clone());
        head + &self.rows.iter().map(|row| line(row.iter().map(scalar).collect())).collect::<String>()
    }

    /// As a list of objects.
    pub(super) fn json(self) -> Value {
        let Cells { columns, rows } = self;
        let object = |row: Vec<Value>| columns.iter().cloned().zip(row).collect::<Map<String, Value>>();
        rows.into_iter().map(|row| Value::Object(object(row))).collect()
    }

    /// As a table of numbers that people can read.
    pub(super) fn table(&self, layout: Layout) -> String {
        let rows = std::iter::once(self.columns.clone())
            .chain(self.rows.iter().map(|row| row.iter().map(readable).collect()))
            .collect::<Vec<Vec<String>>>();
        let is_figure =
            |column: usize| self.rows.iter().all(|row| row[column].is_number() || row[column].is_null());
        layout.table_by(&rows, is_figure)
    }
}

/// A value with as many digits as anyone reads.
fn readable(value: &Value) -> String {
    match value {
        Value::Number(number) => {
            let value = number.as_f64().unwrap_or(0.0);
            if value.fract() == 0.0 || value.abs() >= 1000.0 {
                let sign = if value < 0.0 { "-" } else { "" };
                return format!("{sign}{}", figures::count(value.abs().round() as u64));
            }
            // Four digits behind the first that is one.
            let behind = (4 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
            format!("{value:.behind$}")
        }
        Value::Null => "-".to_string(),
        value => scalar(value),
    }
}

/// Rows of an object, each with `front` before it.
fn expand(value: &Value, front: &Row, is_outer: bool, rows: &mut Vec<Row>) {
    let Value::Object(members) = value else {
        let mut row = front.clone();
        push(&mut row, "value", value.clone());
        rows.push(row);
        return;
    };
    let lists: Vec<(&String, &Vec<Value>)> = members.iter().filter_map(of_objects).collect();
    let mut row = front.clone();
    flatten(members, "", &mut row);
    match lists[..] {
        [(_, list)] => list.iter().for_each(|element| expand(element, &row, false, rows)),
        _ if is_outer && lists.len() > 1 => {
            for (name, list) in lists {
                for element in list {
                    let mut row = row.clone();
                    push(&mut row, "list", name.as_str().into());
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
fn flatten<'a>(members: impl IntoIterator<Item = (&'a String, &'a Value)>, prefix: &str, row: &mut Row) {
    for (name, value) in members {
        let name = format!("{prefix}{name}");
        match value {
            Value::Object(members) => flatten(members, &format!("{name}_"), row),
            Value::Array(list) if list.iter().any(|value| value.is_object() || value.is_array()) => {}
            Value::Array(list) => {
                let values: Vec<String> = list.iter().map(scalar).collect();
                push(row, &name, values.join(";").into());
            }
            _ if name == "format_version" => {}
            value => push(row, &name, value.clone()),
        }
    }
}

/// Adds a column. What an outer object calls the same keeps its name, and this one says that it is the inner.
fn push(row: &mut Row, name: &str, value: Value) {
    let mut name = name.to_string();
    while row.iter().any(|(known, _)| *known == name) {
        name = format!("own_{name}");
    }
    row.push((name, value));
}

/// A value as text; nothing of null.
pub(super) fn scalar(value: &Value) -> String {
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
            cells(&result, &[]).unwrap().csv(),
            format!(
                "version,trace,doubts,policy,misses,of_x_ns\n{version},\"a,b\",,lru,9,\n{version},\"a,b\",,opt,,1\n{version},c,one;two,lru,,\n"
            )
        );
        assert_eq!(
            cells(&result, &["policy".into(), "misses".into()]).unwrap().csv(),
            "policy,misses\nlru,9\nopt,\nlru,\n"
        );
        let (unknown, known) = cells(&result, &["runtime".into()]).unwrap_err();
        assert_eq!((unknown.as_str(), known[1].as_str()), ("runtime", "trace"));
    }

    #[test]
    fn rows_of_several_lists_say_of_which_they_are() {
        let result =
            json!({ "seed": 1, "tasks": [{ "name": "a", "seed": 2 }], "devices": [{ "name": "d" }] });
        let wanted = ["list".into(), "name".into(), "seed".into(), "own_seed".into()];
        assert_eq!(
            cells(&result, &wanted).unwrap().csv(),
            "list,name,seed,own_seed\ntasks,a,1,2\ndevices,d,1,\n"
        );
    }
}
