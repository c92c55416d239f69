//! The table of access times by what made accesses wait: a few lines for each task that waited, and for each group of several.

use pageout_sim::Cause;
use pageout_sim::scenario::Scenario;
use pageout_study::result::access::AccessResult;
use pageout_study::result::run_result::{Latency, RunResult};

use crate::print::{Layout, figures};

/// Tasks and groups in the table.
const TOLD_MAX: usize = 8;

/// The figures of a row.
const LEGEND: &str = "An access is a load, a store, or a call of read(2) or write(2), hits included. It lasts from when its task is ready \
     for it until it is done. The rows below a task are causes: the number of accesses that lost time to it, and the time lost. The last \
     columns are its share of the time of all accesses, and of the slowest 1% of them. Quantiles are at most 1% above the true value.";

/// The table; nothing where no access waited for anything.
pub(crate) fn text(scenario: &Scenario, result: &RunResult, layout: Layout) -> String {
    let tasks = result.tasks.iter().filter_map(|task| Some((task.name.clone(), task.access.as_ref()?)));
    let of_several = result.groups_of_several();
    let groups = result.memcgs.iter().filter(|memcg| of_several.contains(memcg.path.as_str()));
    let groups =
        groups.filter_map(|memcg| Some((format!("tasks in {}", memcg.path), memcg.access.as_ref()?)));
    let told: Vec<(String, &AccessResult)> =
        tasks.chain(groups).filter(|(_, access)| access.lost_ns() > 0).collect();
    if told.is_empty() {
        return String::new();
    }
    let heading = ["accesses of", "count", "p50", "p99", "p99.9", "longest", "total", "of slowest 1%"];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    for (name, access) in told.iter().take(TOLD_MAX) {
        rows.extend(rows_of(name, access));
    }
    let mut text = format!("\n{}", layout.table(&rows, 1));
    if told.len() > TOLD_MAX {
        let more = figures::count((told.len() - TOLD_MAX) as u64);
        text += &format!("... and {more} more that waited; --json has them all\n");
    }
    text + &layout.wrap(&(LEGEND.to_string() + &of_many(scenario)), "")
}

/// What an access here stands for, where that is more than one.
fn of_many(scenario: &Scenario) -> String {
    let mut text = String::new();
    let pages = scenario.machine.page_stands_for;
    if pages > 1 {
        text += &format!(
            " A page stands for {}, and what an access to it takes is what all of these take.",
            figures::count(pages.into())
        );
    }
    if scenario.task.iter().any(|task| task.stands_for > 1) {
        text += " An access with a scale factor counts as one.";
    }
    text
}

fn rows_of(name: &str, access: &AccessResult) -> Vec<Vec<String>> {
    let all = access.all.total_ns;
    let row = |name: String, of: &Latency, rest: [String; 2]| {
        let times = [of.p50_ns, of.p99_ns, of.p999_ns, of.max_ns].map(figures::time);
        [name, figures::count(of.count)].into_iter().chain(times).chain(rest).collect::<Vec<String>>()
    };
    let slowest = format!("{} up", figures::time(access.slowest.from_ns));
    let mut rows = vec![row(name.to_string(), &access.all, [figures::time(all), slowest])];
    let share = |part| figures::percent(figures::share(part, all));
    for (cause, lost) in &access.by_cause.0 {
        let shares = [share(lost.total_ns), figures::percent(access.slowest_share(*cause))];
        rows.push(row(format!("  {}", cause.title()), lost, shares));
    }
    let lost_by_slowest: f64 = Cause::ALL.iter().map(|&cause| access.slowest_share(cause)).sum();
    let shares = [share(access.own_work_ns), figures::percent((1.0 - lost_by_slowest).max(0.0))];
    let mut own_work = vec!["  own work".to_string()];
    own_work.extend((0..5).map(|_| String::new()));
    own_work.extend(shares);
    rows.push(own_work);
    if access.fsync.count > 0 {
        let all = figures::time(access.fsync.total_ns);
        rows.push(row("  fsync(2) between them".to_string(), &access.fsync, [all, String::new()]));
    }
    rows
}
