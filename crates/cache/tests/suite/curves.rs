//! Curves beside single runs.

use crate::{random, recorded};
use pageout_cache::Choice;
use pageout_cache::curve::distances::Distances;
use pageout_cache::curve::marks::Marks;
use pageout_cache::curve::sampling::{PAGES_MIN, Refused, Samples};
use pageout_cache::curve::split::{Split, best_split};
use pageout_policy::check::Random;

fn choice(text: &str) -> Choice {
    text.parse().expect("it is one")
}

fn marks(accesses: &[u32], sizes: &[u32]) -> Vec<u64> {
    let mut marks = Marks::new(sizes);
    marks.run(accesses);
    marks.check().expect("it holds together");
    marks.misses()
}

fn distances(accesses: &[u32]) -> Vec<u64> {
    let mut distances = Distances::default();
    // In blocks, as they come from a reader.
    accesses.chunks(4096).for_each(|block| distances.run(block));
    distances.misses()
}

#[test]
fn lru_at_a_hundred_sizes_is_a_hundred_runs_by_marks_and_by_distances() {
    let lru = choice("lru");
    for name in ["zipfscan", "shift"] {
        let accesses = recorded(name);
        let all = distances(&accesses);
        let pages = all.len() as u32;
        let sizes: Vec<u32> = (1..=100).map(|part| pages * part / 100).collect();
        let runs: Vec<u64> = sizes.iter().map(|&size| lru.misses(&accesses, size, 0)).collect();
        assert_eq!(marks(&accesses, &sizes), runs, "{name}, by marks");
        let by_distance: Vec<u64> = sizes.iter().map(|&size| all[size as usize - 1]).collect();
        assert_eq!(by_distance, runs, "{name}, by distances");
    }
}

#[test]
fn lru_at_every_size_is_the_same_by_marks_by_distances_and_by_single_runs() {
    let lru = choice("lru");
    for seed in 0..20 {
        let pages = 2 + 7 * seed as u32;
        let accesses = random(seed, pages, 3_000);
        let all = distances(&accesses);
        let every: Vec<u32> = (1..=all.len() as u32 + 3).collect();
        let by_marks = marks(&accesses, &every);
        assert_eq!(by_marks[..all.len()], all, "seed {seed}");
        assert!(by_marks[all.len()..].iter().all(|&misses| misses == all.len() as u64), "seed {seed}");
        for size in [1, 2, 3, pages / 2 + 1, pages] {
            assert_eq!(
                by_marks[size as usize - 1],
                lru.misses(&accesses, size, 0),
                "seed {seed}, room for {size}"
            );
        }
    }
}

#[test]
fn marks_hold_together_after_each_access() {
    for sizes in [&[1][..], &[2], &[1, 2, 3], &[1, 4, 9], &[3, 30], &[5, 6, 20, 100]] {
        let mut marks = Marks::new(sizes);
        for page in random(7, 40, 2_000) {
            marks.run(&[page]);
            marks.check().unwrap_or_else(|wrong| panic!("{sizes:?}: {wrong}"));
        }
    }
}

#[test]
fn distances_survive_that_all_times_are_used_up() {
    // More pages than times at first, then many more accesses than times.
    let pages = 100_000;
    let mut accesses: Vec<u32> = (0..pages).collect();
    accesses.extend((0..400_000).map(|at| at * 7 % pages));
    let all = distances(&accesses);
    for size in [1, 10_000, 99_999, 100_000] {
        assert_eq!(all[size as usize - 1], choice("lru").misses(&accesses, size, 0), "room for {size}");
    }
}

#[test]
fn a_sample_estimates_every_policy_near_its_run() {
    let accesses = recorded("zipfscan");
    let samples = Samples::new(&accesses, 0.1, 0).expect("there are enough pages");
    for policy in ["lru", "sieve", "s3-fifo", "arc", "opt"] {
        let policy = choice(policy);
        for size in [2_000, 8_000, 20_000, 40_000] {
            let scaled = samples.size(size).expect("it is more than a page");
            let estimate = samples
                .estimate(samples.samples().iter().map(|sample| policy.misses(&sample.accesses, scaled, 0)));
            let exact = policy.misses(&accesses, size, 0) as f64 / accesses.len() as f64;
            let off = (estimate.mean - exact).abs();
            assert!(off < 0.02, "{policy} at {size}: {} for {exact}", estimate.mean);
            assert!(estimate.least < estimate.mean && estimate.mean < estimate.most);
        }
    }
}

#[test]
fn a_sample_of_all_pages_is_the_run() {
    let accesses = recorded("shift");
    let samples = Samples::new(&accesses, 1.0, 0).expect("there are enough pages");
    let estimate = samples
        .estimate(samples.samples().iter().map(|sample| choice("sieve").misses(&sample.accesses, 1_597, 0)));
    assert_eq!((estimate.least, estimate.most), (85_232.0 / 300_000.0, 85_232.0 / 300_000.0));
}

#[test]
fn a_sample_of_too_few_pages_or_of_no_memory_is_refused() {
    let accesses = recorded("shift");
    let Err(Refused::Pages { pages, rate }) = Samples::new(&accesses, 0.01, 0) else {
        panic!("it is not refused")
    };
    assert!(pages < PAGES_MIN && rate > 0.01);
    if rate <= 1.0 {
        assert!(Samples::new(&accesses, rate, 0).is_ok(), "the rate that it names is enough");
    }
    let few: Vec<u32> = (0..900).collect();
    let told = Samples::new(&few, 0.5, 0).err().expect("it is refused").to_string();
    assert!(told.ends_with("use all of them"), "{told}");
    for rate in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(matches!(Samples::new(&accesses, rate, 0), Err(Refused::Rate(_))), "{rate}");
    }
    let samples = Samples::new(&accesses, 0.25, 0).expect("there are enough pages");
    assert_eq!(samples.size(1), Err(Refused::Size { size: 1, least: 2 }));
    assert_eq!(samples.size(2), Ok(1));
    assert!(matches!(Samples::new(&[], 0.5, 0), Err(Refused::Pages { pages: 0, .. })));
}

/// The fewest misses of all splits there are.
fn fewest(curves: &[Vec<u64>], parts: usize) -> u64 {
    match curves {
        [] => 0,
        [curve, rest @ ..] => {
            (0..=parts).map(|own| curve[own] + fewest(rest, parts - own)).min().unwrap_or(0)
        }
    }
}

#[test]
fn a_memory_is_split_as_well_as_by_trying_every_split() {
    for seed in 0..300 {
        let mut draws = Random::new(seed);
        let (tenants, parts) = (1 + draws.below(4) as usize, draws.below(9) as usize);
        // Curves with cliffs and plains, and some that rise, as those of FIFO may.
        let curve = |_| {
            let mut misses = 200 + draws.below(200);
            (0..=parts)
                .map(|_| {
                    misses = misses.saturating_sub([0, 0, 1, 90, draws.below(50)][draws.below(5) as usize]);
                    misses + u64::from(draws.below(6) == 0)
                })
                .collect::<Vec<u64>>()
        };
        let curves: Vec<Vec<u64>> = (0..tenants).map(curve).collect();
        let Split { parts: own, misses } = best_split(&curves);
        assert_eq!(misses, fewest(&curves, parts), "seed {seed}: {curves:?}");
        assert_eq!(
            misses,
            own.iter().zip(&curves).map(|(&own, curve)| curve[own]).sum::<u64>(),
            "seed {seed}"
        );
        assert!(own.len() == tenants && own.iter().sum::<usize>() <= parts, "seed {seed}: {own:?}");
    }
}

#[test]
fn a_cliff_that_the_steepest_curve_first_would_miss_is_found() {
    let split = best_split(&[vec![9, 9, 1, 1], vec![8, 5, 4, 4]]);
    assert_eq!(split, Split { parts: vec![2, 1], misses: 6 });
    assert_eq!(
        best_split(&[vec![5, 0, 0], vec![0, 0, 0]]).parts,
        [1, 0],
        "what nobody has a use for is nobody's"
    );
}
