//! What the kernel's kdamond found of known accesses, next to this crate's on the same accesses.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that reads recordings")]

#[path = "../examples/replay_host/files.rs"]
mod files;
#[path = "../examples/replay_host/host.rs"]
mod host;
#[path = "../examples/replay_host/recording.rs"]
mod recording;

use pageout_damon::{FilterOrder, Rules};
use recording::{Recording, Seen, Window};
use std::path::Path;

const PAGE: u64 = 4096;
/// Windows in which regions adapt to memory that was new.
const ADAPTING: usize = 12;
/// The rules of 6.18.
const RULES: Rules = Rules { age_zero: true, filter_order: FilterOrder::FirstFit, ..Rules::V6_12 };

type Failure = Box<dyn std::error::Error>;

/// What a kdamond found of a class, in the mean over windows and bytes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Figures {
    nr_accesses: f64,
    regions_per_gib: f64,
    /// The share of bytes in regions that have hardly any others.
    pure: f64,
}

fn recorded() -> Recording {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ground-truth/damon");
    Recording::read(&folder).expect("it is part of the repository")
}

fn replayed(recording: &Recording, rules: Rules, seed: u64) -> Vec<Window> {
    host::replay(recording, rules, seed).expect("the recording is complete")
}

/// What windows found of each class.
fn figures(recording: &Recording, windows: &[Window]) -> Vec<Figures> {
    let mut sums = vec![(0.0, Figures::default()); recording.classes.len()];
    for region in windows.iter().flat_map(|window| &window.regions) {
        let size = (region.end - region.start) as f64;
        let mut bytes = vec![0.0; recording.classes.len()];
        recording.within(region.start, region.end).for_each(|(class, own)| bytes[class] += own as f64);
        for (own, (all, sum)) in bytes.into_iter().zip(&mut sums) {
            *all += own;
            sum.nr_accesses += own * f64::from(region.nr_accesses);
            sum.regions_per_gib += own / size;
            sum.pure += if own >= 0.95 * size { own } else { 0.0 };
        }
    }
    let bytes = |class: usize| -> u64 {
        recording.own.iter().filter(|own| own.class == class).map(|own| own.end - own.start).sum()
    };
    let mean = |(class, (all, sum)): (usize, (f64, Figures))| Figures {
        nr_accesses: sum.nr_accesses / all,
        regions_per_gib: sum.regions_per_gib
            / windows.len() as f64
            / (bytes(class) as f64 / f64::from(1 << 30)),
        pure: sum.pure / all,
    };
    sums.into_iter().enumerate().map(mean).collect()
}

#[test]
fn replay_finds_what_the_kernel_found() {
    let recording = recorded();
    let kernel = figures(&recording, &recording.windows[ADAPTING..]);
    assert_eq!(recording.classes.len(), 4);
    for seed in 1..=2 {
        let windows = replayed(&recording, RULES, seed);
        assert!(windows.len().abs_diff(recording.windows.len()) <= 1, "{}", windows.len());
        let replay = figures(&recording, &windows[ADAPTING..]);
        for (class, (kernel, replay)) in recording.classes.iter().zip(kernel.iter().zip(&replay)) {
            let place = format!("{class}, seed {seed}: {kernel:?}, {replay:?}");
            assert!((kernel.nr_accesses - replay.nr_accesses).abs() < 0.2, "{place}");
            assert!((kernel.regions_per_gib / replay.regions_per_gib - 1.0).abs() < 0.2, "{place}");
            assert!((kernel.pure - replay.pure).abs() < 0.12, "{place}");
        }
    }
}

/// The region of the window before that has all of a region.
fn before<'a>(window: &'a Window, region: &Seen) -> Option<&'a Seen> {
    let at = window.regions.partition_point(|before| before.start <= region.start).checked_sub(1)?;
    Some(&window.regions[at]).filter(|before| region.end <= before.end)
}

/// Regions that began or ceased to be idle by one access, and how many of them grew older at that.
fn grown_older(windows: &[Window]) -> (usize, usize) {
    let (mut all, mut older) = (0, 0);
    for (last, now) in windows.iter().zip(&windows[1..]) {
        for region in &now.regions {
            let Some(before) = before(last, region) else { continue };
            let is_change = (region.nr_accesses == 0) != (before.nr_accesses == 0);
            if is_change && region.nr_accesses.abs_diff(before.nr_accesses) == 1 && before.age > 0 {
                all += 1;
                older += usize::from(region.age == before.age + 1);
            }
        }
    }
    (all, older)
}

#[test]
fn kernel_restarts_the_age_when_a_region_ceases_to_be_idle() {
    let recording = recorded();
    let (all, older) = grown_older(&recording.windows);
    assert!(all > 100 && older == 0, "{older} of {all}");
    let (all, older) = grown_older(&replayed(&recording, RULES, 1));
    assert!(all > 100 && older == 0, "{older} of {all}");
    let (all, older) = grown_older(&replayed(&recording, Rules { age_zero: false, ..RULES }, 1));
    assert!(older > all / 2, "{older} of {all}: without the rule it shows");
}

#[test]
fn kernel_cuts_regions_at_tenths() {
    let recording = recorded();
    let (mut all, mut tenths) = (0, 0);
    for (last, now) in recording.windows.iter().zip(&recording.windows[1..]) {
        for region in &now.regions {
            let at = last.regions.partition_point(|before| before.start <= region.start);
            let Some(before) = at.checked_sub(1).map(|at| &last.regions[at]) else { continue };
            if before.start < region.start && region.start < before.end {
                let (size, left) = (before.end - before.start, region.start - before.start);
                all += 1;
                tenths += usize::from((1..10).any(|tenth| size * tenth / 10 / PAGE * PAGE == left));
            }
        }
    }
    // The others are cuts by the scheme's quota, and second cuts of a region.
    assert!(all > 1_000 && tenths * 100 >= all * 98, "{tenths} of {all}");
}

#[test]
fn scheme_goes_round_within_its_quota_and_pattern() {
    let recording = recorded();
    for windows in [&recording.windows, &replayed(&recording, RULES, 1)] {
        for window in windows {
            let tried: u64 = window.applied.iter().map(|region| region.end - region.start).sum();
            assert!(tried <= 128 << 20, "{tried}");
            assert!(window.applied.iter().all(|region| region.age >= 12 && region.nr_accesses <= 1));
        }
        let full = windows.iter().filter(|window| {
            window.applied.iter().map(|region| region.end - region.start).sum::<u64>() == 128 << 20
        });
        assert!(full.count() * 10 >= windows.len() * 7, "most windows use all of it");
    }
}

/// Pieces that the quota cut off next to a region to which the scheme was applied as well, and how many of them were joined to it.
fn joined_pieces(windows: &[Window], size_limit: u64) -> (usize, usize) {
    let (mut all, mut joined) = (0, 0);
    for window in windows {
        let [.., left, piece] = &window.applied[..] else { continue };
        // An age above 0 without accesses means that there were none in the window before, either.
        let is_alike = left.end == piece.start && left.nr_accesses == 0 && piece.nr_accesses == 0;
        if is_alike && piece.end - left.start <= size_limit {
            all += 1;
            joined += usize::from(!window.regions.iter().any(|region| region.start == piece.start));
        }
    }
    (all, joined)
}

#[test]
fn kernel_leaves_pieces_of_a_scheme_apart() {
    let recording = recorded();
    let size: u64 = recording.files.ranges().unwrap().iter().map(|range| range.end - range.start).sum();
    let limit = size / recording.files.attrs().unwrap().min_regions;
    let (all, joined) = joined_pieces(&recording.windows, limit);
    assert!(all > 0 && joined == 0, "{joined} of {all}");
    let (mut all, mut joined) = (0, 0);
    for seed in 1..=4 {
        let rules = Rules { joins_pieces: true, ..RULES };
        let of = joined_pieces(&replayed(&recording, rules, seed), limit);
        (all, joined) = (all + of.0, joined + of.1);
    }
    // Some differ in what the window before found.
    assert!(joined * 5 > all * 4, "{joined} of {all}: with the rule it shows");
}
