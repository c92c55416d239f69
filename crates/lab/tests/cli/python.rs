//! The functions of the Python package that only ask a study, and their stubs: made of the commands' rows and of the defaults of each `Ask`.
//!
//! `UPDATE=1 cargo test -p pageout-lab --test cli python::` writes them.

use std::fmt::Write;
use std::path::Path;

use pageout_lab::api;
use pageout_lab::{Question, questions};
use serde_json::Value;

const FOLDER: &str = "../python/python/pageout";

/// Words of Python that no argument can be called.
const TAKEN: [&str; 4] = ["from", "in", "lambda", "with"];

/// What each function takes besides: of the scenario, and of policies of the user's own.
const CHANGES: [(&str, &str); 3] =
    [("set", "Mapping[str, object] | None"), ("seed", "int | None"), ("kernel", "str | None")];
const OWN: [(&str, &str, &str); 3] =
    [("allow_plugins", "bool", "False"), ("fallback", "bool", "False"), ("call_limit", "str | None", "None")];

/// An argument of a function.
struct Argument {
    name: String,
    field: String,
    /// What a stub says of it.
    kind: &'static str,
    default: String,
}

impl Argument {
    fn of(field: &str, default: &Value) -> Argument {
        let name = if TAKEN.contains(&field) { format!("{field}_") } else { field.to_string() };
        let kind = match default {
            Value::Bool(_) => "bool",
            Value::Number(number) if number.is_f64() => "float",
            Value::Number(_) => "int",
            Value::String(_) => "_Text",
            Value::Array(_) => "_Many",
            Value::Object(_) => "Mapping[str, object] | None",
            Value::Null => "object | None",
        };
        let default = match default {
            Value::Bool(is_so) => if *is_so { "True" } else { "False" }.to_string(),
            Value::Array(list) if list.is_empty() => "()".to_string(),
            Value::Array(list) => {
                let list: Vec<String> = list.iter().map(Value::to_string).collect();
                format!("({},)", list.join(", "))
            }
            Value::Object(_) | Value::Null => "None".to_string(),
            other => other.to_string(),
        };
        Argument { name, field: field.to_string(), kind, default }
    }
}

/// The arguments of a question: the first one has no default, as nothing can be asked without it.
fn arguments(question: &Question) -> (Vec<Argument>, bool) {
    let Value::Object(fields) = (question.default)() else {
        panic!("{}: an Ask has fields", question.python)
    };
    let has_changes = fields.contains_key("changes");
    let own = fields.iter().filter(|(field, _)| *field != "changes");
    (own.map(|(field, default)| Argument::of(field, default)).collect(), has_changes)
}

fn functions() -> String {
    let mut text = "\"\"\"Functions that ask a study: made of the commands' rows by crates/lab/tests/cli/python.rs.\"\"\"\n\nfrom ._ask import ask as _ask, changes as _changes, varied as _varied\n".to_string();
    for question in questions() {
        let (arguments, has_changes) = arguments(&question);
        let mut takes: Vec<String> = vec![arguments[0].name.clone()];
        takes.extend((arguments.len() > 1 || has_changes).then(|| "*".to_string()));
        takes.extend(arguments[1..].iter().map(|of| format!("{}={}", of.name, of.default)));
        takes.extend(CHANGES.iter().filter(|_| has_changes).map(|(name, _)| format!("{name}=None")));
        takes.push("**own".to_string());
        let mut fields: Vec<String> = arguments
            .iter()
            .map(|of| match of.field.as_str() {
                "vary" | "over" => format!("\"{}\": _varied({})", of.field, of.name),
                field => format!("\"{field}\": {}", of.name),
            })
            .collect();
        fields.extend(has_changes.then(|| "\"changes\": _changes(set, seed, kernel)".to_string()));
        let name = question.python;
        let command = name.replace('_', "-");
        let about = api::command_line()
            .find_subcommand(&command)
            .and_then(|of| of.get_about().map(ToString::to_string));
        let about = about.expect("a question is a command's");
        write!(
            text,
            "\n\ndef {name}({}):\n    \"\"\"{about}.\n\n    Keywords are explained by ``pageout help {command}``.\n    \"\"\"\n    fields = {{{}}}\n    return _ask(\"{name}\", fields, **own)\n",
            takes.join(", "),
            fields.join(", ")
        )
        .unwrap();
    }
    text
}

fn stub() -> String {
    let mut text = "from collections.abc import Mapping, Sequence\nfrom os import PathLike\n\nfrom ._result import Result\n\n_Text = str | PathLike[str]\n_Many = _Text | Sequence[object] | Mapping[str, Sequence[object]]\n".to_string();
    for question in questions() {
        let (arguments, has_changes) = arguments(&question);
        write!(
            text,
            "\ndef {}(\n    {}: {},\n    *,\n",
            question.python, arguments[0].name, arguments[0].kind
        )
        .unwrap();
        for of in &arguments[1..] {
            writeln!(text, "    {}: {} = {},", of.name, of.kind, of.default).unwrap();
        }
        for (name, kind) in CHANGES.iter().filter(|_| has_changes) {
            writeln!(text, "    {name}: {kind} = None,").unwrap();
        }
        for (name, kind, default) in OWN {
            writeln!(text, "    {name}: {kind} = {default},").unwrap();
        }
        text += ") -> Result: ...\n";
    }
    text
}

#[test]
fn functions_of_python_are_those_of_the_rows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    for (file, made) in [("_asks.py", functions()), ("_asks.pyi", stub())] {
        let path = folder.join(file);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == made,
            "{file} is out of date\nUPDATE=1 cargo test -p pageout-lab --test cli python::"
        );
    }
}
