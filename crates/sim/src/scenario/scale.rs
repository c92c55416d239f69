//! Pages that stand for many: the same machine at half of its scale, so that it can be seen whether an answer depends on the scale.
//!
//! ```text
//!   machine.page_stands_for       1024 ─▶ 512    prices and devices follow by themselves
//!   memory, files, processes         x ─▶ 2x     twice as many pages, each standing for half as many
//!   accesses                         n ─▶ 2n     each page is used as often
//!   time between two accesses        t ─▶ t/2    half as many stand behind each
//!   all else                             stays
//! ```
//! Both are one machine, so both should give the same answer. Sizes in the scenario and counts of accesses are doubled, because the author made them
//! smaller. Other values do not depend on memory and stay: times, rates, shares, the kernel's batches and defaults, the size of a system call or of a
//! readahead window, latencies of devices, entries of hardware. If half of the scale gives another answer, one of these weighs too much. The answer
//! is then that of the scale and not of the machine.
//!
//! Each key defines its treatment where it is declared ([`Scale`]); a key without one does not compile.

use serde_json::Value;

use super::keys::{Accepts, Key, Limit, WORKLOAD_KEYS, without_indices};
use super::{
    Bound, Event, KernelFile, Knobs, Machine, Problem, Scalar, Scenario, Section, Size, Table, TimeSpan,
};

/// Treatment of a key's value when a page stands for half as many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// It stays: a name, a time, a rate, a share, or a number that kernel or hardware have whatever the memory.
    Same,
    /// It is doubled: an amount of memory, or a count of pages or accesses.
    Twice,
    /// It is halved: what a page stands for, or a time for each access.
    Half,
    /// Unknown: a scenario with this key is rejected.
    Never,
    /// It is a table, whose keys say.
    Inside,
    /// The kernel file says that it is written to.
    ByFile,
}

impl Scenario {
    /// The same machine and the same work with pages that stand for half as many. Variants and expectations, which are questions of their own,
    /// are left out. Errors: every key that can't be halved or doubled.
    pub fn halved(&self) -> Result<Scenario, Vec<Problem>> {
        let mut scenario = Scenario { variant: Vec::new(), expect: Vec::new(), ..self.clone() };
        if scenario.machine.page_stands_for == 1 {
            let message =
                "machine.page_stands_for is 1: each page stands for itself, so the factor can't be halved";
            let problem = Problem::new("machine.page_stands_for", message).help(
                "if accesses stand for many (task.stands_for), check with half of that and twice the ops",
            );
            return Err(vec![problem]);
        }
        if scenario.machine.node.is_empty() {
            // The default is an amount as well.
            scenario.machine.memory.get_or_insert(Machine::DEFAULT_MEMORY);
        }
        let mut halving = Halving::default();
        scenario.halve("", &mut halving);
        for (index, event) in scenario.event.iter_mut().enumerate() {
            halving.event(&format!("event[{index}]"), event);
        }
        if halving.problems.is_empty() {
            halving.problems = scenario.validate();
            for problem in &mut halving.problems {
                problem.message = format!("at half of machine.page_stands_for: {}", problem.message);
            }
        }
        if halving.problems.is_empty() { Ok(scenario) } else { Err(halving.problems) }
    }
}

/// The obstacles so far.
#[derive(Default)]
pub struct Halving {
    problems: Vec<Problem>,
}

impl Halving {
    pub(super) fn twice<T: Amount>(&mut self, key: &str, value: &mut T) {
        match value.twice() {
            Some(twice) => *value = twice,
            None => self.too_large(key),
        }
    }

    pub(super) fn half<T: Amount>(&mut self, key: &str, value: &mut T) {
        match value.half() {
            Some(half) => *value = half,
            None => {
                let message = "it is odd, so half of the scale can't be computed";
                self.problems.push(Problem::new(key, message).help("give an even number"));
            }
        }
    }

    pub(super) fn never<T>(&mut self, key: &str, value: &Option<T>) {
        if value.is_some() {
            let message = "a recording has a fixed number of accesses and pages, which can't be doubled";
            self.problems.push(Problem::new(key, message).help(
                "describe the accesses by a `workload`, or replay the trace with machine.page_stands_for = 1",
            ));
        }
    }

    pub(super) fn inside(&mut self, key: &str, value: &mut Option<Table>) {
        if let Some(table) = value {
            self.pattern(key, &mut table.0);
        }
    }

    /// Settings under dotted names; `way` is their path, and `rows` are the existing ones.
    pub(super) fn knobs(&mut self, way: &str, rows: &[Key], knobs: &mut Knobs) {
        let general = without_indices(way);
        for (name, value) in &mut knobs.0 {
            let row = rows.iter().find(|row| row.path.strip_prefix(&general) == Some(name));
            // An unknown one is the check's to refuse.
            if let Some(row) = row {
                self.scalar(&format!("{way}{name}"), row, value);
            }
        }
    }

    /// A value that a key declares and that stands elsewhere. A share, a percentage or `max` has no amount that could be doubled.
    fn scalar(&mut self, key: &str, row: &Key, value: &mut Scalar) {
        if row.scale != Scale::Twice {
            return;
        }
        let text = value.to_string();
        let twice = match (row.accepts, text.parse()) {
            (Accepts::Limit, Ok(Limit::Percent(_) | Limit::Max)) => return,
            (Accepts::Limit, Ok(Limit::Size(size))) => {
                size.twice().map(|size| Scalar::Text(size.to_string()))
            }
            _ => text.parse::<i64>().ok().and_then(|number| number.checked_mul(2)).map(Scalar::Integer),
        };
        match twice {
            Some(twice) => *value = twice,
            None => self.too_large(key),
        }
    }

    /// An access pattern, and patterns inside it.
    fn pattern(&mut self, key: &str, table: &mut serde_json::Map<String, Value>) {
        let kind = match table.get("pattern").and_then(Value::as_str) {
            Some("looping") => "loop",
            Some("interleave") => "mix",
            kind => kind.unwrap_or_default(),
        };
        let rows = format!("workload.{kind}.");
        self.rows(key, &rows, table);
    }

    /// Keys of a pattern, or of an element of a list in it.
    fn rows(&mut self, way: &str, rows: &str, table: &mut serde_json::Map<String, Value>) {
        for (name, value) in table.iter_mut().filter(|(name, _)| *name != "pattern") {
            let key = format!("{way}.{name}");
            match value {
                Value::Object(inner) => self.pattern(&key, inner),
                Value::Array(items) => {
                    for (index, item) in items.iter_mut().enumerate() {
                        if let Value::Object(item) = item {
                            self.rows(&format!("{key}[{index}]"), &format!("{rows}{name}[]."), item);
                        }
                    }
                }
                _ => {
                    let row = WORKLOAD_KEYS.iter().find(|row| row.path.strip_prefix(rows) == Some(name));
                    // An unknown one is the check's to refuse.
                    if row.is_some_and(|row| row.scale == Scale::Twice)
                        && let Some(number) = value.as_u64()
                    {
                        match number.twice() {
                            Some(twice) => *value = twice.into(),
                            None => self.too_large(&key),
                        }
                    }
                }
            }
        }
    }

    /// The value that an event writes: one that the file's key declares, or one whose unit of memory is unknown.
    fn event(&mut self, prefix: &str, event: &mut Event) {
        if let Some(condition) = &event.when
            && let Bound::Number(_) = condition.bound()
        {
            let message =
                format!("`{condition}`: it is unknown whether this number is an amount that must be doubled");
            let problem = Problem::new(format!("{prefix}.when"), message);
            self.problems.push(problem.help("give a percentage, or remove the event for the check"));
        }
        let Some(path) = event.write.as_deref() else { return };
        let key = |keys: &[String]| keys.iter().find_map(|key| Key::find(key));
        let row = match KernelFile::parse(path) {
            Some(KernelFile::Sysctl(name)) => key(&[format!("sysctl.{name}")]),
            Some(KernelFile::Memcg { file, .. }) if file == "memory.reclaim" => {
                return self.counts_memory(prefix, path);
            }
            Some(KernelFile::Memcg { file, .. }) => key(&[format!("memcg[].{file}")]),
            Some(KernelFile::Node(name)) if name.ends_with("/reclaim") => {
                return self.counts_memory(prefix, path);
            }
            Some(KernelFile::NumaBalancing(name)) => key(&[format!("kernel.sched.numa_balancing.{name}")]),
            Some(KernelFile::Pghot(name)) => {
                key(&[format!("kernel.pghot.{name}"), format!("sysctl.vm.pghot_{name}")])
            }
            Some(KernelFile::LruGen(name)) if name == "lru_gen" => return self.counts_memory(prefix, path),
            Some(KernelFile::Hugepages(_)) => return self.counts_memory(prefix, path),
            // Switches, and percentages of zswap.
            _ => None,
        };
        let Some(row) = row else { return };
        if let Some(value) = &mut event.value {
            self.scalar(&format!("{prefix}.value"), row, value);
        }
        if let (Some(add), Scale::Twice) = (&mut event.add, row.scale) {
            self.twice(&format!("{prefix}.add"), add);
        }
    }

    fn counts_memory(&mut self, prefix: &str, path: &str) {
        let message = format!(
            "the value written to {path} has its own unit of memory, and is not doubled automatically"
        );
        self.problems.push(
            Problem::new(format!("{prefix}.value"), message)
                .help("remove the event for the check, or write the scenario at half of the scale yourself"),
        );
    }

    fn too_large(&mut self, key: &str) {
        let message = "it is too large to be doubled for half of the scale";
        self.problems.push(Problem::new(key, message).help("start with a larger machine.page_stands_for"));
    }
}

/// What can be doubled and halved.
pub(super) trait Amount: Sized {
    /// Twice as much, if that is a number of this type.
    fn twice(&self) -> Option<Self>;

    /// Half as much, if that is a whole number.
    fn half(&self) -> Option<Self>;
}

macro_rules! amounts {
    ($($type:ty: $of:expr, $number:expr;)*) => {
        $(impl Amount for $type {
            fn twice(&self) -> Option<Self> {
                $number(self).checked_mul(2).map($of)
            }

            fn half(&self) -> Option<Self> {
                $number(self).is_multiple_of(2).then(|| $of($number(self) / 2))
            }
        })*
    };
}

amounts! {
    u32: |number| number, |number: &u32| *number;
    u64: |number| number, |number: &u64| *number;
    Size: Size, |size: &Size| size.0;
    TimeSpan: TimeSpan, |time: &TimeSpan| time.0;
}

/// Absent values stay absent.
impl<T: Amount> Amount for Option<T> {
    fn twice(&self) -> Option<Self> {
        self.as_ref().map_or(Some(None), |value| value.twice().map(Some))
    }

    fn half(&self) -> Option<Self> {
        self.as_ref().map_or(Some(None), |value| value.half().map(Some))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A machine of 1,024 times `64MiB + 128MiB`, of pages that stand for `1024 / m`. Everything that is written at the scale goes with `m`.
    fn study(m: u64) -> Value {
        let size = |mib: u64| Size((mib * m) << 20).to_string();
        json!({
            "machine": {
                "cpus": 2, "page_stands_for": 1024 / m, "init_memory": size(1), "tlb_entries": 64,
                "node": [
                    { "memory": size(64), "cpus": 2, "movable": size(8), "reserved": size(4), "unmovable_blocks": 3 * m },
                    { "memory": size(128), "preset": "cxl-1.1" },
                ],
                "price": { "scan": "300ns" },
            },
            "kernel": { "sched.numa_balancing.scan_size_mb": 16 * m, "reclaim_batch": 16, "lru.generations": 6 },
            "sysctl": {
                "kernel.numa_balancing": 2, "kernel.numa_balancing_promote_rate_limit_MBps": 100 * m,
                "vm.min_free_kbytes": 1024 * m, "vm.dirty_bytes": m << 20, "vm.dirty_background_bytes": m << 19, "vm.swappiness": 10,
            },
            "memcg": [{ "path": "/a", "memory.max": size(48), "memory.high": "30%", "memory.swap.max": "max", "memory.oom.group": 1 }],
            "device": [{ "name": "d", "read_ahead_kb": 64, "max_sectors_kb": 512, "queue_depth": 4, "iops": 9000 }],
            "swap": [{ "size": size(32), "kind": "zram", "memory_limit": size(16), "compressed_max": "50%" }],
            "file": [{ "name": "f", "size": size(24) }],
            "task": [
                { "name": "t", "memcg": "/a", "think_time": format!("{}ns", 800 / m), "stands_for": 8, "loops": 3, "object": [
                    { "channel": "file", "file": "f", "request_size": "128KiB", "fsync_every": 10 * m, "workload": {
                        "pattern": "mix", "parts": [
                            { "weight": 3, "of": { "pattern": "zipf_scan", "pages": 20 * m, "ops": 500 * m, "scan_every": 50 * m, "scan_length": 4 * m, "scan_pages": 8 * m } },
                            { "of": { "pattern": "repeat", "times": 7, "of": { "pattern": "limit", "ops": 90 * m, "of": { "pattern": "looping", "ops": 100 * m, "pages": 9 * m } } } },
                        ],
                    } },
                    { "channel": "file", "size": size(8), "truncate_every": 1000 * m, "workload": { "pattern": "sequential", "stride": 2 } },
                    { "channel": "anonymous", "size": size(16), "workload": {
                        "pattern": "chain", "parts": [
                            { "of": { "pattern": "fill" } },
                            { "of": { "pattern": "hot_set", "ops": 700 * m, "move_every": 70 * m, "hot_pages_fraction": 0.1 } },
                            { "of": { "pattern": "phase_shift", "phases": [
                                { "pages": 10 * m, "ops": 20 * m }, { "pages": 5 * m, "ops": 10 * m, "offset": 10 * m, "order": "looping" },
                            ] } },
                            { "of": { "pattern": "runs", "ops": 60 * m, "length": 8 } },
                            { "of": { "pattern": "index", "ops": 60 * m, "fanout": 16 } },
                        ],
                    } },
                ] },
                { "name": "u", "copies": 3, "session": { "visits": 5, "first_ops": 100 * m, "visit_ops": 10 * m }, "object": [
                    { "channel": "mapped", "size": size(4), "delete_every": 50 * m, "workload": { "pattern": "uniform", "ops": 1000 * m } },
                ] },
            ],
            "event": [
                { "at": "1ms", "write": "/sys/fs/cgroup/a/memory.high", "value": size(40) },
                { "at": "2ms", "write": "/sys/fs/cgroup/a/memory.max", "value": "max" },
                { "at": "3ms", "write": "/proc/sys/vm/swappiness", "value": 20 },
                { "at": "4ms", "write": "/proc/sys/vm/min_free_kbytes", "value": 2048 * m },
                { "at": "5ms", "write": "/proc/sys/vm/min_free_kbytes", "add": 64 * m },
                { "at": "6ms", "write": "/sys/kernel/debug/sched/numa_balancing/scan_size_mb", "value": 8 * m },
                { "at": "7ms", "write": "/proc/sys/vm/drop_caches", "value": 1 },
            ],
        })
    }

    fn scenario(value: Value) -> Scenario {
        let scenario: Scenario = serde_json::from_value(value).unwrap();
        assert_eq!(scenario.validate(), []);
        scenario
    }

    fn refused(mut value: Value, pointer: &str, given: Value) -> Vec<Problem> {
        let (table, key) = pointer.rsplit_once('/').unwrap();
        value.pointer_mut(table).unwrap()[key] = given;
        serde_json::from_value::<Scenario>(value).unwrap().halved().unwrap_err()
    }

    #[test]
    fn half_of_a_scale_is_what_one_would_write_at_half_of_it() {
        let mut halved = scenario(study(1));
        for m in [2, 4, 8, 16] {
            halved = halved.halved().unwrap();
            let written = scenario(study(m));
            assert_eq!(
                serde_json::to_value(&halved).unwrap(),
                serde_json::to_value(&written).unwrap(),
                "{m}"
            );
        }
    }

    #[test]
    fn memory_that_a_machine_has_by_default_is_doubled_as_well() {
        let small = json!({ "machine": { "page_stands_for": 8 }, "task": [{ "name": "t", "object": [
            { "channel": "anonymous", "size": "1MiB", "workload": { "pattern": "fill" } },
        ] }] });
        let halved = scenario(small).halved().unwrap();
        assert_eq!(halved.machine.node_sizes(), [Size(2 << 30)]);
        assert_eq!(halved.machine.page_stands_for, 4);
    }

    #[test]
    fn variants_and_expectations_are_of_the_whole_scale() {
        let mut value = study(1);
        value["variant"] = json!([{ "name": "v", "set": { "file.f.size": "8MiB" } }]);
        value["expect"] = json!([{ "figure": "task t: misses", "holds": "v < 100" }]);
        assert_eq!(scenario(value).halved(), scenario(study(1)).halved());
    }

    #[test]
    fn what_cannot_be_halved_is_named_with_what_to_do() {
        for (pointer, given, key, says) in [
            ("/machine/page_stands_for", json!(1), "machine.page_stands_for", "stands for itself"),
            ("/machine/page_stands_for", json!(7), "machine.page_stands_for", "odd"),
            ("/task/0/think_time", json!("25ns"), "task[0].think_time", "odd"),
            ("/task/1/object/0/trace", json!("a.pgt"), "task[1].object[0].trace", "a recording has"),
            ("/event/0/write", json!("/sys/fs/cgroup/a/memory.reclaim"), "event[0].value", "memory.reclaim"),
            (
                "/event/2/write",
                json!("/sys/kernel/debug/lru_gen"),
                "event[2].value",
                "has its own unit of memory",
            ),
            ("/sysctl/vm.dirty_bytes", json!(u32::MAX), "sysctl.vm.dirty_bytes", "too large"),
            ("/machine/node/1/memory", json!("7TiB"), "machine.node[1].memory", "too large"),
            ("/task/1/object/0/workload/ops", json!(u64::MAX), "task[1].object[0].workload.ops", "too large"),
        ] {
            let problems = refused(study(1), pointer, given);
            let [problem] = &problems[..] else { panic!("{problems:?}") };
            assert!(problem.key == key && problem.message.contains(says), "{problem:?}");
            assert!(problem.help.is_some(), "{problem:?}");
        }
    }
}
