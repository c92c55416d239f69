//! Events of reclaim parsed from a line of trace text, in the words of either dialect.
//!
//! | event | 2010 | today |
//! |---|---|---|
//! | begin of a call | `order may_writepage gfp_flags` | `order gfp_flags` |
//! | wake-up of kswapd asked for | `nid zid order` | `nid order gfp_flags` |
//! | isolation | `isolate_mode ... contig_dirty`, later `file` | `classzone ... nr_skipped nr_taken lru` |
//! | a page written | `mm_vmscan_writepage: page pfn sync_io`, later `flags` | `mm_vmscan_write_folio: page pfn flags` |
//! | a batch shrunk | not yet, then `nr_scanned nr_reclaimed priority flags` | with what became of the rest |
//!
//! Fields are found by name, so further fields do no harm. Only the fields that are counted must exist. Some kernels do not print why
//! pages of a batch were kept: the counts are then unknown, which differs from 0.
//!
//! Other events are read as well. Events of the page cache show whether freed pages returned, those of the scheduler whether a call was on
//! a CPU, and those of the shrinkers their time within a call.

use super::line::number;

/// What reclaim calls begin with.
pub(super) const PREFIX: &[u8] = b"mm_vmscan_";

/// Limit of pages in one event, 16 TiB of pages of 4 KiB: a larger number is damaged.
const PAGES_MAX: u64 = 1 << 32;

/// Orders an allocation can have.
pub const ORDERS: usize = 20;

/// One event of reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// kswapd found its node balanced.
    KswapdSleep,
    /// kswapd goes to work; also while it is awake, when another order is asked for.
    KswapdWake {
        /// For an allocation of 2^order pages.
        order: u8,
    },
    /// A task asks for kswapd.
    WakeupKswapd {
        /// For an allocation of 2^order pages.
        order: u8,
    },
    /// A task begins to reclaim by itself.
    Begin {
        /// What makes the call.
        kind: CallKind,
        /// For an allocation of 2^order pages.
        order: u8,
    },
    /// A reclaim call ends.
    End {
        /// What made the call.
        kind: CallKind,
        /// What the call itself says that it got.
        reclaimed: u64,
    },
    /// Pages were taken off a list.
    Isolate(Isolated),
    /// A batch of isolated inactive pages was judged.
    ShrinkInactive(Shrunk),
    /// Reclaim writes a page.
    Write(WriteKind),
    /// A task waited in reclaim.
    Throttled {
        /// So long, in microseconds.
        delayed_us: u64,
        /// For this: bits of [`REASONS`].
        reasons: u8,
    },
    /// An event that is known and not counted.
    Uncounted,
    /// A shrinker begins or ends.
    ShrinkSlab {
        /// Which of the two.
        is_begin: bool,
    },
    /// Pages of a file entered or left the page cache.
    PageCache {
        /// True if pages entered the page cache; else they left.
        is_added: bool,
        /// The number of the file (its inode).
        file: u64,
        /// The first page of it.
        page: u64,
        /// Pages that entered or left: 2^order.
        order: u8,
    },
    /// A page that reclaim had freed is needed again.
    Refault,
    /// One task makes room for another on a CPU.
    Switch {
        /// The task that left the CPU.
        prev: u32,
        /// The task would go on if it could: it was preempted, and does not sleep.
        is_runnable: bool,
        /// The task that came onto the CPU.
        next: u32,
    },
    /// A task that slept could go on.
    Wakeup {
        /// The task that was woken.
        pid: u32,
    },
}

impl Event {
    /// Returns true if it is one of reclaim.
    pub fn is_reclaim(&self) -> bool {
        use Event::{PageCache, Refault, ShrinkSlab, Switch, Wakeup};
        !matches!(self, ShrinkSlab { .. } | PageCache { .. } | Refault | Switch { .. } | Wakeup { .. })
    }
}

/// Reasons for which a task was throttled, a bit each.
pub const REASONS: [&str; 4] = ["writeback", "isolated", "noprogress", "congested"];

/// The reason for which a task reclaims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// The machine is short of memory.
    Direct,
    /// A cgroup is at its limit.
    Memcg,
    /// A cgroup is above its soft limit (cgroup v1); within another call or kswapd.
    SoftLimit,
    /// A node is short and another is to be spared (`vm.zone_reclaim_mode`).
    Node,
}

impl CallKind {
    /// Each of them.
    pub const ALL: [CallKind; 4] = [CallKind::Direct, CallKind::Memcg, CallKind::SoftLimit, CallKind::Node];
}

/// The dialect of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The dialect of 2010.
    Early,
    /// The dialect of today's kernels.
    Modern,
}

impl Dialect {
    /// The name of the dialect.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Early => "2010",
            Dialect::Modern => "modern",
        }
    }
}

/// The lists of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lru {
    /// Anonymous pages and tmpfs.
    Anon,
    /// Pages of files.
    File,
}

/// One isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolated {
    /// Pages scanned.
    pub scanned: u64,
    /// Pages isolated; `None` if the event does not have the count.
    pub taken: Option<u64>,
    /// From an active list: that is aging, and no scanning.
    pub is_active: bool,
    /// The type; `None` if the event does not have it.
    pub lru: Option<Lru>,
    /// Dirty pages taken along for a high order (lumpy reclaim, 2010).
    pub contig_dirty: u64,
}

/// The outcome of a batch: pages freed, and pages kept by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shrunk {
    /// Pages judged.
    pub scanned: u64,
    /// Pages freed.
    pub reclaimed: u64,
    /// The type; `None` if the event does not have it.
    pub lru: Option<Lru>,
    /// Pages not freed that are dirty.
    pub dirty: u64,
    /// Pages not freed that are under writeback.
    pub writeback: u64,
    /// Under writeback and marked to be freed at its end.
    pub immediate: u64,
    /// Pages made active.
    pub activated: u64,
    /// Kept since they were used.
    pub referenced: u64,
    /// Pages that are still mapped.
    pub unmap_failed: u64,
    /// The priority of reclaim: 12 scans least, 0 scans all.
    pub priority: Option<u8>,
    /// Reasons that the event had, one bit each in the order of [`KEPT`].
    pub known: u8,
}

/// Reasons for keeping pages of a batch.
pub const KEPT: [&str; 6] = ["activated", "ref_keep", "dirty", "writeback", "immediate", "unmap_fail"];

/// A page that reclaim writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteKind {
    /// True if the caller waits for it.
    pub is_sync: bool,
    /// The type; the first dialect does not tell it.
    pub lru: Option<Lru>,
}

/// The reason why an event could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The event is not about reclaim.
    Other,
    /// The event's name says reclaim, and is not known.
    Unknown,
    /// The event lacks a field that is counted, or a number is none.
    Fields,
}

/// Reads the event `name` with its `fields`.
pub fn parse(name: &[u8], fields: &[u8]) -> Result<(Event, Option<Dialect>), Unreadable> {
    let Some(name) = name.strip_prefix(PREFIX) else { return aside(name, fields).map(|event| (event, None)) };
    // No field has a bracket, but a line that was cut and has another one glued to it does.
    if fields.contains(&b'[') {
        return Err(Unreadable::Fields);
    }
    let read = Fields(fields);
    let event = match name {
        b"kswapd_sleep" => Some(Event::KswapdSleep),
        b"kswapd_wake" => read.order().map(|order| Event::KswapdWake { order }),
        b"wakeup_kswapd" => read.order().map(|order| Event::WakeupKswapd { order }),
        b"lru_isolate" | b"memcg_isolate" => isolate(&read),
        b"lru_shrink_inactive" => shrink_inactive(&read),
        b"writepage" | b"write_folio" => write(&read),
        b"throttled" => throttled(&read),
        b"lru_shrink_active" => Some(Event::Uncounted),
        _ => call(name, &read).ok_or(Unreadable::Unknown)?,
    };
    Ok((event.ok_or(Unreadable::Fields)?, dialect(name, &read)))
}

/// An event of others that says something of reclaim.
fn aside(name: &[u8], fields: &[u8]) -> Result<Event, Unreadable> {
    let event = match name {
        b"sched_switch" => switch(fields),
        b"sched_wakeup" => wakeup(fields),
        b"mm_filemap_add_to_page_cache" => page_cache(true, fields),
        b"mm_filemap_delete_from_page_cache" => page_cache(false, fields),
        b"mm_shrink_slab_start" => Some(Event::ShrinkSlab { is_begin: true }),
        b"mm_shrink_slab_end" => Some(Event::ShrinkSlab { is_begin: false }),
        name if name.windows(REFAULT.len()).any(|part| part == REFAULT) => Some(Event::Refault),
        _ => return Err(Unreadable::Other),
    };
    event.ok_or(Unreadable::Fields)
}

/// Today's kernels have no such event. A patched kernel names it like the counter.
const REFAULT: &[u8] = b"workingset_refault";

/// `dev 254:1 ino 1a2b pfn=0x4d ofs=8192 order=0`; the inode is hexadecimal, the offset is in bytes.
fn page_cache(is_added: bool, fields: &[u8]) -> Option<Event> {
    let mut words = fields.split(|&byte| byte == b' ');
    words.find(|word| *word == b"dev")?;
    let (major, rest) = number(words.next()?)?;
    let (minor, _) = number(rest.strip_prefix(b":")?)?;
    words.find(|word| *word == b"ino")?;
    let inode = u64::from_str_radix(std::str::from_utf8(words.next()?).ok()?, 16).ok()?;
    let read = Fields(fields);
    let offset = whole(read.get(b"ofs")?)?;
    let order = read.get(b"order").map_or(Some(0), whole)?;
    let order = u8::try_from(order).ok().filter(|&order| usize::from(order) < ORDERS)?;
    let file = inode ^ major.rotate_left(52) ^ minor.rotate_left(32);
    Some(Event::PageCache { is_added, file, page: offset / 4096, order })
}

/// `prev_comm=dd prev_pid=7 prev_prio=120 prev_state=R+ ==> next_comm=sh next_pid=8 next_prio=120`, or as `trace-cmd` and `perf` shorten
/// it: `dd:7 [120] R+ ==> sh:8 [120]`.
fn switch(fields: &[u8]) -> Option<Event> {
    let at = fields.windows(5).position(|part| part == b" ==> ")?;
    let (left, right) = (&fields[..at], &fields[at + 5..]);
    let (prev, state, next) = match behind(left, b" prev_pid=") {
        Some(prev) => (prev, behind(left, b" prev_state=")?, behind(right, b" next_pid=")?),
        None => {
            let state = left.rsplit(|&byte| byte == b' ').next()?;
            (short_pid(left)?, state, short_pid(right)?)
        }
    };
    let pid = |text: &[u8]| u32::try_from(number(text)?.0).ok();
    Some(Event::Switch { prev: pid(prev)?, is_runnable: state.starts_with(b"R"), next: pid(next)? })
}

/// `comm=dd pid=7 prio=120 target_cpu=001`, or `dd:7 [120] success=1 CPU:001`.
fn wakeup(fields: &[u8]) -> Option<Event> {
    let pid = behind(fields, b" pid=").or_else(|| short_pid(fields))?;
    Some(Event::Wakeup { pid: u32::try_from(number(pid)?.0).ok()? })
}

/// What follows the last `mark`: a comm before it may hold anything.
fn behind<'a>(text: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    let at = text.windows(mark.len()).rposition(|part| part == mark)?;
    Some(&text[at + mark.len()..])
}

/// The 7 of `dd:7 [120] R`.
fn short_pid(text: &[u8]) -> Option<&[u8]> {
    let at = text.windows(2).rposition(|part| part == b" [")?;
    behind(&text[..at], b":")
}

/// The begin or end of a call; `None` for another event.
fn call(name: &[u8], fields: &Fields) -> Option<Option<Event>> {
    const KINDS: [(&[u8], CallKind); 4] = [
        (b"direct_reclaim_", CallKind::Direct),
        (b"memcg_reclaim_", CallKind::Memcg),
        (b"memcg_softlimit_reclaim_", CallKind::SoftLimit),
        (b"node_reclaim_", CallKind::Node),
    ];
    let (edge, kind) = KINDS.iter().find_map(|(prefix, kind)| Some((name.strip_prefix(*prefix)?, *kind)))?;
    match edge {
        b"begin" => Some(fields.order().map(|order| Event::Begin { kind, order })),
        b"end" => Some(fields.pages(b"nr_reclaimed").map(|reclaimed| Event::End { kind, reclaimed })),
        _ => None,
    }
}

fn isolate(fields: &Fields) -> Option<Event> {
    let (list, mode) = (fields.get(b"lru"), fields.get(b"isolate_mode"));
    let lru = match (list, fields.get(b"file")) {
        (Some(name), _) if name.ends_with(b"_anon") => Some(Lru::Anon),
        (Some(name), _) if name.ends_with(b"_file") => Some(Lru::File),
        (None, Some(b"0")) => Some(Lru::Anon),
        (None, Some(b"1")) => Some(Lru::File),
        _ => None,
    };
    Some(Event::Isolate(Isolated {
        scanned: fields.pages(b"nr_scanned")?,
        taken: match fields.get(b"nr_taken") {
            Some(_) => Some(fields.pages(b"nr_taken")?),
            None => None,
        },
        // Two stands for the active lists alone; looking at both, or at inactive ones, is scanning.
        is_active: list.map_or(mode == Some(b"2"), |name| !name.starts_with(b"inactive_")),
        lru,
        contig_dirty: fields.pages(b"contig_dirty").unwrap_or(0),
    }))
}

fn shrink_inactive(fields: &Fields) -> Option<Event> {
    let mut known = 0;
    let mut some = |bit: usize, name: &[u8]| {
        let pages = fields.pages(name);
        known |= u8::from(pages.is_some()) << bit;
        pages.unwrap_or(0)
    };
    // One field for both types, in kernels that do not distinguish them.
    let activated = some(0, b"nr_activate") + some(0, b"nr_activate_anon") + some(0, b"nr_activate_file");
    let (referenced, dirty, writeback) =
        (some(1, b"nr_ref_keep"), some(2, b"nr_dirty"), some(3, b"nr_writeback"));
    let (immediate, unmap_failed) = (some(4, b"nr_immediate"), some(5, b"nr_unmap_fail"));
    Some(Event::ShrinkInactive(Shrunk {
        scanned: fields.pages(b"nr_scanned")?,
        reclaimed: fields.pages(b"nr_reclaimed")?,
        lru: fields.flags().and_then(|kind| kind.lru),
        dirty,
        writeback,
        immediate,
        activated,
        referenced,
        unmap_failed,
        known,
        priority: fields.get(b"priority").and_then(whole).and_then(|priority| u8::try_from(priority).ok()),
    }))
}

fn write(fields: &Fields) -> Option<Event> {
    let kind = match fields.get(b"sync_io") {
        Some(b"0") => WriteKind { is_sync: false, lru: None },
        Some(b"1") => WriteKind { is_sync: true, lru: None },
        Some(_) => return None,
        // A page was written, whatever flags a newer kernel has.
        None => fields.flags().unwrap_or(WriteKind { is_sync: false, lru: None }),
    };
    Some(Event::Write(kind))
}

fn throttled(fields: &Fields) -> Option<Event> {
    // The kernel spells it so; another may one day spell it right.
    let delayed = fields.get(b"usect_delayed").or_else(|| fields.get(b"usec_delayed"))?;
    let reason = fields.get(b"reason").unwrap_or_default().to_ascii_lowercase();
    let reasons = REASONS
        .iter()
        .enumerate()
        .filter(|(_, name)| reason.split(|&byte| byte == b'|').any(|part| part.ends_with(name.as_bytes())));
    let reasons = reasons.map(|(bit, _)| 1 << bit).sum();
    // Half an hour is more than any timeout there is; an hour's sum of such waits still fits.
    let delayed_us = whole(delayed).filter(|&us| us < 1 << 31)?;
    Some(Event::Throttled { delayed_us, reasons })
}

/// The dialect follows from fields that only one of the two has.
fn dialect(name: &[u8], fields: &Fields) -> Option<Dialect> {
    let has = |field: &[u8]| fields.get(field).is_some();
    let (early, modern): (&[u8], &[u8]) = match name {
        b"direct_reclaim_begin" | b"memcg_reclaim_begin" | b"memcg_softlimit_reclaim_begin" => {
            return Some(if has(b"may_writepage") { Dialect::Early } else { Dialect::Modern });
        }
        b"wakeup_kswapd" => (b"zid", b"gfp_flags"),
        b"lru_isolate" | b"memcg_isolate" => (b"contig_taken", b"classzone"),
        b"write_folio" => return Some(Dialect::Modern),
        b"writepage" => (b"sync_io", b"no such field"),
        _ => return None,
    };
    has(early).then_some(Dialect::Early).or(has(modern).then_some(Dialect::Modern))
}

/// `name=value` with blanks in between.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn get(&self, name: &[u8]) -> Option<&'a [u8]> {
        let mut fields = self.0.split(|&byte| byte == b' ');
        fields.find_map(|field| field.strip_prefix(name)?.strip_prefix(b"="))
    }

    fn pages(&self, name: &[u8]) -> Option<u64> {
        self.get(name).and_then(whole).filter(|&pages| pages <= PAGES_MAX)
    }

    fn order(&self) -> Option<u8> {
        let order = whole(self.get(b"order")?)?;
        u8::try_from(order).ok().filter(|&order| usize::from(order) < ORDERS)
    }

    /// The `flags`, by name or as a number: 1 anonymous, 2 file, 4 synchronous.
    fn flags(&self) -> Option<WriteKind> {
        let flags = self.get(b"flags")?;
        let bits = match flags.strip_prefix(b"0x") {
            Some(hexadecimal) => u64::from_str_radix(std::str::from_utf8(hexadecimal).ok()?, 16).ok()?,
            None if flags.first().is_some_and(u8::is_ascii_digit) => whole(flags)?,
            None => {
                const NAMES: [&[u8]; 5] = [b"ANON", b"FILE", b"SYNC", b"ASYNC", b"MIXED"];
                let mut bits = 0;
                for part in flags.split(|&byte| byte == b'|') {
                    let name = part.strip_prefix(b"RECLAIM_WB_")?;
                    match NAMES.iter().position(|known| *known == name) {
                        Some(bit) => bits |= 1 << bit,
                        None if name == b"NONE" => {}
                        None => return None,
                    }
                }
                bits
            }
        };
        let lru = match bits & 3 {
            1 => Some(Lru::Anon),
            2 => Some(Lru::File),
            _ => None,
        };
        Some(WriteKind { is_sync: bits & 4 != 0, lru })
    }
}

/// A decimal number and nothing else.
fn whole(text: &[u8]) -> Option<u64> {
    number(text).filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(event: &str, fields: &str) -> Result<(Event, Option<Dialect>), Unreadable> {
        parse(event.as_bytes(), fields.as_bytes())
    }

    #[test]
    fn both_dialects_say_the_same() {
        let begin = Event::Begin { kind: CallKind::Direct, order: 2 };
        for (fields, dialect) in [
            ("order=2 may_writepage=1 gfp_flags=GFP_KERNEL", Dialect::Early),
            ("order=2 gfp_flags=GFP_KERNEL", Dialect::Modern),
        ] {
            assert_eq!(read("mm_vmscan_direct_reclaim_begin", fields), Ok((begin, Some(dialect))));
        }
        for (fields, dialect) in
            [("nid=0 zid=2 order=1", Dialect::Early), ("nid=0 order=1 gfp_flags=none", Dialect::Modern)]
        {
            let wakeup = Event::WakeupKswapd { order: 1 };
            assert_eq!(read("mm_vmscan_wakeup_kswapd", fields), Ok((wakeup, Some(dialect))));
        }
        for (event, fields, is_sync, lru) in [
            ("mm_vmscan_writepage", "page=ffffea00 pfn=77 sync_io=1", true, None),
            (
                "mm_vmscan_writepage",
                "page=ffffea00 pfn=77 flags=RECLAIM_WB_FILE|RECLAIM_WB_SYNC",
                true,
                Some(Lru::File),
            ),
            (
                "mm_vmscan_write_folio",
                "page=0 pfn=0x4d flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC",
                false,
                Some(Lru::Anon),
            ),
            ("mm_vmscan_write_folio", "page=0 pfn=0x4d flags=0x9", false, Some(Lru::Anon)),
        ] {
            let (event, _) = read(event, fields).unwrap();
            assert_eq!(event, Event::Write(WriteKind { is_sync, lru }), "{fields}");
        }
    }

    #[test]
    fn looking_at_active_pages_is_no_scanning() {
        for (fields, is_active, lru) in [
            (
                "classzone=2 order=0 nr_requested=3 nr_scanned=3 nr_skipped=0 nr_taken=3 lru=inactive_file",
                false,
                Some(Lru::File),
            ),
            (
                "classzone=2 order=0 nr_requested=3 nr_scanned=3 nr_skipped=0 nr_taken=3 lru=active_anon",
                true,
                Some(Lru::Anon),
            ),
            (
                "isolate_mode=0 order=0 nr_requested=3 nr_scanned=3 nr_taken=3 contig_taken=0 contig_dirty=0 contig_failed=0",
                false,
                None,
            ),
            ("isolate_mode=2 order=0 nr_requested=3 nr_scanned=3 nr_taken=3 file=1", true, Some(Lru::File)),
        ] {
            let Ok((Event::Isolate(isolated), _)) = read("mm_vmscan_lru_isolate", fields) else {
                panic!("{fields}")
            };
            assert_eq!((isolated.scanned, isolated.is_active, isolated.lru), (3, is_active, lru), "{fields}");
        }
    }

    #[test]
    fn an_event_without_what_is_counted_is_unreadable_and_others_are_told_apart() {
        for (event, fields, why) in [
            ("mm_vmscan_direct_reclaim_begin", "gfp_flags=GFP_KERNEL", Unreadable::Fields),
            ("mm_vmscan_direct_reclaim_begin", "order=200 gfp_flags=x", Unreadable::Fields),
            ("mm_vmscan_direct_reclaim_end", "nr_reclaimed=-3", Unreadable::Fields),
            ("mm_vmscan_direct_reclaim_end", "nr_reclaimed=18446744073709551615", Unreadable::Fields),
            (
                "mm_vmscan_lru_isolate",
                "nr_sca   dd-3 [001]  1.000000: e: nr_scanned=3 nr_taken=3",
                Unreadable::Fields,
            ),
            (
                "mm_vmscan_throttled",
                "nid=0 usec_timeout=1 usect_delayed=4294967296 reason=VMSCAN_THROTTLE_ISOLATED",
                Unreadable::Fields,
            ),
            ("mm_vmscan_direct_reclaim_middle", "", Unreadable::Unknown),
            ("mm_vmscan_of_tomorrow", "order=0", Unreadable::Unknown),
            ("writeback_start", "bdi 8:0: sb_dev 0:0", Unreadable::Other),
            ("sched_switch", "prev_comm=dd prev_pid=7", Unreadable::Fields),
            ("mm_filemap_add_to_page_cache", "dev 8:1 ino zz ofs=0", Unreadable::Fields),
        ] {
            assert_eq!(read(event, fields), Err(why), "{event}: {fields}");
        }
    }

    #[test]
    fn event_with_unknown_other_fields_is_counted() {
        let written = Event::Write(WriteKind { is_sync: false, lru: None });
        assert_eq!(read("mm_vmscan_write_folio", "page=0 pfn=0 flags=RECLAIM_WB_NEW").unwrap().0, written);
        let shrink = "nid=0 nr_scanned=9 nr_reclaimed=7 flags=RECLAIM_WB_NEW";
        let Ok((Event::ShrinkInactive(shrunk), _)) = read("mm_vmscan_lru_shrink_inactive", shrink) else {
            panic!("{shrink}")
        };
        assert_eq!((shrunk.scanned, shrunk.reclaimed, shrunk.lru), (9, 7, None));
        let Ok((Event::Isolate(isolated), _)) =
            read("mm_vmscan_lru_isolate", "nr_scanned=9 lru=inactive_new")
        else {
            panic!("an isolation")
        };
        assert_eq!((isolated.scanned, isolated.taken), (9, None));
        let throttled = Event::Throttled { delayed_us: 4000, reasons: 0 };
        assert_eq!(read("mm_vmscan_throttled", "nid=0 usect_delayed=4000").unwrap().0, throttled);
    }

    #[test]
    fn events_of_the_scheduler_and_the_page_cache_are_read_in_all_their_forms() {
        let switch = |fields: &str| read("sched_switch", fields).unwrap().0;
        let preempted = Event::Switch { prev: 7, is_runnable: true, next: 8 };
        assert_eq!(
            switch(
                "prev_comm=a ==b prev_pid=7 prev_prio=120 prev_state=R+ ==> next_comm=x y next_pid=8 next_prio=120"
            ),
            preempted
        );
        assert_eq!(switch("d:d:7 [120] R ==> sh:8 [120]"), preempted);
        let asleep = Event::Switch { prev: 7, is_runnable: false, next: 0 };
        assert_eq!(
            switch(
                "prev_comm=dd prev_pid=7 prev_prio=120 prev_state=D ==> next_comm=swapper/1 next_pid=0 next_prio=120"
            ),
            asleep
        );
        assert_eq!(switch("dd:7 [120] D ==> swapper/1:0 [120]"), asleep);
        for fields in [
            "comm=d d pid=7 prio=120 target_cpu=001",
            "dd:7 [120] success=1 CPU:001",
            "dd:7 [120]<CANT FIND FIELD success> CPU:000",
        ] {
            assert_eq!(read("sched_wakeup", fields).unwrap().0, Event::Wakeup { pid: 7 }, "{fields}");
        }
        let place = |fields: &str| match read("mm_filemap_delete_from_page_cache", fields).unwrap().0 {
            Event::PageCache { is_added: false, file, page, order } => (file, page, order),
            other => panic!("{other:?}"),
        };
        let (file, page, order) = place("dev 254:1 ino 1a2b pfn=0x4d ofs=8192 order=2");
        assert_eq!((page, order), (2, 2));
        assert_eq!(place("dev 254:1 ino 1a2b page=00000000f1 pfn=77 ofs=12288"), (file, 3, 0));
        assert_ne!(place("dev 254:2 ino 1a2b pfn=0x4d ofs=8192 order=2").0, file);
        assert_eq!(read("mm_workingset_refault", "nid=0").unwrap().0, Event::Refault);
    }

    #[test]
    fn what_a_task_waited_for_is_one_reason_or_several() {
        let fields = "nid=0 usec_timeout=100000 usect_delayed=4000 reason=VMSCAN_THROTTLE_WRITEBACK|VMSCAN_THROTTLE_CONGESTED";
        let event = read("mm_vmscan_throttled", fields).unwrap().0;
        assert_eq!(event, Event::Throttled { delayed_us: 4000, reasons: 0b1001 });
    }
}
