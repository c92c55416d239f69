//! Tasks and processes of a recording: those of now, and the names of their files.

use super::*;

impl Recorder<'_> {
    /// Follows these tasks as well. The machine as a whole has none to follow.
    pub(super) fn follow(&mut self, tasks: &[u32]) -> Result<(), Error> {
        if self.options.target == Target::Machine {
            return Ok(());
        }
        let own = std::process::id();
        let fresh: Vec<u32> =
            tasks.iter().copied().filter(|&task| task != own && self.tasks.insert(task)).collect();
        match &self.instance {
            Some(instance) if !fresh.is_empty() => instance.follow(&fresh),
            // Without a list the kernel would report every task.
            Some(instance) if self.tasks.is_empty() => instance.follow(&[u32::MAX >> 10]),
            _ => Ok(()),
        }
    }

    /// Tasks of now, of which new ones are followed. Returns whether there are any.
    pub(super) fn look_at_tasks(&mut self) -> Result<bool, Error> {
        let tasks: Vec<u32> = match &self.options.target {
            Target::Machine => return Ok(true),
            Target::Cgroup(_) => self.group.tasks(),
            Target::Pids(pids) => {
                pids.iter().flat_map(|&pid| processes::threads(&self.options.root, pid)).collect()
            }
            Target::Command { cgroup: Some(_), .. } => self.group.tasks(),
            Target::Command { .. } => self.descendants(),
        };
        self.follow(&tasks)?;
        self.process_of.retain(|task, _| tasks.contains(task));
        Ok(!tasks.is_empty())
    }

    /// The command's processes: those whose parents are.
    pub(super) fn descendants(&self) -> Vec<u32> {
        let mut found: Vec<u32> = self.child.iter().map(Started::pid).collect();
        let mut at = 0;
        while let Some(&pid) = found.get(at) {
            at += 1;
            for thread in processes::threads(&self.options.root, pid) {
                let children = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/children"))
                    .unwrap_or_default();
                found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            }
        }
        found
    }

    /// The processes of now.
    pub(super) fn processes(&mut self) -> BTreeSet<u32> {
        let root = &self.options.root;
        let tasks: Vec<u32> = match &self.options.target {
            Target::Command { cgroup: None, .. } => self.descendants(),
            Target::Machine => processes::all(root),
            _ => {
                let tasks = self.tasks.iter().copied();
                tasks.filter(|task| root.has(&format!("/proc/{task}"))).collect()
            }
        };
        processes::processes(root, &tasks, &mut self.process_of)
    }

    pub(super) fn look_at_names(&mut self, with_mappings: bool) {
        let processes = self.processes();
        let root = &self.options.root;
        self.names.look(root, &processes);
        if with_mappings && (self.options.kinds.faults || self.watch.is_some()) {
            self.names.look_at_mappings(root, &processes);
        }
        if let Some(watch) = self.watch.as_mut().filter(|_| self.options.files.is_empty()) {
            watch.add(self.names.paths());
        }
    }
}
