//! Conditions of timed events: who watches a kernel file reads it again and again, as a daemon does, and acts when it shows enough.
//!
//! A check takes no time, as reading a file for the report takes none. But it is a reading, so one of `memory.stat` flushes the statistics of its
//! group, as for every reader. While a shell is in the middle of an event, its conditions are not checked.

use pageout_engine::{FileError, Nanos};

use super::Machine;
use crate::scenario::{Bound, Condition, figure};

/// The condition of an event.
#[derive(Clone, PartialEq, Debug)]
pub struct When {
    /// The condition on the file's content.
    pub condition: Condition,
    /// The path of the file.
    pub path: String,
    /// Time between two looks; more than 0.
    pub look: Nanos,
}

impl Machine {
    /// True if the condition that an event waits for holds now, or if it waits for nothing.
    pub(super) fn holds(&mut self, index: usize) -> Result<bool, FileError> {
        let Some(when) = self.timed[index].0.when.clone() else { return Ok(true) };
        let (shown, bound) = self.compared(&when)?;
        let holds = when.condition.order().holds(shown, bound);
        let watched = self.outcome.watched.get_mut(&index).expect("it was added with the event");
        watched.looks += 1;
        watched.held += u64::from(holds);
        Ok(holds)
    }

    /// The figure that a condition is about, and its bound.
    pub(super) fn compared(&mut self, When { condition, path, .. }: &When) -> Result<(f64, f64), FileError> {
        let shown = self.shown(path, condition.words())?;
        let percent = match condition.bound() {
            Bound::Number(number) => return Ok((shown, number)),
            Bound::Percent(percent) => percent,
        };
        let (of, word) = condition.whole(path).expect("checked: a percentage is of something");
        let words: Vec<String> = word.iter().map(|word| (*word).to_string()).collect();
        let mut whole = self.shown(&of, &words)?;
        if whole.is_infinite() {
            // Without a limit, all memory is.
            whole = self.shown("/proc/meminfo", &["MemTotal".to_string()])?;
        }
        Ok((shown, whole * percent / 100.0))
    }

    /// A figure of a kernel file.
    fn shown(&mut self, path: &str, words: &[String]) -> Result<f64, FileError> {
        let text = self.read_file(path)?;
        figure(&text, words).ok_or_else(|| FileError::Invalid {
            path: path.to_string(),
            value: words.join(" "),
            expected: match words {
                [] => "a word of one of its lines, because the file is not a single number".to_string(),
                [..] => {
                    format!("words of a line with a number, for lines that begin with {}", first_words(&text))
                }
            },
        })
    }
}

/// The first words of the lines of a file.
fn first_words(text: &str) -> String {
    let words = text.lines().filter_map(|line| line.split_whitespace().next());
    words.map(|word| word.trim_end_matches(':')).collect::<Vec<_>>().join(", ")
}
