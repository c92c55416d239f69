//! A stop of the tour on the terminal: what was claimed, on what machine, the table, what holds, and where there is more.

use pageout_study::reproduce::judge::CRITERIA;
use pageout_study::tour::{Answer, COMPARED, Done, Told, UNDECIDED};

use crate::print::Layout;
use crate::print::layout::wrap;

/// Columns: a story is read best in narrow lines, and fits every terminal.
const WIDTH: usize = 80;

/// The layout of sentences. Tables may be as wide as the terminal.
fn narrow(layout: Layout) -> Layout {
    Layout { columns: Some(layout.width().min(WIDTH)), ..layout }
}

/// The text of one stop.
pub(super) fn stop(number: usize, count: usize, done: &Done, layout: Layout) -> String {
    let (stop, words) = (&done.stop, narrow(layout));
    let mut text = String::new();
    if number > 1 {
        text += "\n";
    }
    text += &words.wrap(&format!("{number} of {count}: {}", stop.title), "");
    text += &format!("{}\n{}\n\n", stop.author, done.address);
    text += &words.wrap(&format!("Claimed: {}", stop.claim), "");
    text += &words.wrap(&format!("Published on: {}", stop.published_on), "");
    text += &words.wrap(&format!("Ours: {}", done.ours_on()), "");
    text += "\n";
    text += &rows(done, layout);
    text += "\n";
    text += &words.wrap(&format!("{}.", done.tally().says()), "");
    done.reasons().iter().for_each(|says| text += &reason(words, says, "  "));
    text += &layout.failed(done.failures.iter().map(ToString::to_string));
    text + &format!("More: {}\n", stop.more)
}

/// The table. Names go on in the next line where a row would be wider than the text.
fn rows(done: &Done, layout: Layout) -> String {
    const GAPS: usize = 6;
    let heading = ["", "published", "ours", ""].map(str::to_string);
    let mut rows: Vec<[String; 4]> =
        std::iter::once(heading).chain(done.told.iter().map(Told::cells)).collect();
    let width_of = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let others: usize = (1..4).map(width_of).sum();
    let room = narrow(layout).width().saturating_sub(others + GAPS);
    for [name, ..] in &mut rows {
        *name = wrap(name, room, "").trim_end().to_string();
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(|row| row.to_vec()).collect();
    layout.table_by(&rows, |column| column == 1 || column == 2)
}

/// The text at the end of the tour.
pub(super) fn end(answer: &Answer, layout: Layout) -> String {
    let (mut text, words) = (String::from("\n"), narrow(layout));
    text += &answer.warning.as_ref().map_or(String::new(), |says| words.wrap(says, ""));
    text += &words.wrap(&format!("All in all: {}.", answer.tally().says()), "");
    text + &words.wrap(&format!("{CRITERIA} {UNDECIDED} {COMPARED}"), "")
}

/// A reason in lines of words; a command stays in one, to be copied.
fn reason(words: Layout, says: &str, indent: &str) -> String {
    if says.starts_with(' ') { format!("{indent}{says}\n") } else { words.wrap(says, indent) }
}
