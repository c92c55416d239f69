//! The use of each input of a run: simulated, left out, or not recorded; and warnings if a recorded input cannot be complete.
//!
//! An empty input has the same form as that of a kernel without such events, or of a recorder that did not record them. Neither is an
//! error, so the run is simulated. A warning is printed next to the verdict, whose figures may differ because of it.

use pageout_engine::{FlushRule, Nanos, Policy};
use serde::Serialize;

use super::complete::END;
use super::inputs::Inputs;
use super::object::{Kind, Object};
use super::recording::{Recording, Run, Window};
use crate::input::Input;

/// The inputs of a run, by the names of their fields.
#[derive(Clone, Default, Debug, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Recorded and replayed.
    pub played: Vec<String>,
    /// Recorded, but not simulated: left out with `--without`, or because another input is missing.
    pub left_out: Vec<String>,
    /// Asked for and not recorded: something else stands in their place.
    pub not_recorded: Vec<String>,
    /// Recorded inputs that are empty or incomplete.
    pub doubts: Vec<String>,
}

impl Account {
    pub(super) fn of(
        recording: &Recording,
        run: &Run,
        policy: &Policy,
        objects: &[Object],
        inputs: &Inputs,
    ) -> Account {
        let mut account = Account::default();
        if run.is_of_balancing() {
            return account;
        }
        if run.is_of_machine() {
            account.add_of_machine(recording, run, inputs);
        } else {
            account.add_of_group(recording, run, policy, objects, inputs);
        }
        account.add_of_clock("windows", run.ops, &run.windows);
        if let Some(second) = &run.second {
            account.add_of_clock("second.windows", second.ops, &second.windows);
        }
        account
    }

    /// The clock of a program.
    fn add_of_clock(&mut self, field: &str, ops: u64, windows: &[Window]) {
        let last = windows.last().map_or(0, |window| window.op);
        if last < ops {
            let stands = "the simulated clock stops there";
            self.doubts.push(format!("`{field}` ends with access {last} of {ops}: {stands}"));
        }
    }

    /// An input by whether it was recorded; whether it is replayed.
    fn add(&mut self, recording: &Recording, input: Input, is_recorded: bool) -> bool {
        let is_played = is_recorded && recording.plays(input);
        let of = match (is_recorded, is_played) {
            (false, _) => &mut self.not_recorded,
            (true, false) => &mut self.left_out,
            (true, true) => &mut self.played,
        };
        of.push(input.field().to_string());
        is_played
    }

    fn doubt(&mut self, is_in_doubt: bool, input: Input, why: impl FnOnce() -> String) {
        if is_in_doubt {
            self.doubts.push(format!("`{}` {}", input.field(), why()));
        }
    }

    fn add_of_group(
        &mut self,
        recording: &Recording,
        run: &Run,
        policy: &Policy,
        objects: &[Object],
        inputs: &Inputs,
    ) {
        let mut pages = Input::GroupAtStart;
        if !self.add(recording, pages, run.group_at_start.is_some()) {
            pages = Input::BasePages;
            self.add(recording, pages, run.base_pages.is_some());
        }
        let held = recording.base_pages(run);
        self.doubt(held.is_some_and(<[_]>::is_empty), pages, || {
            "lists no page, although every program has one: the simulated group holds only the objects".into()
        });
        let decides_by_flushes = policy.group.reclaim.stat_flush != FlushRule::Updates;
        if Recording::needs_flushes(run) && decides_by_flushes {
            self.add(recording, Input::Flushes, recording.flushes(run).is_some());
            self.doubt(inputs.flushes.is_some_and(<[_]>::is_empty), Input::Flushes, || {
                "lists no flush: the simulated statistics stay as old as the run".into()
            });
        }
        let is_read_ahead = objects.iter().any(Object::is_read_ahead);
        let of_mapping = |object: &Object| matches!(object.kind, Kind::MappedReadahead(_));
        if objects.iter().any(of_mapping) {
            self.add(recording, Input::MappedFile, run.mapped_file.is_some());
            self.doubt(
                inputs.mapped.as_ref().is_some_and(|mapped| mapped.is_empty()),
                Input::MappedFile,
                || "has no line: each simulated fault maps only the accessed page".into(),
            );
        }
        if is_read_ahead && !Recording::needs_flushes(run) {
            self.add(recording, Input::Agings, run.agings.is_some());
            self.doubt(inputs.agings.as_ref().is_some_and(|agings| agings.is_empty()), Input::Agings, || {
                "lists no aging: the simulator decides by rule which agings walk page tables".into()
            });
        }
        self.add(recording, Input::AccessTimes, run.access_times.is_some());
        let end = run.windows.last().map_or(0.0, |window| window.t);
        let last = inputs.times.as_ref().map(|times| times.last().map_or(0.0, |&at| seconds(at)));
        self.doubt(last.is_some_and(|last| last < END * end), Input::AccessTimes, || {
            format!("end at {:.3} s, but the run took {end:.3} s", last.unwrap_or_default())
        });
    }

    fn add_of_machine(&mut self, recording: &Recording, run: &Run, inputs: &Inputs) {
        let is_found = self.add(recording, Input::StartState, run.start_state.is_some());
        if is_found {
            let parts = Input::PARTS.iter().filter(|&&part| !recording.plays(part));
            self.left_out.extend(parts.map(|part| part.field().to_string()));
        }
        for doubt in inputs.found.iter().flat_map(|found| &found.doubts) {
            self.doubt(true, Input::StartState, || doubt.clone());
        }
        let is_traced = run.trace_file.is_some();
        // An empty input is simulated like a missing one, and is listed as missing.
        let lacks_wakes = is_traced && recording.plays(Input::KswapdWakes) && inputs.kswapd_wakes.is_empty();
        self.add(recording, Input::KswapdWakes, is_traced && !lacks_wakes);
        self.doubt(lacks_wakes, Input::KswapdWakes, || {
            "are simulated by rule: `trace_file` has no `mm_vmscan_kswapd_wake` after a `mm_vmscan_wakeup_kswapd`".into()
        });
        let blocks = Input::KernelAllocations;
        if is_traced && recording.plays(blocks) && !is_found {
            self.left_out.push(blocks.field().to_string());
            self.doubt(run.start_state.is_none(), blocks, || {
                "are simulated by rule: the recording has no `start_state`, which they need".into()
            });
        } else {
            let lacks_blocks = is_traced && recording.plays(blocks) && inputs.kernel_blocks.is_empty();
            self.add(recording, blocks, is_traced && !lacks_blocks);
            self.doubt(lacks_blocks, blocks, || {
                "are simulated by rule: `trace_file` has no `mm_page_alloc` of `migratetype` 0 or 2".into()
            });
        }
        let end = run.windows.last().map_or(0.0, |window| window.t);
        let last = inputs.trace_end.map(seconds).filter(|&last| last < END * end);
        if let Some(last) = last {
            let lost = "later work of the kernel is not simulated";
            self.doubts.push(format!("`trace_file` ends at {last:.3} s of {end:.3} s: {lost}"));
        }
    }

    /// Input names and what became of them, in a line; none where the run asks for no input.
    pub fn text(&self) -> Option<String> {
        let kinds =
            [("played", &self.played), ("left out", &self.left_out), ("not recorded", &self.not_recorded)];
        let kinds = kinds.iter().filter(|(_, names)| !names.is_empty());
        let texts: Vec<String> = kinds.map(|(what, names)| format!("{what} {}", names.join(", "))).collect();
        Some(texts.join("; ")).filter(|text| !text.is_empty())
    }
}

fn seconds(at: Nanos) -> f64 {
    at.0 as f64 / 1e9
}
