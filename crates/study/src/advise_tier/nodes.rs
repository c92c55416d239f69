//! The nodes of an advised machine, one fast and one slow, in place of those that the scenario has.
//!
//! The study varies the nodes of memory and the CPUs of tasks, so the scenario's own settings of them are ignored. Memory that exists
//! before the run stays: in fast memory as far as it fits, and in slow memory beyond that.

use std::collections::BTreeSet;

use pageout_sim::scenario::{Scenario, Task};

/// The node of fast memory.
const FAST: u16 = 0;

/// Takes out what names nodes, and returns the keys that did.
pub(super) fn put_aside(scenario: &mut Scenario) -> BTreeSet<&'static str> {
    let mut keys = BTreeSet::new();
    let mut note = |key: &'static str, was_there: bool| {
        if was_there {
            keys.insert(key);
        }
    };
    for task in &mut scenario.task {
        let Task { preferred_node, membind, interleave, weighted_interleave, cpunodebind, object, .. } = task;
        note("task.preferred_node", preferred_node.take().is_some());
        note("task.membind", membind.take().is_some());
        note("task.interleave", interleave.take().is_some());
        note("task.weighted_interleave", weighted_interleave.take().is_some());
        note("task.cpunodebind", cpunodebind.take().is_some());
        for populated in object.iter_mut().filter_map(|object| object.populate_node.as_mut()) {
            note("task.object.populate_node", *populated != FAST);
            *populated = FAST;
        }
    }
    for memcg in &mut scenario.memcg {
        note("memcg.cpuset.mems", memcg.files.get("cpuset.mems").is_some());
        memcg.files.0.retain(|(file, _)| file != "cpuset.mems");
    }
    // Kdamonds name nodes, too: what they watch, and where they migrate to.
    note("damon", !std::mem::take(&mut scenario.damon).is_empty());
    let machine = &mut scenario.machine;
    note("machine.remote_latency", machine.remote_latency.take().is_some());
    note("machine.remote_bandwidth", machine.remote_bandwidth.take().is_some());
    note("sysctl.vm.pghot_target_nid", scenario.sysctl.get("vm.pghot_target_nid").is_some());
    scenario.sysctl.0.retain(|(name, _)| name != "vm.pghot_target_nid");
    keys
}
