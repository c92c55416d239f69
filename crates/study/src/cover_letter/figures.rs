//! What a run comes to, for a cover letter: figures of the machine and of each task, read from the JSON of `pageout run`.

use serde_json::Value;

use crate::result::access::shared_name;
use crate::result::better::Better;
use crate::result::metrics::Unit;

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Accesses of all tasks.
    pub accesses: u64,
    /// Processes that the OOM killer ended.
    pub kills: usize,
    /// Its figures, whose names and order are those of its scenario.
    pub figures: Vec<Measured>,
}

/// One figure with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The figure.
    pub figure: Figure,
    /// Its value.
    pub value: f64,
}

/// A figure of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name in data.
    pub name: String,
    /// The title of its line.
    pub title: String,
    /// The unit in which the figure is printed.
    pub unit: Unit,
    /// The direction in which the figure is better.
    pub better: Better,
    /// True if twice the work makes twice of it: where two runs did not do the same work, it is compared for each thousand accesses.
    pub is_sum: bool,
}

/// A figure of every run: its name, title, unit, better way, whether it is a sum, and where it is.
type Row = (&'static str, &'static str, Unit, Better, bool, fn(&Value) -> Option<f64>);

/// Figures of the machine, outcomes first.
const OF_MACHINE: [Row; 10] = [
    ("accesses_per_s", "accesses a second", Unit::PerSecond, Better::More, false, |run| {
        Some(run["accesses"].as_f64()? / (run["end_ns"].as_f64()?.max(1.0) / 1e9))
    }),
    ("pages_read", "pages read", Unit::Count, Better::Less, true, |run| sum(&run["devices"], "pages_read")),
    ("pages_written", "pages written", Unit::Count, Better::Less, true, |run| {
        sum(&run["devices"], "pages_written")
    }),
    ("refaults_anon", "refaults, anon", Unit::Count, Better::Less, true, |run| {
        Some(run["vmstat"]["workingset_refault_anon"].as_f64().unwrap_or(0.0))
    }),
    ("refaults_file", "refaults, file", Unit::Count, Better::Less, true, |run| {
        Some(run["vmstat"]["workingset_refault_file"].as_f64().unwrap_or(0.0))
    }),
    ("direct_reclaim_ns", "in direct reclaim", Unit::Nanoseconds, Better::Less, true, |run| {
        run["reclaim"]["total_ns"].as_f64()
    }),
    ("direct_reclaim_p99_ns", "reclaim call p99", Unit::Nanoseconds, Better::Less, false, |run| {
        run["reclaim"]["p99_ns"].as_f64()
    }),
    ("system_time_ns", "CPU in the kernel", Unit::Nanoseconds, Better::Less, true, |run| {
        Some(sum(&run["tasks"], "system_time_ns")? + sum(&run["threads"], "cpu_time_ns")?)
    }),
    ("fast_hit_ratio", "in fast memory", Unit::Share, Better::More, false, |run| {
        run["tiers"]["fast_hit_ratio"].as_f64()
    }),
    ("tracker_ns", "tracker CPU", Unit::Nanoseconds, Better::Less, true, |run| {
        run["tiers"]["tracker_ns"].as_f64()
    }),
];

fn sum(list: &Value, name: &str) -> Option<f64> {
    Some(list.as_array()?.iter().filter_map(|element| element[name].as_f64()).sum())
}

impl Outcome {
    /// The figures in a run's JSON. Figures that a build does not report are omitted.
    pub fn of(run: &Value) -> Outcome {
        let of_machine = OF_MACHINE.iter().filter_map(|&(name, title, unit, better, is_sum, of)| {
            let figure = Figure { name: name.to_string(), title: title.to_string(), unit, better, is_sum };
            Some(Measured { figure, value: of(run)? })
        });
        let mut figures: Vec<Measured> = of_machine.collect();
        figures.extend(of_tasks(run));
        Outcome {
            accesses: run["accesses"].as_u64().unwrap_or(0),
            kills: run["kills"].as_array().map_or(0, Vec::len),
            figures,
        }
    }
}

/// Figures of tasks that do not wait for others: the speed of each if there are several, and its slow accesses.
fn of_tasks(run: &Value) -> Vec<Measured> {
    let mut names: Vec<&str> = Vec::new();
    let tasks: Vec<(&str, &Value)> = run["tasks"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|task| Some((shared_name(task["name"].as_str()?), task)))
        .collect();
    for (name, _) in &tasks {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let mut figures = Vec::new();
    for name in &names {
        let copies: Vec<&Value> = tasks.iter().filter(|(of, _)| of == name).map(|(_, task)| *task).collect();
        let mut add = |what: &str, title: &str, unit, better, value: f64| {
            let figure = Figure {
                name: format!("task {name}: {what}"),
                title: format!("{name}: {title}"),
                unit,
                better,
                is_sum: false,
            };
            figures.push(Measured { figure, value });
        };
        let values =
            |of: fn(&Value) -> Option<f64>| copies.iter().filter_map(|task| of(task)).collect::<Vec<f64>>();
        if names.len() > 1 {
            let speed = values(|task| task["throughput_per_s"].as_f64());
            add("accesses_per_s", "accesses/s", Unit::PerSecond, Better::More, speed.iter().sum());
        }
        let slow = values(|task| task["access"]["p99_ns"].as_f64());
        if !slow.is_empty() {
            let mean = slow.iter().sum::<f64>() / slow.len() as f64;
            add("access_p99_ns", "access p99", Unit::Nanoseconds, Better::Less, mean);
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn copies_of_a_task_are_one_and_the_only_task_has_the_speed_of_the_machine() {
        let task = |name: &str, speed: u64| json!({ "name": name, "throughput_per_s": speed, "system_time_ns": 5, "access": { "p99_ns": 7 } });
        let names = |tasks: Vec<Value>| {
            let run =
                json!({ "accesses": 10, "end_ns": 1, "tasks": tasks, "threads": [{ "cpu_time_ns": 2 }] });
            Outcome::of(&run)
                .figures
                .into_iter()
                .map(|measured| (measured.figure.name, measured.value))
                .collect::<Vec<_>>()
        };
        let of_two = names(vec![task("a.0", 1), task("a.1", 2), task("b", 4)]);
        for known in [
            ("task a: accesses_per_s", 3.0),
            ("task b: accesses_per_s", 4.0),
            ("task a: access_p99_ns", 7.0),
            ("system_time_ns", 17.0),
        ] {
            assert!(of_two.contains(&(known.0.to_string(), known.1)), "{known:?} in {of_two:?}");
        }
        assert!(
            !names(vec![task("a.0", 1), task("a.1", 2)])
                .iter()
                .any(|(name, _)| name == "task a: accesses_per_s")
        );
    }
}
