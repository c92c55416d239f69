//! One task: its reclaim calls from begin to end, their work, and kswapd's times awake.

use super::coverage::{Coverage, EventKind};
use super::durations::Durations;
use super::work::{Reclaimer, Work};
use crate::ftrace::{CallKind, Event, ORDERS};

/// Nested calls that are followed: the kernel nests a soft limit's call in another one, and no deeper.
const NESTED_MAX: usize = 8;

/// Open calls of tasks that share a row.
const OPEN_MAX: usize = 4096;

/// Counts by order of the allocation (2^order pages).
#[derive(Clone, Copy, Debug, Default)]
pub struct ByOrder([u64; ORDERS]);

impl ByOrder {
    pub(super) fn count(&mut self, order: u8) {
        self.0[usize::from(order)] += 1;
    }

    /// Sum over all orders.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Orders with a count above 0, and the count.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }
}

/// A task, or all tasks of one name.
#[derive(Debug)]
pub struct Process {
    /// The task's name; empty for tasks beyond the limit of names.
    pub comm: String,
    /// The task's pid; `None` if several tasks share this entry.
    pub pid: Option<u32>,
    /// Times that it asked for kswapd.
    pub wake_requests: ByOrder,
    /// Its calls, by [`CallKind`].
    calls: [Calls; 4],
    /// Work by [`Reclaimer`].
    work: [Work; Reclaimer::ALL.len()],
    /// Calls that have begun, by the pid, the outermost first.
    open: Vec<(u32, Vec<Call>)>,
    /// kswapd's times awake; `None` for other tasks.
    pub kswapd: Option<Box<Kswapd>>,
    /// Single direct reclaim calls, and single times awake of kswapd: the first `Options::items_max` of the trace.
    pub items: [Vec<Item>; 2],
}

/// One call or one time awake.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// For an allocation of 2^order pages.
    pub order: u8,
    /// Begin and end, in nanoseconds of the trace's clock.
    pub span_ns: (u64, u64),
}

/// Calls of one kind.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Begin events.
    pub begun: ByOrder,
    /// Pages freed, by the end events of calls whose begin is in the trace.
    pub reclaimed: u64,
    /// Pages freed, by the end events of calls whose begin is not in the trace.
    pub reclaimed_without_begin: u64,
    /// Durations of calls with begin and end.
    pub latency: Durations,
    /// Begins whose end was lost: the task began another call of this kind later.
    pub without_end: u64,
    /// Ends without a begin, which was lost or is before the trace.
    pub without_begin: u64,
    /// Calls without an end when the trace ends: their number, and the earliest begin in nanoseconds of the trace's clock.
    pub unfinished: Option<(u64, u64)>,
}

/// A call that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) kind: CallKind,
    pub(super) order: u8,
    pub(super) begin_ns: u64,
    pub(super) work: Work,
    /// Pages freed, by its end event.
    pub(super) reclaimed: Option<u64>,
    /// Time in shrinkers, and since when it is in one.
    pub(super) slab_ns: u64,
    pub(super) slab_since_ns: Option<u64>,
}

/// A call or a time awake that has ended.
pub(super) struct Ended {
    pub(super) reclaimer: Reclaimer,
    pub(super) order: u8,
    pub(super) span_ns: (u64, u64),
    /// The call, if it was one, and not within another.
    pub(super) call: Option<Call>,
}

/// kswapd's times awake.
#[derive(Debug, Default)]
pub struct Kswapd {
    /// Times woken from sleep.
    pub wakes: ByOrder,
    /// Times asked for another order while awake.
    pub rewakes: ByOrder,
    /// Times that it went to sleep.
    pub sleeps: u64,
    /// Times awake, from wake to sleep.
    pub awake: Durations,
    /// If it is awake when the trace ends: since when, in nanoseconds of the trace's clock, and for which order.
    pub since: Option<(u64, u8)>,
    /// If it was awake when the trace began: when it went to sleep, in nanoseconds of the trace's clock.
    pub awake_before_ns: Option<u64>,
}

impl Kswapd {
    pub(super) fn wake(&mut self, time_ns: u64, order: u8) {
        if self.since.is_some() {
            self.rewakes.count(order);
        } else {
            self.wakes.count(order);
            self.since = Some((time_ns, order));
        }
    }

    pub(super) fn sleep(&mut self, time_ns: u64) -> Option<Ended> {
        self.sleeps += 1;
        let Some((since_ns, order)) = self.since.take() else {
            if self.sleeps == 1 {
                self.awake_before_ns = Some(time_ns);
            }
            return None;
        };
        self.awake.record(time_ns.saturating_sub(since_ns));
        Some(Ended {
            reclaimer: Reclaimer::Kswapd,
            order,
            span_ns: (since_ns, time_ns.max(since_ns)),
            call: None,
        })
    }
}

impl Process {
    pub(super) fn new(comm: String, pid: Option<u32>) -> Process {
        let number = comm.strip_prefix("kswapd").unwrap_or_default();
        let is_kswapd = number.starts_with(|c: char| c.is_ascii_digit());
        let kswapd = is_kswapd.then(Box::<Kswapd>::default);
        Process {
            comm,
            pid,
            wake_requests: ByOrder::default(),
            calls: Default::default(),
            work: [Work::default(); Reclaimer::ALL.len()],
            open: Vec::new(),
            kswapd,
            items: Default::default(),
        }
    }

    /// `comm-pid`, or `comm` if several tasks share this entry.
    pub fn name(&self) -> String {
        match self.pid {
            Some(pid) => format!("{}-{pid}", self.comm),
            None if self.comm.is_empty() => "(all others)".to_string(),
            None => self.comm.clone(),
        }
    }

    /// Its calls of one kind.
    pub fn calls(&self, kind: CallKind) -> &Calls {
        &self.calls[kind as usize]
    }

    /// Its work as one reclaimer.
    pub fn work_by(&self, reclaimer: Reclaimer) -> &Work {
        &self.work[reclaimer as usize]
    }

    pub(super) fn kswapd(&mut self) -> &mut Kswapd {
        self.kswapd.get_or_insert_default()
    }

    fn open_calls(&mut self, pid: u32) -> Option<&mut Vec<Call>> {
        self.open.iter_mut().find(|(whose, _)| *whose == pid).map(|(_, calls)| calls)
    }

    /// A call begins; `true` if it is within no other.
    pub(super) fn begin(&mut self, pid: u32, kind: CallKind, order: u8, time_ns: u64) -> bool {
        self.calls[kind as usize].begun.count(order);
        if self.open_calls(pid).is_none() {
            if self.open.len() >= OPEN_MAX {
                return false;
            }
            self.open.push((pid, Vec::new()));
        }
        let Some(open) = self.open_calls(pid) else { return false };
        // A call of the same kind cannot begin within it: the end of that one was lost.
        let mut without_end = 0;
        if let Some(at) = open.iter().position(|call| call.kind == kind) {
            open.truncate(at);
            without_end = 1;
        }
        let is_outermost = open.is_empty();
        if open.len() < NESTED_MAX {
            let (work, slab_since_ns) = (Work::default(), None);
            open.push(Call {
                kind,
                order,
                begin_ns: time_ns,
                work,
                reclaimed: None,
                slab_ns: 0,
                slab_since_ns,
            });
        }
        self.calls[kind as usize].without_end += without_end;
        is_outermost
    }

    pub(super) fn end(&mut self, pid: u32, kind: CallKind, reclaimed: u64, time_ns: u64) -> Option<Ended> {
        let found = self.open_calls(pid).and_then(|open| {
            let at = open.iter().rposition(|call| call.kind == kind)?;
            let call = open[at];
            open.truncate(at);
            Some((call, at == 0))
        });
        if matches!(found, Some((_, true))) {
            self.open.retain(|(whose, _)| *whose != pid);
        }
        let calls = &mut self.calls[kind as usize];
        // Some of these pages may have been freed before the trace began.
        let Some((call, is_outermost)) = found else {
            calls.without_begin += 1;
            calls.reclaimed_without_begin += reclaimed;
            return None;
        };
        calls.reclaimed += reclaimed;
        let end_ns = time_ns.max(call.begin_ns);
        calls.latency.record(end_ns - call.begin_ns);
        let call = Call { reclaimed: Some(reclaimed), ..call };
        Some(Ended {
            reclaimer: kind.into(),
            order: call.order,
            span_ns: (call.begin_ns, end_ns),
            call: Some(call).filter(|_| is_outermost && self.kswapd.is_none()),
        })
    }

    /// Returns true if what the task does now is reclaim.
    pub(super) fn is_reclaiming(&self, pid: u32) -> bool {
        self.kswapd.is_some() || self.open.iter().any(|(whose, _)| *whose == pid)
    }

    /// A shrinker begins or ends; what it takes is the outermost call's.
    pub(super) fn shrink_slab(&mut self, pid: u32, is_begin: bool, time_ns: u64) {
        let Some(call) = self.open_calls(pid).and_then(|open| open.first_mut()) else { return };
        if is_begin {
            call.slab_since_ns = Some(time_ns);
        } else if let Some(since_ns) = call.slab_since_ns.take() {
            call.slab_ns = call.slab_ns.saturating_add(time_ns.saturating_sub(since_ns));
        }
    }

    /// Adds the work of one event where it belongs, and says where that is.
    pub(super) fn work(&mut self, pid: u32, event: Event) -> (Reclaimer, Work) {
        let work = Work::of(event);
        let is_kswapd = self.kswapd.is_some();
        let call = self.open_calls(pid).and_then(|open| open.first_mut());
        let reclaimer = match call {
            _ if is_kswapd => Reclaimer::Kswapd,
            Some(call) => {
                call.work.add(&work);
                call.kind.into()
            }
            None => Reclaimer::Outside,
        };
        self.work[reclaimer as usize].add(&work);
        (reclaimer, work)
    }

    pub(super) fn keep_item(&mut self, reclaimer: Reclaimer, item: Item) {
        self.items[usize::from(reclaimer == Reclaimer::Kswapd)].push(item);
    }

    /// No isolation was recorded, so the batches have the scanned pages.
    pub(super) fn count_judged_as_scanned(&mut self) {
        self.work.iter_mut().for_each(Work::count_judged_as_scanned);
    }

    /// What lasts until the trace ends: since when, and which call. Counted as unfinished from here on. Without events of its end
    /// nothing is known to last.
    pub(super) fn unfinished(&mut self, coverage: &Coverage) -> Vec<(Reclaimer, u64, Option<Call>)> {
        let mut lasting = Vec::new();
        if let Some(kswapd) = &mut self.kswapd {
            kswapd.since = kswapd.since.filter(|_| coverage.count_of(&EventKind::KswapdSleeps).is_ok());
            kswapd.awake_before_ns =
                kswapd.awake_before_ns.filter(|_| coverage.count_of(&EventKind::KswapdWakes).is_ok());
        }
        if let Some((since_ns, _)) = self.kswapd.as_ref().and_then(|kswapd| kswapd.since) {
            lasting.push((Reclaimer::Kswapd, since_ns, None));
        }
        for (_, open) in &self.open {
            for (depth, call) in open.iter().enumerate() {
                if coverage.count_of(&EventKind::Ends(call.kind)).is_err() {
                    self.calls[call.kind as usize].without_end += 1;
                    continue;
                }
                let unfinished = &mut self.calls[call.kind as usize].unfinished;
                let (count, since_ns) = unfinished.unwrap_or((0, u64::MAX));
                *unfinished = Some((count + 1, since_ns.min(call.begin_ns)));
                if depth == 0 && self.kswapd.is_none() {
                    lasting.push((call.kind.into(), call.begin_ns, Some(*call)));
                }
            }
        }
        lasting
    }
}
