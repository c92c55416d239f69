//! `pageout keys`: the reference of scenario keys.

use pageout_sim::device::{PRESETS, Preset};
use pageout_sim::scenario::keys::{KEYS, Key, WORKLOAD_KEYS};
use pageout_sim::scenario::{Device, PresetFigure};
use serde_json::{Value, json};

use crate::cli::KeysArgs;
use crate::failure::{Failure, Outcome};
use crate::print::output;
use crate::scenario::nearest::nearest;

/// Prints the keys asked for.
pub(crate) fn run(args: &KeysArgs) -> Outcome {
    let wanted = args.filter.as_deref().unwrap_or_default();
    let keys: Vec<&Key> =
        KEYS.iter().chain(WORKLOAD_KEYS.iter()).filter(|key| key.path.contains(wanted)).collect();
    if keys.is_empty() {
        // What was meant may be the end of a path as well as all of it.
        let all = || KEYS.iter().chain(WORKLOAD_KEYS.iter()).map(|key| key.path.as_str());
        let ends = all().flat_map(|path| {
            let dots = path.match_indices('.').map(|(at, _)| &path[at + 1..]);
            std::iter::once(path).chain(dots)
        });
        let meant = nearest(wanted, ends).and_then(|end| all().find(|path| path.ends_with(end)));
        let hint = meant.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        return Err(Failure::Input(anyhow::anyhow!("no key of a scenario contains `{wanted}`{hint}")));
    }
    if args.output.json {
        let list: Vec<_> = keys.iter().map(|key| json_of(key)).collect();
        return output::print_json(&list);
    }
    let text: Vec<String> = keys.iter().map(|key| describe(key)).collect();
    output::print(&text.join("\n"))
}

fn describe(key: &Key) -> String {
    let default = if key.default.is_empty() { "none, it must be given" } else { &key.default };
    let width = output::width();
    let mut text = format!("{}\n", key.path);
    text += &output::wrap(&key.meaning, width, "    ");
    text += &output::wrap(&format!("allowed: {}", key.accepts), width, "    ");
    text += &output::wrap(&format!("default: {default}"), width, "    ");
    if key.path == PRESET {
        text += &PRESETS.iter().map(describe_preset).collect::<String>();
    }
    text
}

/// The key that stands for a row of figures.
const PRESET: &str = "device[].preset";

/// A preset as the keys that would give the same device, each with its source.
fn describe_preset(preset: &Preset) -> String {
    let width = output::width();
    let mut text = output::wrap(&format!("{}: {}", preset.name, preset.class), width, "    ");
    for PresetFigure { key, value, source } in Device::figures(preset) {
        let figure = if key.is_empty() { value } else { format!("{key} = {value}") };
        text += &output::wrap(&format!("{figure}: {source}"), width, "        ");
    }
    text
}

fn json_of(key: &Key) -> Value {
    let mut object = json!({
        "key": key.path,
        "allowed": key.accepts.to_string(),
        "default": key.default,
        "meaning": key.meaning,
    });
    if key.path == PRESET {
        let of = |preset: &Preset| {
            let figures = Device::figures(preset).into_iter().map(
                |PresetFigure { key, value, source }| json!({ "key": key, "value": value, "source": source }),
            );
            json!({ "name": preset.name, "class": preset.class, "figures": figures.collect::<Vec<_>>() })
        };
        object["presets"] = PRESETS.iter().map(of).collect();
    }
    object
}
