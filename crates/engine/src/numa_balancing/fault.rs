//! Hint faults: an access meets an entry that the scanner has marked PROT_NONE, which tells that the page is in use, and perhaps hot.
//! [tiering 2.3; tiering-zswap-6.12 3.3, 3.4]

use super::ThreadScan;
use super::governor::{Arrival, Traffic};
use super::period::ScanKnobs;
use super::scan::thread_bit;
use super::threshold::{AccessTime, HotThreshold, PromotionKnobs, Since};
use crate::core::Core;
use crate::memory::folio::UseBits;
use crate::memory::table::Word;
use crate::page_alloc::request::Rights;
use crate::page_alloc::watermark::Watermark;
use crate::page_alloc::zone::Zone;
use crate::pghot::Source;
use crate::stat::Stat;
use crate::state::State;
use crate::story::{Heat, MigrateReason, MigrateRefusal, PageEvent};
use crate::units::ZoneType;
use crate::units::{MmId, Nanos, NodeId, Pfn, TaskId};
use pageout_rules::numa_balancing::PromotionThreshold;
use pageout_rules::pghot::HintFaultRule;

/// A node with this much free memory accepts every page offered: 1 GiB.
const ENOUGH_PAGES: u64 = (1 << 30) / crate::units::PAGE_SIZE;
/// Or this share of its pages, if that is more.
const ENOUGH_SHARE: u64 = 16;

/// How often a page was a candidate for the same reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asks {
    /// The page has just been found hot.
    First,
    /// The page was found hot before, and was refused then.
    Again,
}

impl Core {
    /// An access of a thread to a page of its address space. If the page's entry is marked, promotes the page if it is hot, or reports
    /// it to hot-page tracking. Makes the entry accessible in any case. Returns false if it is not marked.
    #[doc(alias = "do_numa_page")]
    pub(crate) fn hint_fault(
        &mut self,
        (mm, vma): (MmId, usize),
        page: u64,
        write: bool,
        thread: &mut ThreadScan,
        id: TaskId,
    ) -> bool {
        let word = self.mm.memory.mm(mm).table.word(page);
        if !word.is_prot_none() {
            return false;
        }
        let pfn = word.pfn();
        let (node, to) = (self.mm.memory.folios[pfn].node, self.current_node());
        self.out.count.hint_faults(1);
        self.tell(pfn, |_| PageEvent::HintFault { by: to });
        self.mm.count_node(to, Stat::NumaHintFaults, 1);
        if node == to {
            self.mm.count_node(to, Stat::NumaHintFaultsLocal, 1);
        }
        let space = self.mm.memory.mm_mut(mm);
        if let Some(scan) = &mut space.vmas[vma].scan {
            scan.threads[1] |= thread_bit(id);
        }
        if word.is_huge() {
            self.mm.update_huge(mm, page, Word::clear_prot_none);
        } else {
            space.table.update(page, Word::clear_prot_none);
        }
        if self.mm.is_governed()
            && self.mm.tiers.node_is_top_tier(to)
            && !self.mm.tiers.node_is_top_tier(node)
        {
            self.note_use(pfn, to);
        }
        // A store to a page of a file has more to do than this.
        let dirties = write && !self.mm.is_regular(pfn);
        let is_slow = !self.mm.tiers.node_is_top_tier(node);
        if self.mm.config.is_cpu_balancing() && !(is_slow && self.mm.config.is_memory_tiering()) {
            self.place_page(pfn, (mm, vma), thread, id);
        } else if Source::HintFault.is_heard(&self.mm.config) {
            // The fault only reports the page: kmigrated moves it.
            let accesses = if self.is_hot_by_fault(pfn, to) {
                crate::pghot::Hotness::of(&self.mm.config).reports as u32
            } else {
                1
            };
            let recorded = self.record_accesses(pfn, Some(to), Source::HintFault, accesses);
            recorded.expect("the node of a CPU exists");
        } else if self.should_promote(pfn, to) {
            self.promote_for(pfn, to, (mm, vma), thread);
            self.adapt_period(mm, thread);
        }
        self.mm.memory.access_again(mm, page, dirties);
        true
    }

    fn promote_for(&mut self, pfn: Pfn, to: NodeId, vma: (MmId, usize), thread: &mut ThreadScan) {
        let pages = self.mm.memory.folios[pfn].pages();
        match self.promote_folio(pfn, to, vma, MigrateReason::HintFault) {
            Ok(()) => {
                thread.faults.remote += pages;
                thread.faults.private += pages;
                if self.mm.config.is_cpu_balancing() {
                    thread.nodes.get_or_insert_default().add(to, pages);
                }
            }
            Err(_) => thread.faults.has_failed = true,
        }
    }

    /// Returns true if a page that is accessed now should move to the node of the accessing task. It moves from slow memory to the top tier if
    /// it was marked recently, and if the promotion limit is not exceeded.
    #[doc(alias = "should_numa_migrate_memory")]
    pub(crate) fn should_promote(&mut self, pfn: Pfn, to: NodeId) -> bool {
        let is_slow = !self.mm.tiers.node_is_top_tier(self.mm.memory.folios[pfn].node);
        if !self.mm.config.is_memory_tiering() || !is_slow || !self.mm.tiers.node_is_top_tier(to) {
            return false;
        }
        self.is_used_soon(pfn, to) && !self.is_over_promotion_limit(pfn, to, Asks::First)
    }

    /// Returns true if one hint fault is enough for hot-page tracking.
    fn is_hot_by_fault(&mut self, pfn: Pfn, to: NodeId) -> bool {
        self.mm.config.pghot_hint_faults == HintFaultRule::Timed && self.is_used_soon(pfn, to)
    }

    /// Returns true if a page that is accessed now was marked recently. If the node has plenty of free memory, every page
    /// passes.
    fn is_used_soon(&mut self, pfn: Pfn, to: NodeId) -> bool {
        let (knobs, time) = (PromotionKnobs::of(&self.mm.config), AccessTime::of(&self.mm.config));
        let now_ms = self.by.now.0 / 1_000_000;
        if self.mm.has_plenty_free(to) {
            self.mm.numa_balancing.nodes[to.index()].reset_thresholds();
            self.tell(pfn, |_| PageEvent::HeatJudged { to, heat: Heat::RoomToSpare });
            return true;
        }
        if self.mm.config.promotion_threshold == PromotionThreshold::Active {
            let is_active = self.mm.is_active(pfn);
            self.tell(pfn, |_| PageEvent::HeatJudged { to, heat: Heat::OnActiveList(is_active) });
            if !is_active {
                self.lru_activate(pfn);
            }
            return is_active;
        }
        let stored = self.mm.numa_balancing.exchange_access_time(pfn, time.stored(now_ms));
        self.is_hot(pfn, to, (Since::Mark, time.latency(stored, now_ms)), &knobs)
    }

    /// Returns true if a page last used so long ago is hot, by an age that someone else knows, where pages younger than `reference_ms`
    /// are by default. In a node with plenty of free memory all are.
    pub(crate) fn is_recent_enough(&mut self, pfn: Pfn, to: NodeId, age_ms: u64, reference_ms: u64) -> bool {
        if self.mm.has_plenty_free(to) {
            self.mm.numa_balancing.nodes[to.index()].reset_thresholds();
            self.tell(pfn, |_| PageEvent::HeatJudged { to, heat: Heat::RoomToSpare });
            return true;
        }
        let knobs = PromotionKnobs { hot_threshold_ms: reference_ms, ..PromotionKnobs::of(&self.mm.config) };
        self.is_hot(pfn, to, (Since::Report, age_ms), &knobs)
    }

    /// Returns true if a page of this age is hot, where not all are welcome.
    fn is_hot(
        &mut self,
        pfn: Pfn,
        to: NodeId,
        (since, age_ms): (Since, u64),
        knobs: &PromotionKnobs,
    ) -> bool {
        let (candidates, now_ms) = (self.mm.promotion_candidates(to), self.by.now.0 / 1_000_000);
        match self.mm.config.promotion_threshold {
            // The caller that found it hot has checked its list.
            PromotionThreshold::Active => return true,
            PromotionThreshold::RateLimit => {
                self.mm.threshold_mut(to, since).adjust(knobs, candidates, now_ms);
            }
            PromotionThreshold::Capacity => {
                let (room, pages) = (self.mm.room_for_hot(to), self.mm.memory.folios[pfn].pages());
                self.mm.threshold_mut(to, since).fit(knobs, age_ms, pages, room, now_ms);
            }
        }
        let threshold_ms = self.mm.threshold_mut(to, since).get(knobs);
        self.tell(pfn, |_| PageEvent::HeatJudged { to, heat: Heat::Age { age_ms, threshold_ms } });
        age_ms < threshold_ms
    }

    /// Counts a page that is to be promoted to a node, and says whether the node's limits refuse it. One with plenty of free memory has none.
    pub(crate) fn is_over_promotion_limit(&mut self, pfn: Pfn, to: NodeId, asks: Asks) -> bool {
        let (pages, has_plenty) = (self.mm.memory.folios[pfn].pages(), self.mm.has_plenty_free(to));
        if asks == Asks::First {
            let candidates = if has_plenty { Stat::PgpromoteCandidateNrl } else { Stat::PgpromoteCandidate };
            self.mm.count_node(to, candidates, pages as i64);
        }
        let refusal = if has_plenty { None } else { self.promotion_refusal(to, pages) };
        if let Some(why) = refusal {
            self.tell(pfn, |_| PageEvent::NotMigrated { to, why });
        }
        refusal.is_some()
    }

    /// Which limit refuses pages that are to be promoted to a node, if one does.
    fn promotion_refusal(&mut self, to: NodeId, pages: u64) -> Option<MigrateRefusal> {
        let (knobs, now_ms) = (PromotionKnobs::of(&self.mm.config), self.by.now.0 / 1_000_000);
        if self.mm.numa_balancing.nodes[to.index()].rate.refuses(&knobs, pages, now_ms) {
            return Some(MigrateRefusal::RateLimit);
        }
        let is_refused = self.mm.is_governed() && !self.mm.governor_admits(to, now_ms);
        is_refused.then_some(MigrateRefusal::Governor)
    }

    /// Tier balancing was turned on, or its knobs were written: thresholds restart.
    pub(crate) fn restart_promotion(&mut self) {
        for node in self.mm.memory.nodes() {
            let candidates = self.mm.promotion_candidates(node);
            self.mm.numa_balancing.nodes[node.index()].restart(candidates, self.by.now.0 / 1_000_000);
        }
    }

    /// Looks at a thread's period, once in each pass over its memory that has led somewhere.
    pub(super) fn adapt_period(&mut self, mm: MmId, thread: &mut ThreadScan) {
        if self.by.now <= thread.retry_at {
            return;
        }
        let delay = self.mm.config.is_cpu_balancing().then_some(self.mm.config.scan_delay_ms.into());
        let Some(period) = thread.period_ms.or(delay) else { return };
        thread.retry_at = self.by.now + Nanos(1_000_000 * (period / 16).min(1000));
        let space = self.mm.memory.mm(mm);
        if thread.seq == space.scan.seq {
            return;
        }
        thread.seq = space.scan.seq;
        if let Some(nodes) = &mut thread.nodes {
            nodes.end_pass(&self.mm.tiers);
        }
        let resets = self.mm.config.policy.machine.numa_balancing.reset_counts;
        let keeps_places = thread.faults.are_in_vain() && !resets;
        let faults = thread.faults.restart(keeps_places);
        let adapted = ScanKnobs::of(&self.mm.config).adapted(period, space.table.resident(), &faults);
        thread.period_ms = Some(adapted);
        if faults.are_in_vain() {
            self.mm.memory.mm_mut(mm).scan.next = self.by.now + Nanos(1_000_000 * adapted);
        }
    }
}

impl State {
    /// Returns true if a page is on an active list, or in one of the two youngest generations.
    fn is_active(&self, pfn: Pfn) -> bool {
        let place = self.memory.places.get(pfn);
        match &self.lruvecs[self.lruvec_of(pfn)].generations {
            Some(generations) if place.is_listed() => generations.seqs_of(place).0 + 1 >= generations.max_seq,
            _ => self.memory.has_use(pfn, UseBits::ACTIVE),
        }
    }

    fn threshold_mut(&mut self, to: NodeId, since: Since) -> &mut HotThreshold {
        self.numa_balancing.nodes[to.index()].threshold_mut(since)
    }

    /// Pages of a node that hot pages could replace: free pages above the promotion watermark, and inactive pages.
    fn room_for_hot(&self, node: NodeId) -> u64 {
        let zones = self.memory.zones.of_node(node).iter();
        let free: u64 = zones.map(|zone| zone.free_pages().saturating_sub(zone.mark(Watermark::Promo))).sum();
        let vmstat = &self.vmstat[node.index()];
        let inactive = [Stat::NrInactiveAnon, Stat::NrInactiveFile].map(|stat| vmstat[stat as usize]);
        free + inactive.iter().sum::<i64>() as u64
    }

    /// Returns true if a node has so much free memory that it accepts every page.
    pub(crate) fn has_plenty_free(&self, node: NodeId) -> bool {
        let zones = self.memory.zones.of_node(node);
        let pages: u64 = zones.iter().map(|zone| zone.present).sum();
        let enough = ENOUGH_PAGES.max(pages / ENOUGH_SHARE);
        zones.iter().any(|zone| {
            zone.watermark_ok(0, zone.mark(Watermark::Promo) + enough, ZoneType::Movable, Rights::empty())
        })
    }

    fn governor_admits(&mut self, to: NodeId, now_ms: u64) -> bool {
        let gains = self.exchange_gains(to);
        let vmstat = &self.vmstat[to.index()];
        let count = |stat: Stat| vmstat[stat as usize] as u64;
        let demoted =
            [Stat::PgdemoteKswapd, Stat::PgdemoteDirect, Stat::PgdemoteKhugepaged, Stat::PgdemoteProactive];
        let traffic = Traffic {
            promoted: count(Stat::PgpromoteSuccess),
            demoted: demoted.into_iter().map(count).sum(),
        };
        let zones = self.memory.zones.of_node(to);
        let promo = |zone: &Zone| zone.mark(Watermark::Promo);
        let at_once = zones.iter().map(|zone| promo(zone) - zone.mark(Watermark::High)).sum();
        // Below its promo mark kswapd may be making it, and who takes it from under its hands has it make more.
        let is_free = |zone: &Zone| zone.watermark_ok(0, promo(zone) + 1, ZoneType::Movable, Rights::empty());
        let has_room = zones.iter().any(is_free);
        let unused = zones.iter().map(|zone| zone.free_pages() + zone.listed_pages()).sum();
        let arrival = Arrival { now_ms, traffic, unused, at_once, has_room, gains };
        let length_ms = self.config.promotion_governor_ms.into();
        self.numa_balancing.governors[to.index()].admits(length_ms, &arrival)
    }

    fn promotion_candidates(&self, node: NodeId) -> u64 {
        self.vmstat[node.index()][Stat::PgpromoteCandidate as usize] as u64
    }
}
