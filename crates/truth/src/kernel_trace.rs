//! Events of a whole machine's kernel (`trace_file`): how soon kswapd ran, and what the kernel took for itself.
//!
//! ```text
//!   MICROSECONDS CPU TASK EVENT FIELDS
//!   863020       1   103  mm_vmscan_wakeup_kswapd nid=0 zid=2 order=0 gfp_flags=1387594     asked
//!   863074       0   kswapd0 mm_vmscan_kswapd_wake nid=0 zid=2 order=0                      and ran
//!   864900       1   103  mm_page_alloc pfn=16882 order=1 gfp_flags=337920 migratetype=0    a block of the kernel's
//!   865100       1   103  mm_page_free pfn=16882 order=1                                    and its end
//! ```
//! Lines are in kernel order. Other events are for people to read.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, anyhow, bail, ensure};
use pageout_engine::{BlockEffort, KernelBlock, MigrateType, Nanos};
use pageout_sim::BlockCall;

use super::files::read_lines;

/// `gfp_flags`: the request may wait for reclaim, or wakes kswapd.
const DIRECT_RECLAIM: u64 = 1 << 10;
const KSWAPD_RECLAIM: u64 = 1 << 11;
/// The largest block.
const ORDER_MAX: u8 = 10;
/// The frame of a request for which there was none.
const NO_FRAME: u64 = u64::MAX;

/// The data of a run's trace.
#[derive(Debug, Default)]
pub(super) struct KernelTrace {
    /// From the first request that wakes kswapd to its wake, each time.
    pub(super) kswapd_wakes: Vec<Nanos>,
    /// Blocks that the kernel took for itself and gave back, in order.
    pub(super) kernel_blocks: Vec<(Nanos, BlockCall)>,
    /// How often kswapd woke, asked or not.
    pub(super) wakes: u64,
    /// When the last event was; the start where there is none.
    pub(super) end: Nanos,
}

/// An event and its fields.
struct Event<'a> {
    at: Nanos,
    name: &'a str,
    fields: &'a str,
}

impl Event<'_> {
    fn parse(line: &str) -> Option<Event<'_>> {
        let mut rest = line;
        let mut word = || {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = after;
            Some(word).filter(|word| !word.is_empty())
        };
        let at: u64 = word()?.parse().ok()?;
        let (_cpu, _task) = (word()?, word()?);
        let name = word()?;
        Some(Event { at: Nanos(at.checked_mul(1000)?), name, fields: rest })
    }

    fn field<T: FromStr>(&self, name: &str) -> anyhow::Result<T> {
        let mut fields = self.fields.split_whitespace().filter_map(|word| word.split_once('='));
        let found = fields.find(|(key, _)| *key == name);
        let (_, text) = found.with_context(|| format!("`{}`: missing `{name}=`", self.name))?;
        text.parse().map_err(|_| anyhow!("invalid number `{name}={text}`"))
    }
}

impl KernelTrace {
    pub(super) fn read(path: &Path) -> anyhow::Result<KernelTrace> {
        let text = read_lines(path)?;
        let (mut trace, mut taken) = (KernelTrace::default(), Taken::default());
        let mut asked_at: Option<Nanos> = None;
        for (number, line) in (1..).zip(text.lines()) {
            let what = || format!("{}:{number}", path.display());
            let Some(event) = Event::parse(line) else {
                bail!("{}: found `{line}`, expected `MICROSECONDS CPU TASK EVENT`", what());
            };
            ensure!(
                event.at >= trace.end,
                "{}: `{line}` is earlier than the previous event, at {} us",
                what(),
                trace.end.0 / 1000
            );
            trace.end = event.at;
            trace.wakes += u64::from(event.name == "mm_vmscan_kswapd_wake");
            match (event.name, asked_at) {
                ("mm_vmscan_wakeup_kswapd", None) => asked_at = Some(event.at),
                ("mm_vmscan_kswapd_wake", Some(asked)) => {
                    trace.kswapd_wakes.push(Nanos(event.at.0.saturating_sub(asked.0)));
                    asked_at = None;
                }
                _ => {}
            }
            let call = taken.call(&event).with_context(what)?;
            trace.kernel_blocks.extend(call.map(|call| (event.at, call)));
        }
        Ok(trace)
    }
}

/// Blocks that the kernel has taken since the trace began.
#[derive(Default)]
struct Taken {
    /// By first frame.
    numbers: BTreeMap<u64, u64>,
    count: u64,
}

impl Taken {
    /// The meaning of an event. Frees of blocks that were allocated before the trace are ignored.
    fn call(&mut self, event: &Event) -> anyhow::Result<Option<BlockCall>> {
        match event.name {
            "mm_page_alloc" => {
                let Some(block) = kernel_block(event)? else { return Ok(None) };
                let pfn: u64 = event.field("pfn")?;
                if pfn == NO_FRAME {
                    return Ok(None);
                }
                let number = self.count;
                self.count += 1;
                let before = self.numbers.insert(pfn, number);
                ensure!(before.is_none(), "frame {pfn} is allocated twice without a free in between");
                Ok(Some(BlockCall::Take(number, block)))
            }
            "mm_page_free" => {
                let pfn: u64 = event.field("pfn")?;
                Ok(self.numbers.remove(&pfn).map(BlockCall::Give))
            }
            _ => Ok(None),
        }
    }
}

/// The block of a request; none for movable pages, which are not memory of the kernel itself.
fn kernel_block(event: &Event) -> anyhow::Result<Option<KernelBlock>> {
    let kind = match event.field("migratetype")? {
        0_u8 => MigrateType::Unmovable,
        1 => return Ok(None),
        2 => MigrateType::Reclaimable,
        other => bail!("found `migratetype={other}`, expected 0, 1 or 2"),
    };
    let order: u8 = event.field("order")?;
    ensure!(order <= ORDER_MAX, "found `order={order}`, expected at most {ORDER_MAX}");
    let gfp: u64 = event.field("gfp_flags")?;
    let effort = match (gfp & DIRECT_RECLAIM > 0, gfp & KSWAPD_RECLAIM > 0) {
        (true, _) => BlockEffort::Reclaims,
        (false, true) => BlockEffort::WakesKswapd,
        (false, false) => BlockEffort::Nothing,
    };
    Ok(Some(KernelBlock { order, kind, effort }))
}
