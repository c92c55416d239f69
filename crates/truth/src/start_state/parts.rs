//! Parts of a snapshot that can be left out each by itself, and what is in their place: what a simulator would suppose that knew the rest.

use pageout_engine::{FreeBlocks, FreeOfCpu, MigrateType, Pfn, StartGenerations};

use super::{List, Place, SLOTS, StartState};
use crate::input::Input;

/// The largest block, and pages of a pageblock.
const ORDER_MAX: u8 = 10;
const PAGEBLOCK_PAGES: u32 = 1 << 9;

impl StartState {
    /// Puts something else in the place of a part, if it is one.
    pub(crate) fn leave_out(&mut self, part: Input) {
        match part {
            Input::FreeMemory => self.lay_kernel_dense(),
            Input::PerCpuLists => self.give_back_of_cpus(),
            Input::LruLists => self.is_placed = false,
            Input::AddBatches => self.place_batches(),
            Input::Tiers => {
                if let Some(generations) = &mut self.lruvec.generations {
                    let StartGenerations { averages, present, .. } = generations;
                    (*averages, *present) = Default::default();
                }
            }
            Input::Costs => self.lruvec.cost = [0; 2],
            Input::Statistics => (self.lruvec.counted, self.lruvec.refaulted) = Default::default(),
            Input::StatisticsDue => self.flush_due = None,
            _ => {}
        }
    }

    /// The kernel's own memory in the first frames that no folio is in, and all that is free behind it, none of it with a CPU.
    fn lay_kernel_dense(&mut self) {
        let mut is_open = vec![true; self.frames as usize];
        let folios: Vec<Pfn> = self.folios().map(|(folio, _)| folio.pfn).collect();
        for pfn in self.reserved.iter().chain(&folios) {
            is_open[pfn.0 as usize] = false;
        }
        let open: Vec<Pfn> =
            (0..).zip(is_open).filter(|&(_, is_open)| is_open).map(|(pfn, _)| Pfn(pfn)).collect();
        let of_cpus = self.free.cpus.iter().flat_map(|cpu| &cpu.blocks);
        let free: usize =
            self.free.blocks.iter().chain(of_cpus).map(|list| list.first.len() << list.order).sum();
        let (kernel, free) = open.split_at(open.len().saturating_sub(free));
        let kinds = &mut self.free.pageblocks;
        kinds.fill(MigrateType::Movable);
        kernel.iter().for_each(|pfn| kinds[(pfn.0 / PAGEBLOCK_PAGES) as usize] = MigrateType::Unmovable);
        self.kernel = kernel.to_vec();
        self.free.blocks.clear();
        self.free.cpus.fill(FreeOfCpu::default());
        free.iter().for_each(|&pfn| self.give(pfn, 0));
    }

    /// Pages held by CPUs are in the free lists, and the CPUs start with their initial limits.
    fn give_back_of_cpus(&mut self) {
        let cpus = self.free.cpus.len();
        let cpus = std::mem::replace(&mut self.free.cpus, vec![FreeOfCpu::default(); cpus]);
        for list in cpus.into_iter().flat_map(|cpu| cpu.blocks) {
            list.first.into_iter().for_each(|first| self.give(first, list.order));
        }
    }

    /// A block to the free lists, joined with its buddies.
    fn give(&mut self, mut first: Pfn, mut order: u8) {
        while order < ORDER_MAX {
            let buddy = Pfn(first.0 ^ (1 << order));
            let mut lists = self.free.blocks.iter_mut().filter(|list| list.order == order);
            let Some((list, at)) = lists.find_map(|list| {
                let at = list.first.iter().rposition(|&other| other == buddy)?;
                Some((list, at))
            }) else {
                break;
            };
            list.first.remove(at);
            first = first.min(buddy);
            order += 1;
        }
        let block = (first.0 / PAGEBLOCK_PAGES) as usize;
        let kind = self.free.pageblocks.get(block).copied().unwrap_or(MigrateType::Movable);
        let is_here = |list: &&mut FreeBlocks| (list.order, list.kind) == (order, kind);
        match self.free.blocks.iter_mut().find(is_here) {
            Some(list) => list.first.push(first),
            None => self.free.blocks.push(FreeBlocks { order, kind, first: vec![first] }),
        }
    }

    /// Pages in add batches are on their list, or in the youngest generation, after all others.
    fn place_batches(&mut self) {
        let youngest = self.lruvec.generations.as_ref().map(|generations| generations.max_seq % SLOTS);
        let place = youngest.map_or(Place::TwoLists, Place::Generation);
        let is_batch = |list: &mut List| matches!(list.place, Place::AddBatch(_));
        let batches: Vec<List> = self.lists.extract_if(.., is_batch).collect();
        self.lists.extend(batches.into_iter().map(|list| List { place, ..list }));
    }
}
