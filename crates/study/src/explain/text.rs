//! A page's story as lines: `phrase.rs` has the words of each step.
//!
//! One line per step: time, place of the page, bits of its use, and the rule that decided, with the numbers that it compared. Indented lines between
//! them show what happened to the page's lists meanwhile.

use std::fmt::Write;

use pageout_engine::{
    ListsEvent, MemcgId, Nanos, PageEvent, PageState, ScanBalance, TypeChoice, TypeReason, Whereabouts,
};

use super::phrase::{phrase, tier_limit, type_reason};
use super::{PageReport, Run, Since, Step, type_name};
use crate::figures::{count, counted, time, wrap};

/// What the columns mean.
const LEGEND: &str = "Time in seconds. R: referenced, A: active, W: workingset, +n: read n times more. y: the accessed bit of a \
                      page table is set; t: tier. gen 1 of 0..3: 0 is the oldest, 3 the youngest. [Decisions about its lists \
                      meanwhile: the last one of each kind, and their number.]";

/// All stories, one after the other, in lines of at most `width` characters.
pub fn stories(run: &Run, reports: &[PageReport], evictions: Option<u64>, width: usize) -> String {
    let mut text = String::new();
    if let Some(total) = evictions {
        let _ =
            writeln!(text, "The last {} of {}\n", count(reports.len() as u64), counted(total, "eviction"));
    }
    let texts: Vec<String> = reports.iter().map(|report| story(run, report, width)).collect();
    text += &texts.join("\n");
    text.push('\n');
    text += &wrap(LEGEND, width, "");
    text
}

fn story(run: &Run, report: &PageReport, width: usize) -> String {
    let mut text = heading(run, report);
    let steps: Vec<&Step> = report.story.steps().collect();
    if steps.is_empty() {
        text += &wrap(
            &format!(
                "Nothing has happened to it in {} accesses, up to {}: no task has needed it.",
                count(run.accesses),
                time(run.end.0)
            ),
            width,
            "",
        );
        return text;
    }
    // Columns as wide as they need to be; the rest is for the words.
    let rows: Vec<[String; 3]> =
        steps.iter().map(|step| [seconds(step.at), place(run, step), bits(&step.state)]).collect();
    let widths: Vec<usize> =
        (0..3).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let left = widths.iter().sum::<usize>() + 6;
    let indent = " ".repeat(left);
    for (at, (step, row)) in steps.iter().zip(&rows).enumerate() {
        if at == report.story.first.len() && report.story.left_out > 0 {
            let _ = writeln!(text, "{indent}... {} left out ...", counted(report.story.left_out, "step"));
        }
        for line in meanwhile(&step.since, true) {
            text += &wrap(&format!("[{line}]"), width.saturating_sub(2), &format!("{indent}  "));
        }
        let mut words = phrase(run, step, &steps[..at]);
        if step.times > 1 {
            let _ =
                write!(words, " ({} in a row, until {})", counted(step.times, "time"), seconds(step.until));
        }
        let words = wrap(&words, width, &indent);
        let front = format!(
            "{:>a$}  {:<b$}  {:<c$}  ",
            row[0],
            row[1],
            row[2],
            a = widths[0],
            b = widths[1],
            c = widths[2]
        );
        text += &format!("{front}{}", &words[indent.len().min(words.len())..]);
    }
    text + "\n" + &wrap(&summary(run, report, &steps), width, "")
}

fn heading(run: &Run, report: &PageReport) -> String {
    let group = report.story.last_step().map(|step| step.memcg);
    let group = group.map_or_else(String::new, |group| format!(" of {}", self::group(run, group)));
    match report.eviction {
        Some(eviction) => format!("{}{group}, evicted at {}\n", report.title, seconds(eviction.at)),
        None => format!("{}{group}, {}\n", report.title, run.policy),
    }
}

fn group(run: &Run, group: MemcgId) -> &str {
    &run.groups[&group]
}

fn seconds(at: Nanos) -> String {
    format!("{}.{:06}", at.0 / 1_000_000_000, at.0 / 1000 % 1_000_000)
}

/// The place, short, with the node where there are several.
fn place(run: &Run, step: &Step) -> String {
    let list = list(&step.state);
    if run.has_nodes { format!("{list}, node {}", step.node.0) } else { list }
}

fn list(state: &PageState) -> String {
    let kind = type_name(state.kind);
    match state.place {
        Whereabouts::NoList => "-".to_string(),
        Whereabouts::Unevictable => "unevictable".to_string(),
        Whereabouts::Inactive => format!("inactive {kind}"),
        Whereabouts::Active => format!("active {kind}"),
        Whereabouts::SingleList => "list".to_string(),
        Whereabouts::Generation { seq, oldest, youngest, .. } => {
            format!("gen {seq} of {oldest}..{youngest}")
        }
    }
}

/// The bits, short.
fn bits(state: &PageState) -> String {
    let mut text = String::new();
    for (is_set, letter) in [(state.referenced, 'R'), (state.active, 'A'), (state.workingset, 'W')] {
        if is_set {
            text.push(letter);
        }
    }
    if state.counter > 0 {
        let _ = write!(text, "+{}", state.counter);
    }
    if state.accessed {
        text.push('y');
    }
    if text.is_empty() {
        text.push('-');
    }
    if let Some(tier) = state.tier {
        let _ = write!(text, " t{tier}");
    }
    text
}

/// A generation in relation to the others of its type.
pub(super) fn generation(seq: u64, oldest: u64, youngest: u64) -> String {
    let of = if seq == oldest && oldest < youngest {
        format!("the oldest of {}", youngest - oldest + 1)
    } else if seq == youngest {
        "the youngest".to_string()
    } else {
        let older = seq.saturating_sub(oldest);
        format!("{} older, {} younger", older, youngest.saturating_sub(seq))
    };
    format!("generation {seq} ({of})")
}

/// Where it is, in words.
pub(super) fn whereabouts(state: &PageState) -> String {
    let kind = type_name(state.kind);
    match state.place {
        Whereabouts::NoList => "on no list".to_string(),
        Whereabouts::Unevictable => "unevictable".to_string(),
        Whereabouts::Inactive => format!("the inactive {kind} list"),
        Whereabouts::Active => format!("the active {kind} list"),
        Whereabouts::SingleList => "the list".to_string(),
        Whereabouts::Generation { seq, listed, oldest, youngest } => {
            let mut text = generation(seq, oldest, youngest);
            if listed != seq {
                let _ = write!(text, ", still on the list of {listed}");
            }
            text
        }
    }
}

fn balance(balance: &ScanBalance, priority: u8, targets: &[u64; 4]) -> String {
    let how = match balance {
        ScanBalance::NoSwap => "file only: there is no swap".to_string(),
        ScanBalance::SwappinessZero => "file only, as swappiness is 0".to_string(),
        ScanBalance::AnonOnly => "anon only, as was asked for".to_string(),
        ScanBalance::Nothing => "nothing: anon only was asked for, and there is no swap".to_string(),
        ScanBalance::Equal => "both types in full, at the last priority".to_string(),
        ScanBalance::FileIsTiny => {
            "anon only: with all its file pages the machine would be short of memory".to_string()
        }
        ScanBalance::CacheTrim => "file only: enough file pages were not used again".to_string(),
        ScanBalance::Fraction { weights: [anon, file], cost: [anon_cost, file_cost] } => format!(
            "anon and file {anon}:{file}, by swappiness and costs of {} and {}",
            count(*anon_cost),
            count(*file_cost)
        ),
    };
    let [inactive_anon, active_anon, inactive_file, active_file] = targets.map(count);
    format!(
        "{how}; to look at, at priority {priority}: anon {inactive_anon} inactive, {active_anon} active; \
         file {inactive_file}, {active_file}"
    )
}

/// What the lists went through, a line each. `briefly`: only what came last of each type of decision.
fn meanwhile(since: &Since, briefly: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut generations = String::new();
    if since.opened > 0 {
        let first = since.youngest + 1 - since.opened;
        generations = if since.opened == 1 {
            format!("generation {first} opened")
        } else {
            format!("generations {first} to {} opened", since.youngest)
        };
    }
    for (closed, kind) in since.closed.iter().zip(["anon", "file"]).filter(|(closed, _)| **closed > 0) {
        let and = if generations.is_empty() { "" } else { ", " };
        let _ = write!(generations, "{and}{} of {kind} closed", counted(*closed, "generation"));
    }
    if !generations.is_empty() {
        lines.push(generations);
    }
    // Two lines are enough between steps; the end shows all.
    for (times, _, event) in since.decisions.iter().take(if briefly { 2 } else { usize::MAX }) {
        let text = match event {
            ListsEvent::TypeChosen(choice) => {
                let limit = match gave_nothing(since, choice, *times) {
                    true => String::new(),
                    false => format!("; {}", tier_limit(choice)),
                };
                format!(
                    "{} of {}: {}{limit}",
                    counted(*times, "round"),
                    type_name(choice.kind),
                    type_reason(choice)
                )
            }
            ListsEvent::PassBegun { balance: how, priority, targets } => {
                format!("{}: {}", passes(*times), balance(how, *priority, targets))
            }
            ListsEvent::AboveSoftLimit { usage, limit } => format!(
                "{} for its soft limit: {} pages, {} above it",
                counted(*times, "call"),
                count(*usage),
                count(usage - limit)
            ),
            ListsEvent::NearNode { mode } => format!(
                "{} of node reclaim, so that a page need not come from another node (vm.zone_reclaim_mode = {mode})",
                counted(*times, "call")
            ),
            ListsEvent::GenerationOpened { .. } | ListsEvent::GenerationsClosed { .. } => continue,
        };
        lines.push(text);
    }
    lines
}

/// All rounds in which this was chosen went on with the other type.
fn gave_nothing(since: &Since, choice: &TypeChoice, times: u64) -> bool {
    let had_nothing = |choice: &TypeChoice| matches!(choice.reason, TypeReason::OtherHadNothing { .. });
    !had_nothing(choice)
        && since.decisions.iter().any(|(others, _, event)| {
            matches!(event, ListsEvent::TypeChosen(other)
                if other.kind != choice.kind && had_nothing(other) && *others == times)
        })
}

fn passes(times: u64) -> String {
    if times == 1 { "a pass".to_string() } else { format!("{} passes", count(times)) }
}

/// Why the page is where it is.
fn summary(run: &Run, report: &PageReport, steps: &[&Step]) -> String {
    let decisive = steps.iter().enumerate().rev().find(|(_, step)| is_decisive(&step.event));
    let Some((at, step)) = decisive else { return "So: it is on its way to a list.".to_string() };
    let because = format!("{}: {}", seconds(step.at), phrase(run, step, &steps[..at]));
    if report.eviction.is_some() {
        let back = report.back.map_or(String::new(), |at| format!(" It came back at {}.", seconds(at)));
        return format!("So, at {because}.{back}");
    }
    let mut text = match &report.now {
        Some(now) if now.place == Whereabouts::NoList => "So: it is in memory, on no list".to_string(),
        Some(now) => format!("So: it is in {}{}", whereabouts(now), on_node(run, steps)),
        None => "So: it is not in memory".to_string(),
    };
    if let Some(head) = &report.head {
        let _ = write!(text, ", as part of the huge page that begins with {head} and goes where that goes");
    }
    let _ = write!(text, ", since {because}. The run ended at {}.", seconds(run.end));
    let since = meanwhile(&report.since, false);
    if !since.is_empty() {
        text += "\nSince its last step:";
        for line in since {
            let _ = write!(text, "\n- {}", line);
        }
    } else if report.now.is_some() {
        text += " Nothing has looked at its lists since.";
    }
    text
}

/// The node of its last step, where there are several: none leaves its node without a step.
fn on_node(run: &Run, steps: &[&Step]) -> String {
    let last = steps.last().filter(|_| run.has_nodes);
    last.map_or(String::new(), |step| format!(" of node {}", step.node.0))
}

/// A step that says where the page is.
fn is_decisive(event: &PageEvent) -> bool {
    matches!(
        event,
        PageEvent::Placed { .. }
            | PageEvent::UseTold
            | PageEvent::MadeYoungest { .. }
            | PageEvent::Promoted { .. }
            | PageEvent::Sorted
            | PageEvent::PassedOn { .. }
            | PageEvent::OutOfReach { .. }
            | PageEvent::Truncated { .. }
            | PageEvent::Protected { .. }
            | PageEvent::MovedUp { .. }
            | PageEvent::Evicted { .. }
            | PageEvent::Released
    )
}
