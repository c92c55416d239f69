//! A stop of the tour on the terminal: what was claimed, on what machine, the table, what holds, and where there is more.

use pageout_study::reproduce::judge::CRITERIA;
use pageout_study::tour::{Answer, COMPARED, Done, Told, UNDECIDED};

use crate::print::{output, table};

/// Columns: a story is read best in narrow lines, and fits every terminal.
const WIDTH: usize = 80;

fn width() -> usize {
    output::width().min(WIDTH)
}

fn wrap(text: &str, indent: &str) -> String {
    output::wrap(text, width(), indent)
}

/// All that is said of one stop.
pub(super) fn stop(number: usize, count: usize, done: &Done) -> String {
    let stop = &done.stop;
    let mut text = String::new();
    if number > 1 {
        text += "\n";
    }
    text += &wrap(&format!("{number} of {count}: {}", stop.title), "");
    text += &format!("{}\n{}\n\n", stop.author, done.address);
    text += &wrap(&format!("Claimed: {}", stop.claim), "");
    text += &wrap(&format!("Published on: {}", stop.published_on), "");
    text += &wrap(&format!("Ours: {}", done.ours_on()), "");
    text += "\n";
    text += &rows(done);
    text += "\n";
    text += &wrap(&format!("{}.", done.tally().says()), "");
    done.reasons().iter().for_each(|says| text += &reason(says, width(), "  "));
    text += &output::failed(done.failures.iter().map(ToString::to_string));
    text + &format!("More: {}\n", stop.more)
}

/// The table. Names go on in the next line where a row would be wider than the text.
fn rows(done: &Done) -> String {
    const GAPS: usize = 6;
    let heading = ["", "published", "ours", ""].map(str::to_string);
    let mut rows: Vec<[String; 4]> =
        std::iter::once(heading).chain(done.told.iter().map(Told::cells)).collect();
    let width_of = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let others: usize = (1..4).map(width_of).sum();
    let room = width().saturating_sub(others + GAPS);
    for [name, ..] in &mut rows {
        *name = output::wrap(name, room, "").trim_end().to_string();
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(|row| row.to_vec()).collect();
    table::layout_by(&rows, |column| column == 1 || column == 2)
}

/// What is said when all is done.
pub(super) fn end(answer: &Answer) -> String {
    let mut text = String::from("\n");
    text += &answer.warning.as_ref().map_or(String::new(), |says| wrap(says, ""));
    text += &wrap(&format!("All in all: {}.", answer.tally().says()), "");
    text + &wrap(&format!("{CRITERIA} {UNDECIDED} {COMPARED}"), "")
}

/// A reason in lines of at most `width` characters; a command stays in one, to be copied.
pub(super) fn reason(says: &str, width: usize, indent: &str) -> String {
    if says.starts_with(' ') { format!("{indent}{says}\n") } else { output::wrap(says, width, indent) }
}
