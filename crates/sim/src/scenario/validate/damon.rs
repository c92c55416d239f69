//! Checks of `[[damon]]`: intervals and limits that a kdamond can have, and keys that an action, a goal or a filter needs.

use pageout_engine::damos::AttrsError;
use pageout_engine::{ConfigError, damon_files};

use super::{Check, Problem};
use crate::scenario::damon::{
    Damon, DamonState, Filter, FilterKind, GoalMetric, Operations, QuotaGoal, Scheme, SchemeAction,
    WatermarkMetric,
};
use crate::scenario::{PAGE_SIZE, Scalar, Size};

/// The modules that run alone.
const MODULES: [&str; 3] = ["damon_reclaim.enabled", "damon_lru_sort.enabled", "damon_stat.enabled"];

impl Check<'_> {
    /// Modules of DAMON: at most one, whose limits are in order.
    pub(super) fn damon_modules(&mut self) {
        let switches = &self.scenario.kernel.switches;
        let mut enabled = MODULES.iter().filter(|name| switches.get(name) == Some(&Scalar::Bool(true)));
        if let (Some(first), Some(second)) = (enabled.next(), enabled.next()) {
            let message = format!("found `kernel.{first}` and `kernel.{second}`, expected one of them");
            let problem = Problem::new(format!("kernel.{second}"), message);
            return self.report(problem.help("a module of DAMON runs alone: enable one"));
        }
        // A value that can't be read is reported with its own key.
        if !self.problems.is_empty() {
            return;
        }
        let Ok(config) = self.scenario.config() else { return };
        if let Err(ConfigError::Below { what, value, of, least }) = config.check_damon() {
            let given = if switches.get(what).is_some() { what } else { of };
            let message = format!("`{what}`: found {value}, expected at least {least}, which is `{of}`");
            let problem = Problem::new(format!("kernel.{given}"), message);
            self.report(problem.help(format!("raise `kernel.{what}`, or lower `kernel.{of}`")));
        }
    }

    pub(super) fn damon(&mut self, prefix: &str, damon: &Damon) {
        self.ranges(&format!("{prefix}."), damon);
        self.ranges(&format!("{prefix}.intervals."), &damon.intervals);
        self.ranges(&format!("{prefix}.nr_regions."), &damon.nr_regions);
        self.attrs(prefix, damon);
        let switches = &self.scenario.kernel.switches;
        let module = MODULES.iter().find(|name| switches.get(name) == Some(&Scalar::Bool(true)));
        if let (DamonState::On, Some(module)) = (damon.state, module) {
            let message = format!("found a kdamond and `kernel.{module}`, expected one of them");
            let help = "a module of DAMON runs alone: set `state` to \"off\", or do not enable the module";
            self.report(Problem::new(format!("{prefix}.state"), message).help(help));
        }
        self.operations(prefix, damon);
        if let Some(node) = damon.numa_node {
            self.node_exists(&format!("{prefix}.numa_node"), node);
            if !damon.region.is_empty() {
                let problem =
                    Problem::new(prefix, "found both `numa_node` and `region`, expected one of them");
                self.report(problem.help("numa_node stands for the region of all addresses of the node"));
            }
        }
        let mut end = 0;
        for (index, range) in damon.region.iter().enumerate() {
            let key = format!("{prefix}.region[{index}]");
            self.ranges(&format!("{key}."), range);
            if range.start >= range.end || range.start.0 < end {
                let message = format!(
                    "found {} to {}, expected an address range that begins before it ends, and behind the previous range",
                    range.start, range.end
                );
                self.report(Problem::new(key, message).help("give ranges in the order of their addresses"));
            }
            if !range.start.0.is_multiple_of(PAGE_SIZE) || !range.end.0.is_multiple_of(PAGE_SIZE) {
                let message = format!(
                    "found {} to {}, expected multiples of {}",
                    range.start,
                    range.end,
                    Size(PAGE_SIZE)
                );
                let problem = Problem::new(format!("{prefix}.region[{index}]"), message);
                self.report(problem.help("a region is sampled page by page: round both ends"));
            }
            end = end.max(range.end.0);
        }
        for (index, scheme) in damon.scheme.iter().enumerate() {
            let prefix = format!("{prefix}.scheme[{index}]");
            self.scheme(&prefix, scheme);
            self.reachable(&prefix, damon, scheme);
        }
    }

    /// Counts and targets that the kdamond of a scheme can have.
    fn reachable(&mut self, prefix: &str, damon: &Damon, scheme: &Scheme) {
        // Tuning changes both intervals by the same factor.
        let (least, samples) = (scheme.access_pattern.nr_accesses.min, damon.attrs().samples());
        if least > samples {
            let key = format!("{prefix}.access_pattern.nr_accesses.min");
            let message =
                format!("found {least}, expected at most the samples of a window, which are {samples}");
            let help = "no region would match: lower `min`, or give a window more samples (intervals)";
            self.report(Problem::new(key, message).help(help));
        }
        if let (Some(node), Some(target)) = (damon.numa_node, scheme.target_nid)
            && node == target
        {
            let message = format!("found node {target}, the one that the kdamond monitors (`numa_node`)");
            let problem = Problem::new(format!("{prefix}.target_nid"), message);
            self.report(problem.help("no page would move: name another node"));
        }
        let tasks = &self.scenario.task;
        let copies = |name: &String| tasks.iter().find(|task| task.name == *name).map(|task| task.copies);
        let targets = match damon.operations {
            Operations::Paddr => 1,
            Operations::Vaddr => damon.target.iter().filter_map(copies).map(u64::from).sum(),
        };
        for (index, filter) in scheme.filter.iter().enumerate() {
            if let (FilterKind::Target, Some(target)) = (filter.kind, filter.damon_target_idx)
                && u64::from(target) >= targets
                && targets > 0
            {
                let key = format!("{prefix}.filter[{index}].damon_target_idx");
                let message = format!("found target {target}, expected one of {targets}, counted from 0");
                let help = "the filter would match nothing: each copy of a task in `target` is one, and physical memory is target 0";
                self.report(Problem::new(key, message).help(help));
            }
        }
    }

    /// Intervals and limits that need each other.
    fn attrs(&mut self, prefix: &str, damon: &Damon) {
        let Damon { intervals, nr_regions, .. } = damon;
        let (key, message, help) = match damon.attrs().check() {
            Err(AttrsError::SampleAboveAggregation) => (
                "intervals.sample_us",
                format!(
                    "found {}, expected at most the aggregation interval, `aggr_us` = {}",
                    intervals.sample_us, intervals.aggr_us
                ),
                "lower `sample_us`, or raise `aggr_us`",
            ),
            Err(AttrsError::MinAboveMax) => (
                "nr_regions.min",
                format!("found {}, expected at most max regions, `max` = {}", nr_regions.min, nr_regions.max),
                "lower `min`, or raise `max`",
            ),
            Err(AttrsError::NoIntervals) => (
                "intervals.aggrs",
                format!(
                    "found sample intervals from {} to {}, expected min_sample_us from 1 to max_sample_us",
                    intervals.min_sample_us, intervals.max_sample_us
                ),
                "give both: min_sample_us = 5000, max_sample_us = 10_000_000",
            ),
            // Each of the others is out of the range of its key.
            Err(_) => return,
            Ok(()) if intervals.aggrs > 0 && intervals.access_bp == 0 => (
                "intervals.aggrs",
                "found windows to tune after, but no `access_bp`, the goal".to_string(),
                "give the goal: access_bp = 400",
            ),
            Ok(()) => return,
        };
        self.report(Problem::new(format!("{prefix}.{key}"), message).help(help));
    }

    /// Targets, addresses and actions that the operations have.
    fn operations(&mut self, prefix: &str, damon: &Damon) {
        let is_vaddr = damon.operations == Operations::Vaddr;
        let has_ranges = damon.numa_node.is_some() || !damon.region.is_empty();
        let word = damon.operations.name();
        self.goes_with(prefix, word, "target", is_vaddr, !damon.target.is_empty());
        for (index, name) in damon.target.iter().enumerate() {
            self.reference(&format!("{prefix}.target[{index}]"), &self.known.tasks, name);
        }
        if is_vaddr && has_ranges {
            let problem = Problem::new(prefix, "vaddr monitors all mappings: found `region` or `numa_node`");
            self.report(problem.help("leave it out; both are for paddr"));
        }
        for (index, scheme) in damon.scheme.iter().enumerate() {
            let has_it = match scheme.action {
                SchemeAction::Cold => is_vaddr,
                SchemeAction::LruPrio | SchemeAction::LruDeprio => !is_vaddr,
                _ => true,
            };
            if !has_it {
                let message = format!("`{}`: {word} has no such action", scheme.action.name());
                let problem = Problem::new(format!("{prefix}.scheme[{index}].action"), message);
                self.report(problem.help("the kernel would do nothing, and restart the age of its regions"));
            }
        }
    }

    fn scheme(&mut self, prefix: &str, scheme: &Scheme) {
        self.ranges(&format!("{prefix}."), scheme);
        let pattern = &scheme.access_pattern;
        self.ranges(&format!("{prefix}.access_pattern.sz."), &pattern.sz);
        self.ranges(&format!("{prefix}.access_pattern.nr_accesses."), &pattern.nr_accesses);
        self.ranges(&format!("{prefix}.access_pattern.age."), &pattern.age);
        let is_empty = [
            ("sz", pattern.sz.max.is_some_and(|max| pattern.sz.min > max)),
            ("nr_accesses", pattern.nr_accesses.max.is_some_and(|max| pattern.nr_accesses.min > max)),
            ("age", pattern.age.max.is_some_and(|max| pattern.age.min > max)),
        ];
        for (name, _) in is_empty.into_iter().filter(|(_, is_empty)| *is_empty) {
            let key = format!("{prefix}.access_pattern.{name}");
            let message = format!("`{name}`: found `min` above `max`, expected at most `max`");
            self.report(
                Problem::new(key, message).help("no region would match: lower `min`, or raise `max`"),
            );
        }
        let migrates = matches!(scheme.action, SchemeAction::MigrateHot | SchemeAction::MigrateCold);
        match scheme.target_nid {
            Some(node) if migrates => self.node_exists(&format!("{prefix}.target_nid"), node),
            None if migrates => {
                let message = format!("`{}`: found no target_nid", scheme.action.name());
                let problem = Problem::new(format!("{prefix}.action"), message);
                self.report(problem.help("give the node to migrate to: target_nid = 1"));
            }
            Some(_) => {
                let message = format!("`{}` migrates nothing: found a target_nid", scheme.action.name());
                let problem = Problem::new(format!("{prefix}.target_nid"), message);
                self.report(problem.help("leave it out, or let the action be migrate_hot or migrate_cold"));
            }
            None => {}
        }
        self.quotas(&format!("{prefix}.quotas"), scheme);
        self.watermarks(&format!("{prefix}.watermarks"), scheme);
        for (index, filter) in scheme.filter.iter().enumerate() {
            self.filter(&format!("{prefix}.filter[{index}]"), filter);
        }
    }

    fn quotas(&mut self, prefix: &str, scheme: &Scheme) {
        let quotas = &scheme.quotas;
        self.ranges(&format!("{prefix}."), quotas);
        self.ranges(&format!("{prefix}.weights."), &quotas.weights);
        let is_limited = quotas.ms > 0 || quotas.bytes.0 > 0 || !quotas.goal.is_empty();
        if is_limited && quotas.reset_interval_ms == 0 {
            let problem = Problem::new(prefix, "found a quota without reset_interval_ms");
            self.report(problem.help("give the interval of the quota: reset_interval_ms = 1000"));
        }
        if quotas.fail_charge_denom > 0 && quotas.fail_charge_num > quotas.fail_charge_denom {
            let message = "found fail_charge_num above fail_charge_denom, expected a share of at most 1";
            self.report(Problem::new(format!("{prefix}.fail_charge_num"), message).help("lower it"));
        }
        if quotas.fail_charge_denom == 0 && quotas.fail_charge_num > 0 {
            let message = "found fail_charge_num without fail_charge_denom: all of a region would be charged";
            let problem = Problem::new(format!("{prefix}.fail_charge_num"), message);
            self.report(problem.help("give the denominator: fail_charge_denom = 1024"));
        }
        for (index, goal) in quotas.goal.iter().enumerate() {
            self.goal(&format!("{prefix}.goal[{index}]"), goal);
        }
    }

    fn goal(&mut self, prefix: &str, goal: &QuotaGoal) {
        self.ranges(&format!("{prefix}."), goal);
        let is_of_memcg =
            matches!(goal.target_metric, GoalMetric::NodeMemcgUsedBp | GoalMetric::NodeMemcgFreeBp);
        let is_of_node = is_of_memcg
            || matches!(goal.target_metric, GoalMetric::NodeMemUsedBp | GoalMetric::NodeMemFreeBp);
        let is_of_user = goal.target_metric == GoalMetric::UserInput;
        self.goes_with(prefix, goal.target_metric.name(), "nid", is_of_node, goal.nid.is_some());
        self.goes_with(prefix, goal.target_metric.name(), "path", is_of_memcg, goal.path.is_some());
        if goal.current_value > 0 && !is_of_user {
            let message = format!("{} is measured: found a current_value", goal.target_metric.name());
            let problem = Problem::new(format!("{prefix}.current_value"), message);
            self.report(problem.help("leave it out; it is for user_input"));
        }
        if let (Some(node), true) = (goal.nid, is_of_node) {
            self.node_exists(&format!("{prefix}.nid"), node);
        }
        if let (Some(path), true) = (&goal.path, is_of_memcg) {
            self.reference(&format!("{prefix}.path"), &self.known.memcgs, path);
        }
    }

    fn watermarks(&mut self, prefix: &str, scheme: &Scheme) {
        let marks = &scheme.watermarks;
        self.ranges(&format!("{prefix}."), marks);
        if marks.metric == WatermarkMetric::None {
            if marks.high + marks.mid + marks.low > 0 {
                let problem = Problem::new(prefix, "found watermarks without a metric");
                self.report(problem.help("give metric = \"free_mem_rate\""));
            }
            return;
        }
        if marks.low > marks.mid || marks.mid > marks.high {
            let message = format!(
                "found low {}, mid {}, high {}, expected low <= mid <= high",
                marks.low, marks.mid, marks.high
            );
            self.report(Problem::new(prefix, message).help("order them"));
        }
        if marks.interval_us == 0 {
            let problem = Problem::new(prefix, "found watermarks without interval_us");
            self.report(problem.help("give the time between two checks: interval_us = 5000000"));
        }
    }

    fn filter(&mut self, prefix: &str, filter: &Filter) {
        self.ranges(&format!("{prefix}."), filter);
        let kind = filter.kind;
        for (name, of, is_given) in [
            ("memcg_path", FilterKind::Memcg, filter.memcg_path.is_some()),
            ("addr_start", FilterKind::Addr, filter.addr_start.is_some()),
            ("addr_end", FilterKind::Addr, filter.addr_end.is_some()),
            ("damon_target_idx", FilterKind::Target, filter.damon_target_idx.is_some()),
            ("min", FilterKind::HugepageSize, filter.min.is_some()),
            ("max", FilterKind::HugepageSize, filter.max.is_some()),
        ] {
            self.goes_with(prefix, kind.name(), name, kind == of, is_given);
        }
        if let (Some(path), FilterKind::Memcg) = (&filter.memcg_path, kind) {
            self.reference(&format!("{prefix}.memcg_path"), &self.known.memcgs, path);
        }
        let ends = [(filter.addr_start, filter.addr_end), (filter.min, filter.max)];
        if ends.iter().any(|(from, to)| from.zip(*to).is_some_and(|(from, to)| from > to)) {
            let problem = Problem::new(prefix, "found a range that ends before it begins");
            self.report(problem.help("nothing would match: exchange both ends"));
        }
    }

    /// The files of the scenario's kdamonds, below their directory.
    pub(super) fn damon_files(&self) -> Vec<String> {
        let is_on = |damon: &&Damon| damon.state == DamonState::On;
        let is_core = |filter: &&Filter| matches!(filter.kind, FilterKind::Addr | FilterKind::Target);
        let mut files = vec!["nr_kdamonds".to_string()];
        for (number, damon) in self.scenario.damon.iter().filter(is_on).enumerate() {
            for file in damon_files().filter(|file| file.path.starts_with('*')) {
                let path = file.path.replacen('*', &number.to_string(), 1);
                let counts: Vec<usize> = match &path {
                    path if !path.contains('*') => {
                        files.push(path.clone());
                        continue;
                    }
                    path if path.contains("/regions/*") => {
                        vec![damon.region.len() + usize::from(damon.numa_node.is_some())]
                    }
                    _ => damon.scheme.iter().map(|scheme| several(scheme, &path, is_core)).collect(),
                };
                let of_regions = path.contains("/regions/*");
                for (second, count) in counts.into_iter().enumerate() {
                    let path =
                        if of_regions { path.clone() } else { path.replacen('*', &second.to_string(), 1) };
                    match path.contains('*') {
                        true => {
                            files.extend((0..count).map(|third| path.replacen('*', &third.to_string(), 1)))
                        }
                        false => files.push(path),
                    }
                }
            }
        }
        files
    }

    /// A key is needed by some words of another key, and has no meaning for the rest.
    fn goes_with(&mut self, prefix: &str, word: &str, name: &str, is_needed: bool, is_given: bool) {
        let problem = match (is_needed, is_given) {
            (true, false) => Problem::new(prefix, format!("{word}: found no `{name}`"))
                .help(format!("give `{name}`, or choose another word than {word}")),
            (false, true) => {
                Problem::new(format!("{prefix}.{name}"), format!("`{name}` has no meaning for {word}"))
                    .help("leave it out")
            }
            _ => return,
        };
        self.report(problem);
    }

    fn node_exists(&mut self, key: &str, node: u8) {
        let nodes = self.scenario.machine.node_sizes().len();
        if usize::from(node) >= nodes {
            let message = format!("found node {node}, expected one of the machine's, which has {nodes}");
            let problem = Problem::new(key, message);
            self.report(problem.help("nodes are the [[machine.node]] entries, counted from 0"));
        }
    }
}

/// The number of goals or filters that a scheme has, whichever a file is of.
fn several(scheme: &Scheme, path: &str, is_core: impl Fn(&&Filter) -> bool) -> usize {
    let core = scheme.filter.iter().filter(is_core).count();
    match path {
        path if path.contains("/goals/*") => scheme.quotas.goal.len(),
        path if path.contains("/core_filters/*") => core,
        path if path.contains("/ops_filters/*") => scheme.filter.len() - core,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    /// The problems of a scenario with two nodes, a cgroup, a task and this kdamond: key and message each.
    fn problems(damon: &str) -> Vec<(String, String)> {
        let text = format!(
            r#"{{
                "machine": {{"node": [{{"memory": "32MiB"}}, {{"memory": "32MiB"}}]}},
                "memcg": [{{"path": "/web"}}],
                "task": [{{"name": "reader", "object": [{{"channel": "anonymous", "size": "1MiB", "workload": {{"pattern": "fill"}}}}]}}],
                "damon": [{damon}]
            }}"#
        );
        let scenario: Scenario = serde_json::from_str(&text).unwrap();
        scenario.validate().into_iter().map(|problem| (problem.key, problem.message)).collect()
    }

    fn problem(damon: &str) -> (String, String) {
        let problems = problems(damon);
        assert_eq!(problems.len(), 1, "{damon}: {problems:?}");
        problems.into_iter().next().unwrap()
    }

    fn of_scheme(scheme: &str) -> (String, String) {
        problem(&format!(r#"{{"scheme": [{scheme}]}}"#))
    }

    #[test]
    fn complete_kdamond_has_no_problem() {
        let damon = r#"{
            "numa_node": 1,
            "intervals": {"sample_us": 5000, "aggr_us": 100000, "access_bp": 400, "aggrs": 3, "min_sample_us": 5000, "max_sample_us": 10000000},
            "nr_regions": {"min": 10, "max": 100},
            "scheme": [{
                "action": "migrate_hot", "target_nid": 0, "apply_interval_us": 1000000,
                "access_pattern": {"sz": {"min": "4KiB"}, "nr_accesses": {"min": 1, "max": 20}, "age": {"min": 3}},
                "quotas": {"ms": 10, "bytes": "1MiB", "reset_interval_ms": 1000, "weights": {"age_permil": 1}, "goal": [
                    {"target_metric": "node_mem_used_bp", "target_value": 9970, "nid": 0},
                    {"target_metric": "node_memcg_used_bp", "target_value": 5000, "nid": 1, "path": "/web"},
                    {"target_value": 10000, "current_value": 1}]},
                "watermarks": {"metric": "free_mem_rate", "interval_us": 5000000, "high": 500, "mid": 400, "low": 200},
                "filter": [{"kind": "memcg", "memcg_path": "/web"}, {"kind": "addr", "addr_start": "0", "addr_end": "1MiB"},
                    {"kind": "hugepage_size", "min": "2MiB", "max": "2MiB"}, {"kind": "target", "damon_target_idx": 0}]
            }]
        }"#;
        assert_eq!(problems(damon), []);
        assert_eq!(
            problems(r#"{"operations": "vaddr", "target": ["reader"], "scheme": [{"action": "cold"}]}"#),
            []
        );
    }

    #[test]
    fn problem_of_a_kdamond_names_its_key() {
        for (damon, key, message) in [
            (
                r#"{"intervals": {"sample_us": 200000}}"#,
                "damon[0].intervals.sample_us",
                "found 200000, expected at most the aggregation interval, `aggr_us` = 100000",
            ),
            (r#"{"intervals": {"aggrs": 3, "access_bp": 400}}"#, "damon[0].intervals.aggrs", "from 0 to 0"),
            (
                r#"{"intervals": {"aggrs": 3, "min_sample_us": 1, "max_sample_us": 2}}"#,
                "damon[0].intervals.aggrs",
                "no `access_bp`",
            ),
            (r#"{"intervals": {"access_bp": 10001}}"#, "damon[0].intervals.access_bp", "too large"),
            (r#"{"intervals": {"sample_us": 0}}"#, "damon[0].intervals.sample_us", "too small"),
            (
                r#"{"nr_regions": {"min": 20, "max": 10}}"#,
                "damon[0].nr_regions.min",
                "found 20, expected at most max regions, `max` = 10",
            ),
            (r#"{"numa_node": 2}"#, "damon[0].numa_node", "found node 2"),
            (r#"{"numa_node": 0, "region": [{"start": "0", "end": "1MiB"}]}"#, "damon[0]", "found both"),
            (
                r#"{"region": [{"start": "2MiB", "end": "1MiB"}]}"#,
                "damon[0].region[0]",
                "begins before it ends",
            ),
            (
                r#"{"region": [{"start": "100", "end": "1MiB"}]}"#,
                "damon[0].region[0]",
                "expected multiples of 4KiB",
            ),
            (
                r#"{"numa_node": 1, "scheme": [{"action": "migrate_hot", "target_nid": 1}]}"#,
                "damon[0].scheme[0].target_nid",
                "the one that the kdamond monitors",
            ),
            (
                r#"{"intervals": {"aggrs": 1, "access_bp": 1, "min_sample_us": 1, "max_sample_us": 9223372036854775807}}"#,
                "damon[0].intervals.max_sample_us",
                "too large",
            ),
            (r#"{"operations": "vaddr"}"#, "damon[0]", "vaddr: found no `target`"),
            (r#"{"target": ["reader"]}"#, "damon[0].target", "has no meaning for paddr"),
            (
                r#"{"operations": "vaddr", "target": ["writer"]}"#,
                "damon[0].target[0]",
                "no task called `writer`",
            ),
        ] {
            let (found, says) = match problems(damon) {
                found if found.is_empty() => panic!("{damon} has no problem"),
                mut found => found.remove(0),
            };
            assert_eq!(found, key, "{damon}: {says}");
            assert!(says.contains(message), "{damon}: {says}");
        }
    }

    #[test]
    fn problem_of_a_scheme_names_its_key() {
        for (scheme, key, message) in [
            (r#"{"action": "migrate_hot"}"#, "action", "found no target_nid"),
            (r#"{"action": "pageout", "target_nid": 1}"#, "target_nid", "migrates nothing"),
            (r#"{"action": "migrate_cold", "target_nid": 5}"#, "target_nid", "found node 5"),
            (r#"{"action": "cold"}"#, "action", "paddr has no such action"),
            (r#"{"quotas": {"ms": 10}}"#, "quotas", "without reset_interval_ms"),
            (
                r#"{"access_pattern": {"age": {"min": 3, "max": 2}}}"#,
                "access_pattern.age",
                "`min` above `max`",
            ),
            (
                r#"{"access_pattern": {"nr_accesses": {"min": 21}}}"#,
                "access_pattern.nr_accesses.min",
                "the samples of a window, which are 20",
            ),
            (
                r#"{"filter": [{"kind": "target", "damon_target_idx": 1}]}"#,
                "filter[0].damon_target_idx",
                "found target 1, expected one of 1",
            ),
            (r#"{"quotas": {"fail_charge_num": 1}}"#, "quotas.fail_charge_num", "without fail_charge_denom"),
            (r#"{"watermarks": {"high": 5}}"#, "watermarks", "without a metric"),
            (
                r#"{"watermarks": {"metric": "free_mem_rate", "interval_us": 1, "high": 1, "mid": 2}}"#,
                "watermarks",
                "low <= mid <= high",
            ),
            (r#"{"filter": [{"kind": "memcg"}]}"#, "filter[0]", "memcg: found no `memcg_path`"),
            (r#"{"filter": [{"kind": "anon", "min": "1MiB"}]}"#, "filter[0].min", "has no meaning for anon"),
            (r#"{"filter": [{"kind": "memcg", "memcg_path": "/x"}]}"#, "filter[0].memcg_path", "`/x`"),
            (
                r#"{"quotas": {"reset_interval_ms": 1, "goal": [{"target_metric": "node_mem_used_bp", "target_value": 1}]}}"#,
                "quotas.goal[0]",
                "found no `nid`",
            ),
        ] {
            let (found, says) = of_scheme(scheme);
            assert_eq!(found, format!("damon[0].scheme[0].{key}"), "{scheme}: {says}");
            assert!(says.contains(message), "{scheme}: {says}");
        }
    }

    #[test]
    fn kernel_keys_out_of_order_are_refused_by_key() {
        for (kernel, key, message) in [
            (
                r#""damon_reclaim.enabled": true, "damon.max_nr_regions": 5"#,
                "kernel.damon.max_nr_regions",
                "found 5, expected at least 10, which is `damon.min_nr_regions`",
            ),
            (
                r#""damon_lru_sort.enabled": true, "damon.sample_interval": 100001"#,
                "kernel.damon.sample_interval",
                "`damon.aggr_interval`: found 100000, expected at least 100001",
            ),
            (
                r#""damon_reclaim.enabled": true, "damon_reclaim.wmarks_high": 399"#,
                "kernel.damon_reclaim.wmarks_high",
                "expected at least 400",
            ),
            (
                r#""sched.numa_balancing.scan_period_min_ms": 100, "sched.numa_balancing.scan_period_max_ms": 99"#,
                "kernel.sched.numa_balancing.scan_period_max_ms",
                "found 99, expected at least 100",
            ),
            (
                r#""damon_reclaim.enabled": true, "damon_stat.enabled": true"#,
                "kernel.damon_stat.enabled",
                "expected one of them",
            ),
        ] {
            let text = format!(
                r#"{{
                    "kernel": {{{kernel}}},
                    "task": [{{"name": "reader", "object": [{{"channel": "anonymous", "size": "1MiB", "workload": {{"pattern": "fill"}}}}]}}]
                }}"#
            );
            let problems = serde_json::from_str::<Scenario>(&text).unwrap().validate();
            assert_eq!(problems.len(), 1, "{kernel}: {problems:?}");
            assert_eq!(problems[0].key, key, "{problems:?}");
            assert!(problems[0].message.contains(message) && problems[0].help.is_some(), "{problems:?}");
        }
    }

    #[test]
    fn files_are_those_of_kdamonds_that_are_on() {
        let read = |number: usize, file: &str| {
            let text = format!(
                r#"{{
                    "task": [{{"name": "reader", "object": [{{"channel": "anonymous", "size": "1MiB", "workload": {{"pattern": "fill"}}}}]}}],
                    "damon": [{{"state": "off"}}, {{"scheme": [{{"filter": [{{"kind": "anon"}}]}}]}}],
                    "event": [{{"at": "1s", "read": "/sys/kernel/mm/damon/admin/kdamonds/{number}/{file}"}}]
                }}"#
            );
            serde_json::from_str::<Scenario>(&text).unwrap().validate()
        };
        assert_eq!(read(0, "contexts/0/schemes/0/stats/nr_tried"), []);
        assert_eq!(read(0, "contexts/0/schemes/0/ops_filters/0/type"), []);
        for (number, file) in [
            (1, "state"),
            (0, "contexts/0/schemes/1/action"),
            (0, "contexts/0/schemes/0/core_filters/0/type"),
            (0, "contexts/0/targets/0/regions/0/start"),
        ] {
            assert_eq!(read(number, file).len(), 1, "{number}/{file}");
        }
    }
}
