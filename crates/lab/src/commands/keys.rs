//! `pageout keys`: the reference of scenario keys, and of textbook policies.

pub(crate) mod args; // what can be asked
mod at; // what held in a version
mod policy; // textbook policies, which `replay --policy` takes

use pageout_policy::{Listed, POLICIES};
use pageout_sim::scenario::keys::{KEYS, Key, WORKLOAD_KEYS};
use pageout_sim::scenario::{CONTENTS, Contents, Device, Hints, Node};
use pageout_sim::{device, hints, memory};
use pageout_study::scenario::nearest::nearest;
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::Layout;
use args::KeysArgs;

/// Prints the keys asked for.
pub(crate) fn run(args: &KeysArgs, cx: &Context) -> Outcome {
    let wanted = args.filter.as_deref().unwrap_or_default();
    if let Some(version) = args.at {
        return at::print(version, args.lists, wanted, cx);
    }
    let keys: Vec<&Key> =
        KEYS.iter().chain(WORKLOAD_KEYS.iter()).filter(|key| key.path.contains(wanted)).collect();
    let policies = policy::called(wanted);
    if keys.is_empty() && policies.is_empty() {
        // The text may be similar to the end of a path.
        let all = || KEYS.iter().chain(WORKLOAD_KEYS.iter()).map(|key| key.path.as_str());
        let ends = all().flat_map(|path| {
            let dots = path.match_indices('.').map(|(at, _)| &path[at + 1..]);
            std::iter::once(path).chain(dots)
        });
        let meant = nearest(wanted, ends).and_then(|end| all().find(|path| path.ends_with(end)));
        return Err(none_contains("scenario key", wanted, meant, "`pageout keys` lists all keys"));
    }
    if cx.output.is_data() {
        let list = policies.iter().map(|row| policy::json(row)).chain(keys.iter().map(|key| json_of(key)));
        return cx.output.print_json(&list.collect::<Vec<_>>());
    }
    let text = policies
        .iter()
        .map(|row| policy::describe(row, cx.layout()))
        .chain(keys.iter().map(|key| describe(key, cx.layout())));
    let text: Vec<String> = text.collect();
    cx.output.print_text(&text.join("\n"))
}

/// The error of a filter that matches nothing.
fn none_contains(what: &str, wanted: &str, meant: Option<&str>, all: &str) -> Failure {
    let help = meant.map(|name| format!("did you mean `{name}`?")).unwrap_or_else(|| all.to_string());
    Failure::Input(anyhow::anyhow!("FILTER: found `{wanted}`, expected a part of a {what}\nhelp: {help}"))
}

fn describe(key: &Key, layout: Layout) -> String {
    let default = if key.default.is_empty() { "none, it must be given" } else { &key.default };
    let mut text = format!("{}\n", key.path);
    text += &layout.wrap(&key.meaning, "    ");
    text += &layout.wrap(&format!("allowed: {}", key.accepts), "    ");
    text += &layout.wrap(&format!("default: {default}"), "    ");
    for line in &key.versions {
        text += &layout.wrap(&format!("versions: {line}"), "    ");
    }
    for (name, class, figures) in presets_of(key) {
        text += &layout.wrap(&format!("{name}: {class}"), "    ");
        for (key, value, source) in figures {
            let figure = if key.is_empty() { value } else { format!("{key} = {value}") };
            text += &layout.wrap(&format!("{figure}: {source}"), "        ");
        }
    }
    text
}

/// Name and class of a preset, and its figures: the keys that would give the same, their values and sources.
type Described = (&'static str, &'static str, Vec<(&'static str, String, &'static str)>);

/// The presets of a key, and policies that are not a kernel's.
fn presets_of(key: &Key) -> Vec<Described> {
    let device = |preset: &device::Preset| {
        let figures =
            Device::figures(preset).into_iter().map(|figure| (figure.key, figure.value, figure.source));
        (preset.name, preset.class, figures.collect())
    };
    let memory = |preset: &memory::Preset| {
        let figures = Node::figures(preset).map(|figure| (figure.key, figure.value, figure.source));
        (preset.name, preset.class, figures.into())
    };
    let hints_of = |preset: &hints::Preset| {
        let figures = Hints::figures(preset).into_iter();
        (preset.name, preset.class, figures.map(|figure| (figure.key, figure.value, figure.source)).collect())
    };
    let contents = |contents: &Contents| {
        let figures = contents.figures().map(|figure| (figure.key, figure.value, figure.source));
        (contents.name, contents.what, figures.into())
    };
    let policy = |listed: &Listed| (listed.name, listed.doc, vec![("", "source".to_owned(), listed.source)]);
    match key.path.as_str() {
        "kernel.profile" => POLICIES.iter().map(policy).collect(),
        "swap[].contents" | "task[].object[].contents" => CONTENTS.iter().map(contents).collect(),
        "device[].preset" => device::PRESETS.iter().map(device).collect(),
        "machine.hints.preset" => hints::PRESETS.iter().map(hints_of).collect(),
        "machine.node[].preset" => memory::PRESETS.iter().map(memory).collect(),
        _ => Vec::new(),
    }
}

fn json_of(key: &Key) -> Value {
    let mut object = json!({
        "key": key.path,
        "allowed": key.accepts.to_string(),
        "default": key.default,
        "meaning": key.meaning,
    });
    if !key.versions.is_empty() {
        object["versions"] = json!(key.versions);
    }
    let presets = presets_of(key);
    if !presets.is_empty() {
        let of = |(name, class, figures): Described| {
            let figures = figures
                .into_iter()
                .map(|(key, value, source)| json!({ "key": key, "value": value, "source": source }));
            json!({ "name": name, "class": class, "figures": figures.collect::<Vec<_>>() })
        };
        object["presets"] = presets.into_iter().map(of).collect();
    }
    object
}
