//! `--first-difference`: the first access at which simulation and kernel part, and the story of a page that it is about.
//!
//! Some recordings have the pages that each access brought into the page cache and removed from it, or the pages that came and left during
//! the run. For these, pages that came or left on one side only are a difference, whichever access needs them next. Otherwise the
//! difference is the first access that missed on one side only.

use std::collections::BTreeSet;

use serde::Serialize;

use super::answers::MissMap;
use super::reads::Reads;
use super::rig::Played;
use super::story::Story;

/// The first difference between simulation and kernel.
#[derive(Debug, Serialize)]
pub struct Difference {
    /// The number of the access, from 0.
    pub access: usize,
    /// The object that it is to, by its number.
    pub object: u32,
    /// The same object, as the recording has it.
    pub of: String,
    /// The page of it that is accessed.
    pub page: u64,
    /// The access missed in the simulation, and in the kernel.
    pub missed: [bool; 2],
    /// Pages that it took from the page cache: in the simulation alone, and in the kernel alone.
    pub removed: [Vec<u32>; 2],
    /// Pages that it brought into the page cache: in the simulation alone, and in the kernel alone.
    pub inserted: [Vec<u32>; 2],
    /// The page of the object that is explained.
    pub explained: u64,
    /// The simulator's steps with that page up to the access.
    #[serde(skip)]
    pub told: Option<Story>,
    /// The same in words, for printing; nothing until then.
    pub story: String,
}

impl Difference {
    /// The first one, without its story; none where all is as recorded, or where nothing was recorded of accesses.
    pub(crate) fn first(
        played: &Played,
        objects: &[String],
        missed: Option<&[MissMap; 2]>,
        reads: Option<[&[Reads]; 2]>,
    ) -> Option<Difference> {
        let none = Reads::default();
        (0..played.sequence.len()).find_map(|at| {
            let reads = reads.map(|both| both.map(|reads| reads.get(at).unwrap_or(&none)));
            let (removed, inserted) = match reads {
                Some([simulated, real]) => {
                    (apart(&simulated.removed, &real.removed), apart(&simulated.inserted, &real.inserted))
                }
                None => Default::default(),
            };
            let missed = missed.map_or([false; 2], |[simulated, real]| [simulated[at], real[at]]);
            let is_other = [&removed, &inserted].iter().any(|pages| !pages.concat().is_empty());
            if !is_other && missed[0] == missed[1] {
                return None;
            }
            let access = played.sequence[at];
            let about = removed.iter().chain(&inserted).flatten().next();
            let explained = about.map_or(access.page(), |&page| u64::from(page));
            let (object, page) = (access.object(), access.page());
            let of = objects[object as usize].clone();
            Some(Difference {
                access: at,
                object,
                of,
                page,
                missed,
                removed,
                inserted,
                explained,
                told: None,
                story: String::new(),
            })
        })
    }

    /// As lines.
    pub fn text(&self, run: &str) -> String {
        let object = &self.of;
        let mut text = format!(
            "{run}: same as recorded before access {}, to page {} of {object}\n",
            self.access, self.page
        );
        for (what, [simulated, real]) in [("removes", &self.removed), ("brings in", &self.inserted)] {
            for (who, pages) in [("the simulator", simulated), ("the kernel", real)] {
                if !pages.is_empty() {
                    text += &format!("  {who} alone {what} {}\n", ranges(pages));
                }
            }
        }
        if self.missed[0] != self.missed[1] {
            let [who, other] = if self.missed[0] {
                ["the simulator", "the kernel"]
            } else {
                ["the kernel", "the simulator"]
            };
            text += &format!("  this access misses in {who} and hits in {other}\n");
        }
        text + &format!("  page {} in the simulation until this access:\n\n{}\n", self.explained, self.story)
    }
}

/// What each of the two has alone, in its order.
fn apart(simulated: &[u32], real: &[u32]) -> [Vec<u32>; 2] {
    let alone = |own: &[u32], other: &[u32]| {
        let other: BTreeSet<u32> = other.iter().copied().collect();
        own.iter().copied().filter(|page| !other.contains(page)).collect()
    };
    [alone(simulated, real), alone(real, simulated)]
}

/// Pages, those that follow one another as a range.
fn ranges(pages: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &page in pages {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == page => *last = page,
            _ => ranges.push((page, page)),
        }
    }
    let text = |&(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first} to {last}") }
    };
    let more = ranges.len().saturating_sub(SHOWN);
    let mut text = ranges.iter().take(SHOWN).map(text).collect::<Vec<String>>().join(", ");
    if more > 0 {
        text += &format!(" and {more} more");
    }
    text
}

/// Maximum number of ranges of pages in a line.
const SHOWN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_on_one_side_alone_are_told_as_ranges() {
        assert_eq!(apart(&[5, 1, 2, 9], &[9, 3]), [vec![5, 1, 2], vec![3]]);
        assert_eq!(ranges(&[5, 1, 2, 3, 9]), "5, 1 to 3, 9");
        assert_eq!(
            ranges(&(0..20).map(|k| k * 2).collect::<Vec<u32>>()),
            "0, 2, 4, 6, 8, 10, 12, 14 and 12 more"
        );
    }
}
