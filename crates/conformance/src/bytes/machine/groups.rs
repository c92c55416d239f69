//! Groups and the processes in them: created, limited, removed.

use pageout_engine::*;

use super::ByteMachine;
use super::tasks::{Doing, State};
use crate::bytes::input::Limit;

impl ByteMachine {
    pub(super) fn create_group(&mut self, parent: u8, policy: Policy) -> MemcgId {
        let (parent, path) = self.groups[usize::from(parent) % self.groups.len()].clone();
        let name = format!("g{}", self.groups.len());
        let memcg = self.engine.memcg_create_with(parent, &name, policy.group).expect("the name is new");
        let path = format!("{path}/{name}");
        assert_eq!(self.engine.figures().memcg_by_path(&path), Some(memcg));
        self.groups.push((memcg, path));
        memcg
    }

    pub(super) fn create_process(&mut self, group: usize) -> MmId {
        let mm = self.engine.process_create(self.groups[group].0);
        self.processes.push((mm, group));
        mm
    }

    /// Removes a group with nothing below it, and makes another in its place. Its processes move there; what they have in memory
    /// stays with the removed one.
    pub(super) fn replace_group(&mut self, group: usize) {
        let of_group = |(_, at): &&(MmId, usize)| *at == group;
        let mms: Vec<MmId> = self.processes.iter().filter(of_group).map(|&(mm, _)| mm).collect();
        let runs_here = |(_, mm): &&(usize, MmId)| mms.contains(mm);
        let mut tasks = self.runs_in.iter().filter(runs_here).map(|&(task, _)| task);
        if tasks.any(|task| self.tasks[task].state != State::Idle) {
            return;
        }
        let (memcg, path) = self.groups[group].clone();
        let directory = format!("/sys/fs/cgroup{path}");
        mms.iter().for_each(|&mm| self.engine.process_move(mm, MemcgId::ROOT));
        let mut heir = memcg;
        match self.engine.remove_directory(&directory) {
            Ok(()) => {
                // Half of the groups are forgotten: if nothing is charged to one, a later group gets its number and its lists.
                if group.is_multiple_of(2) {
                    self.engine.memcg_forget(memcg);
                }
                let (parent, name) = path.rsplit_once('/').expect("only the root has no name");
                let parent =
                    self.engine.figures().memcg_by_path(parent).expect("a parent outlives its children");
                heir = self.engine.memcg_create(parent, name).expect("the name is free");
                self.groups[group].0 = heir;
                let gone = self.engine.read_file("/sys/fs/cgroup/cgroup.stat").expect("the root has it");
                assert!(gone.starts_with("nr_descendants"), "{gone}");
            }
            Err(error) => {
                let inside = format!("{path}/");
                let has_children = self.groups.iter().any(|(_, other)| other.starts_with(&inside));
                assert!(has_children || group == 0, "{error}");
            }
        }
        mms.iter().for_each(|&mm| self.engine.process_move(mm, heir));
    }

    pub(super) fn write(
        &mut self,
        task: usize,
        group: usize,
        file: &str,
        value: &str,
    ) -> Result<Step, FileError> {
        let path = format!("/sys/fs/cgroup{}/{file}", self.groups[group].1);
        self.engine.write_file(TaskId(task as u32), &path, value)
    }

    pub(super) fn write_limit(&mut self, task: usize, group: usize, knob: &str, limit: Limit) {
        self.high_used |= knob == "memory.high" && limit != Limit::Max;
        match self.write(task, group, knob, &limit.text()) {
            Ok(step) => self.advanced(task, Doing::Reclaim, step, false),
            Err(error) => assert_eq!(self.groups[group].0, MemcgId::ROOT, "{error}"),
        }
    }
}
