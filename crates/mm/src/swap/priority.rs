//! Priorities of swap devices: which device gives the next slot.
//!
//! ```text
//!   priority 5    [ device 1 ]                            until it is full
//!   priority 0    [ device 0 ][ device 3 ]                in turn, a CPU's batch of slots from each
//!   priority -2   [ device 2 ]                            enabled without a priority, before any other such
//! ```
//! Devices of a higher priority are filled before those of a lower one. Equal ones take turns, each with as many slots as a CPU takes at a time. A
//! device that is enabled without a priority gets one below all others without one. [swapon(2)]

use crate::swap::SwapDevice;
use crate::units::{CpuId, SwapId};

/// What the first device without a priority gets, and the next ones count down from.
const FIRST_WITHOUT: i32 = -2;

/// The devices in the order in which they are used.
pub(super) struct Priorities {
    /// Highest first.
    levels: Vec<Level>,
    next_without: i32,
}

impl Default for Priorities {
    fn default() -> Priorities {
        Priorities { levels: Vec::new(), next_without: FIRST_WITHOUT }
    }
}

/// Devices of one priority.
struct Level {
    priority: i32,
    devices: Vec<SwapId>,
    /// Position of the one that a CPU turns to next.
    turn: usize,
    /// By CPU: position of the one that it took slots from last.
    last: Vec<usize>,
}

impl Priorities {
    pub(super) fn add(&mut self, swap: SwapId, given: Option<u16>) {
        let priority = given.map_or(self.next_without, i32::from);
        self.next_without -= i32::from(given.is_none());
        match self.levels.binary_search_by(|level| priority.cmp(&level.priority)) {
            Ok(at) => self.levels[at].devices.push(swap),
            Err(at) => {
                self.levels.insert(at, Level { priority, devices: vec![swap], turn: 0, last: Vec::new() });
            }
        }
    }

    /// A slot of the first device that has one.
    pub(super) fn take(&mut self, devices: &mut [SwapDevice], cpu: CpuId) -> Option<(SwapId, u32)> {
        self.levels.iter_mut().find_map(|level| level.take(devices, cpu))
    }

    /// The device that is asked first for slots in a row.
    pub(super) fn first(&self, devices: &[SwapDevice]) -> Option<SwapId> {
        let has_room =
            |swap: &&SwapId| devices[swap.index()].slots.used() < devices[swap.index()].slots.len();
        self.levels.iter().flat_map(|level| &level.devices).find(has_room).copied()
    }

    pub(super) fn of(&self, swap: SwapId) -> i32 {
        let level = self.levels.iter().find(|level| level.devices.contains(&swap));
        level.expect("each device has a priority").priority
    }
}

impl Level {
    fn take(&mut self, devices: &mut [SwapDevice], cpu: CpuId) -> Option<(SwapId, u32)> {
        if self.last.len() <= cpu.index() {
            self.last.resize(cpu.index() + 1, 0);
        }
        let last = self.devices[self.last[cpu.index()]];
        if devices[last.index()].slots.has_ready(cpu) {
            return Some((last, devices[last.index()].slots.take(cpu)?));
        }
        for _ in 0..self.devices.len() {
            let at = self.turn;
            self.turn = (at + 1) % self.devices.len();
            let swap = self.devices[at];
            if let Some(slot) = devices[swap.index()].slots.take(cpu) {
                self.last[cpu.index()] = at;
                return Some((swap, slot));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SwapKind, SwapSpec};

    /// Devices of so many slots and these priorities; which of them a CPU is given in turn.
    fn taken(given: &[(u64, Option<u16>)], number: usize) -> Vec<u8> {
        let mut devices = Vec::new();
        let mut priorities = Priorities::default();
        for (at, &(pages, priority)) in given.iter().enumerate() {
            devices.push(SwapDevice::new(SwapSpec { pages, kind: SwapKind::Device }));
            priorities.add(SwapId(at as u8), priority);
        }
        let mut taken: Vec<u8> = Vec::new();
        for _ in 0..number {
            match priorities.take(&mut devices, CpuId(0)) {
                Some((swap, _)) => taken.push(swap.0),
                None => break,
            }
        }
        taken
    }

    #[test]
    fn a_device_is_filled_before_one_of_lower_priority() {
        let taken = taken(&[(3, None), (2, Some(7)), (4, Some(0))], 100);
        assert_eq!(taken, [1, 1, 2, 2, 2, 2, 0, 0, 0]);
    }

    #[test]
    fn without_priorities_devices_are_used_in_the_order_in_which_they_were_enabled() {
        assert_eq!(taken(&[(2, None), (1, None), (1, None)], 100), [0, 0, 1, 2]);
    }

    #[test]
    fn of_equal_priority_each_gives_a_batch_in_turn_until_it_is_full() {
        let taken = taken(&[(1000, Some(5)), (100, Some(5))], 1100);
        let batches: Vec<(u8, usize)> =
            taken.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
        assert_eq!(batches[..4], [(0, 64), (1, 64), (0, 64), (1, 36)]);
        assert_eq!(taken.len(), 1100);
    }
}
