//! `reproduce --live` and `tour --live`: a published table next to figures of the simulated machine and of
//! real memory ([`pageout_study::reproduce::live`]).

use std::fmt::Write;

use anyhow::anyhow;
use pageout_study::reproduce::live::{self, Answer, Ask, Rounds, Row, median};
use pageout_study::result::metrics::Unit;
use pageout_study::result::spread::Spread;

use super::args::LiveOptions;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::{Layout, Terminal, figures};

/// Compares these chapters on both machines, and prints the tables.
pub(crate) fn run(
    chapters: &[&str],
    experiments: &[String],
    live: &LiveOptions,
    jobs: usize,
    cx: &Context,
) -> Outcome {
    let mut answers = Vec::new();
    for (at, chapter) in chapters.iter().enumerate() {
        let ask = Ask {
            chapter: (*chapter).to_string(),
            experiments: experiments.to_vec(),
            folder: live.folder.clone(),
            rounds: live.rounds,
            jobs,
        };
        let answer = live::ask(&ask, &Terminal::telling(&cx.output))?;
        if !cx.output.is_data() {
            let between = if at == 0 { "" } else { "\n" };
            cx.output.print_text(&format!("{between}{}", text(&answer, cx.layout())))?;
        }
        answers.push(answer);
    }
    match &answers[..] {
        [answer] if cx.output.is_data() => cx.output.print_json(answer)?,
        all if cx.output.is_data() => cx.output.print_json(&all)?,
        _ => {}
    }
    let not_held: Vec<String> = answers.iter().flat_map(Answer::not_held).collect();
    match not_held.is_empty() {
        true => Ok(()),
        false => Err(Failure::Unexpected(anyhow!("not held: {}", not_held.join("; ")))),
    }
}

fn text(answer: &Answer, layout: Layout) -> String {
    let mut text = layout.wrap(&answer.chapter.title, "");
    let rounds = figures::counted(answer.ask.rounds.into(), "round");
    let mut seeds: Vec<u64> = answer.experiments.iter().map(|compared| compared.seed).collect();
    seeds.dedup();
    // Scenarios of one chapter may start at different seeds.
    let from = |seed: u64| format!(", from seed {seed}");
    let of_all = if let [seed] = seeds[..] { from(seed) } else { String::new() };
    _ = writeln!(text, "{}; {rounds}{of_all}", answer.chapter.source);
    text += &layout.wrap(&answer.chapter.note, "");
    let names = answer.side_names();
    for compared in &answer.experiments {
        let (name, title) = (&compared.experiment.name, &compared.experiment.title);
        let path = answer.place.path_of(&compared.experiment.scenario);
        let of_one = if of_all.is_empty() { from(compared.seed) } else { String::new() };
        let heading = format!("{name}: {title} ({}{of_one})", path.display());
        _ = write!(text, "\n{}", layout.wrap(&heading, ""));
        let mut table =
            vec![["", "published", "simulated", "live", "(min to max)", ""].map(str::to_string).to_vec()];
        table.extend(compared.rows.iter().flat_map(|row| lines(row, answer, &names)));
        text += &layout.table_by(&table, |column| (1..=4).contains(&column));
        for row in &compared.rows {
            let claim = &row.live.claim;
            if let Some(relation) = &claim.holds {
                text += &layout.wrap(&format!("{}: to hold is {relation}", claim.row), "  ");
            }
            if !claim.note.is_empty() {
                text += &layout.wrap(&format!("{}: {}", claim.row, claim.note), "  ");
            }
        }
    }
    _ = write!(text, "\n{}", layout.wrap(CRITERIA, ""));
    text
}

const CRITERIA: &str = "A relation is held if each seed of the simulated machine has it, and enough rounds of the live \
    one. Enough are so many that chance gives them in at most 5 % of cases (sign test: 5 of 5, 9 of 10). It is not held if so \
    many rounds lack it. Otherwise it is undecided: use more --rounds or a quieter machine. Rows without a \
    relation are not judged. The sides take turns within a round, so a round compares figures of the same minute. Live \
    figures are medians.";

/// A row of the first side, and one for each other side that it speaks of.
fn lines(row: &Row, answer: &Answer, names: &[&str]) -> Vec<Vec<String>> {
    let claim = &row.live.claim;
    let verdict = match (row.holds_simulated(), row.rounds_live(names)) {
        (None, _) | (_, None) => "not judged".to_string(),
        (Some(simulated), Some(rounds)) => verdict(simulated, rounds),
    };
    let mut lines = Vec::new();
    for (at, side) in answer.chapter.side.iter().enumerate() {
        let level = claim.levels.of(at, &side.name).map(|level| row.live.unit.show(level));
        if at > 0 && level.is_none() && !claim.speaks_of(&side.name) {
            continue;
        }
        let simulated =
            row.simulated.sides[at].as_deref().map(|values| row.simulated.unit.show(Spread::of(values).mean));
        let (live, range) =
            row.live.sides[at].as_deref().map(|values| middle(values, row.live.unit)).unwrap_or_default();
        lines.push(vec![
            if at == 0 { claim.row.clone() } else { format!("  {}", side.name) },
            level.unwrap_or_default(),
            simulated.unwrap_or_default(),
            live,
            range,
            String::new(),
        ]);
    }
    if let Some(last) = lines.last_mut() {
        last[5] = verdict;
    }
    lines
}

/// The verdict on a relation, with the rounds of the live machine that have it.
fn verdict(simulated: bool, rounds: Rounds) -> String {
    let Rounds { with, all } = rounds;
    match (simulated, rounds.holds()) {
        (true, Some(true)) => format!("held, {with} of {all}"),
        (false, Some(true)) => "not held: simulated".to_string(),
        (true, Some(false)) => format!("not held: live, {with} of {all}"),
        (false, Some(false)) => format!("not held: both, {with} of {all}"),
        (true, None) => format!("undecided, {with} of {all}"),
        (false, None) => format!("not held: simulated; live undecided, {with} of {all}"),
    }
}

/// Median, and the range.
fn middle(values: &[f64], unit: Unit) -> (String, String) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = format!("({} to {})", unit.show(least), unit.show(most));
    (unit.show(median(values)), if values.len() > 1 { range } else { String::new() })
}
