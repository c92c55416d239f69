//! `[[expect]]` of a scenario, held against results ([`pageout_study::result::expectations`]), as text and as an exit code.

use pageout_study::result::expectations::Checked;

use crate::failure::{Failure, Outcome};
use crate::print::Layout;

/// A line for each expectation, and for those that failed why they should not have.
pub(crate) fn to_text(checked: &[Checked], layout: Layout) -> String {
    if checked.is_empty() {
        return String::new();
    }
    let mut rows = vec![["expected", "", "of", ""].map(str::to_string).to_vec()];
    for one in checked {
        let verdict = match (one.is_true, one.seeds) {
            (true, _) => "holds".to_string(),
            (false, 1) => "FAILS".to_string(),
            (false, seeds) => format!("FAILS for {} of {seeds} seeds", seeds - one.true_for),
        };
        rows.push(vec![one.holds.to_string(), verdict, one.figure.clone(), one.figures.clone()]);
    }
    let mut text = format!("\n{}", layout.table(&rows, 4));
    for one in checked.iter().filter(|one| !one.is_true && !one.because.is_empty()) {
        let told = format!("{}, {}: expected because {}", one.figure, one.holds, one.because);
        text += &format!("\n{}", layout.wrap(&told, ""));
    }
    text
}

/// Fails unless all is as expected.
pub(crate) fn outcome(checked: &[Checked]) -> Outcome {
    let failed = checked.iter().filter(|one| !one.is_true).count();
    if failed == 0 {
        return Ok(());
    }
    let all = checked.len();
    let message = format!("{failed} of {all} expectations of the scenario failed");
    Err(Failure::Unexpected(anyhow::anyhow!(message)))
}
