//! Misses that are known of the recorded sequences. Reference: libCacheSim 0.3.5 with its default parameters, sizes ignored.

use pageout_cache::Choice;

/// Of two sequences, at three sizes each.
type Misses = [[u64; 3]; 2];

const SIZES: [[u32; 3]; 2] = [[573, 5_733, 11_466], [159, 1_597, 3_195]];

fn misses(policy: &str) -> Misses {
    let policy: Choice = policy.parse().expect("it is one");
    let at = |name, sizes: [u32; 3]| {
        let accesses = crate::recorded(name);
        sizes.map(|size| policy.misses(&accesses, size, 0))
    };
    [at("zipfscan", SIZES[0]), at("shift", SIZES[1])]
}

#[test]
fn misses_are_those_of_independent_implementations() {
    let known: [(&str, Misses); 7] = [
        ("fifo", [[181_411, 90_940, 86_945], [193_943, 110_977, 83_103]]),
        ("lru", [[170_425, 88_533, 81_338], [180_173, 98_178, 71_940]]),
        ("clock", [[167_323, 88_481, 71_499], [176_048, 95_287, 69_740]]),
        ("sieve", [[149_162, 70_509, 62_319], [148_080, 85_232, 69_929]]),
        ("lfu", [[151_027, 70_509, 62_319], [221_310, 126_087, 97_406]]),
        ("arc", [[151_101, 70_467, 60_733], [149_037, 83_642, 64_572]]),
        ("opt", [[122_458, 60_850, 57_331], [123_907, 57_375, 39_553]]),
    ];
    for (policy, known) in known {
        assert_eq!(misses(policy), known, "{policy}");
    }
}

#[test]
fn where_a_paper_leaves_a_choice_misses_are_within_a_hundredth_of_the_reference() {
    let known: [(&str, Misses); 5] = [
        ("2q", [[153_325, 83_991, 67_002], [152_963, 86_439, 66_937]]),
        ("hyperbolic", [[163_733, 85_378, 76_438], [172_773, 93_096, 68_665]]),
        ("lirs", [[150_784, 70_167, 61_304], [148_250, 83_671, 64_221]]),
        ("s3-fifo:fill=1", [[148_531, 70_337, 61_917], [147_083, 82_489, 63_645]]),
        (
            "w-tinylfu:protected=0.75,segments=4,sample=20,count=255,ties=1",
            [[147_868, 70_468, 61_015], [148_267, 84_927, 66_043]],
        ),
    ];
    for (policy, known) in known {
        let misses = misses(policy);
        for (&misses, &known) in misses.as_flattened().iter().zip(known.as_flattened()) {
            assert!(misses.abs_diff(known) * 100 <= known, "{policy}: {misses}, and {known} is known");
        }
    }
}

#[test]
fn lru_k_of_two_misses_as_lru_2_and_of_one_as_lru() {
    assert_eq!(misses("lru-k:k=2"), misses("lru-2"));
    assert_eq!(misses("lru-k:k=1"), misses("lru"));
}

#[test]
fn clock_pro_misses_about_as_lirs_does() {
    let both = misses("clock-pro").into_iter().zip(misses("lirs"));
    for (ours, lirs) in both.flat_map(|(ours, lirs)| ours.into_iter().zip(lirs)) {
        assert!(ours.abs_diff(lirs) * 50 <= lirs, "{ours} misses, {lirs} of lirs");
    }
}

#[test]
fn a_loop_larger_than_memory_is_missed_whole_but_by_who_knows_the_future_or_keeps_some_of_it() {
    let (rounds, pages) = (10, 10_240);
    let accesses: Vec<u32> = (0..rounds).flat_map(|_| 0..pages).collect();
    let all = accesses.len() as u64;
    // A page that is accessed comes into memory, so one of the pages is of no use: below 10 it shows within the rounds.
    for size in [10, 1_024, 5_120, 10_239] {
        for policy in ["fifo", "lru", "clock", "sieve", "arc"] {
            let policy: Choice = policy.parse().expect("it is one");
            assert_eq!(policy.misses(&accesses, size, 0), all, "{policy} at {size}");
        }
        let best = u64::from(pages + (rounds - 1) * (pages - size));
        for policy in ["opt", "mru"] {
            let policy: Choice = policy.parse().expect("it is one");
            assert_eq!(policy.misses(&accesses, size, 0), best, "{policy} at {size}");
        }
    }
}
