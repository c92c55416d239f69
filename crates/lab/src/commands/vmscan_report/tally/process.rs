//! One task: its calls of reclaim from begin to end, what it did in them, and kswapd's waking hours.

use pageout_engine::Nanos;
use pageout_sim::latency::LatencyHistogram;
use pageout_study::basis::Evidence;

use super::seen::{Need, Seen};
use super::work::{Class, Work};
use crate::commands::vmscan_report::ftrace::{CallKind, Event, ORDERS};

/// Calls within calls that are followed: a soft limit's within another is the only one there is.
const NESTED_MAX: usize = 8;

/// Open calls of tasks that share a row.
const OPEN_MAX: usize = 4096;

/// How often something was asked for, by order.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::commands::vmscan_report) struct ByOrder([u64; ORDERS]);

impl ByOrder {
    pub(super) fn count(&mut self, order: u8) {
        self.0[usize::from(order)] += 1;
    }

    pub(in crate::commands::vmscan_report) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Orders that were asked for, and how often.
    pub(in crate::commands::vmscan_report) fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }
}

/// A task, or all of a name.
#[derive(Debug)]
pub(in crate::commands::vmscan_report) struct Process {
    pub(in crate::commands::vmscan_report) comm: String,
    /// None where several share the row.
    pub(in crate::commands::vmscan_report) pid: Option<u32>,
    /// How often it asked for kswapd.
    pub(in crate::commands::vmscan_report) wake_requests: ByOrder,
    /// Its calls, by [`CallKind`].
    calls: [Calls; 4],
    /// Work by who reclaimed ([`Class`]).
    work: [Work; Class::ALL.len()],
    /// Calls that have begun, by the pid, the outermost first.
    open: Vec<(u32, Vec<Call>)>,
    /// What only kswapd has.
    pub(in crate::commands::vmscan_report) kswapd: Option<Box<Kswapd>>,
    /// Single calls and waking hours, where they are kept.
    pub(in crate::commands::vmscan_report) items: [Vec<Item>; 2],
}

/// One call or one time awake.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands::vmscan_report) struct Item {
    pub(in crate::commands::vmscan_report) order: u8,
    pub(in crate::commands::vmscan_report) span_ns: (u64, u64),
}

/// Calls of one kind.
#[derive(Clone, Debug, Default)]
pub(in crate::commands::vmscan_report) struct Calls {
    /// Calls begun.
    pub(in crate::commands::vmscan_report) begun: ByOrder,
    /// Pages freed, as the ends say of calls whose begin is there.
    pub(in crate::commands::vmscan_report) reclaimed: u64,
    /// Pages freed, as the ends say of calls whose begin is missing.
    pub(in crate::commands::vmscan_report) reclaimed_beginless: u64,
    /// How long those took of which begin and end are there.
    pub(in crate::commands::vmscan_report) latency: LatencyHistogram,
    /// Begins without an end, and not the task's last: the end was lost.
    pub(in crate::commands::vmscan_report) endless: u64,
    /// Ends without a begin: before the trace, or lost.
    pub(in crate::commands::vmscan_report) beginless: u64,
    /// Calls that last until the trace ends, and the earliest of them.
    pub(in crate::commands::vmscan_report) unfinished: Option<(u64, u64)>,
}

/// A call that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) kind: CallKind,
    pub(super) order: u8,
    pub(super) begin_ns: u64,
    pub(super) work: Work,
    /// What its end said.
    pub(super) reclaimed: Option<u64>,
    /// Time in shrinkers, and since when it is in one.
    pub(super) slab_ns: u64,
    pub(super) slab_since_ns: Option<u64>,
}

/// Something that lasted.
pub(super) struct Ended {
    pub(super) class: Class,
    pub(super) order: u8,
    pub(super) span_ns: (u64, u64),
    /// The call, if it was one, and not within another.
    pub(super) call: Option<Call>,
}

/// kswapd's waking hours.
#[derive(Debug, Default)]
pub(in crate::commands::vmscan_report) struct Kswapd {
    /// Woken from sleep.
    pub(in crate::commands::vmscan_report) wakes: ByOrder,
    /// Asked for more while awake.
    pub(in crate::commands::vmscan_report) rewakes: ByOrder,
    pub(in crate::commands::vmscan_report) sleeps: u64,
    /// How long it was awake, from wake to sleep.
    pub(in crate::commands::vmscan_report) awake: LatencyHistogram,
    /// Awake since, and for what order.
    pub(in crate::commands::vmscan_report) since: Option<(u64, u8)>,
    /// The first sleep without a wake: it was awake when the trace began.
    pub(in crate::commands::vmscan_report) awake_before_ns: Option<u64>,
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
        record(&mut self.awake, time_ns.saturating_sub(since_ns));
        Some(Ended { class: Class::Kswapd, order, span_ns: (since_ns, time_ns.max(since_ns)), call: None })
    }
}

/// Adds a span, unless the sum would be more than 584 years: such times are no times.
pub(super) fn record(latency: &mut LatencyHistogram, span_ns: u64) {
    if latency.total().0.checked_add(span_ns).is_some() {
        latency.record(Nanos(span_ns));
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
            work: [Work::default(); Class::ALL.len()],
            open: Vec::new(),
            kswapd,
            items: Default::default(),
        }
    }

    /// `comm-pid`, or `comm` where several share the row.
    pub(in crate::commands::vmscan_report) fn name(&self) -> String {
        match self.pid {
            Some(pid) => format!("{}-{pid}", self.comm),
            None if self.comm.is_empty() => "(all others)".to_string(),
            None => self.comm.clone(),
        }
    }

    pub(in crate::commands::vmscan_report) fn calls(&self, kind: CallKind) -> &Calls {
        &self.calls[kind as usize]
    }

    pub(in crate::commands::vmscan_report) fn work_of(&self, class: Class) -> &Work {
        &self.work[class as usize]
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
        let mut endless = 0;
        if let Some(at) = open.iter().position(|call| call.kind == kind) {
            open.truncate(at);
            endless = 1;
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
        self.calls[kind as usize].endless += endless;
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
        // Of a call that began before the trace nobody knows what of it was freed since.
        let Some((call, is_outermost)) = found else {
            calls.beginless += 1;
            calls.reclaimed_beginless += reclaimed;
            return None;
        };
        calls.reclaimed += reclaimed;
        let end_ns = time_ns.max(call.begin_ns);
        record(&mut calls.latency, end_ns - call.begin_ns);
        let call = Call { reclaimed: Some(reclaimed), ..call };
        Some(Ended {
            class: kind.into(),
            order: call.order,
            span_ns: (call.begin_ns, end_ns),
            call: Some(call).filter(|_| is_outermost && self.kswapd.is_none()),
        })
    }

    /// Whether what the task does now is reclaim.
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
    pub(super) fn work(&mut self, pid: u32, event: Event) -> (Class, Work) {
        let work = Work::of(event);
        let is_kswapd = self.kswapd.is_some();
        let call = self.open_calls(pid).and_then(|open| open.first_mut());
        let class = match call {
            _ if is_kswapd => Class::Kswapd,
            Some(call) => {
                call.work.add(&work);
                call.kind.into()
            }
            None => Class::Outside,
        };
        self.work[class as usize].add(&work);
        (class, work)
    }

    pub(super) fn keep_item(&mut self, class: Class, item: Item) {
        self.items[usize::from(class == Class::Kswapd)].push(item);
    }

    /// No isolation was recorded: the batches say what was looked at.
    pub(super) fn count_judged_as_scanned(&mut self) {
        self.work.iter_mut().for_each(Work::count_judged_as_scanned);
    }

    /// What lasts until the trace ends: since when, and which call. Counted as unfinished from here on. Without events of its end
    /// nothing is known to last.
    pub(super) fn unfinished(&mut self, seen: &Seen) -> Vec<(Class, u64, Option<Call>)> {
        let mut lasting = Vec::new();
        if let Some(kswapd) = &mut self.kswapd {
            kswapd.since = kswapd.since.filter(|_| seen.seen(&Need::KswapdSleeps).is_ok());
            kswapd.awake_before_ns = kswapd.awake_before_ns.filter(|_| seen.seen(&Need::KswapdWakes).is_ok());
        }
        if let Some((since_ns, _)) = self.kswapd.as_ref().and_then(|kswapd| kswapd.since) {
            lasting.push((Class::Kswapd, since_ns, None));
        }
        for (_, open) in &self.open {
            for (depth, call) in open.iter().enumerate() {
                if seen.seen(&Need::Ends(call.kind)).is_err() {
                    self.calls[call.kind as usize].endless += 1;
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
