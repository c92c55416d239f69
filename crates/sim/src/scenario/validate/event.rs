//! Checks of `[[event]]`: the file or device has to exist, and the file to take the value that is written to it.

use pageout_engine::{
    CGROUP_FILES, CgroupFile, Holds, MACHINE_FILES, MemoryTiers, NODE_FILES, NodeId, Nodemask, ZRAM_FILES,
    kernel_bool,
};

use super::{Check, Problem};
use crate::scenario::event::{HUGEPAGES, PageAdvice, TRANSPARENT_HUGEPAGE};
use crate::scenario::keys::{Accepts, Key};
use crate::scenario::{Bound, Channel, Event, KernelFile, Lifetime, Object, Scalar, Size, SwapKind, Task};
use crate::{PRESSURE_FILES, Resource};

const ONE_THING: &str = "found several actions, expected one per event: write a file, read one, remove a cgroup, sync all file systems, sync one, or advise";
/// The files among the sysctls that ask for something to be done.
const COMPACT_MEMORY: &str = "vm.compact_memory";
const DROP_CACHES: &str = "vm.drop_caches";
/// The limit of promotion under the name that it has in hot-page tracking.
const RATE_LIMIT: &str = "vm.pghot_promote_rate_limit_MBps";
/// All its sources, a bit each.
const SOURCES: &str = "vm.pghot_enabled_sources";
/// The file of a cgroup that asks for reclaim.
const RECLAIM: &str = "memory.reclaim";
/// More huge pages than a machine could have.
const HUGEPAGES_MAX: i64 = 1 << 32;

impl Check<'_> {
    pub(super) fn event(&mut self, prefix: &str, event: &Event) {
        self.ranges(&format!("{prefix}."), event);
        if let Some(until) = event.until {
            let key = format!("{prefix}.until");
            if event.every.is_none() {
                self.report(Problem::new(key, "`until` ends a repetition: it needs `every`"));
            } else if event.at.is_some_and(|at| until < at) {
                self.report(Problem::new(
                    key,
                    "the event would end before it begins: `until` is earlier than `at`",
                ));
            }
        }
        self.event_when(prefix, event);
        self.event_times(prefix, event);
        self.event_timeout(prefix, event);
        if event.madvise.is_some() || event.task.is_some() || event.object.is_some() {
            return self.event_madvise(prefix, event);
        }
        if event.sync || event.syncfs.is_some() {
            return self.event_sync(prefix, event);
        }
        match (&event.write, &event.read, &event.rmdir) {
            (None, None, None) => {
                let problem = Problem::new(
                    prefix,
                    "found no action, expected a file to `write` or to `read`, a cgroup to remove by `rmdir`, something to `sync`, or a task to `madvise`",
                );
                self.report(problem.help("for example: read = \"/proc/vmstat\""));
            }
            (Some(path), None, None) if event.add.is_some() => self.event_add(prefix, path, event),
            (Some(path), None, None) => self.event_write(prefix, path, event.value.as_ref()),
            (None, None, Some(path)) => self.event_rmdir(prefix, event, path),
            (None, Some(path), None) => {
                self.nothing_is_written(prefix, event, "reads");
                self.event_read(prefix, path);
            }
            _ => {
                self.report(Problem::new(prefix, ONE_THING));
            }
        }
    }

    /// Checks `at` and `when`: an event has a time, or a condition on a file that can be read.
    fn event_when(&mut self, prefix: &str, event: &Event) {
        let Some(condition) = &event.when else {
            if event.at.is_none() {
                let problem = Problem::new(prefix, "an event needs `at`, its time, or `when`, its condition");
                self.report(problem.help("for example: at = \"1s\", or when = \"memory.current > 95%\""));
            }
            return;
        };
        let key = format!("{prefix}.when");
        if event.times.is_some() {
            let problem = Problem::new(
                key.clone(),
                "a loop ends by its count, not by a condition: found both `times` and `when`",
            );
            self.report(problem.help(
                "leave `times` out: with `every` the event happens at each check at which the condition holds",
            ));
        }
        let Some(path) = condition.path(event.file()) else {
            let problem = Problem::new(
                key,
                format!("`{condition}`: the cgroup is unknown, because the event names no file of a cgroup"),
            );
            return self.report(
                problem.help("give the path of the file: \"/sys/fs/cgroup/web/memory.current > 95%\""),
            );
        };
        let percent_of_nothing =
            matches!(condition.bound(), Bound::Percent(_)) && condition.whole(&path).is_none();
        if self.readable(&key, &path) && percent_of_nothing {
            let problem = Problem::new(key, format!("`{condition}`: the value of 100 % is unknown"));
            self.report(problem.help("give a number or a size; percentages are for memory.current, memory.swap.current, sizes in memory.stat and /proc/meminfo"));
        }
    }

    /// Checks `sync`: it is of all file systems, or of one, and has no file.
    fn event_sync(&mut self, prefix: &str, event: &Event) {
        if event.file().is_some() || event.sync && event.syncfs.is_some() {
            return self.report(Problem::new(prefix, ONE_THING));
        }
        self.nothing_is_written(prefix, event, "syncs");
        if event.timeout.is_some() {
            let message =
                "no signal ends a sync before its files are written: `timeout` is only for writes to";
            let problem = Problem::new(format!("{prefix}.timeout"), format!("{message} {RECLAIM}"));
            self.report(problem.help("leave it out"));
        }
        if let Some(device) = &event.syncfs {
            self.reference(&format!("{prefix}.syncfs"), &self.known.devices, device);
        }
    }

    /// Checks `madvise`: it is of a task's mappings, and has no file.
    fn event_madvise(&mut self, prefix: &str, event: &Event) {
        let Some(advice) = event.madvise else {
            let message = "found `task` or `object` without `madvise`, expected the advice";
            return self.report(Problem::new(prefix, message).help("for example: madvise = \"pageout\""));
        };
        if event.file().is_some() || event.sync || event.syncfs.is_some() {
            return self.report(Problem::new(prefix, ONE_THING));
        }
        self.nothing_is_written(prefix, event, "advises");
        if event.timeout.is_some() {
            let message = format!("no signal ends advice: `timeout` is only for writes to {RECLAIM}");
            self.report(Problem::new(format!("{prefix}.timeout"), message).help("leave it out"));
        }
        let Some(name) = &event.task else {
            let problem = Problem::new(format!("{prefix}.madvise"), "found advice without `task`");
            return self.report(problem.help("name the task whose mappings are advised: task = \"server\""));
        };
        self.reference(&format!("{prefix}.task"), &self.known.tasks, name);
        let Some(task) = self.scenario.task.iter().find(|task| task.name == *name) else { return };
        let is_asked = |at: usize| event.object.is_none_or(|object| object as usize == at);
        let asked = task.object.iter().enumerate().filter(|(at, _)| is_asked(*at));
        let mapped: Vec<&Object> = asked
            .map(|(_, object)| object)
            .filter(|object| matches!(object.channel, Channel::Mapped | Channel::Anonymous))
            .collect();
        let key = match event.object {
            Some(_) => format!("{prefix}.object"),
            None => format!("{prefix}.task"),
        };
        let (message, help) = if mapped.is_empty() {
            let message = match event.object {
                Some(object) => format!("object {object} of `{name}` is not a mapping, or does not exist"),
                None => format!("`{name}` maps nothing"),
            };
            (message, "advice is for objects with channel = \"anonymous\" or \"mapped\", counted from 0")
        } else if mapped.iter().any(|object| object.locked) {
            (
                format!("`{name}` has locked this memory (EINVAL)"),
                "name another object, or leave `locked` out",
            )
        } else if advice == PageAdvice::Free && mapped.iter().any(|object| object.channel == Channel::Mapped)
        {
            let message = format!("`free` is for anonymous memory (EINVAL), and `{name}` maps a file");
            (message, "name an anonymous object: object = 0")
        } else {
            return;
        };
        self.report(Problem::new(key, message).help(help));
    }

    /// A loop is of the shell that has it, and ends by its count.
    fn event_times(&mut self, prefix: &str, event: &Event) {
        if event.times.is_none() {
            return;
        }
        let key = format!("{prefix}.times");
        if event.every.is_none() {
            let problem = Problem::new(key, "`times` is the number of repetitions: it needs `every`");
            self.report(problem.help("for example: every = \"100ms\""));
        } else if event.until.is_some() {
            let problem = Problem::new(key, "a loop ends after `times`, a timer at `until`: found both");
            self.report(problem.help("leave one of them out"));
        }
    }

    /// A value to write is given, but no file.
    fn nothing_is_written(&mut self, prefix: &str, event: &Event, does: &str) {
        for (name, is_given) in [("value", event.value.is_some()), ("add", event.add.is_some())] {
            if is_given {
                let message = format!("`{name}` is only for writes; this event {does}");
                self.report(Problem::new(format!("{prefix}.{name}"), message));
            }
        }
    }

    /// Checks `add`: it is for files that show one number, whatever is in them.
    fn event_add(&mut self, prefix: &str, path: &str, event: &Event) {
        let key = format!("{prefix}.add");
        if event.value.is_some() {
            let problem = Problem::new(
                key,
                "found both `value` and `add`: the event writes either `value`, or the number in the file plus `add`",
            );
            return self.report(problem.help("leave one of them out"));
        }
        let file = self.kernel_file(&format!("{prefix}.write"), path);
        let is_number = |name: &str| {
            let key = Key::find(&format!("sysctl.{name}"));
            key.is_some_and(|key| matches!(key.accepts, Accepts::Integer(..)))
        };
        match file {
            None | Some(KernelFile::Hugepages(_)) => {}
            Some(KernelFile::Sysctl(name)) if is_number(&name) => {}
            Some(_) => {
                let message =
                    format!("{path} does not contain a single number; `add` is for sysctls and nr_hugepages");
                self.report(Problem::new(key, message).help("give the new content as `value`"));
            }
        }
    }

    /// Checks `timeout`: it is for what a signal can end.
    fn event_timeout(&mut self, prefix: &str, event: &Event) {
        let Some(path) = event.file().filter(|_| event.timeout.is_some()) else { return };
        let does = match (KernelFile::parse(path), &event.write, &event.read) {
            (Some(KernelFile::Memcg { file, .. }), Some(_), _) if file == RECLAIM => return,
            (_, Some(_), _) => format!("writes {path}"),
            (_, None, Some(_)) => "reads".to_string(),
            (_, None, None) => "removes".to_string(),
        };
        let message = format!("`timeout` is only for writes to {RECLAIM}; this event {does}");
        let problem = Problem::new(format!("{prefix}.timeout"), message);
        self.report(problem.help("leave it out, or write to a cgroup's memory.reclaim"));
    }

    /// The part that can be checked before the run: the cgroup exists, and no task or group is certain to be left in it.
    fn event_rmdir(&mut self, prefix: &str, event: &Event, path: &str) {
        let key = format!("{prefix}.rmdir");
        if event.every.is_some() {
            self.report(Problem::new(format!("{prefix}.every"), "a cgroup can be removed only once"));
        }
        self.nothing_is_written(prefix, event, "removes");
        let memcg = path.strip_prefix("/sys/fs/cgroup").filter(|memcg| memcg.len() > 1);
        let Some(memcg) = memcg.filter(|memcg| memcg.starts_with('/')) else {
            let problem = Problem::new(key, format!("`{path}` is not a directory of a cgroup"));
            return self.report(problem.help("for example: rmdir = \"/sys/fs/cgroup/web\""));
        };
        if !self.known.memcgs.contains(memcg) {
            let known = self.known.memcgs.listed.clone();
            let problem = Problem::new(key, format!("`{path}`: there is no cgroup `{memcg}`"));
            let problem = problem.help(format!("known: {}", self.known.memcgs.told()));
            return self.report(problem.nearest(memcg, known));
        }
        let stays = |task: &&Task| task.memcg == memcg && task.lifetime == Lifetime::Run;
        if let Some(task) = self.scenario.task.iter().find(stays) {
            let message = format!("`{path}`: task `{}` runs in it and never exits", task.name);
            self.report(
                Problem::new(key, message).help("give the task lifetime = \"task\": it exits at its end"),
            );
        }
    }

    fn event_write(&mut self, prefix: &str, path: &str, value: Option<&Scalar>) {
        let key = format!("{prefix}.write");
        let Some(mut value) = value.cloned() else {
            return self.report(Problem::new(prefix, format!("there is no `value` to write to {path}")));
        };
        let accepts = match self.kernel_file(&key, path) {
            Some(KernelFile::Sysctl(name)) => {
                value = as_number(value);
                if name == "vm.pghot_target_nid" {
                    self.promotion_target(&format!("{prefix}.value"), &value);
                }
                let key = Key::find(&format!("sysctl.{name}"));
                key.map(|key| key.accepts).or_else(|| only_written(&name))
            }
            Some(KernelFile::Memcg { file, .. }) => match CgroupFile::by_name(&file).map(|file| file.holds) {
                Some(Holds::Limit(_)) => Some(Accepts::Limit),
                Some(Holds::Switch(_)) => {
                    value = as_number(value);
                    Some(Accepts::Integer(0, 1))
                }
                Some(Holds::Nodes) => return self.cpuset_mems(&key, &value.to_string()),
                Some(Holds::Request) => return self.reclaim_value(prefix, &value),
                _ => return self.report(Problem::new(key, format!("{path} can't be written"))),
            },
            Some(KernelFile::Node(name)) if name.ends_with("/reclaim") => {
                return self.reclaim_value(prefix, &value);
            }
            Some(KernelFile::Node(name)) if !name.ends_with("/online") => {
                return self.report(Problem::new(key, format!("{path} can't be written")));
            }
            Some(KernelFile::Node(name)) => {
                value = as_number(value);
                if value.to_string() == "0" {
                    self.may_go_offline(&key, &name);
                }
                Some(Accepts::Integer(0, 1))
            }
            Some(KernelFile::Hugepages(_)) => Some(Accepts::Integer(0, HUGEPAGES_MAX)),
            Some(KernelFile::TransparentHugepage(name)) if name == "defrag" => {
                Key::find("kernel.transparent_hugepage_defrag").map(|key| key.accepts)
            }
            Some(KernelFile::TransparentHugepage(name)) if name == "shrink_underused" => {
                value = as_number(value);
                Some(Accepts::Integer(0, 1))
            }
            Some(KernelFile::TransparentHugepage(name)) if name.starts_with("khugepaged/") => {
                value = as_number(value);
                Key::find("kernel.khugepaged.max_ptes_none").map(|key| key.accepts)
            }
            Some(KernelFile::TransparentHugepage(name)) if name.contains("/stats/") => {
                return self.report(Problem::new(key, format!("{path} can't be written")));
            }
            Some(KernelFile::TransparentHugepage(name)) => {
                if self.scenario.machine.page_stands_for > 1 && value.to_string() != "never" {
                    self.report(Problem::huge_of_many(&format!("{prefix}.value")));
                }
                let size = name.strip_prefix("hugepages-").and_then(|rest| rest.strip_suffix("/enabled"));
                let key = size
                    .map_or("kernel.transparent_hugepage".into(), |size| format!("kernel.hugepages_{size}"));
                Key::find(&key).map(|key| key.accepts)
            }
            Some(KernelFile::Numa(_)) => {
                if kernel_bool(&value.to_string()).is_some() {
                    return;
                }
                Some(Accepts::Bool)
            }
            Some(KernelFile::LruGen(name)) => return self.lru_gen_value(prefix, &name, &value),
            Some(KernelFile::NumaBalancing(name)) => {
                Key::find(&format!("kernel.sched.numa_balancing.{name}")).map(|key| key.accepts)
            }
            Some(KernelFile::Pghot(name)) => {
                value = as_number(value);
                if name == "target_nid" {
                    self.promotion_target(&format!("{prefix}.value"), &value);
                }
                let keys = [format!("kernel.pghot.{name}"), format!("sysctl.vm.pghot_{name}")];
                let key = keys.iter().find_map(|key| Key::find(key));
                key.map(|key| key.accepts).or((name == "enabled_sources").then_some(Accepts::Integer(0, 15)))
            }
            Some(KernelFile::ZswapParameter(name)) => {
                let key = Key::find(&format!("kernel.zswap.{name}"));
                let accepts = key.map(|key| key.accepts);
                let is_flag = accepts == Some(Accepts::Bool);
                if is_flag && kernel_bool(&value.to_string()).is_some() {
                    return;
                }
                if is_flag { Some(Accepts::Choice(&["Y", "N"])) } else { accepts }
            }
            Some(
                KernelFile::Proc(_)
                | KernelFile::Block(_)
                | KernelFile::Zswap(_)
                | KernelFile::Damon(_)
                | KernelFile::DamonAdmin(_)
                | KernelFile::MemoryTier(_),
            ) => {
                return self.report(Problem::new(key, format!("{path} can't be written")));
            }
            None => None,
        };
        if let Some(accepts) = accepts
            && let Err(message) = accepts.check(&value)
        {
            let problem = Problem::new(format!("{prefix}.value"), format!("`value`: {message}"));
            self.report(problem.help(format!("allowed: {accepts}")));
        }
    }

    /// A size, and options behind it.
    fn reclaim_value(&mut self, prefix: &str, value: &Scalar) {
        let text = value.to_string();
        let (size, options) = text.split_at(text.find(" swappiness=").unwrap_or(text.len()));
        let swappiness = match options.trim().strip_prefix("swappiness=") {
            // Whether the group's kernel knows it is found out when it is written.
            None | Some("max") => Some(0),
            Some(number) => number.parse::<u8>().ok(),
        };
        let message = match (size.parse::<Size>(), swappiness) {
            (Err(error), _) => error.to_string(),
            (Ok(size), _) if size.pages_floor() == 0 => format!("{size} is less than a page"),
            (Ok(_), Some(0..=200)) => return,
            (Ok(_), _) => {
                format!(
                    "found `{}`, expected `swappiness=` and a number from 0 to 200, or `max`",
                    options.trim()
                )
            }
        };
        let problem = Problem::new(format!("{prefix}.value"), format!("`value`: {message}"));
        self.report(problem.help("write it in the kernel's format: \"64MiB\" or \"64MiB swappiness=60\""));
    }

    /// The part that can be checked before the run: the form of commands, not whether such generations exist by then.
    fn lru_gen_value(&mut self, prefix: &str, name: &str, value: &Scalar) {
        let text = value.to_string();
        let problem = match name {
            "lru_gen_full" => {
                let message = "/sys/kernel/debug/lru_gen_full can't be written";
                return self.report(Problem::new(format!("{prefix}.write"), message));
            }
            "lru_gen" => {
                let commands =
                    text.split([',', ';', '\n']).map(str::trim).filter(|command| !command.is_empty());
                let is_formed = |command: &&str| {
                    command.starts_with(['+', '-'])
                        && (3..=5).contains(&command[1..].split_whitespace().count())
                };
                let Some(wrong) = commands.into_iter().find(|command| !is_formed(command)) else { return };
                let help = "commands are `+ memcg_id node_id max_gen [swappiness [force_scan]]` and `- memcg_id node_id min_gen [swappiness [nr_to_reclaim]]`; cgroups are numbered from 2 in their order, parents first; the root is 1";
                Problem::new(format!("{prefix}.value"), format!("`value`: `{wrong}` is not a command"))
                    .help(help)
            }
            _ => {
                let digits = text
                    .strip_prefix("0x")
                    .map_or(text.parse::<u32>().ok(), |digits| u32::from_str_radix(digits, 16).ok());
                if digits.is_some() || name == "enabled" && text.starts_with(['y', 'Y', 'n', 'N']) {
                    return;
                }
                Problem::new(
                    format!("{prefix}.value"),
                    format!("`value`: `{text}` is not a valid number for {name}"),
                )
            }
        };
        self.report(problem);
    }

    fn event_read(&mut self, prefix: &str, path: &str) {
        self.readable(&format!("{prefix}.read"), path);
    }

    /// Returns true if a path names a file that can be read; if not, that is reported.
    fn readable(&mut self, key: &str, path: &str) -> bool {
        let Some(file) = self.kernel_file(key, path) else { return false };
        let is_readable = match file {
            KernelFile::Memcg { file, .. } => {
                CgroupFile::by_name(&file).is_none_or(|file| file.is_readable())
            }
            KernelFile::Sysctl(name) => name != COMPACT_MEMORY && name != DROP_CACHES,
            KernelFile::Node(name) => !name.ends_with("/reclaim"),
            _ => true,
        };
        if !is_readable {
            self.report(Problem::new(key, format!("{path} is write-only")));
        }
        is_readable
    }

    /// What a path names, if it names something there is.
    fn kernel_file(&mut self, key: &str, path: &str) -> Option<KernelFile> {
        let file = KernelFile::parse(path);
        let (given, what, known) = match &file {
            None => {
                let problem = Problem::new(key, format!("`{path}` is not a file of the simulated kernel"));
                let help = "files are /proc/vmstat, /proc/pressure/..., /proc/sys/..., /sys/fs/cgroup/<cgroup>/memory.<...>, /sys/block/zram0/mm_stat, \
                            /sys/kernel/debug/lru_gen, /sys/kernel/mm/lru_gen/enabled, /sys/kernel/mm/numa/demotion_enabled, /sys/kernel/debug/sched/numa_balancing/..., \
                            /sys/devices/virtual/memory_tiering/..., /sys/kernel/mm/transparent_hugepage/... and /sys/kernel/mm/hugepages/...";
                self.report(problem.help(help));
                return None;
            }
            Some(KernelFile::Proc(name)) => {
                let pressure = Resource::ALL.map(|resource| format!("pressure/{}", resource.name()));
                let files = machine_files(|file| matches!(file, KernelFile::Proc(_)));
                (name, "file in /proc", files.into_iter().chain(pressure).collect())
            }
            Some(KernelFile::Sysctl(name)) => {
                let mut known = Key::names_under("sysctl.");
                known.extend([COMPACT_MEMORY, DROP_CACHES, RATE_LIMIT, SOURCES].map(str::to_string));
                (name, "sysctl", known)
            }
            Some(KernelFile::Block(name)) => {
                let devices = self.scenario.swap.iter().filter(|swap| swap.kind == SwapKind::Zram).count();
                let files = (0..devices).flat_map(|device| {
                    ZRAM_FILES.iter().map(move |file| format!("zram{device}/{}", file.name))
                });
                (name, "file of a compressed swap area", files.collect())
            }
            Some(KernelFile::Hugepages(name)) => {
                let files = MACHINE_FILES.iter().filter_map(|file| file.path.strip_prefix(HUGEPAGES));
                (name, "pool of huge pages", files.map(str::to_string).collect())
            }
            Some(KernelFile::TransparentHugepage(name)) => {
                let files =
                    MACHINE_FILES.iter().filter_map(|file| file.path.strip_prefix(TRANSPARENT_HUGEPAGE));
                (name, "file of transparent huge pages", files.map(str::to_string).collect())
            }
            Some(KernelFile::Zswap(name)) => {
                (name, "figure of zswap", machine_files(|file| matches!(file, KernelFile::Zswap(_))))
            }
            Some(KernelFile::ZswapParameter(name)) => (
                name,
                "parameter of zswap",
                machine_files(|file| matches!(file, KernelFile::ZswapParameter(_))),
            ),
            Some(KernelFile::Damon(name)) => {
                let files = MACHINE_FILES.iter().filter_map(|file| KernelFile::parse(file.path));
                let figures = files.filter_map(|file| match file {
                    KernelFile::Damon(name) => Some(name),
                    _ => None,
                });
                (name, "figure of DAMON", figures.collect())
            }
            Some(KernelFile::DamonAdmin(name)) => (name, "file of a kdamond", self.damon_files()),
            Some(KernelFile::NumaBalancing(name)) => (
                name,
                "knob of NUMA balancing",
                machine_files(|file| matches!(file, KernelFile::NumaBalancing(_))),
            ),
            Some(KernelFile::Pghot(name)) => (
                name,
                "knob of hot-page tracking",
                machine_files(|file| matches!(file, KernelFile::Pghot(_))),
            ),
            Some(KernelFile::Numa(name)) => {
                (name, "file of nodes", machine_files(|file| matches!(file, KernelFile::Numa(_))))
            }
            Some(KernelFile::MemoryTier(name)) => (name, "file of a tier of memory", self.tier_files()),
            Some(KernelFile::Node(name)) => {
                let nodes = 0..self.scenario.machine.node_sizes().len();
                let files = nodes
                    .flat_map(|node| NODE_FILES.iter().map(move |file| format!("node{node}/{}", file.name)));
                (name, "file of a node", files.collect())
            }
            Some(KernelFile::LruGen(name)) => (
                name,
                "file of the multi-generational LRU",
                machine_files(|file| matches!(file, KernelFile::LruGen(_))),
            ),
            Some(KernelFile::Memcg { path: memcg, file }) => {
                let known = &self.known.memcgs;
                if !known.contains(memcg) {
                    let problem = Problem::new(key, format!("`{path}`: there is no cgroup `{memcg}`"))
                        .help(format!("known: {}", known.told()))
                        .nearest(memcg, known.listed.clone());
                    self.report(problem);
                    return None;
                }
                let is_root = memcg == "/";
                let what =
                    if is_root { "file of the root, which has no limits," } else { "file of a cgroup" };
                let known = CGROUP_FILES.iter().filter(|file| file.is_in_root || !is_root);
                (file, what, known.map(|file| file.name).chain(PRESSURE_FILES).map(str::to_string).collect())
            }
        };
        if known.contains(given) {
            if let Some(KernelFile::Memcg { file, .. }) = &file {
                self.has_cgroup_file(key, file);
            }
            return file;
        }
        let problem = Problem::new(key, format!("`{path}`: there is no {what} called `{given}`"));
        self.report(problem.help(format!("known: {}", known.join(", "))).nearest(given, known));
        None
    }
}

impl Check<'_> {
    /// A node with CPUs keeps its memory.
    fn may_go_offline(&mut self, key: &str, name: &str) {
        let node = name.trim_start_matches("node").split('/').next().and_then(|node| node.parse().ok());
        let has_cpus =
            node.is_some_and(|node| !self.scenario.machine.cpus_of(Nodemask::of([NodeId(node)])).is_empty());
        if has_cpus || self.scenario.machine.node.len() < 2 {
            let problem = Problem::new(key, "memory of a node with CPUs can't go offline");
            self.report(problem.help(
                "use a [[machine.node]] without cpus; if no node has cpus, they belong to the first one",
            ));
        }
    }

    /// The list of nodes of each tier that there is.
    fn tier_files(&self) -> Vec<String> {
        let tiers = self.scenario.machine.tiers();
        let ids = tiers.iter().flat_map(MemoryTiers::iter).map(|tier| tier.id);
        ids.map(|id| format!("memory_tier{id}/nodelist")).collect()
    }
}

/// Last parts of the paths of the machine's files that are named alike.
fn machine_files(is_alike: impl Fn(&KernelFile) -> bool) -> Vec<String> {
    let alike =
        MACHINE_FILES.iter().filter(|file| KernelFile::parse(file.path).as_ref().is_some_and(&is_alike));
    alike.filter_map(|file| file.path.rsplit('/').next()).map(str::to_string).collect()
}

/// Accepted values of a sysctl that is not a key of a scenario.
fn only_written(name: &str) -> Option<Accepts> {
    match name {
        COMPACT_MEMORY => Some(Accepts::Integer(1, 1)),
        DROP_CACHES => Some(Accepts::Integer(1, 3)),
        RATE_LIMIT => {
            Key::find("sysctl.kernel.numa_balancing_promote_rate_limit_MBps").map(|key| key.accepts)
        }
        SOURCES => Some(Accepts::Integer(0, 3)),
        _ => None,
    }
}

/// A file takes text, and a number in quotes is as good as one without.
fn as_number(value: Scalar) -> Scalar {
    match &value {
        Scalar::Text(text) => text.parse().map_or(value, Scalar::Integer),
        _ => value,
    }
}
