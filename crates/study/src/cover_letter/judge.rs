//! Which rows of a cover letter are more than noise.
//!
//! A row is a figure of one scenario, as the mean of base and patched. It helps or hurts if the 95 % interval of its mean difference
//! excludes 0 and the change is 1 % or more. The interval is over pairs of runs with the same seed. With many rows some pass by chance: one
//! in twenty rows without an effect excludes 0. The letter therefore reports the expected number of such rows, and marks rows that remain
//! after a correction. The correction is Holm's ("A simple sequentially rejective multiple test procedure", 1979). It holds for all rows
//! together, whatever their dependence.
//!
//! If the seeds do not change a difference, it is the exact answer of one scenario and not a sample. It has an interval of width 0 and
//! needs no correction.

use std::cmp::Ordering;

use super::figures::{Figure, Measured, Outcome};
use super::{Ended, NARROW_PERCENT};
use crate::error::Failed;
use crate::result::better::Verdict;
use crate::result::spread::{Paired, Spread, chance};

/// Changes below this, in percent, neither help nor hurt.
pub const LEAST_PERCENT: f64 = 1.0;

/// How often any row at all may be marked that is nothing.
const RISK: f64 = 0.05;

/// The criterion, in one sentence for data.
pub const CRITERION: &str = "a row helps or hurts if the 95 % interval of its mean difference (Student's t \
    over pairs of runs with the same seed) excludes 0 and the change is 1 % or more. Holm's method at 5 % \
    shows if it also holds for all rows together";

/// A scenario, judged.
pub struct Judged {
    /// The group that it belongs to.
    pub group: String,
    /// The name in the cover letter.
    pub name: String,
    /// The first of its seeds.
    pub first_seed: u64,
    /// Number of pairs of runs: 0 if an interruption came first.
    pub seeds: u32,
    /// The failures of runs of base and of patched.
    pub failed: [Vec<Failed>; 2],
    /// Processes killed in all runs of base and of patched. A killed task does less work, so nothing else is compared then.
    pub killed: [usize; 2],
    /// Its figures; none where runs failed or processes were killed.
    pub rows: Vec<Row>,
}

/// A figure of a scenario.
pub struct Row {
    /// The figure.
    pub figure: Figure,
    /// True if it is for each thousand accesses, as runs did not all do the same work.
    pub is_per_thousand: bool,
    /// Its values by seed, of base and of patched.
    pub values: [Vec<f64>; 2],
    /// The difference.
    pub paired: Paired,
    /// The probability of such a mean difference without an effect; nothing if the seeds do not vary.
    pub chance: Option<f64>,
    /// True if it remains when it is corrected for there being many rows.
    pub holds: bool,
}

/// The verdict of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// Patched is better.
    Helps,
    /// Patched is worse.
    Hurts,
    /// Its interval leaves out 0, but the change is below 1 %.
    Little,
    /// Its interval contains 0.
    Noise,
    /// It is the same in every run.
    Same,
    /// There is one pair of runs, and nothing known of noise.
    OneSeed,
}

impl Says {
    /// A word for data.
    pub fn word(self) -> &'static str {
        match self {
            Says::Helps => "helps",
            Says::Hurts => "hurts",
            Says::Little => "under_1_percent",
            Says::Noise => "noise",
            Says::Same => "same",
            Says::OneSeed => "one_seed",
        }
    }
}

impl Row {
    fn of(base: &[&Outcome], patched: &[&Outcome], figure: &Figure, is_same_work: bool) -> Option<Row> {
        let is_per_thousand = figure.is_sum && !is_same_work;
        let value = |outcome: &&Outcome| {
            let found = outcome.figures.iter().find(|measured| measured.figure.name == figure.name);
            let Measured { value, .. } = found?;
            Some(if is_per_thousand { value * 1000.0 / outcome.accesses.max(1) as f64 } else { *value })
        };
        let values = |side: &[&Outcome]| side.iter().map(value).collect::<Option<Vec<f64>>>();
        let values = [values(base)?, values(patched)?];
        let paired = Paired::of(&values[0], &values[1]);
        let differences: Vec<f64> =
            values[1].iter().zip(&values[0]).map(|(value, base)| value - base).collect();
        let spread = Spread::of(&differences);
        let is_drawn = spread.count > 1 && spread.deviation > 0.0;
        let chance = is_drawn.then(|| {
            let error = spread.deviation / (spread.count as f64).sqrt();
            chance(spread.mean / error, spread.count - 1)
        });
        Some(Row { figure: figure.clone(), is_per_thousand, values, paired, chance, holds: false })
    }

    /// Its mean in base and in patched.
    pub fn means(&self) -> [f64; 2] {
        [0, 1].map(|side: usize| Spread::of(&self.values[side]).mean)
    }

    /// The change in percent, and half of its interval; nothing where base is nothing.
    pub fn percent(&self) -> Option<(f64, Option<f64>)> {
        let paired = &self.paired;
        Some((paired.percent(paired.difference)?, paired.half_width.and_then(|width| paired.percent(width))))
    }

    /// Returns the verdict.
    pub fn says(&self) -> Says {
        let paired = &self.paired;
        if paired.is_same {
            return Says::Same;
        }
        if paired.half_width.is_none() {
            return Says::OneSeed;
        }
        if paired.is_within_noise() || paired.difference == 0.0 {
            return Says::Noise;
        }
        if paired.percent(paired.difference).is_some_and(|percent| percent.abs() < LEAST_PERCENT) {
            return Says::Little;
        }
        match self.figure.better.verdict(paired.difference) {
            Verdict::Better => Says::Helps,
            Verdict::Worse => Says::Hurts,
            Verdict::Neither => Says::Noise,
        }
    }

    /// Returns true if its interval is under 1 % to either side, or can't be said in percent.
    pub fn is_narrow(&self) -> bool {
        let width = self.paired.half_width.and_then(|width| self.paired.percent(width));
        self.paired.is_same || width.is_none_or(|width| width < NARROW_PERCENT)
    }
}

impl Judged {
    pub(super) fn of(
        group: &str,
        name: &str,
        first_seed: u64,
        base: Vec<&Ended>,
        patched: Vec<&Ended>,
    ) -> Judged {
        let sides = [base, patched];
        let failed = [0, 1].map(|side: usize| {
            sides[side].iter().filter_map(|ended| ended.as_ref().err().cloned()).collect::<Vec<Failed>>()
        });
        let outcomes = [0, 1].map(|side: usize| {
            sides[side].iter().filter_map(|ended| ended.as_ref().ok()).collect::<Vec<_>>()
        });
        let killed =
            [0, 1].map(|side: usize| outcomes[side].iter().map(|outcome| outcome.kills).sum::<usize>());
        let is_comparable = failed.iter().all(Vec::is_empty) && killed == [0, 0];
        let [base, patched] = &outcomes;
        let rows = match base.first().filter(|_| is_comparable) {
            Some(first) => {
                let is_same_work =
                    base.iter().zip(patched).all(|(base, patched)| base.accesses == patched.accesses);
                let figures = first.figures.iter().map(|measured| &measured.figure);
                figures.filter_map(|figure| Row::of(base, patched, figure, is_same_work)).collect()
            }
            None => Vec::new(),
        };
        let seeds = sides[0].len() as u32;
        Judged { group: group.to_string(), name: name.to_string(), first_seed, seeds, failed, killed, rows }
    }

    /// Returns true if all its runs succeeded, so that its figures are compared.
    pub fn is_compared(&self) -> bool {
        self.seeds > 0 && self.failed.iter().all(Vec::is_empty) && self.killed == [0, 0]
    }

    /// The effect of the change on the numbers of failed runs and of killed processes: fewer helps, more hurts; `None` if there are as many.
    pub fn ends(&self) -> [Option<Says>; 2] {
        let says = |[base, patched]: [usize; 2]| match patched.cmp(&base) {
            Ordering::Less => Some(Says::Helps),
            Ordering::Equal => None,
            Ordering::Greater => Some(Says::Hurts),
        };
        [says([self.failed[0].len(), self.failed[1].len()]), says(self.killed)]
    }

    /// Rows that say this, with those of how its runs end.
    pub fn count(&self, says: Says) -> usize {
        let ends = self.ends().into_iter().flatten().filter(|end| *end == says);
        ends.count() + self.rows.iter().filter(|row| row.says() == says).count()
    }

    /// Returns true if each of its rows is narrow.
    pub fn is_narrow(&self) -> bool {
        self.rows.iter().all(Row::is_narrow)
    }

    /// Returns true if no row differs in any run.
    pub fn is_same(&self) -> bool {
        self.is_compared() && self.rows.iter().all(|row| row.paired.is_same)
    }
}

/// Marks rows that remain when it is corrected for there being so many.
pub(super) fn correct(cases: &mut [Judged]) {
    let mut drawn: Vec<(f64, &mut Row)> = Vec::new();
    for row in cases.iter_mut().flat_map(|case| &mut case.rows) {
        match row.chance {
            Some(chance) => drawn.push((chance, row)),
            None => row.holds = row.values[0].len() > 1 && !row.paired.is_same,
        }
    }
    drawn.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let all = drawn.len();
    for (at, (chance, row)) in drawn.into_iter().enumerate() {
        if chance > RISK / (all - at) as f64 {
            break;
        }
        row.holds = true;
    }
}

/// Rows of these that the seeds say something of.
pub fn drawn(cases: &[Judged]) -> usize {
    cases.iter().flat_map(|case| &case.rows).filter(|row| row.chance.is_some()).count()
}

/// Returns the number of `rows` whose interval would exclude 0 if nothing had changed.
pub fn by_chance(rows: usize) -> f64 {
    rows as f64 * RISK
}

/// A figure over several scenarios.
pub struct GeometricMean {
    /// The figure.
    pub figure: Figure,
    /// Scenarios that it is over: those where it is more than nothing on both sides.
    pub cases: usize,
    /// The change in percent.
    pub percent: f64,
    /// Half of its interval over the seeds; nothing of one seed.
    pub half_width: Option<f64>,
}

/// The geometric mean of patched over base, of each figure of the machine that two of these have or more.
pub fn geometric_means(cases: &[&Judged]) -> Vec<GeometricMean> {
    let mut figures: Vec<&Figure> = Vec::new();
    let of_machine = |row: &&Row| !row.figure.name.starts_with("task ");
    for row in cases.iter().flat_map(|case| &case.rows).filter(of_machine) {
        if !figures.iter().any(|known| known.name == row.figure.name) {
            figures.push(&row.figure);
        }
    }
    let mean = |figure: &Figure| {
        let rows = cases.iter().flat_map(|case| &case.rows).filter(|row| row.figure.name == figure.name);
        let rows: Vec<&Row> =
            rows.filter(|row| row.values.iter().flatten().all(|value| *value > 0.0)).collect();
        let seeds = rows.iter().map(|row| row.values[0].len()).min()?;
        let logarithm = |seed: usize| {
            let ratios = rows.iter().map(|row| (row.values[1][seed] / row.values[0][seed]).ln());
            ratios.sum::<f64>() / rows.len() as f64
        };
        let spread = Spread::of(&(0..seeds).map(logarithm).collect::<Vec<f64>>());
        let percent = |logarithm: f64| (logarithm.exp() - 1.0) * 100.0;
        let half = |width: f64| (percent(spread.mean + width) - percent(spread.mean - width)) / 2.0;
        (rows.len() > 1).then(|| GeometricMean {
            figure: figure.clone(),
            cases: rows.len(),
            percent: percent(spread.mean),
            half_width: spread.half_width().map(half),
        })
    };
    figures.into_iter().filter_map(mean).collect()
}

#[cfg(test)]
mod tests {
    use pageout_workload::rng::SplitMix64;
    use serde_json::json;

    use super::*;

    fn run(speed: f64) -> Ended {
        Ok(Outcome::of(&json!({ "accesses": 1000, "end_ns": 1e9 / speed * 1000.0, "tasks": [] })))
    }

    fn judged(base: &[f64], patched: &[f64]) -> Judged {
        let runs = |speeds: &[f64]| speeds.iter().map(|speed| run(*speed)).collect::<Vec<Ended>>();
        let (base, patched) = (runs(base), runs(patched));
        Judged::of("", "", 1, base.iter().collect(), patched.iter().collect())
    }

    fn speed(case: &Judged) -> &Row {
        case.rows.iter().find(|row| row.figure.name == "accesses_per_s").unwrap()
    }

    #[test]
    fn a_row_helps_beyond_noise_and_from_one_percent_on() {
        let says = |base: &[f64], patched: &[f64]| speed(&judged(base, patched)).says();
        assert_eq!(says(&[100.0, 101.0, 102.0], &[110.0, 111.5, 112.0]), Says::Helps);
        assert_eq!(says(&[100.0, 101.0, 102.0], &[90.0, 91.5, 92.0]), Says::Hurts);
        assert_eq!(says(&[100.0, 100.0, 100.0], &[110.0, 90.0, 104.0]), Says::Noise);
        assert_eq!(says(&[100.0, 100.0, 100.0], &[100.5, 100.51, 100.49]), Says::Little);
        assert_eq!(says(&[100.0, 101.0], &[100.0, 101.0]), Says::Same);
        assert_eq!(says(&[100.0], &[110.0]), Says::OneSeed);
    }

    #[test]
    fn sums_of_runs_that_did_not_do_the_same_work_are_compared_for_each_thousand_accesses() {
        let run = |accesses: u64, pages: u64| -> Ended {
            Ok(Outcome::of(
                &json!({ "accesses": accesses, "end_ns": 1, "devices": [{ "pages_read": pages, "pages_written": 0 }] }),
            ))
        };
        let (base, patched) = (run(1000, 100), run(2000, 200));
        let case = Judged::of("", "", 1, vec![&base], vec![&patched]);
        let row = case.rows.iter().find(|row| row.figure.name == "pages_read").unwrap();
        assert!(row.is_per_thousand && row.says() == Says::Same, "{:?}", row.paired);
    }

    #[test]
    fn of_many_rows_that_are_nothing_hardly_one_is_marked() {
        let mut generator = SplitMix64::new(3);
        let mut draw = || 100.0 + generator.below(1000) as f64 / 100.0;
        let mut cases: Vec<Judged> = Vec::new();
        for _ in 0..1000 {
            let sides: [Vec<f64>; 2] = std::array::from_fn(|_| (0..5).map(|_| draw()).collect());
            cases.push(judged(&sides[0], &sides[1]));
        }
        cases.push(judged(&[100.0, 101.0, 102.0, 103.0, 104.0], &[200.0, 202.0, 204.01, 206.0, 208.0]));
        correct(&mut cases);
        let outside =
            cases.iter().filter(|case| matches!(speed(case).says(), Says::Helps | Says::Hurts)).count();
        assert!((25..75).contains(&outside), "{outside} of a thousand");
        let marked: Vec<usize> = (0..cases.len()).filter(|&at| speed(&cases[at]).holds).collect();
        assert_eq!(marked, [1000], "and what is something is");
        assert_eq!((drawn(&cases), by_chance(1001)), (1001, 1001.0 * RISK));
    }

    #[test]
    fn a_geometric_mean_is_that_of_the_ratios() {
        let (one, other) = (judged(&[100.0, 100.0], &[200.0, 200.0]), judged(&[100.0, 100.0], &[50.0, 50.0]));
        let means = geometric_means(&[&one, &other]);
        let mean = means.iter().find(|mean| mean.figure.name == "accesses_per_s").unwrap();
        assert!(mean.percent.abs() < 1e-6 && mean.cases == 2, "{}", mean.percent);
    }

    #[test]
    fn what_failed_or_was_killed_has_no_rows() {
        let failed = Err(Failed { is_input: false, message: "out of memory".to_string() });
        let well = run(100.0);
        let case = Judged::of("", "", 1, vec![&well], vec![&failed]);
        assert!(case.rows.is_empty() && !case.is_compared() && case.failed[1].len() == 1);
        let killed = Ok(Outcome::of(&json!({ "accesses": 1, "end_ns": 1, "kills": [{}] })));
        let case = Judged::of("", "", 1, vec![&well], vec![&killed]);
        assert!(case.rows.is_empty() && case.killed == [0, 1]);
    }
}
