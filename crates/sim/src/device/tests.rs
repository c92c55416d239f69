use super::*;

const MEGABYTE: u64 = 1_000_000;
const FILE: Area = Area::File(FileId(0));
const OTHER: Area = Area::File(FileId(1));

fn plain(queue_depth: u32, latency: u64) -> DeviceSpec {
    DeviceSpec {
        name: "plain".to_string(),
        read: Latency::Constant(Nanos(latency)),
        write: Latency::Constant(Nanos(latency)),
        sequential: None,
        tail: None,
        // A page takes 4,096 ns.
        read_bandwidth: 1_000 * MEGABYTE,
        write_bandwidth: 1_000 * MEGABYTE,
        iops_max: None,
        queue_depth,
        nr_requests: 128,
        merges: false,
        request_pages_max: 320,
        latency_covers: 4096,
        faults: Vec::new(),
        remote_completions: 0.0,
    }
}

fn read(block: u64) -> Request {
    Request { direction: Direction::Read, area: FILE, block, blocks: 1 }
}

fn preset(name: &str) -> DeviceSpec {
    DeviceSpec::preset(name).unwrap()
}

fn device(spec: DeviceSpec) -> Device {
    Device::new(spec, 1, 0).unwrap()
}

fn ends(device: &mut Device, submissions: &[(u64, u64)]) -> Vec<u64> {
    submissions.iter().map(|&(now, block)| device.submit(Nanos(now), read(block)).at.0).collect()
}

#[test]
fn a_lone_request_takes_the_latency_at_queue_depth_one() {
    assert_eq!(ends(&mut device(plain(1, 10_000)), &[(0, 0), (50_000, 9)]), [10_000, 60_000]);
}

#[test]
fn requests_beyond_the_queue_depth_wait_in_order_of_arrival() {
    let mut device = device(plain(2, 100_000));
    assert_eq!(ends(&mut device, &[(0, 0), (0, 2), (0, 4), (0, 6)]), [100_000, 104_096, 200_000, 204_096]);
    let report = device.report(Nanos(u64::MAX));
    assert_eq!(report.queue_wait, Nanos(4_096 + 100_000 + 104_096));
    assert_eq!(report.busy, Nanos(204_096));
    assert_eq!(device.report(Nanos(150_000)).busy, Nanos(150_000), "as seen in the middle of it");
}

#[test]
fn whoever_submits_more_than_nr_requests_waits_until_enough_are_done() {
    let mut device = device(DeviceSpec { nr_requests: 4, ..plain(2, 100_000) });
    let mut admitted = |now| device.submit(Nanos(now), read(0)).admitted.0;
    // Two are served, two may wait; the fifth has to until the third is served, when a first one is done.
    assert_eq!([0; 6].map(&mut admitted), [0, 0, 0, 0, 100_000, 104_096]);
    // By then the first two are done, and two wait.
    assert_eq!(admitted(150_000), 200_000);
    assert_eq!(admitted(1_000_000), 1_000_000);
}

#[test]
fn a_deep_queue_is_bound_by_bandwidth() {
    let mut device = device(plain(64, 10_000));
    let ends = ends(&mut device, &(0..1_000).map(|block| (0, block)).collect::<Vec<_>>());
    assert_eq!(ends[999], 999 * 4_096 + 10_000);
}

#[test]
fn a_deep_queue_is_bound_by_requests_a_second() {
    let mut device = device(DeviceSpec { iops_max: Some(100_000), ..plain(64, 20_000) });
    let ends = ends(&mut device, &(0..1_000).map(|block| (0, block)).collect::<Vec<_>>());
    assert_eq!(ends[999], 999 * 10_000 + 20_000);
}

/// Where neighbours that wait are merged: one page takes `L`, of which `T` on the bus.
mod merging {
    use super::*;

    const L: u64 = 100_000;
    const T: u64 = 4_096;

    fn merging(queue_depth: u32) -> Device {
        device(DeviceSpec { merges: true, ..plain(queue_depth, L) })
    }

    /// Submitted at once, in this order: for how long the device is busy, how many were requests of their own, how many were merged.
    fn busy(mut device: Device, blocks: &[u64]) -> (u64, u64, u64) {
        let submissions: Vec<(u64, u64)> = blocks.iter().map(|&block| (0, block)).collect();
        let last = ends(&mut device, &submissions).into_iter().max().unwrap();
        let report = device.report(Nanos(u64::MAX));
        assert!(last <= report.busy.0, "done at {last}, and busy until {}", report.busy);
        assert_eq!(report.pages_read, blocks.len() as u64);
        assert_eq!(report.read.count + report.merged, blocks.len() as u64);
        (report.busy.0, report.read.count, report.merged)
    }

    #[test]
    fn neighbours_cost_their_transfer_and_strangers_a_request_each() {
        for n in [3, 10, 200] {
            // The first is served at once; the others are one request: 2 L + (n - 2) T. Alone each they take n L.
            let forwards: Vec<u64> = (0..n).collect();
            let submissions: Vec<(u64, u64)> = forwards.iter().map(|&block| (0, block)).collect();
            assert_eq!(ends(&mut merging(1), &submissions).pop(), Some(2 * L + (n - 2) * T));
            assert_eq!(busy(merging(1), &forwards), (2 * L + (n - 2) * T, 2, n - 2));
            let backwards: Vec<u64> = (0..n).rev().collect();
            assert_eq!(busy(merging(1), &backwards), busy(merging(1), &forwards));
            let apart: Vec<u64> = (0..n).map(|block| 2 * block).collect();
            assert_eq!(busy(merging(1), &apart), (n * L, n, 0));
            assert_eq!(busy(device(plain(1, L)), &forwards), (n * L, n, 0), "nothing in front of it merges");
        }
    }

    #[test]
    fn any_request_that_waits_is_joined_and_not_the_last_one_alone() {
        // Three stretches side by side: the first page of the first stretch is served, and two and its rest wait.
        let woven: Vec<u64> = (0..60).map(|index| index % 3 * 1_000 + index / 3).collect();
        assert_eq!(busy(merging(1), &woven), (4 * L + 56 * T, 4, 56));
    }

    #[test]
    fn a_merged_request_is_no_larger_than_a_request_may_be() {
        let longest = u64::from(plain(1, L).request_pages_max);
        let pages: Vec<u64> = (0..2 + longest).collect();
        assert_eq!(busy(merging(1), &pages), (3 * L + (longest - 1) * T, 3, longest - 1));
    }

    #[test]
    fn what_is_served_already_is_joined_by_none_and_neither_is_another_kind() {
        let mut device = merging(1);
        assert_eq!(ends(&mut device, &[(0, 0), (L / 2, 1), (L, 2)]), [L, 2 * L, 3 * L]);
        let write = Request { direction: Direction::Write, ..read(3) };
        assert_eq!(device.submit(Nanos(L), write).at, Nanos(4 * L), "a write is no part of a read");
        let other = Request { area: OTHER, block: 4, ..write };
        assert_eq!(device.submit(Nanos(L), other).at, Nanos(5 * L), "files lie apart");
        assert_eq!(device.report(Nanos(u64::MAX)).merged, 0);
    }

    #[test]
    fn what_was_told_stays_and_whoever_comes_later_pays_for_the_transfer() {
        let mut device = merging(1);
        assert_eq!(ends(&mut device, &[(0, 0), (0, 100), (0, 200)]), [L, 2 * L, 3 * L]);
        assert_eq!(ends(&mut device, &[(0, 101), (0, 102)]), [2 * L + T, 2 * L + 2 * T]);
        assert_eq!(ends(&mut device, &[(0, 300)]), [4 * L + 2 * T]);
    }

    #[test]
    fn whoever_is_merged_needs_no_room() {
        let mut device = device(DeviceSpec { merges: true, nr_requests: 2, ..plain(1, L) });
        let mut admitted = |block| device.submit(Nanos(0), read(block)).admitted.0;
        assert_eq!([0, 10, 11, 12, 20].map(&mut admitted), [0, 0, 0, 0, L]);
    }

    #[test]
    fn a_deep_queue_that_is_never_full_merges_nothing() {
        let blocks: Vec<u64> = (0..32).collect();
        assert_eq!(busy(merging(32), &blocks), (31 * T + L, 32, 0));
    }
}

#[test]
fn a_large_request_pays_for_every_byte() {
    let mut device = device(plain(1, 10_000));
    let request = Request { direction: Direction::Write, area: FILE, block: 0, blocks: 32 };
    assert_eq!(device.submit(Nanos(0), request).at, Nanos(10_000 + 31 * 4_096));
    assert_eq!(device.report(Nanos(u64::MAX)).pages_written, 32);
}

#[test]
fn a_disk_seeks_unless_the_request_follows_the_previous_one() {
    let without_spread = Latency::Constant(Nanos(8_000_000));
    let mut device = device(DeviceSpec { read: without_spread, ..preset("hdd") });
    let mut previous = 0;
    let mut took = |request| {
        let now = Nanos(previous);
        previous = device.submit(now, request).at.0;
        previous - now.0
    };
    assert_eq!(took(read(7)), 8_000_000);
    assert_eq!(took(read(8)), 100_000);
    assert_eq!(took(read(10)), 8_000_000);
    let other_file = Request { area: OTHER, ..read(11) };
    assert_eq!(took(other_file), 8_000_000, "the same block number of another file is elsewhere");
}

#[test]
fn the_presets_are_valid_and_known_by_name() {
    for name in DeviceSpec::PRESETS {
        let spec = DeviceSpec::preset(name).unwrap();
        assert_eq!(&spec.name, name);
        spec.validate().unwrap();
        let has_spread =
            |latency: Latency| matches!(latency, Latency::Lognormal { median, p99 } if p99 > median);
        assert_eq!(has_spread(spec.read) && has_spread(spec.write), *name != "pmem", "{name}");
    }
    assert_eq!(DeviceSpec::preset("floppy"), None);
}

#[test]
fn the_virtio_preset_reproduces_its_row() {
    let mut device = device(preset("virtio"));
    for index in 0..50_000u64 {
        device.submit(Nanos(index * 1_000_000), read(index * 2));
    }
    let read_alone = device.report(Nanos(u64::MAX)).read;
    assert!((29_000..=31_000).contains(&read_alone.p50.0), "{read_alone}");
    assert!((72_000..=78_000).contains(&read_alone.p99.0), "{read_alone}");

    let mut device = self::device(preset("virtio"));
    let last = (0..72_000).map(|index| device.submit(Nanos(0), read(index * 2)).at.0).max().unwrap();
    assert!((980_000_000..=1_050_000_000).contains(&last), "72 K requests take {last} ns");
}

#[test]
fn the_same_seed_draws_the_same_latencies_and_devices_differ() {
    let run = |seed, index| {
        let mut device = Device::new(preset("virtio"), seed, index).unwrap();
        (0..100).map(|block| device.submit(Nanos(0), read(2 * block)).at).collect::<Vec<_>>()
    };
    assert_eq!(run(1, 0), run(1, 0));
    assert_ne!(run(1, 0), run(2, 0));
    assert_ne!(run(1, 0), run(1, 1));
}

#[test]
fn faults_strike_by_chance_by_count_and_by_place() {
    let failed = |rule: FaultRule| {
        let faults = vec![Fault { direction: Direction::Read, rule }];
        let mut device = device(DeviceSpec { faults, ..preset("virtio") });
        let failed: Vec<u64> =
            (0..100_000).filter(|&block| device.submit(Nanos(0), read(block)).failed).collect();
        assert_eq!(device.report(Nanos(u64::MAX)).errors, failed.len() as u64);
        failed
    };
    assert!((60..=140).contains(&failed(FaultRule::Random(0.001)).len()));
    assert_eq!(failed(FaultRule::Random(0.0)).len(), 0);
    assert_eq!(failed(FaultRule::EveryNth(40_000)), [39_999, 79_999]);
    assert_eq!(failed(FaultRule::Blocks { area: FILE, blocks: 5..7 }), [5, 6]);
    assert!(failed(FaultRule::Blocks { area: OTHER, blocks: 5..7 }).is_empty());
}

#[test]
fn faults_leave_the_latencies_alone_and_spare_the_other_direction() {
    let faults = vec![Fault { direction: Direction::Write, rule: FaultRule::Random(1.0) }];
    let mut faulty = device(DeviceSpec { faults, ..preset("virtio") });
    let mut sound = device(preset("virtio"));
    for block in 0..100 {
        assert_eq!(faulty.submit(Nanos(0), read(block)), sound.submit(Nanos(0), read(block)));
        let write = Request { direction: Direction::Write, ..read(block) };
        let completion = faulty.submit(Nanos(0), write);
        assert_eq!((completion.at, completion.failed), (sound.submit(Nanos(0), write).at, true));
    }
}

#[test]
fn a_share_of_requests_ends_elsewhere_and_a_larger_share_holds_the_smaller_one() {
    let ended = |remote_completions: f64| -> Vec<bool> {
        let mut remote = device(DeviceSpec { remote_completions, ..preset("virtio") });
        let mut local = device(preset("virtio"));
        let both = (0..10_000).map(|block| {
            let [remote, local] =
                [&mut remote, &mut local].map(|device| device.submit(Nanos(0), read(2 * block)));
            assert_eq!((remote.at, local.remote), (local.at, None));
            remote.remote.is_some()
        });
        both.collect()
    };
    let (quarter, half) = (ended(0.25), ended(0.5));
    let count = |ends: &[bool]| ends.iter().filter(|&&end| end).count();
    assert!((2_300..=2_700).contains(&count(&quarter)), "{}", count(&quarter));
    assert!(quarter.iter().zip(&half).all(|(&quarter, &half)| half || !quarter));
    assert_eq!(count(&ended(1.0)), 10_000);
}

#[test]
fn senseless_parameters_are_refused_by_name() {
    let good = || preset("virtio");
    let fault = |rule| vec![Fault { direction: Direction::Read, rule }];
    let lognormal = |median, p99| Latency::Lognormal { median: Nanos(median), p99: Nanos(p99) };
    for (spec, problem) in [
        (
            DeviceSpec { read: lognormal(100, 99), ..good() },
            "p99 read latency of 99 ns is below the median of 100 ns",
        ),
        (DeviceSpec { write: lognormal(0, 99), ..good() }, "median write latency is 0"),
        (DeviceSpec { read_bandwidth: 0, ..good() }, "read bandwidth is 0"),
        (DeviceSpec { queue_depth: 0, ..good() }, "queue depth is 0"),
        (DeviceSpec { iops_max: Some(0), ..good() }, "requests a second is 0"),
        (DeviceSpec { remote_completions: -0.1, ..good() }, "-0.1 is not between 0 and 1"),
        (DeviceSpec { tail: Some(Tail { one_in: 0, times: 10 }), ..good() }, "one in 0"),
        (DeviceSpec { faults: fault(FaultRule::Random(1.5)), ..good() }, "1.5 is not between 0 and 1"),
        (DeviceSpec { faults: fault(FaultRule::EveryNth(0)), ..good() }, "every 0th"),
        (
            DeviceSpec { faults: fault(FaultRule::Blocks { area: FILE, blocks: 5..5 }), ..good() },
            "empty range",
        ),
    ] {
        let error = Device::new(spec, 1, 0).unwrap_err().to_string();
        assert!(error.starts_with("device `virtio`: ") && error.contains(problem), "{error}");
    }
}

#[test]
fn at_four_fifths_load_the_mean_wait_is_that_of_poisson_arrivals_and_one_server() {
    // M/D/1: load * service / (2 * (1 - load)) = 0.8 * 100 us / 0.4.
    const SERVICE: u64 = 100_000;
    const REQUESTS: u64 = 500_000;
    for (seed, merges) in [(1, false), (2, false), (3, true)] {
        let mut device = device(DeviceSpec { merges, ..plain(1, SERVICE) });
        let mut rng = SplitMix64::new(seed);
        let mut now = 0.0;
        for block in 0..REQUESTS {
            now -= libm::log(1.0 - rng.unit()) * SERVICE as f64 / 0.8;
            // Strangers, which no scheduler merges.
            device.submit(Nanos(now as u64), read(2 * block));
        }
        let report = device.report(Nanos(now as u64));
        let load = report.busy.0 as f64 / now;
        assert!((load - 0.8).abs() < 0.01, "{load}");
        let wait = report.queue_wait.0 as f64 / REQUESTS as f64;
        assert!((wait / 200_000.0 - 1.0).abs() < 0.05, "seed {seed}: {wait} ns");
    }
}

#[test]
fn a_read_waits_behind_the_writes_that_came_before_it() {
    let mut device = device(plain(2, 100_000));
    for block in 0..10 {
        device.submit(Nanos(0), Request { direction: Direction::Write, ..read(block) });
    }
    // Two at a time, and the two share the bus: the second ends 4,096 ns after the first. The read comes after five such pairs.
    assert_eq!(device.submit(Nanos(0), read(99)).at, Nanos(6 * 100_000));
    let alone = self::device(plain(2, 100_000)).submit(Nanos(0), read(99)).at;
    assert_eq!(alone, Nanos(100_000));
}
