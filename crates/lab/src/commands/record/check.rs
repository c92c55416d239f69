//! `pageout record --check`: the sources of this machine, and the ways to record that they open.

use anyhow::anyhow;
use pageout_record::{Root, Way};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::Layout;

/// Prints the sources and the ways. The failure says that there are only counters, or nothing.
pub(super) fn check(root: &Root, cx: &Context) -> Outcome {
    let found = pageout_record::check(root);
    let ways = pageout_record::ways(root);
    if cx.output.is_data() {
        let sources = found.iter().map(|source| {
            json!({ "source": source.source, "tells": source.tells, "is_there": source.is_there, "remark": source.remark })
        });
        let ways = ways.iter().map(|way| {
            let open_by = way.open_by.iter().map(|(place, line)| (place.to_string(), json!(line)));
            json!({
                "way": way.name, "is_open": way.is_open(), "closed": way.closed, "shows": way.shows, "lacks": way.lacks,
                "command": way.command, "open_by": serde_json::Value::Object(open_by.collect()),
            })
        });
        let (sources, ways) = (sources.collect::<Vec<_>>(), ways.collect::<Vec<_>>());
        cx.output.print_json(&json!({ "sources": sources, "ways": ways }))?;
    } else {
        let mut rows = vec![["source", "", "tells", "remark"].map(str::to_string).to_vec()];
        rows.extend(found.into_iter().map(|source| {
            let there = if source.is_there { "yes" } else { "no" };
            vec![source.source, there.to_string(), source.tells.to_string(), source.remark]
        }));
        let table = cx.layout().table(&rows, 4);
        cx.output.print_text(&format!("{}\n\n{}", table.trim_end(), told(&ways, cx.layout())))?;
    }
    verdict(&ways)
}

/// "You can", with each way.
fn told(ways: &[Way], layout: Layout) -> String {
    let mut text = "you can:\n".to_string();
    for way in ways.iter().filter(|way| way.is_open()) {
        text += &layout.wrap(&format!("{}: {}", way.name, way.shows), "  ");
        text += &layout.wrap(&format!("lacks: {}", way.lacks), "    ");
        text += &format!("    {}\n", way.command);
    }
    if !ways.iter().any(Way::is_open) {
        text += "  nothing\n";
    }
    if ways.iter().any(|way| !way.is_open()) {
        text += "\nclosed, and how to open it:\n";
    }
    for way in ways.iter().filter(|way| !way.is_open()) {
        let why = way.closed.as_deref().unwrap_or_default();
        text += &layout.wrap(&format!("{}: {}", way.name, way.shows), "  ");
        text += &layout.wrap(&format!("closed: {why}"), "    ");
        for (place, line) in way.open_by {
            text += &format!("    {place}: {line}\n");
        }
    }
    text
}

/// Exit code 0: events; 4: counters only; 2: nothing.
fn verdict(ways: &[Way]) -> Outcome {
    // What needs no more than the user's own rights comes first.
    let Some(first) = ways.iter().filter(|way| way.name != "regions").find(|way| way.is_open()) else {
        return Err(Failure::Input(anyhow!(
            "record: no way to record is open\nhelp: mount /proc; the list above has a line for each way"
        )));
    };
    match ways.first().and_then(|best| best.closed.as_deref()) {
        None => Ok(()),
        Some(why) => Err(Failure::Unexpected(anyhow!(
            "record: no events, only counters: {why}\nhelp: `{}` records what there is; the list above says how to open events",
            first.command
        ))),
    }
}
