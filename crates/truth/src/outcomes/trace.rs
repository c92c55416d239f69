//! A trace of `vmscan` events: the calls of reclaim for a group, and whether they looked at anything.

use anyhow::{Context, ensure};
use pageout_engine::Nanos;
use pageout_kerneltext::ftrace::{Head, parse_line};

/// The calls, in order.
pub(super) struct Trace {
    calls: Vec<Call>,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    begun: Nanos,
    reclaimed: u64,
    /// Events between its begin and its end.
    events: u64,
}

const BEGIN: &[u8] = b"mm_vmscan_memcg_reclaim_begin";
const END: &[u8] = b"mm_vmscan_memcg_reclaim_end";

impl Trace {
    pub(super) fn read(text: &str) -> anyhow::Result<Trace> {
        let (mut calls, mut open): (Vec<Call>, Option<Call>) = (Vec::new(), None);
        for (number, line) in (1..).zip(text.lines()) {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let told = || format!("line {number}: `{}`", line.trim());
            let Head { event, fields, time_ns, .. } = parse_line(line.as_bytes()).with_context(told)?;
            match (event, &mut open) {
                (BEGIN, None) => open = Some(Call { begun: Nanos(time_ns), reclaimed: 0, events: 0 }),
                (END, Some(call)) => {
                    let reclaimed = reclaimed_of(fields).with_context(told)?;
                    calls.push(Call { reclaimed, ..*call });
                    open = None;
                }
                (BEGIN | END, _) => anyhow::bail!("{} out of turn", told()),
                (_, Some(call)) => call.events += 1,
                (_, None) => {}
            }
        }
        ensure!(calls.len() > 1, "found {} reclaim calls of the group, expected 2 or more", calls.len());
        Ok(Trace { calls })
    }

    /// How many there were.
    pub(super) fn calls(&self) -> u64 {
        self.calls.len() as u64
    }

    /// From the first call to the last, by page reclaimed: in a group at its limit, the time between two misses.
    pub(super) fn time_per_page(&self) -> Nanos {
        let (first, last) = (self.calls[0].begun, self.calls[self.calls.len() - 1].begun);
        let reclaimed: u64 = self.calls.iter().map(|call| call.reclaimed).sum();
        Nanos(last.0.saturating_sub(first.0) / reclaimed.max(1))
    }

    /// The number of the last consecutive calls that scanned nothing. Later calls belong to the dying task.
    pub(super) fn blind_calls(&self) -> u64 {
        let is_blind = |call: &&Call| call.events == 0 && call.reclaimed == 0;
        let before_the_end = self.calls.iter().rev().skip_while(|call| !is_blind(call));
        before_the_end.take_while(is_blind).count() as u64
    }
}

/// Pages that a call has freed. Linux 7.3 adds the caller: `nr_reclaimed=32 pid=57 memcg_id=41`.
fn reclaimed_of(fields: &[u8]) -> Option<u64> {
    let mut words = str::from_utf8(fields).ok()?.split_whitespace();
    words.find_map(|word| word.strip_prefix("nr_reclaimed="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seconds: f64, event: &str) -> String {
        format!("   wl-1   [000] .....    {seconds:.6}: {event}\n")
    }

    fn call(at: f64, looks: bool, reclaimed: u64) -> String {
        let begin = line(at, "mm_vmscan_memcg_reclaim_begin: order=0 gfp_flags=GFP_HIGHUSER_MOVABLE");
        let looks = if looks { line(at, "mm_vmscan_lru_isolate: nr_scanned=32") } else { String::new() };
        begin + &looks + &line(at, &format!("mm_vmscan_memcg_reclaim_end: nr_reclaimed={reclaimed}"))
    }

    #[test]
    fn the_last_calls_that_looked_at_nothing_are_counted_without_the_dying_tasks() {
        let blind = call(3.0, false, 0);
        let text = format!("# tracer: nop\n{}{blind}{}", call(1.0, true, 10), call(2.0, true, 5));
        let trace = Trace::read(&format!("{text}{blind}{blind}{}", call(4.0, true, 15))).unwrap();
        assert_eq!(trace.blind_calls(), 2);
        assert_eq!(trace.time_per_page(), Nanos(100_000_000));
    }

    #[test]
    fn a_call_of_linux_7_3_says_whose_it_was() {
        let text = format!("{}{}", call(1.0, true, 10), call(2.0, false, 0));
        let of_whom = text.replace("nr_reclaimed=10", "nr_reclaimed=10 pid=57 memcg_id=41");
        let of_whom = of_whom.replace("nr_reclaimed=0", "pid=57 memcg_id=41 nr_reclaimed=0");
        let of_whom = of_whom.replace("order=0", "order=0 pid=57 memcg_id=41");
        let [plain, of_whom] = [text, of_whom].map(|text| Trace::read(&text).unwrap());
        assert_eq!(plain.time_per_page(), of_whom.time_per_page());
        assert_eq!((plain.blind_calls(), of_whom.blind_calls()), (1, 1));
    }

    #[test]
    fn a_trace_that_is_none_is_refused_with_its_line() {
        let told = |text: &str| Trace::read(text).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(told("").contains("found 0 reclaim calls"));
        assert!(told("# x\nhello\n").contains("line 2: `hello`"));
        let end = line(1.0, "mm_vmscan_memcg_reclaim_end: nr_reclaimed=1");
        assert!(told(&end).contains("out of turn"));
    }
}
