//! Parted traces: the accesses of each tenant by themselves, and in which order they were.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::details::{Detail, DetailReader};
use super::error::TraceError;
use super::file_calls::{FileCall, PlacedCall};
use super::footprint::{Footprint, SeenPages};
use super::load::Loaded;
use super::options::ReadOptions;
use super::packed::{Packed, Packer};
use super::requests::Requests;
use crate::{Access, AccessStream};

/// A trace by tenant.
#[derive(Clone, Debug)]
pub struct Parted {
    /// Whose each access is, by the number of the part.
    pub order: Arc<[u16]>,
    /// The tenants, in order of their names; numbers as numbers.
    pub parts: Vec<Part>,
    /// Accesses whose time was before that of an earlier one.
    pub went_back: u64,
    /// The records that are not accesses; `None` if the trace has no records.
    pub requests: Option<Requests>,
    /// Pages that deletes end, each before the access of that number of all.
    pub removals: Arc<[PlacedCall]>,
}

/// The accesses of a tenant.
#[derive(Clone, Debug)]
pub struct Part {
    /// The name.
    pub name: String,
    /// Its accesses, in their order, and what they touch. Deletes of all tenants are among them: what a delete names ends for everyone.
    pub loaded: Arc<Loaded>,
    /// The deletes that this tenant makes if all tenants share files: those before an access of its own. Each delete is one tenant's.
    pub removals_in_turn: Arc<[PlacedCall]>,
    /// Time of each of them, in nanoseconds since the first of the trace; nothing if not requested.
    pub times: Option<Arc<[u64]>>,
}

/// A part that is being read.
struct Reading {
    packer: Packer,
    footprint: Footprint,
    seen: SeenPages,
    times: Vec<u64>,
}

/// Reads a trace by tenant, identified `by` a column or by object; without that all accesses belong to one tenant. Returns nothing if the accesses
/// take more than `bytes_max`. It calls `progress` with the number of accesses read so far, which returns whether to continue; if not, the result is
/// nothing, too.
pub fn load_parted(
    path: &Path,
    options: &ReadOptions,
    by: Option<&str>,
    wants_times: bool,
    bytes_max: u64,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Parted>, TraceError> {
    let mut reader = DetailReader::open(path, options, by, wants_times)?;
    let (mut accesses, mut details): (Vec<Access>, Vec<Detail>) = (Vec::new(), Vec::new());
    let (mut order, mut parts): (Vec<u16>, Vec<Reading>) = (Vec::new(), Vec::new());
    let mut removals: Vec<PlacedCall> = Vec::new();
    // In addition to its four bytes an access has a number of two, and maybe a time of eight.
    let bytes_each = 6 + if wants_times { 8 } else { 0 };
    while reader.read(&mut accesses, &mut details)? {
        removals.extend(reader.take_removals());
        let bytes_of_removals = (removals.len() * size_of::<PlacedCall>()) as u64;
        if (order.len() + accesses.len()) as u64 * bytes_each + bytes_of_removals > bytes_max {
            return Ok(None);
        }
        let mut at = 0;
        for run in details.chunk_by(|one, next| one.tenant == next.tenant) {
            let own = &accesses[at..at + run.len()];
            at += run.len();
            let tenant = run[0].tenant as usize;
            while parts.len() <= tenant {
                parts.push(Reading {
                    packer: Packer::new(bytes_max),
                    footprint: Footprint::default(),
                    seen: SeenPages::new(),
                    times: Vec::new(),
                });
            }
            let part = &mut parts[tenant];
            part.footprint.count(own, &mut part.seen);
            if !part.packer.pack(own) {
                return Ok(None);
            }
            if wants_times {
                part.times.extend(run.iter().map(|detail| detail.time_ns));
            }
            order.extend(run.iter().map(|_| tenant as u16));
        }
        accesses.clear();
        details.clear();
        if !progress(order.len() as u64) {
            return Ok(None);
        }
    }
    removals.extend(reader.take_removals());
    // An object that is named and never accessed does not count as a tenant.
    let mut named: Vec<(usize, String)> =
        (0..parts.len()).map(|tenant| (tenant, reader.tenant_name(tenant as u32))).collect();
    named.retain(|(tenant, _)| parts[*tenant].footprint.accesses > 0);
    named.sort_by(|(_, one), (_, next)| by_number_or_text(one).cmp(&by_number_or_text(next)));
    let mut places = vec![0; parts.len()];
    named.iter().enumerate().for_each(|(place, (tenant, _))| places[*tenant] = place as u16);
    order.iter_mut().for_each(|tenant| *tenant = places[usize::from(*tenant)]);
    let mut parts: Vec<Option<Reading>> = parts.into_iter().map(Some).collect();
    let footprints: Vec<&Footprint> = named
        .iter()
        .map(|(tenant, _)| &parts[*tenant].as_ref().expect("none is taken yet").footprint)
        .collect();
    let Some(alone) = removals_alone(&removals, &order, &footprints, bytes_max) else { return Ok(None) };
    let in_turn = removals_in_turn(&removals, &order, &footprints);
    let mut finished = Vec::new();
    for (((tenant, name), alone), in_turn) in named.into_iter().zip(alone).zip(in_turn) {
        let Reading { packer, footprint, times, .. } = parts[tenant].take().expect("each is taken once");
        let Some(packed) = packer.finish() else { return Ok(None) };
        let has_neighbours = reader.has_neighbours();
        let removals = alone.into();
        let loaded = Arc::new(Loaded { has_neighbours, removals, ..Loaded::of(footprint, Some(packed)) });
        let times = wants_times.then(|| times.into());
        finished.push(Part { name, loaded, removals_in_turn: in_turn.into(), times });
    }
    Ok(Some(Parted {
        order: order.into(),
        parts: finished,
        went_back: reader.went_back(),
        requests: reader.requests(),
        removals: removals.into(),
    }))
}

/// For each tenant, the deletes of pages that it accesses, each with the number of its own access that follows. `None` if they take more than
/// `bytes_max`.
fn removals_alone(
    removals: &[PlacedCall],
    order: &[u16],
    footprints: &[&Footprint],
    bytes_max: u64,
) -> Option<Vec<Vec<PlacedCall>>> {
    let most = bytes_max / size_of::<PlacedCall>() as u64;
    let (mut alone, mut own, mut at, mut kept) =
        (vec![Vec::new(); footprints.len()], vec![0; footprints.len()], 0, 0);
    for &PlacedCall { access, object, call } in removals {
        let until = (access as usize).min(order.len());
        order[at..until].iter().for_each(|&tenant| own[usize::from(tenant)] += 1);
        at = at.max(until);
        let FileCall::Truncate { first, .. } = call else { continue };
        let accessed = |of: &Footprint| {
            of.objects.get(object as usize).is_some_and(|of| of.distinct_pages > 0 && first < of.pages)
        };
        let tenants = footprints.iter().enumerate().filter(|(_, of)| accessed(of));
        for (tenant, _) in tenants {
            kept += 1;
            if kept > most {
                return None;
            }
            alone[tenant].push(PlacedCall { access: own[tenant], object, call });
        }
    }
    Some(alone)
}

/// For each tenant, the deletes that are due at one of its own accesses, by the number of that access. Each delete is made by the next tenant that
/// has the file. Deletes after the last access of such a tenant change no figure of an access, and are left out.
fn removals_in_turn(
    removals: &[PlacedCall],
    order: &[u16],
    footprints: &[&Footprint],
) -> Vec<Vec<PlacedCall>> {
    let (mut in_turn, mut own) = (vec![Vec::new(); footprints.len()], vec![0; footprints.len()]);
    let mut removals = removals.iter().peekable();
    let mut due: BTreeMap<u32, Vec<FileCall>> = BTreeMap::new();
    for (at, &tenant) in (0u64..).zip(order) {
        while let Some(removal) = removals.next_if(|removal| removal.access <= at) {
            due.entry(removal.object).or_default().push(removal.call);
        }
        let tenant = usize::from(tenant);
        let files = footprints[tenant].objects.len() as u32;
        while let Some(of) = due.first_entry().filter(|of| *of.key() < files) {
            let (object, calls) = of.remove_entry();
            let placed = |call| PlacedCall { access: own[tenant], object, call };
            in_turn[tenant].extend(calls.into_iter().map(placed));
        }
        own[tenant] += 1;
    }
    in_turn
}

/// Numbers by what they are, and names behind them.
fn by_number_or_text(name: &str) -> (u64, &str) {
    (name.parse().unwrap_or(u64::MAX), name)
}

/// A gap in the times of a trace that is longer than all its other gaps together: a time is wrong, or two traces are one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outlier {
    /// The length of the gap, in nanoseconds.
    pub gap_ns: u64,
    /// The length of all other gaps, in nanoseconds.
    pub rest_ns: u64,
    /// Accesses behind it.
    pub behind: u64,
}

impl Parted {
    /// The gap that is longer than the rest, if times were requested and there is one. Two accesses have only one gap.
    pub fn outlier(&self) -> Option<Outlier> {
        let mut times: Vec<u64> = Vec::new();
        for part in &self.parts {
            times.extend_from_slice(part.times.as_deref()?);
        }
        times.sort_unstable();
        let (first, last) = (*times.first()?, *times.last()?);
        let gaps = times.windows(2).map(|two| two[1] - two[0]).enumerate();
        let (at, gap_ns) = gaps.max_by_key(|&(_, gap)| gap).filter(|_| times.len() > 2)?;
        let rest_ns = last - first - gap_ns;
        (gap_ns > rest_ns).then(|| Outlier { gap_ns, rest_ns, behind: (times.len() - 1 - at) as u64 })
    }

    /// All accesses in their order.
    pub fn stream(&self) -> impl AccessStream + use<> {
        let packed = |part: &Part| part.loaded.accesses.clone().expect("a part is kept whole");
        let lanes: Vec<Lane> = self.parts.iter().map(|part| Lane::new(&packed(part))).collect();
        InOrder { order: Arc::clone(&self.order), next: 0, lanes }
    }
}

/// What comes next of a tenant.
struct Lane {
    stream: Box<dyn AccessStream>,
    chunk: Vec<Access>,
    next: usize,
}

impl Lane {
    fn new(packed: &Packed) -> Lane {
        Lane { stream: Box::new(packed.stream()), chunk: Vec::new(), next: 0 }
    }

    fn next(&mut self) -> Result<Access, TraceError> {
        const CHUNK: usize = 1 << 12;
        if self.next == self.chunk.len() {
            self.chunk.clear();
            self.next = 0;
            self.stream.fill(&mut self.chunk, CHUNK)?;
        }
        self.next += 1;
        Ok(self.chunk[self.next - 1])
    }
}

struct InOrder {
    order: Arc<[u16]>,
    next: usize,
    lanes: Vec<Lane>,
}

impl AccessStream for InOrder {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let count = max.min(self.order.len() - self.next);
        for &tenant in &self.order[self.next..self.next + count] {
            out.push(self.lanes[usize::from(tenant)].next()?);
        }
        self.next += count;
        Ok(count)
    }

    fn len_hint(&self) -> Option<u64> {
        Some(self.order.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::footprint::ObjectFootprint;

    fn footprint(pages_of_objects: &[u64]) -> Footprint {
        let objects = pages_of_objects.iter().map(|&pages| ObjectFootprint {
            pages,
            distinct_pages: pages,
            ..ObjectFootprint::default()
        });
        Footprint { objects: objects.collect(), ..Footprint::default() }
    }

    fn delete(access: u64, object: u32) -> PlacedCall {
        PlacedCall { access, object, call: FileCall::Truncate { first: 0, end: 1 } }
    }

    #[test]
    fn delete_is_made_by_the_next_tenant_that_has_the_file() {
        let (one, two) = (footprint(&[9]), footprint(&[0, 9]));
        let removals = [delete(1, 0), delete(1, 1), delete(2, 1), delete(5, 0)];
        let in_turn = removals_in_turn(&removals, &[0, 0, 0, 1, 0], &[&one, &two]);
        let turns = |at: usize| in_turn[at].iter().map(|of| (of.access, of.object)).collect::<Vec<_>>();
        assert_eq!(turns(0), [(1, 0)], "before its second access");
        assert_eq!(turns(1), [(0, 1), (0, 1)], "before its first one; no access follows the last delete");
    }

    #[test]
    fn delete_alone_ends_pages_of_each_tenant_that_accesses_the_object() {
        let (one, two) = (footprint(&[9]), footprint(&[0, 9]));
        let removals = [delete(1, 0), delete(2, 1), delete(5, 0)];
        let alone = |most| removals_alone(&removals, &[0, 0, 0, 1, 0], &[&one, &two], most);
        let kept = alone(u64::MAX).unwrap();
        let own = |at: usize| kept[at].iter().map(|of| (of.access, of.object)).collect::<Vec<_>>();
        assert_eq!((own(0), own(1)), (vec![(1, 0), (4, 0)], vec![(0, 1)]));
        assert!(alone(size_of::<PlacedCall>() as u64 * 2).is_none(), "three take more");
    }
}
