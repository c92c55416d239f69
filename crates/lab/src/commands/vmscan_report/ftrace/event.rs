//! What an event of reclaim says, in the words of either dialect.
//!
//! | event | 2010 | today |
//! |---|---|---|
//! | begin of a call | `order may_writepage gfp_flags` | `order gfp_flags` |
//! | wake-up of kswapd asked for | `nid zid order` | `nid order gfp_flags` |
//! | isolation | `isolate_mode ... contig_dirty`, later `file` | `classzone ... nr_skipped nr_taken lru` |
//! | a page written | `mm_vmscan_writepage: page pfn sync_io`, later `flags` | `mm_vmscan_write_folio: page pfn flags` |
//! | a batch shrunk | not yet, then `nr_scanned nr_reclaimed priority flags` | with what became of the rest |
//!
//! Fields are found by name, so that a field more or less does no harm; only those that are counted must be there.

use super::line::number;

/// What reclaim calls begin with.
pub(super) const PREFIX: &[u8] = b"mm_vmscan_";

/// More pages than this in one event is no count: 16 TiB of pages of 4 KiB.
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
        /// What makes it.
        kind: CallKind,
        /// For an allocation of 2^order pages.
        order: u8,
    },
    /// It ends.
    End {
        /// What made it.
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
}

/// What a throttled task waited for, a bit each.
pub const REASONS: [&str; 4] = ["writeback", "isolated", "noprogress", "congested"];

/// What makes a task reclaim.
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

/// Which dialect an event was in, where that can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// That of 2010.
    Early,
    /// That of today.
    Modern,
}

impl Dialect {
    /// Its name.
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
    /// Pages looked at.
    pub scanned: u64,
    /// Pages taken.
    pub taken: u64,
    /// From an active list: that is aging, and no scanning.
    pub is_active: bool,
    /// The type, where it is told.
    pub lru: Option<Lru>,
    /// Dirty pages taken along for a high order (lumpy reclaim, 2010).
    pub contig_dirty: u64,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shrunk {
    /// Pages judged.
    pub scanned: u64,
    /// Pages freed.
    pub reclaimed: u64,
    /// The type, where it is told.
    pub lru: Option<Lru>,
    /// Pages not freed that are dirty.
    pub dirty: u64,
    /// Under writeback.
    pub writeback: u64,
    /// Under writeback and marked to be freed at its end.
    pub immediate: u64,
    /// Made active.
    pub activated: u64,
    /// Kept since they were used.
    pub referenced: u64,
    /// Still mapped.
    pub unmap_failed: u64,
    /// How hard reclaim tries: 12 is gently, 0 is everything.
    pub priority: Option<u8>,
}

/// A page that reclaim writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteKind {
    /// Whether the caller waits for it.
    pub is_sync: bool,
    /// The type; the first dialect does not tell it.
    pub lru: Option<Lru>,
}

/// Why an event could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is no event of reclaim.
    Other,
    /// Its name says reclaim, and is not known.
    Unknown,
    /// It lacks a field that is counted, or a number is none.
    Fields,
}

/// Reads the event `name` with its `fields`.
pub fn parse(name: &[u8], fields: &[u8]) -> Result<(Event, Option<Dialect>), Unreadable> {
    let name = name.strip_prefix(PREFIX).ok_or(Unreadable::Other)?;
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
        taken: fields.pages(b"nr_taken")?,
        // Two stands for the active lists alone; looking at both, or at inactive ones, is scanning.
        is_active: list.map_or(mode == Some(b"2"), |name| !name.starts_with(b"inactive_")),
        lru,
        contig_dirty: fields.pages(b"contig_dirty").unwrap_or(0),
    }))
}

fn shrink_inactive(fields: &Fields) -> Option<Event> {
    let some = |name: &[u8]| fields.pages(name).unwrap_or(0);
    // One field for both types until they were told apart.
    let activated = some(b"nr_activate") + some(b"nr_activate_anon") + some(b"nr_activate_file");
    Some(Event::ShrinkInactive(Shrunk {
        scanned: fields.pages(b"nr_scanned")?,
        reclaimed: fields.pages(b"nr_reclaimed")?,
        lru: fields.flags()?.lru,
        dirty: some(b"nr_dirty"),
        writeback: some(b"nr_writeback"),
        immediate: some(b"nr_immediate"),
        activated,
        referenced: some(b"nr_ref_keep"),
        unmap_failed: some(b"nr_unmap_fail"),
        priority: fields.get(b"priority").and_then(whole).and_then(|priority| u8::try_from(priority).ok()),
    }))
}

fn write(fields: &Fields) -> Option<Event> {
    let kind = match fields.get(b"sync_io") {
        Some(b"0") => WriteKind { is_sync: false, lru: None },
        Some(b"1") => WriteKind { is_sync: true, lru: None },
        Some(_) => return None,
        None => fields.flags()?,
    };
    Some(Event::Write(kind))
}

fn throttled(fields: &Fields) -> Option<Event> {
    // The kernel spells it so; another may one day spell it right.
    let delayed = fields.get(b"usect_delayed").or_else(|| fields.get(b"usec_delayed"))?;
    let reason = fields.get(b"reason")?.to_ascii_lowercase();
    let reasons = REASONS
        .iter()
        .enumerate()
        .filter(|(_, name)| reason.split(|&byte| byte == b'|').any(|part| part.ends_with(name.as_bytes())));
    let reasons = reasons.map(|(bit, _)| 1 << bit).sum();
    // Half an hour is more than any timeout there is; an hour's sum of such waits still fits.
    let delayed_us = whole(delayed).filter(|&us| us < 1 << 31)?;
    Some(Event::Throttled { delayed_us, reasons })
}

/// Told by fields that only one of them has.
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

    /// The `flags`, by name or, where nobody translated them, by number: 1 anonymous, 2 file, 4 synchronous.
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
            ("mm_vmscan_write_folio", "page=0 pfn=0 flags=RECLAIM_WB_NEW", Unreadable::Fields),
            (
                "mm_vmscan_throttled",
                "nid=0 usec_timeout=1 usect_delayed=4294967296 reason=VMSCAN_THROTTLE_ISOLATED",
                Unreadable::Fields,
            ),
            ("mm_vmscan_direct_reclaim_middle", "", Unreadable::Unknown),
            ("mm_vmscan_of_tomorrow", "order=0", Unreadable::Unknown),
            ("mm_shrink_slab_start", "super_cache_scan+0x0/0x150", Unreadable::Other),
        ] {
            assert_eq!(read(event, fields), Err(why), "{event}: {fields}");
        }
    }

    #[test]
    fn what_a_task_waited_for_is_one_reason_or_several() {
        let fields = "nid=0 usec_timeout=100000 usect_delayed=4000 reason=VMSCAN_THROTTLE_WRITEBACK|VMSCAN_THROTTLE_CONGESTED";
        let event = read("mm_vmscan_throttled", fields).unwrap().0;
        assert_eq!(event, Event::Throttled { delayed_us: 4000, reasons: 0b1001 });
    }
}
