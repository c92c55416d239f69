//! Nanoseconds an access of each policy and each curve: `cargo bench -p pageout-cache`. Best of five; trust the ratios. With `--goals` only
//! those that `ci/figures/bench.sh` sets beside others.
//!
//! Zipf 0.99, 10 million accesses to 1 million ids, memory for a tenth of the pages that come.

use std::hint::black_box;
use std::time::Instant;

use pageout_cache::curve::distances::Distances;
use pageout_cache::curve::marks::Marks;
use pageout_cache::curve::sampling::Samples;
use pageout_cache::{Choice, Opt, POLICIES};
use pageout_policy::check::Random;

const ACCESSES: usize = 10_000_000;
const IDS: usize = 1_000_000;
const EXPONENT: f64 = 0.99;

#[allow(clippy::disallowed_methods)] // measuring time is what a benchmark is for
fn now() -> Instant {
    Instant::now()
}

/// Dense numbers in order of first appearance.
#[allow(clippy::disallowed_methods)] // a benchmark's stream may differ in its last bits from machine to machine
fn zipf() -> Vec<u32> {
    let mut sum = 0.0;
    let up_to: Vec<f64> = (1..=IDS)
        .map(|rank| {
            sum += (rank as f64).powf(-EXPONENT);
            sum
        })
        .collect();
    let mut draws = Random::new(1);
    let mut numbers = vec![u32::MAX; IDS];
    let mut next = 0;
    let accesses = (0..ACCESSES).map(|_| {
        let share = (draws.draw() >> 11) as f64 / (1_u64 << 53) as f64 * sum;
        let number = &mut numbers[up_to.partition_point(|&up_to| up_to < share).min(IDS - 1)];
        if *number == u32::MAX {
            *number = next;
            next += 1;
        }
        *number
    });
    accesses.collect()
}

/// Nanoseconds an access, the best of five.
fn ns(run: &dyn Fn()) -> f64 {
    let times = (0..5).map(|_| {
        let start = now();
        run();
        start.elapsed().as_nanos() as f64 / ACCESSES as f64
    });
    times.fold(f64::INFINITY, f64::min)
}

fn main() {
    let accesses = zipf();
    let pages = accesses.iter().max().map_or(0, |&most| most + 1);
    let size = pages / 10;
    println!("{ACCESSES} accesses to {pages} pages, room for {size}: ns an access, and beside lru");
    let of = |name: &str| -> Choice { name.parse().expect("it is a policy") };
    let lru_ns = ns(&|| _ = black_box(of("lru").misses(&accesses, size, 0)));
    let tell = |what: &str, ns: f64| println!("{what:32} {ns:8.1} {:8.2}", ns / lru_ns);
    let goals_alone = std::env::args().any(|argument| argument == "--goals");
    for row in POLICIES.iter().filter(|row| !goals_alone || ["lru", "opt"].contains(&row.name)) {
        let choice = of(row.name);
        let misses = choice.misses(&accesses, size, 0) as f64 / ACCESSES as f64;
        tell(
            &format!("{:12} misses {misses:.4}", row.name),
            ns(&|| _ = black_box(choice.misses(&accesses, size, 0))),
        );
    }
    let opt = Opt::new(&accesses);
    tell("opt, next uses", ns(&|| _ = black_box(Opt::new(&accesses))));
    tell("opt, next uses known", ns(&|| _ = black_box(opt.misses(size))));
    for count in [10, 100] {
        let sizes: Vec<u32> = (1..=count).map(|part| (u64::from(pages) * part / count) as u32).collect();
        let marks = || {
            let mut marks = Marks::new(&sizes);
            marks.run(&accesses);
            black_box(marks.misses());
        };
        tell(&format!("lru, {count} sizes, by marks"), ns(&marks));
    }
    if goals_alone {
        return;
    }
    let distances = || {
        let mut distances = Distances::default();
        distances.run(&accesses);
        black_box(distances.misses());
    };
    tell("lru, all sizes, by distances", ns(&distances));
    let mut all = Distances::default();
    all.run(&accesses);
    let exact = all.misses();
    for rate in [0.1, 0.01] {
        let sampled = || {
            let samples = Samples::new(&accesses, rate, 0).expect("there are enough pages");
            let curves = samples.samples().iter().map(|sample| {
                let mut distances = Distances::default();
                distances.run(&sample.accesses);
                distances.misses()
            });
            black_box(curves.collect::<Vec<_>>());
        };
        let samples = Samples::new(&accesses, rate, 0).expect("there are enough pages");
        let mut error = 0.0;
        for part in 1..=100 {
            let size = pages / 100 * part;
            let scaled = samples.size(size).expect("it is more than a page");
            let estimate = samples.estimate(
                samples.samples().iter().map(|sample| of("lru").misses(&sample.accesses, scaled, 0)),
            );
            error += (estimate.mean - exact[size as usize - 1] as f64 / ACCESSES as f64).abs() / 100.0;
        }
        tell(&format!("lru, 5 samples of {rate}, off {error:.4}"), ns(&sampled));
    }
}
