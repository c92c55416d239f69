//! Checks of `[[task]]`: its objects, their workloads and traces, its placement, and the tasks that it waits for.

use std::collections::{BTreeMap, BTreeSet};

use pageout_engine::{Nodemask, PAGE_SIZE};

use super::{Check, Problem};
use crate::scenario::compressed::Compressed;
use crate::scenario::task::CPU_MAX;
use crate::scenario::{
    Advice, Channel, FileKind, FirstThread, Lifetime, Object, OpenedBy, Session, Size, Task,
};

/// What a machine runs at most of one task: copies, threads and workers.
const RUNNERS_MAX: usize = 100_000;

impl Check<'_> {
    pub(super) fn task(&mut self, prefix: &str, task: &Task) {
        let memcg = format!("{prefix}.memcg");
        if !self.is_path_too_long(&memcg, &task.memcg) {
            self.reference(&memcg, &self.known.memcgs, &task.memcg);
        }
        let cpus = self.scenario.machine.cpus;
        if let Some(cpu) = task.cpu.filter(|&cpu| (cpus..=CPU_MAX).contains(&cpu)) {
            let problem =
                Problem::new(format!("{prefix}.cpu"), format!("`cpu`: the machine has no CPU {cpu}"));
            self.report(problem.help(format!("allowed: 0 to {}", cpus.saturating_sub(1))));
        }
        self.ranges(&format!("{prefix}."), task);
        self.placement(prefix, task);
        if task.recorded.is_some() {
            let message = "`recorded` is a placeholder for objects that must be filled in by the program that loads the scenario";
            self.report(Problem::new(format!("{prefix}.recorded"), message));
        } else if task.object.is_empty() {
            let problem = Problem::new(prefix, format!("task `{}` has no object to access", task.name));
            self.report(problem.help("add a [[task.object]] with a channel, a size and a workload"));
        } else if task.object.iter().all(|object| object.workload.is_none() && object.trace.is_none()) {
            let problem =
                Problem::new(prefix, format!("no object of task `{}` has a workload or a trace", task.name));
            self.report(problem.help("for example: workload = { pattern = \"zipf\", ops = 100000 }"));
        }
        self.threads(prefix, task);
        self.timed(prefix, task);
        self.session(prefix, task);
        for index in 0..task.object.len() {
            self.object(&format!("{prefix}.object[{index}]"), task, index);
        }
    }

    /// Where its memory and its threads are to be.
    fn placement(&mut self, prefix: &str, task: &Task) {
        let lists = [
            ("membind", &task.membind),
            ("interleave", &task.interleave),
            ("weighted_interleave", &task.weighted_interleave),
            ("cpunodebind", &task.cpunodebind),
        ];
        for (name, list) in lists.iter().filter_map(|&(name, list)| Some((name, list.as_deref()?))) {
            self.nodes(&format!("{prefix}.{name}"), list);
        }
        // On a machine without a list of nodes, the caller that builds it reports this.
        if let Some(node) = task.preferred_node.filter(|_| !self.scenario.machine.node.is_empty()) {
            self.nodes(&format!("{prefix}.preferred_node"), &node.to_string());
        }
        let policies = lists[..3].iter().filter(|(_, list)| list.is_some()).map(|&(name, _)| name);
        let preferred = task.preferred_node.map(|_| "preferred_node");
        let policies: Vec<&str> = preferred.into_iter().chain(policies).collect();
        if let [_, second, ..] = policies[..] {
            let message =
                format!("task `{}` has more than one memory policy: {}", task.name, policies.join(", "));
            self.report(Problem::new(format!("{prefix}.{second}"), message).help("keep one of them"));
        }
        if let Some(nodes) = task.cpunodebind.as_deref().and_then(Nodemask::parse) {
            let key = format!("{prefix}.cpunodebind");
            if task.cpu.is_some() || task.migrates {
                let problem =
                    Problem::new(&key, "`cpunodebind` chooses CPUs, and so does `cpu` or `migrates`");
                self.report(problem.help("keep one of them"));
            } else if self.scenario.machine.cpus_of(nodes).is_empty() {
                let problem = Problem::new(&key, format!("no CPU belongs to node {nodes}"));
                self.report(problem.help("give a [[machine.node]] some: cpus = 2"));
            }
        }
        self.has_room_where_bound(prefix, task);
    }

    /// Nodes of a group: those of its parent where none are named.
    pub(super) fn cpuset_mems(&mut self, key: &str, list: &str) {
        if !list.trim().is_empty() {
            self.nodes(key, list);
        }
    }

    /// A list of nodes that exist.
    pub(super) fn nodes(&mut self, key: &str, list: &str) {
        let count = self.scenario.machine.node_sizes().len();
        let Some(nodes) = Nodemask::parse(list) else {
            let problem = Problem::new(key, format!("`{list}` is not a list of nodes"));
            return self.report(problem.help("for example \"0-1,3\""));
        };
        if let Some(node) = nodes.iter().find(|node| node.index() >= count) {
            let problem = Problem::new(key, format!("there is no node {}", node.0));
            self.report(
                problem.help(format!("the machine has nodes 0 to {}: see [[machine.node]]", count - 1)),
            );
        }
    }

    /// Anonymous memory and tmpfs that nodes can't hold and no swap takes would only end the run. A file that other tasks bring in, too, may
    /// be elsewhere.
    fn has_room_where_bound(&mut self, prefix: &str, task: &Task) {
        let Some(nodes) = task.membind.as_deref().and_then(Nodemask::parse) else { return };
        let sizes = self.scenario.machine.node_sizes();
        let room = |nodes: Nodemask| -> u64 {
            nodes.iter().filter_map(|node| sizes.get(node.index())).map(|size| size.0).sum()
        };
        let swap: u64 = self.scenario.swap.iter().map(|swap| swap.size.0).sum();
        let wanted = self.unbacked_pages(task) * PAGE_SIZE;
        if nodes.iter().all(|node| node.index() < sizes.len()) && wanted > room(nodes) + swap {
            let message = format!(
                "{} of anonymous memory and tmpfs do not fit on node {nodes}, which has {}, and in {} of swap",
                Size(wanted),
                Size(room(nodes)),
                Size(swap)
            );
            let problem = Problem::new(format!("{prefix}.membind"), message);
            self.report(problem.help("bind it to more nodes, or add a [[swap]]"));
        }
    }

    /// Pages of a task that only memory and swap can hold: anonymous memory, and tmpfs that no other task brings in.
    fn unbacked_pages(&self, task: &Task) -> u64 {
        let names = |other: &Task, file: &str| {
            !std::ptr::eq(other, task)
                && other.object.iter().any(|object| object.file.as_deref() == Some(file))
        };
        let (mut counted, mut pages) = (BTreeSet::new(), 0);
        for object in &task.object {
            let needs_room = match (object.channel, object.file.as_deref()) {
                (Channel::File | Channel::Mapped, _) => false,
                (Channel::Anonymous | Channel::Tmpfs, None) => true,
                (Channel::Anonymous | Channel::Tmpfs, Some(file)) => {
                    counted.insert(file) && !self.scenario.task.iter().any(|other| names(other, file))
                }
            };
            if needs_room {
                pages += self.files.object_pages(object).unwrap_or(0);
            }
        }
        pages
    }

    /// Populated pages must exist before the run begins: checks the first node, and whether they fit.
    fn populated(&mut self, prefix: &str, object: &Object) {
        let Some(node) = object.populate_node else { return };
        let key = format!("{prefix}.populate_node");
        // On a machine without a list of nodes, the caller that builds it reports this.
        if !self.scenario.machine.node.is_empty() {
            self.nodes(&key, &node.to_string());
        }
        let room: u64 = self.scenario.machine.node_sizes().iter().map(|size| size.0).sum();
        let swap: u64 = match object.channel {
            Channel::Anonymous => self.scenario.swap.iter().map(|swap| swap.size.0).sum(),
            _ => 0,
        };
        let pages = self.scenario.files().object_pages(object).unwrap_or(0);
        if pages > Size(room + swap).pages_floor() {
            let message = format!(
                "{} do not fit on all nodes together, which have {}, and in {} of swap",
                Size::from_pages(pages),
                Size(room),
                Size(swap)
            );
            let help = "make the object smaller or a [[machine.node]] larger; a file that is only read through \
                        channel = \"file\" may be larger than memory";
            self.report(Problem::new(key, message).help(help));
        }
    }

    fn threads(&mut self, prefix: &str, task: &Task) {
        let runners = task.runners();
        if runners > RUNNERS_MAX {
            let message = format!("copies, threads and depth make {runners} of task `{}`", task.name);
            self.report(
                Problem::new(format!("{prefix}.copies"), message)
                    .help(format!("allowed: {RUNNERS_MAX} in total")),
            );
        }
        let is_mapped = |object: &Object| matches!(object.channel, Channel::Mapped | Channel::Anonymous);
        if let Some(at) = task.object.iter().position(is_mapped).filter(|_| task.depth > 1) {
            let message = format!(
                "`depth`: object {at} of task `{}` is a mapping, and a fault stops its thread",
                task.name
            );
            let problem = Problem::new(format!("{prefix}.depth"), message);
            self.report(problem.help("use `threads`, or channel = \"file\" or \"tmpfs\""));
        }
        let waits = task.first_thread == FirstThread::Waits;
        if task.lifetime == Lifetime::Loop && (waits || task.threads * task.depth > 1) {
            let key = match task.threads {
                _ if waits => "first_thread",
                1 => "depth",
                _ => "threads",
            };
            let message = format!(
                "`{key}`: each loop of task `{}` is a process of its own, and one thread would end it for all",
                task.name
            );
            let problem = Problem::new(format!("{prefix}.{key}"), message);
            self.report(problem.help("leave it out, or use lifetime = \"task\" and `copies`"));
        }
    }

    /// An open loop uses the times of one trace, once.
    fn timed(&mut self, prefix: &str, task: &Task) {
        if task.timed <= 0.0 {
            return;
        }
        let traces = task.object.iter().filter(|object| object.trace.is_some()).count();
        let (key, message, help) =
            if traces != 1 || task.object.iter().any(|object| object.workload.is_some()) {
                (
                    "timed",
                    format!("the accesses of task `{}` are not all from one trace", task.name),
                    "give it one object with a trace, and no workload",
                )
            } else if task.loops > 1 {
                ("loops", "with `timed` a trace is replayed once".to_string(), "leave `loops` out")
            } else if task.threads * task.depth > 1 {
                (
                    "timed",
                    "with `timed`, a single thread makes one access at a time".to_string(),
                    "leave `threads` and `depth` out",
                )
            } else if task.session.visits > 0 {
                ("timed", "a session defines its own times".to_string(), "keep one of `timed` and `session`")
            } else {
                return;
            };
        self.report(Problem::new(format!("{prefix}.{key}"), message).help(help));
    }

    fn session(&mut self, prefix: &str, task: &Task) {
        let session = &task.session;
        self.ranges(&format!("{prefix}.session."), session);
        let report = |check: &mut Self, key: &str, message: &str, help: &str| {
            let problem = Problem::new(format!("{prefix}.{key}"), message.to_string());
            check.report(if help.is_empty() { problem } else { problem.help(help) });
        };
        let Some(schedule) = task.schedule() else {
            if *session != Session::default() {
                let message = "`session` without visits has no effect";
                report(self, "session", message, "give it `visits`");
            }
            return;
        };
        match schedule.validate() {
            Ok(()) => self.session_ops(prefix, task),
            Err(error) if error.key == "visits" => {
                let message = format!("`visits` {}", error.reason);
                report(self, "session.visits", &message, "more visits, or fewer `copies`");
            }
            // Ranges are reported by key.
            Err(_) => {}
        }
        let alone = "a session decides when each copy runs";
        if task.after.is_some() {
            report(self, "after", &format!("`after`: {alone}"), "use `start`, which moves the whole session");
        }
        if task.depth > 1 {
            report(
                self,
                "depth",
                "`depth`: in a session each thread makes one access at a time",
                "use `threads`",
            );
        }
        if task.loops > 1 {
            report(self, "loops", &format!("`loops`: {alone}, once"), "use `visits`");
        }
    }

    /// A workload has to last as long as the session.
    fn session_ops(&mut self, prefix: &str, task: &Task) {
        let mut ops = Some(0u64);
        for object in &task.object {
            let has = match (&object.workload, &object.trace) {
                (Some(_), _) => {
                    let pattern = self.files.pattern_of(object).and_then(Result::ok);
                    let requests = pattern.and_then(|pattern| pattern.stream(0, 0).ok()?.len_hint());
                    requests.map(|requests| requests.saturating_mul(object.request_pages()))
                }
                (None, Some(_)) => None,
                (None, None) => Some(0),
            };
            ops = ops.zip(has).and_then(|(sum, has)| sum.checked_add(has));
        }
        let index = self.scenario.task.iter().position(|other| std::ptr::eq(other, task));
        let seed = self.scenario.task_seed(index.expect("it is one of the scenario's"));
        let needed = task.visits(seed).into_values().map(|visits| visits.ops).max();
        if let (Some(ops), Some(needed)) = (ops, needed)
            && ops < needed
        {
            let message =
                format!("the workload ends after {ops} accesses, but a copy's visits need {needed}");
            let problem = Problem::new(format!("{prefix}.session.visits"), message);
            self.report(problem.help("give the workload more `ops`; unused ones are not made"));
        }
    }

    /// Tasks that others wait for must exist and end.
    pub(super) fn waits(&mut self) {
        let tasks: BTreeMap<&str, &Task> =
            self.scenario.task.iter().map(|task| (task.name.as_str(), task)).collect();
        // The path on which each task was first visited, and the position on it. Visiting one again on the same path means a cycle.
        let mut met: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (index, task) in self.scenario.task.iter().enumerate() {
            let Some(name) = task.after.as_deref() else { continue };
            let path = format!("task[{index}].after");
            self.reference(&path, &self.known.tasks, name);
            if tasks.get(name).is_some_and(|before| before.background) {
                let message = format!("task `{name}` is in the background and may never end");
                let problem = Problem::new(&path, message);
                self.report(problem.help("wait for a task that is not, or use `start`"));
            }
            let mut way: Vec<&str> = Vec::new();
            let mut next = Some(task.name.as_str());
            while let Some(name) = next {
                way.push(name);
                let (on, at) = *met.entry(name).or_insert((index, way.len() - 1));
                if on == index && at + 1 < way.len() {
                    let message = format!("tasks wait for each other: {}", way[at..].join(" after "));
                    let problem = Problem::new(&path, message);
                    self.report(problem.help("give one of them a `start` instead"));
                    break;
                }
                next = tasks.get(name).filter(|_| on == index).and_then(|task| task.after.as_deref());
            }
        }
    }

    fn object(&mut self, prefix: &str, task: &Task, own: usize) {
        let object = &task.object[own];
        self.ranges(&format!("{prefix}."), object);
        let channel = object.channel;
        self.object_device(&format!("{prefix}.device"), object);
        let compressed = Compressed::of_object(object);
        if matches!(channel, Channel::File | Channel::Mapped)
            && let Some(key) = compressed.given()
        {
            let message =
                format!("`{key}` is for pages that are swapped out; pages of a regular file are not");
            self.report(
                Problem::new(format!("{prefix}.{key}"), message)
                    .help("use it for anonymous and tmpfs objects"),
            );
        }
        self.compressed(prefix, compressed);
        if let Some(name) = &object.file {
            let path = format!("{prefix}.file");
            if channel == Channel::Anonymous {
                self.report(
                    Problem::new(&path, "anonymous memory has no file").help("give it a `size` instead"),
                );
                return;
            }
            if object.size.is_some() {
                let problem = Problem::new(format!("{prefix}.size"), "both `file` and `size` are given");
                self.report(problem.help("the size is in the [[file]]; keep one of the two"));
            }
            self.reference(&path, &self.known.files, name);
            let kind = self.files.get(name).map(|file| file.kind);
            let fits = match channel {
                Channel::File | Channel::Mapped => FileKind::Regular,
                Channel::Tmpfs | Channel::Anonymous => FileKind::Tmpfs,
            };
            if kind.is_some_and(|kind| kind != fits) {
                let (kind, channel) = (kind.expect("just seen").name(), channel.name());
                self.report(Problem::new(
                    format!("{prefix}.channel"),
                    format!(
                        "file `{name}` is a {kind} file; channel \"{channel}\" does not access such files"
                    ),
                ));
            }
        } else if object.size.is_none() && !self.is_sized_by_accesses(task, own) {
            self.report(Problem::new(prefix, "neither `size` nor `file` defines how large this object is"));
        }
        if object.hugepage.is_some() && !matches!(channel, Channel::Mapped | Channel::Anonymous) {
            let message =
                "only a mapping has a hint about huge pages, so channel must be \"mapped\" or \"anonymous\"";
            self.report(Problem::new(format!("{prefix}.hugepage"), message));
        }
        if object.locked && !matches!(channel, Channel::Mapped | Channel::Anonymous) {
            let problem = Problem::new(format!("{prefix}.locked"), "only a mapping can be locked");
            self.report(problem.help("use channel = \"mapped\" or \"anonymous\""));
        }
        if object.populate_node.is_some() && !matches!(channel, Channel::Mapped | Channel::Anonymous) {
            let problem = Problem::new(format!("{prefix}.populate_node"), "only a mapping can be populated");
            self.report(
                problem.help("for a file: let another task read it first, and run this one `after` it"),
            );
        }
        self.populated(prefix, object);
        if object.partial_writes && channel != Channel::File {
            let message = "only write(2) to a regular file can write less than a page";
            let problem = Problem::new(format!("{prefix}.partial_writes"), message);
            self.report(problem.help("use channel = \"file\""));
        }
        if object.opened_by == OpenedBy::Thread && !matches!(channel, Channel::File | Channel::Tmpfs) {
            let message = "threads share their mappings: only an open file can belong to one thread";
            let problem = Problem::new(format!("{prefix}.opened_by"), message);
            self.report(problem.help("leave it out, or use channel = \"file\" or \"tmpfs\""));
        }
        for (key, is_set) in [("end_fsync", object.end_fsync), ("fsync_every", object.fsync_every.is_some())]
        {
            if is_set && !matches!(channel, Channel::File | Channel::Mapped) {
                let message = "only a regular file has a device to write to";
                let problem = Problem::new(format!("{prefix}.{key}"), message);
                self.report(problem.help("leave it out, or use channel = \"file\" or \"mapped\""));
            }
        }
        let goes = [
            ("truncate_every", object.truncate_every.is_some()),
            ("delete_every", object.delete_every.is_some()),
        ];
        for (key, _) in goes.into_iter().filter(|&(_, is_set)| is_set && channel == Channel::Anonymous) {
            let message = "anonymous memory is not a file that could be truncated or deleted";
            let problem = Problem::new(format!("{prefix}.{key}"), message);
            self.report(problem.help("leave it out, or use channel = \"file\", \"mapped\" or \"tmpfs\""));
        }
        let are_several =
            [("per_copy", object.per_copy), ("copies_per_file", object.copies_per_file.is_some())];
        let is_no_own_file = object.file.is_some() || channel == Channel::Anonymous;
        for (key, _) in are_several.into_iter().filter(|&(_, is_set)| is_set && is_no_own_file) {
            let (message, help) = match channel {
                Channel::Anonymous => ("anonymous memory is per copy in any case", "leave it out"),
                _ => (
                    "a file with a name is shared by all objects that name it",
                    "leave out `file`, and give its `size` here",
                ),
            };
            self.report(Problem::new(format!("{prefix}.{key}"), message).help(help));
        }
        if object.per_copy && object.copies_per_file.is_some() {
            let message = "each copy already has its own file";
            let problem = Problem::new(format!("{prefix}.copies_per_file"), message);
            self.report(problem.help("leave out one of `per_copy` and `copies_per_file`"));
        }
        self.calls_and_advice(prefix, object);
        if object.executable && !matches!(channel, Channel::Mapped) {
            let problem =
                Problem::new(format!("{prefix}.executable"), "only a mapped file can be executable");
            self.report(problem.help("use channel = \"mapped\""));
        }
        if let (Some(_), Some(_)) = (&object.workload, &object.trace) {
            self.report(Problem::new(
                format!("{prefix}.trace"),
                "both `workload` and `trace` are given; keep one",
            ));
        }
        if object.read.is_some() && object.trace.is_none() {
            self.report(Problem::new(
                format!("{prefix}.read"),
                "`read` is for reading a trace, but there is none",
            ));
        }
        if object.file_calls.is_some() {
            let accesses = |object: &Object| object.trace.is_some() || object.workload.is_some();
            let problem = if object.trace.is_none() {
                "there is no trace that the calls could belong to"
            } else if task.object.iter().filter(|object| accesses(object)).count() > 1 {
                "the task has other accesses, which the positions of the calls don't count"
            } else if task.loops > 1 || task.threads > 1 || task.depth > 1 {
                "the positions of the calls count the trace's accesses, made once and by one thread"
            } else {
                ""
            };
            if !problem.is_empty() {
                self.report(Problem::new(format!("{prefix}.file_calls"), format!("`file_calls`: {problem}")));
            }
        }
        if let Err(error) = object.read_options() {
            self.report(Problem::in_table(&format!("{prefix}.read"), error));
        }
        self.workload(prefix, task, own);
    }

    fn calls_and_advice(&mut self, prefix: &str, object: &Object) {
        let channel = object.channel;
        let is_open_file = matches!(channel, Channel::File | Channel::Tmpfs);
        if object.request_size.is_some() {
            let problem = match (is_open_file, &object.trace) {
                (false, _) => Some((
                    "loads and stores request only the pages that they access",
                    "use channel = \"file\" or \"tmpfs\", or leave it out",
                )),
                (true, Some(_)) => Some(("a trace itself defines the accesses", "leave it out")),
                (true, None) => None,
            };
            if let Some((message, help)) = problem {
                let problem =
                    Problem::new(format!("{prefix}.request_size"), format!("`request_size`: {message}"));
                self.report(problem.help(help));
            }
        }
        let problem = match object.advice {
            Advice::NoReuse if channel == Channel::Anonymous => "is for a file, but there is none",
            Advice::WillNeed if !matches!(channel, Channel::File | Channel::Mapped) => {
                "reads from a device, but this object is not on a device when the task starts"
            }
            _ => return,
        };
        let advice = object.advice.name();
        let problem = Problem::new(format!("{prefix}.advice"), format!("`advice`: {advice} {problem}"));
        self.report(problem.help("leave it out, or use channel = \"file\" or \"mapped\""));
    }

    /// An object that has a regular file of its own has it on a device.
    fn object_device(&mut self, path: &str, object: &Object) {
        let is_regular = matches!(object.channel, Channel::File | Channel::Mapped);
        if is_regular && object.file.is_none() {
            return self.on_device(path, object.device.as_ref());
        }
        if object.device.is_some() {
            let (message, help) = match is_regular {
                true => {
                    ("the `file` of this object defines where it lives", "give the [[file]] its `device`")
                }
                false => ("this object lives in memory and on no device", "leave `device` out"),
            };
            self.report(Problem::new(path, message).help(help));
        }
    }

    /// Returns true if an object's size follows from its accesses: its own workload or trace, the trace of an object before it (which may hold several
    /// objects), or a pattern with parts on several objects.
    fn is_sized_by_accesses(&self, task: &Task, own: usize) -> bool {
        task.object[own].workload.is_some()
            || task.object[..=own].iter().any(|before| before.trace.is_some())
            || self.files.pages_of(task, own).is_some()
    }

    fn workload(&mut self, prefix: &str, task: &Task, own: usize) {
        let object = &task.object[own];
        let Some(pattern) = self.files.pattern_of(object) else { return };
        if self.files.object_pages(object) == Some(0) {
            // Reported where the size is given; no pattern fits into it.
            return;
        }
        let pattern = match pattern {
            Ok(pattern) => pattern,
            Err(error) => {
                let needs_pages = error.message.contains("key `pages` is missing");
                let mut problem = Problem::in_table(&format!("{prefix}.workload"), error);
                if needs_pages {
                    problem = problem.help("give the object a `size`, or the pattern its `pages`");
                }
                return self.report(problem);
            }
        };
        for (index, requests) in pattern.object_pages(own as u32) {
            let Some(target) = task.object.get(index as usize) else {
                let message = format!(
                    "the pattern accesses object {index}, but task `{}` has {}",
                    task.name,
                    task.object.len()
                );
                self.report(Problem::new(format!("{prefix}.workload"), message));
                continue;
            };
            let pages = requests.saturating_mul(target.request_pages());
            // The last request may be cut short.
            let fits = |size: u64| requests <= size.div_ceil(target.request_pages());
            if let Some(size) = self.files.object_pages(target).filter(|&size| size > 0 && !fits(size)) {
                let message =
                    format!("the pattern reaches page {}, beyond the object's {size} pages", pages - 1);
                let problem = Problem::new(format!("{prefix}.workload"), message);
                self.report(problem.help(format!("make the object {} or larger", Size::from_pages(pages))));
            }
        }
    }

    /// Some task has to end, or the run never does.
    pub(super) fn has_an_end(&mut self) {
        let tasks = &self.scenario.task;
        if tasks.is_empty() {
            self.report(Problem::new("task", "there is no task to run").help("add a [[task]]"));
        } else if self.scenario.until.is_none() && tasks.iter().all(|task| task.background) {
            let problem =
                Problem::new("task[0].background", "every task is in the background, so the run never ends");
            self.report(problem.help("set `until`, or background = false for one of them"));
        }
    }
}
