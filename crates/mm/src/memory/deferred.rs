//! Queues of anonymous folios that pressure may split: those of which some pages are not mapped any more, and new huge pages, which may be
//! underused. [folios 2.7, 2.8]
//!
//! A queue is a group's, over all nodes or on one node. It is worked off from its start, by a shrinker. A folio leaves it when it is freed or split, or when it has been scanned and stays.

use crate::units::{MemcgId, NodeId, Pfn};
use std::collections::BTreeMap;

/// Whose a queue is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct QueueId {
    /// The group.
    pub memcg: MemcgId,
    /// The node; the first one if a queue is for all nodes.
    pub node: NodeId,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    queue: QueueId,
    at: u64,
    is_partly_mapped: bool,
}

/// All queues.
#[derive(Default, Debug)]
pub struct DeferredSplits {
    folios: BTreeMap<Pfn, Queued>,
    queues: BTreeMap<(QueueId, u64), Pfn>,
    next: u64,
    /// By queue: what calls of the shrinker have left undone.
    owed: BTreeMap<QueueId, u64>,
}

impl DeferredSplits {
    /// Puts a folio at the end of a queue, unless it is in one. Returns whether it was not known before to be partly mapped, and is.
    pub fn add(&mut self, pfn: Pfn, queue: QueueId, is_partly_mapped: bool) -> bool {
        if let Some(queued) = self.folios.get_mut(&pfn) {
            let is_news = is_partly_mapped && !queued.is_partly_mapped;
            queued.is_partly_mapped |= is_partly_mapped;
            return is_news;
        }
        let at = self.next;
        self.next += 1;
        self.folios.insert(pfn, Queued { queue, at, is_partly_mapped });
        self.queues.insert((queue, at), pfn);
        is_partly_mapped
    }

    /// Takes a folio out of its queue. Returns whether it was known to be partly mapped; `None` if it was in no queue.
    pub fn remove(&mut self, pfn: Pfn) -> Option<bool> {
        let Queued { queue, at, is_partly_mapped } = self.folios.remove(&pfn)?;
        self.queues.remove(&(queue, at));
        Some(is_partly_mapped)
    }

    /// A folio has moved to another frame, and belongs to this queue there.
    pub fn moved(&mut self, from: Pfn, to: Pfn, queue: QueueId) {
        if let Some(queued) = self.folios.remove(&from) {
            self.queues.remove(&(queued.queue, queued.at));
            self.queues.insert((queue, queued.at), to);
            self.folios.insert(to, Queued { queue, ..queued });
        }
    }

    /// All folios of a group belong to another one.
    pub fn reparent(&mut self, memcg: MemcgId, parent: MemcgId) {
        let own: Vec<(Pfn, Queued)> = self
            .folios
            .iter()
            .filter(|(_, of)| of.queue.memcg == memcg)
            .map(|(&pfn, &of)| (pfn, of))
            .collect();
        for (pfn, of) in own {
            self.moved(pfn, pfn, QueueId { memcg: parent, ..of.queue });
        }
        self.owed.retain(|queue, _| queue.memcg != memcg);
    }

    /// Returns whether a folio is known to be partly mapped.
    pub fn is_partly_mapped(&self, pfn: Pfn) -> bool {
        self.folios.get(&pfn).is_some_and(|queued| queued.is_partly_mapped)
    }

    /// Returns whether no queue has a folio.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.folios.is_empty()
    }

    /// The folios of a queue, from its start.
    pub fn of(&self, queue: QueueId) -> impl Iterator<Item = Pfn> {
        self.queues.range((queue, 0)..=(queue, u64::MAX)).map(|(_, &pfn)| pfn)
    }

    /// What calls of the shrinker owe a queue.
    pub fn owed(&mut self, queue: QueueId) -> &mut u64 {
        self.owed.entry(queue).or_default()
    }

    /// All folios, and whether they are known to be partly mapped.
    pub fn iter(&self) -> impl Iterator<Item = (Pfn, QueueId, bool)> {
        self.folios.iter().map(|(&pfn, of)| (pfn, of.queue, of.is_partly_mapped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_keeps_the_order_of_arrival_across_moves() {
        let queue = QueueId { memcg: MemcgId(1), node: NodeId(0) };
        let mut splits = DeferredSplits::default();
        assert!(splits.add(Pfn(64), queue, true));
        assert!(!splits.add(Pfn(16), queue, false));
        assert!(!splits.add(Pfn(64), queue, true), "known already");
        assert!(splits.add(Pfn(16), queue, true));
        splits.moved(Pfn(64), Pfn(128), queue);
        assert_eq!(splits.of(queue).collect::<Vec<_>>(), [Pfn(128), Pfn(16)]);
        assert_eq!([splits.remove(Pfn(64)), splits.remove(Pfn(128))], [None, Some(true)]);
        let parent = QueueId { memcg: MemcgId(0), ..queue };
        splits.reparent(MemcgId(1), MemcgId(0));
        assert_eq!((splits.of(queue).count(), splits.of(parent).count()), (0, 1));
    }
}
