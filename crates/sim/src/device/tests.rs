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
        seek: None,
        tail: None,
        // A page takes 4,096 ns.
        read_bandwidth: 1_000 * MEGABYTE,
        write_bandwidth: 1_000 * MEGABYTE,
        iops_max: None,
        queue_depth,
        nr_requests: 128,
        scheduler: IoScheduler::None,
        request_pages_max: 320,
        latency_covers: 4096,
        faults: Vec::new(),
        remote_completions: 0.0,
    }
}

fn read(block: u64) -> Request {
    Request { direction: Direction::Read, area: FILE, block, blocks: 1, is_awaited: false }
}

fn write(block: u64) -> Request {
    Request { direction: Direction::Write, ..read(block) }
}

/// Without a scheduler.
fn preset(name: &str) -> DeviceSpec {
    DeviceSpec { scheduler: IoScheduler::None, ..DeviceSpec::preset(name).unwrap() }
}

fn device(spec: DeviceSpec) -> Device {
    Device::new(spec, 1, 0).unwrap()
}

fn ends(device: &mut Device, submissions: &[(u64, u64)]) -> Vec<u64> {
    submissions.iter().map(|&(now, block)| device.serve_in_turn(Nanos(now), read(block)).at.0).collect()
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
    let mut admitted = |now| device.serve_in_turn(Nanos(now), read(0)).admitted.0;
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

#[test]
fn a_large_request_pays_for_every_byte() {
    let mut device = device(plain(1, 10_000));
    let request =
        Request { direction: Direction::Write, area: FILE, block: 0, blocks: 32, is_awaited: false };
    assert_eq!(device.serve_in_turn(Nanos(0), request).at, Nanos(10_000 + 31 * 4_096));
    assert_eq!(device.report(Nanos(u64::MAX)).pages_written, 32);
}

#[test]
fn a_disk_seeks_unless_the_request_follows_the_previous_one() {
    let without_spread = Latency::Constant(Nanos(8_000_000));
    let mut device = device(DeviceSpec { read: without_spread, ..preset("hdd") });
    let mut previous = 0;
    let mut took = |request| {
        let now = Nanos(previous);
        previous = device.serve_in_turn(now, request).at.0;
        previous - now.0
    };
    assert_eq!(took(read(7)), 8_000_000);
    assert_eq!(took(read(8)), 100_000);
    assert_eq!(took(read(10)), 8_000_000);
    let other_file = Request { area: OTHER, ..read(11) };
    assert_eq!(took(other_file), 8_000_000, "the same block number of another file is elsewhere");
}

#[test]
fn seek_takes_longer_with_its_distance() {
    let seek = Some(Seek { longest: Nanos(8_000_000), span: 1_000 });
    let latency = Latency::Constant(Nanos(1_000_000));
    let mut device = device(DeviceSpec { read: latency, write: latency, seek, ..preset("hdd") });
    let mut previous = 0;
    let mut took = |request| {
        let now = Nanos(previous);
        previous = device.serve_in_turn(now, request).at.0;
        previous - now.0
    };
    assert_eq!(took(read(7)), 9_000_000, "the head is nowhere yet");
    assert_eq!(took(read(8)), 100_000, "it follows");
    assert_eq!(took(read(109)), 1_800_000, "100 of 1,000 blocks");
    assert_eq!(took(write(10)), 1_800_000, "the same way back");
    assert_eq!(took(read(5_000)), 9_000_000, "the longest");
    assert_eq!(took(Request { area: OTHER, ..read(5_001) }), 9_000_000, "another file");
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
    let has_scheduler = |name| device(DeviceSpec::preset(name).unwrap()).has_scheduler();
    let scheduled: Vec<_> = DeviceSpec::PRESETS.iter().filter(|&&name| has_scheduler(name)).collect();
    assert_eq!(scheduled, [&"virtio", &"hdd", &"sata-ssd"]);
}

#[test]
fn the_virtio_preset_reproduces_its_row() {
    let mut device = device(preset("virtio"));
    for index in 0..50_000u64 {
        device.serve_in_turn(Nanos(index * 1_000_000), read(index * 2));
    }
    let read_alone = device.report(Nanos(u64::MAX)).read;
    assert!((29_000..=31_000).contains(&read_alone.p50.0), "{read_alone}");
    assert!((72_000..=78_000).contains(&read_alone.p99.0), "{read_alone}");

    let mut device = self::device(preset("virtio"));
    let last = (0..72_000).map(|index| device.serve_in_turn(Nanos(0), read(index * 2)).at.0).max().unwrap();
    assert!((980_000_000..=1_050_000_000).contains(&last), "72 K requests take {last} ns");
}

#[test]
fn the_same_seed_draws_the_same_latencies_and_devices_differ() {
    let run = |seed, index| {
        let mut device = Device::new(preset("virtio"), seed, index).unwrap();
        (0..100).map(|block| device.serve_in_turn(Nanos(0), read(2 * block)).at).collect::<Vec<_>>()
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
            (0..100_000).filter(|&block| device.serve_in_turn(Nanos(0), read(block)).failed).collect();
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
        assert_eq!(faulty.serve_in_turn(Nanos(0), read(block)), sound.serve_in_turn(Nanos(0), read(block)));
        let write = Request { direction: Direction::Write, ..read(block) };
        let completion = faulty.serve_in_turn(Nanos(0), write);
        assert_eq!((completion.at, completion.failed), (sound.serve_in_turn(Nanos(0), write).at, true));
    }
}

#[test]
fn a_share_of_requests_ends_elsewhere_and_a_larger_share_holds_the_smaller_one() {
    let ended = |remote_completions: f64| -> Vec<bool> {
        let mut remote = device(DeviceSpec { remote_completions, ..preset("virtio") });
        let mut local = device(preset("virtio"));
        let both = (0..10_000).map(|block| {
            let [remote, local] =
                [&mut remote, &mut local].map(|device| device.serve_in_turn(Nanos(0), read(2 * block)));
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
    // M/D/1: load * service / (2 * (1 - load)) = 0.8 * 100 us / 0.4. In whatever order they are served.
    const SERVICE: u64 = 100_000;
    const REQUESTS: u64 = 500_000;
    for (seed, scheduler) in
        [(1, IoScheduler::None), (2, IoScheduler::None), (3, IoScheduler::MqDeadline), (4, IoScheduler::Cfq)]
    {
        let mut device = device(DeviceSpec { scheduler, ..plain(1, SERVICE) });
        let mut rng = SplitMix64::new(seed);
        let mut now = 0.0;
        for block in 0..REQUESTS {
            now -= libm::log(1.0 - rng.unit()) * SERVICE as f64 / 0.8;
            let (now, request) = (Nanos(now as u64), read(2 * block));
            match scheduler {
                IoScheduler::None => drop(device.serve_in_turn(now, request)),
                IoScheduler::MqDeadline | IoScheduler::Cfq => {
                    serve_until(&mut device, now);
                    device.queue(now, request, None, Ticket(0));
                    device.dispatch(now);
                }
            }
        }
        serve_until(&mut device, Nanos(u64::MAX));
        let report = device.report(Nanos(now as u64));
        let load = report.busy.0 as f64 / now;
        assert!((load - 0.8).abs() < 0.01, "{load}");
        let wait = report.queue_wait.0 as f64 / REQUESTS as f64;
        assert!((wait / 200_000.0 - 1.0).abs() < 0.05, "seed {seed}: {wait} ns");
    }
}

#[test]
fn without_a_scheduler_a_read_waits_behind_the_writes_that_came_before_it() {
    let mut device = device(plain(2, 100_000));
    for block in 0..10 {
        device.serve_in_turn(Nanos(0), write(block));
    }
    // Two at a time, and the two share the bus: the second ends 4,096 ns after the first. The read comes after five such pairs.
    assert_eq!(device.serve_in_turn(Nanos(0), read(99)).at, Nanos(6 * 100_000));
    let alone = self::device(plain(2, 100_000)).serve_in_turn(Nanos(0), read(99)).at;
    assert_eq!(alone, Nanos(100_000));
}

/// Gives a device what waits for it, up to `end`; returns the tickets and when each is done, in the order of service.
fn serve_until(device: &mut Device, end: Nanos) -> Vec<(u32, u64)> {
    let mut served = Vec::new();
    while let Some(now) = device.next_dispatch().filter(|&at| at <= end) {
        while let Some(Dispatched { at, tickets, .. }) = device.dispatch(now) {
            served.extend(tickets.iter().map(|ticket| (ticket.0, at.0)));
        }
    }
    served
}

/// Under mq-deadline: one page takes `L`, of which `T` on the bus.
mod scheduled {
    use super::*;

    const L: u64 = 100_000;
    const T: u64 = 4_096;

    fn disk(queue_depth: u32) -> Device {
        device(DeviceSpec { scheduler: IoScheduler::MqDeadline, ..plain(queue_depth, L) })
    }

    /// One that serves a page far away, so that all that comes now waits.
    fn busy_disk() -> Device {
        let mut disk = disk(1);
        disk.queue(Nanos(0), Request { area: OTHER, ..read(0) }, None, Ticket(u32::MAX));
        disk.dispatch(Nanos(0)).unwrap();
        disk
    }

    /// Submits requests together to a busy disk; returns their numbers in the order of service.
    fn order(requests: &[Request]) -> Vec<u32> {
        let mut disk = busy_disk();
        for (ticket, &request) in (0..).zip(requests) {
            disk.queue(Nanos(1), request, None, Ticket(ticket));
        }
        serve_until(&mut disk, Nanos(u64::MAX)).iter().map(|&(ticket, _)| ticket).collect()
    }

    /// Reads these blocks from a busy disk: until when it is busy with them, and how many requests they became.
    fn busy(blocks: impl Iterator<Item = u64>) -> (u64, u64) {
        let mut disk = busy_disk();
        let count = blocks.map(|block| disk.queue(Nanos(1), read(block), None, Ticket(0))).count() as u64;
        let last = serve_until(&mut disk, Nanos(u64::MAX)).last().unwrap().1;
        let report = disk.report(Nanos(u64::MAX));
        assert_eq!(report.pages_read, count + 1);
        assert_eq!(report.read.count + report.merged, count + 1);
        assert_eq!(report.busy.0, last);
        (last - L, report.read.count - 1)
    }

    #[test]
    fn neighbours_cost_their_transfer_and_strangers_a_request_each() {
        for n in [3, 10, 200] {
            assert_eq!(busy(0..n), (L + (n - 1) * T, 1), "forwards");
            assert_eq!(busy((0..n).rev()), (L + (n - 1) * T, 1), "backwards");
            assert_eq!(busy((0..n).map(|block| 2 * block)), (n * L, n), "apart");
        }
        // Three stretches side by side.
        assert_eq!(busy((0..60).map(|index| index % 3 * 1_000 + index / 3)), (3 * L + 57 * T, 3));
    }

    #[test]
    fn a_merged_request_is_no_larger_than_a_request_may_be() {
        let longest = u64::from(plain(1, L).request_pages_max);
        assert_eq!(busy(0..longest + 1), (2 * L + (longest - 1) * T, 2));
    }

    #[test]
    fn what_is_served_already_is_joined_by_none_and_neither_is_another_kind() {
        let mut disk = disk(1);
        disk.queue(Nanos(0), read(0), None, Ticket(0));
        disk.dispatch(Nanos(0)).unwrap();
        for request in [read(1), write(2), Request { area: OTHER, ..write(3) }] {
            disk.queue(Nanos(1), request, None, Ticket(0));
        }
        serve_until(&mut disk, Nanos(u64::MAX));
        let report = disk.report(Nanos(u64::MAX));
        assert_eq!((report.merged, report.read.count, report.write.count), (0, 2, 2));
    }

    #[test]
    fn reads_go_before_writes_that_came_before_them() {
        assert_eq!(order(&[write(0), write(2), read(50), write(4), read(40)]), [2, 4, 0, 1, 3]);
    }

    #[test]
    fn requests_of_a_direction_go_in_order_of_their_places_from_where_the_last_one_ended() {
        let mut disk = busy_disk();
        for (ticket, block) in [70, 10, 90, 30, 50].into_iter().enumerate() {
            disk.queue(Nanos(1), read(block), None, Ticket(ticket as u32));
        }
        // The oldest one goes first, as the last one was further on than all of them.
        let served: Vec<u32> =
            serve_until(&mut disk, Nanos(u64::MAX)).into_iter().map(|(ticket, _)| ticket).collect();
        assert_eq!(served, [0, 2, 1, 3, 4], "70, 90, and then from the oldest on");
    }

    #[test]
    fn writes_have_every_third_batch_whoever_reads() {
        let reads = (0..80).map(|block| read(2 * block));
        let writes = (0..20).map(|block| write(2 * block));
        let requests: Vec<Request> = writes.chain(reads).collect();
        let is_write: Vec<bool> = order(&requests).into_iter().map(|ticket| ticket < 20).collect();
        let runs: Vec<(bool, usize)> =
            is_write.chunk_by(|one, next| one == next).map(|run| (run[0], run.len())).collect();
        // Batches of 16; the rest of the writes comes when they have stood back twice again.
        assert_eq!(runs, [(false, 32), (true, 16), (false, 32), (true, 4), (false, 16)]);
    }

    #[test]
    fn whoever_has_waited_for_too_long_begins_the_next_batch() {
        let mut disk = disk(1);
        disk.queue(Nanos(0), read(100), None, Ticket(u32::MAX));
        disk.dispatch(Nanos(0)).unwrap();
        let submit =
            |disk: &mut Device, now, block| disk.queue(Nanos(now), read(block), None, Ticket(block as u32));
        submit(&mut disk, 1, 5);
        submit(&mut disk, 1, 1_000);
        // There is always something further on, so 5 is left behind.
        let (mut first, mut next) = (None, 2_000);
        for now in (0..).map(|step| step * L).skip(1) {
            submit(&mut disk, now, next);
            next += 2;
            let served = disk.dispatch(Nanos(now)).expect("the one before is done");
            if served.tickets == [Ticket(5)] {
                first = Some(now);
                break;
            }
            assert!(now < 2 * 500_000_000, "it never comes");
        }
        let waited = first.unwrap();
        assert!((500_000_000..500_000_000 + 17 * L).contains(&waited), "{waited}");
    }

    #[test]
    fn reads_are_let_in_where_writes_fill_the_queue_and_whoever_is_not_learns_for_how_long() {
        let mut disk =
            device(DeviceSpec { scheduler: IoScheduler::MqDeadline, nr_requests: 4, ..plain(1, L) });
        disk.queue(Nanos(0), read(500), None, Ticket(0));
        disk.dispatch(Nanos(0)).unwrap();
        let mut admitted = |request| disk.queue(Nanos(1), request, None, Ticket(0)).admitted.0;
        assert_eq!([0, 10, 20].map(|block| admitted(write(block))), [1, 1, 1]);
        // Until one of them is served, two of them.
        assert_eq!([30, 40].map(|block| admitted(write(block))), [L, 2 * L]);
        assert_eq!(admitted(write(41)), 1, "what becomes part of another needs no room");
        assert_eq!(admitted(read(0)), 1);
    }

    #[test]
    fn a_disk_that_is_never_short_of_slots_takes_all_as_they_come() {
        let mut disk = disk(32);
        for block in 0..32 {
            disk.queue(Nanos(block), read(block), None, Ticket(block as u32));
            assert_eq!(disk.dispatch(Nanos(block)).unwrap().tickets, [Ticket(block as u32)]);
            assert_eq!(disk.next_dispatch(), None);
        }
        assert_eq!(disk.report(Nanos(u64::MAX)).merged, 0);
    }
}

/// Under CFQ: a page takes `L`.
mod in_turns {
    use pageout_engine::TaskId;

    use super::*;

    const L: u64 = 5_000_000;
    const MS: u64 = 1_000_000;

    /// The submitter: the number of a task, and its request.
    type Submitted = (u32, Request);

    fn disk() -> Device {
        device(DeviceSpec { scheduler: IoScheduler::Cfq, ..plain(1, L) })
    }

    fn submit(disk: &mut Device, now: u64, (task, request): Submitted, ticket: u32) {
        disk.queue(Nanos(now), request, Some(TaskId(task)), Ticket(ticket));
    }

    /// Submits requests together to a busy disk; returns their numbers in the order of service.
    fn order(requests: &[Submitted]) -> Vec<u32> {
        let mut disk = disk();
        submit(&mut disk, 0, (99, Request { area: OTHER, ..read(0) }), u32::MAX);
        disk.dispatch(Nanos(0)).unwrap();
        for (ticket, &submitted) in (0..).zip(requests) {
            submit(&mut disk, 1, submitted, ticket);
        }
        serve_until(&mut disk, Nanos(u64::MAX)).iter().map(|&(ticket, _)| ticket).collect()
    }

    #[test]
    fn a_task_that_asks_for_little_does_not_wait_for_all_that_another_asks_for() {
        let much = (0..60).map(|block| (1, read(2 * block)));
        let requests: Vec<Submitted> = much.chain([(2, read(5_000))]).collect();
        let at = order(&requests).iter().position(|&ticket| ticket == 60).unwrap();
        // A tenth of a second for the other, or 20 requests.
        assert_eq!(at, 20);
    }

    #[test]
    fn all_who_read_have_had_a_turn_within_three_tenths_of_a_second() {
        let requests: Vec<Submitted> = (0..60)
            .flat_map(|round| (0..10).map(move |task| (task, read(1_000 * u64::from(task) + 2 * round))))
            .collect();
        let served = order(&requests);
        let tasks: Vec<u32> = served.iter().map(|ticket| ticket % 10).collect();
        let turns: Vec<usize> = tasks.chunk_by(|one, next| one == next).map(<[u32]>::len).collect();
        assert_eq!(turns[..10], [6; 10]);
        assert_eq!(tasks.iter().take(60).collect::<std::collections::BTreeSet<_>>().len(), 10);
    }

    #[test]
    fn writes_have_a_turn_however_many_read_and_a_shorter_one() {
        let reads = (0..60).map(|block| (1, read(2 * block)));
        let writes = (0..60).map(|block| (2, write(10_000 + 2 * block)));
        let requests: Vec<Submitted> = reads.chain(writes).collect();
        let is_write: Vec<bool> = order(&requests).into_iter().map(|ticket| ticket >= 60).collect();
        let runs: Vec<(bool, usize)> =
            is_write.chunk_by(|one, next| one == next).map(|run| (run[0], run.len())).collect();
        assert_eq!(runs[..4], [(false, 20), (true, 8), (false, 20), (true, 8)]);
    }

    #[test]
    fn a_read_that_comes_while_writes_have_their_turn_is_next() {
        let mut disk = disk();
        for block in 0..20 {
            submit(&mut disk, 0, (1, write(2 * block)), block as u32);
        }
        disk.dispatch(Nanos(0)).unwrap();
        submit(&mut disk, 1, (2, read(5_000)), 100);
        let served = serve_until(&mut disk, Nanos(u64::MAX));
        assert_eq!(served[0], (100, 2 * L));
        assert_eq!(served[1].0, 1, "then writes go on");
    }

    /// A task reads at `blocks`, each after it has thought for so long, while there is always more to write. When the last read is done.
    fn read_beside_writes(blocks: impl Iterator<Item = u64>, think: u64) -> u64 {
        const READ: u32 = u32::MAX;
        let mut disk = disk();
        for block in 0..1_000 {
            submit(&mut disk, 0, (1, write(100_000 + 2 * block)), 0);
        }
        let mut now = 0;
        for block in blocks {
            submit(&mut disk, now, (2, read(block)), READ);
            let done = loop {
                let next = disk.dispatch(Nanos(now));
                if let Some(dispatched) = next.filter(|dispatched| dispatched.tickets == [Ticket(READ)]) {
                    break dispatched.at.0;
                }
                now = disk.next_dispatch().expect("writes wait").0;
            };
            now = done + think;
            serve_until(&mut disk, Nanos(now - 1));
        }
        now - think
    }

    /// Twenty reads, and what a task thinks between them; writes were there first.
    fn alone(think: u64) -> u64 {
        40 * MS + 20 * L + 19 * think
    }

    #[test]
    fn a_task_that_reads_in_order_is_waited_for() {
        let in_order = read_beside_writes((0..20).map(|at| 10 * at), MS);
        assert!(in_order <= alone(MS) + 3 * L, "{in_order}");
    }

    #[test]
    fn writes_stand_back_for_a_tenth_of_a_second_for_a_task_that_reads_here_and_there() {
        let far = read_beside_writes((0..20).map(|at| 50_000 * (at % 7)), MS);
        // One write goes after sixteen of its reads, and the next read comes while that is served.
        assert_eq!(far, alone(MS) + L - MS);
    }

    #[test]
    fn writes_go_on_when_a_task_has_thought_for_eight_milliseconds() {
        let slow = read_beside_writes((0..20).map(|at| 50_000 * (at % 7)), 20 * MS);
        // At 8, 13 and 18 ms; the third one is done at 23.
        assert_eq!(slow, alone(23 * MS));
    }

    /// Two of three tasks write. One of them waits for its write.
    #[test]
    fn a_write_that_a_task_waits_for_has_its_turn_among_those_who_read() {
        for (is_awaited, last) in [(true, 1), (false, 2)] {
            let mut disk = disk();
            let fsync = Request { is_awaited, ..write(300_000) };
            for (ticket, submitted) in (0..).zip([(0, read(0)), (1, write(200_000)), (2, fsync)]) {
                submit(&mut disk, 0, submitted, ticket);
            }
            disk.dispatch(Nanos(0)).unwrap();
            let served = serve_until(&mut disk, Nanos(u64::MAX));
            assert_eq!(served.last().map(|&(ticket, _)| ticket), Some(last), "{served:?}");
        }
    }

    #[test]
    fn a_write_that_a_task_waits_for_does_not_become_part_of_a_read_of_it() {
        let mut disk = disk();
        for (ticket, request) in (0..).zip([read(0), read(10), Request { is_awaited: true, ..write(11) }]) {
            submit(&mut disk, 0, (7, request), ticket);
        }
        assert_eq!(disk.report(Nanos(0)).merged, 0);
    }

    #[test]
    fn tasks_that_read_here_and_there_are_waited_for_together() {
        let reads = [(0, read(0)), (1, read(50_000)), (2, read(100_000))];
        let mut disk = disk();
        for (ticket, &submitted) in (0..).zip(&reads) {
            submit(&mut disk, 0, submitted, ticket);
        }
        submit(&mut disk, 0, (3, write(200_000)), 3);
        disk.dispatch(Nanos(0)).unwrap();
        let served = serve_until(&mut disk, Nanos(u64::MAX));
        assert_eq!(served, [(1, 2 * L), (2, 3 * L), (3, 3 * L + 8 * MS + L)]);
    }

    #[test]
    fn neighbours_of_one_task_become_one_request_and_those_of_two_do_not() {
        assert_eq!(order(&[(1, read(10)), (1, read(11)), (2, read(12)), (1, read(50))]), [0, 1, 3, 2]);
        let mut disk = disk();
        for (ticket, submitted) in
            [(1, read(0)), (1, read(1)), (2, read(2)), (1, write(3)), (2, write(4))].into_iter().enumerate()
        {
            submit(&mut disk, 0, submitted, ticket as u32);
        }
        assert_eq!(disk.report(Nanos(0)).merged, 2);
    }
}
