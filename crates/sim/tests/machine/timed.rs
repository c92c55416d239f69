//! Kernel files read and written at given times.

use pageout_engine::{Nanos, Policy, Switch};
use pageout_sim::{Machine, Repeat, Report, TimedAction, TimedEvent, Value};

use crate::rig::{Rig, pages};

const SECOND: u64 = 1_000_000_000;

pub(crate) fn write(at: u64, path: &str, value: &str) -> TimedEvent {
    let value = Value::Text(value.to_string());
    let action = TimedAction::Write { path: path.to_string(), value, timeout: None };
    TimedEvent { at: Nanos(at), when: None, repeat: Repeat::Never, shell: None, action }
}

fn read(at: u64, path: &str) -> TimedEvent {
    TimedEvent {
        at: Nanos(at),
        when: None,
        repeat: Repeat::Never,
        shell: None,
        action: TimedAction::Read { path: path.to_string() },
    }
}

/// Reads 2,000 pages over and over for about two seconds, with these events.
fn two_seconds(events: Vec<TimedEvent>) -> Report {
    let mut rig = Rig::new();
    let file = rig.file(2_000);
    rig.reader("reader", "/job", file, pages(0..2_000), 1_150);
    rig.events = events;
    rig.run()
}

#[test]
fn reads_are_in_the_report_in_order_of_time() {
    let repeat = Repeat::Timer { every: Nanos(SECOND / 2), until: Nanos(u64::MAX) };
    let every = TimedEvent { repeat, ..read(SECOND / 4, "/sys/fs/cgroup/job/memory.stat") };
    let report = two_seconds(vec![read(SECOND, "/proc/vmstat"), every, read(100 * SECOND, "/proc/vmstat")]);
    let times: Vec<u64> = report.reads.iter().map(|read| read.at.0 / (SECOND / 4)).collect();
    assert_eq!(times[..5], [1, 3, 4, 5, 7]);
    assert!(report.reads[2].text.contains("pgscan"), "{:?}", report.reads[2]);
    assert_eq!(report.timed_left, 1, "the run was over before the last");
}

#[test]
fn an_event_comes_again_no_later_than_it_may() {
    let every = TimedEvent {
        repeat: Repeat::Timer { every: Nanos(SECOND / 4), until: Nanos(SECOND) },
        ..read(SECOND / 2, "/sys/fs/cgroup/job/memory.stat")
    };
    let report = two_seconds(vec![every]);
    let times: Vec<u64> = report.reads.iter().map(|read| read.at.0 / (SECOND / 4)).collect();
    assert_eq!(times, [2, 3, 4]);
}

#[test]
fn a_limit_written_at_the_start_holds_for_the_whole_run() {
    let unlimited = two_seconds(Vec::new());
    assert_eq!(unlimited.reclaim.count, 0);
    let limited = two_seconds(vec![write(0, "/sys/fs/cgroup/job/memory.max", "4096000")]);
    assert!(limited.tasks[0].read_misses_io > 100_000, "{:?}", limited.tasks);
}

#[test]
fn a_write_to_memory_reclaim_reclaims_beside_the_task() {
    let path = "/sys/fs/cgroup/job/memory.reclaim";
    let report = two_seconds(vec![write(SECOND, path, "2M"), write(SECOND, "/proc/sys/vm/swappiness", "10")]);
    let done: Vec<_> = report.writes.iter().map(|write| write.done.unwrap()).collect();
    assert!(done[0].1 >= 512 && done[0].0 > Nanos(SECOND), "{done:?}");
    assert_eq!(done[1], (Nanos(SECOND), 0), "the other does not wait for it");
    assert!(report.tasks[0].read_misses_io >= 2_000 + 512, "{:?}", report.tasks);
    assert_eq!(report.reclaim.count, 0, "it held no task up");
}

#[test]
fn a_loop_rests_after_each_of_its_times_and_its_shell_waits_for_its_end() {
    const REST: u64 = 20_000;
    let path = "/sys/fs/cgroup/job/memory.reclaim";
    let in_script = |event: TimedEvent| TimedEvent { shell: Some("script".to_string()), ..event };
    let looped = TimedEvent {
        repeat: Repeat::Loop { times: 5, rest: Nanos(REST) },
        ..in_script(write(SECOND, path, "1M"))
    };
    let after = in_script(write(SECOND + 1, "/proc/sys/vm/swappiness", "10"));
    let cut_short = TimedEvent {
        repeat: Repeat::Loop { times: 2, rest: Nanos(100 * SECOND) },
        ..read(SECOND, "/proc/vmstat")
    };
    let report = two_seconds(vec![looped, after, cut_short]);
    let times: Vec<(u64, u64)> =
        report.writes.iter().map(|write| (write.at.0, write.done.unwrap().0.0)).collect();
    assert_eq!(times.len(), 6);
    assert!(times[..5].windows(2).all(|two| two[1].0 == two[0].1 + REST), "{times:?}");
    assert_eq!((report.writes[5].path.as_str(), times[5].0), ("/proc/sys/vm/swappiness", times[4].1));
    assert_eq!((report.timed_left_out, report.timed_left), (0, 1), "the run was over before the other loop");
}

#[test]
fn what_is_added_is_more_than_the_file_shows() {
    let more = |at: u64, path: &str| TimedEvent {
        action: TimedAction::Write { path: path.to_string(), value: Value::Sum(15), timeout: None },
        ..write(at, path, "")
    };
    let swappiness = "/proc/sys/vm/swappiness";
    let report =
        two_seconds(vec![write(0, swappiness, "70"), more(SECOND / 2, swappiness), more(SECOND, swappiness)]);
    let written: Vec<&str> = report.writes.iter().map(|write| write.value.as_str()).collect();
    assert_eq!(written, ["70", "85", "100"]);
}

#[test]
fn a_shell_does_one_thing_after_the_other_and_of_what_repeats_one_time_waits() {
    const EVERY: u64 = 20_000;
    let path = "/sys/fs/cgroup/job/memory.reclaim";
    let repeat = Repeat::Timer { every: Nanos(EVERY), until: Nanos(SECOND + 10 * EVERY) };
    let repeated = |shell: Option<&str>| TimedEvent {
        repeat,
        shell: shell.map(str::to_string),
        ..write(SECOND, path, "1M")
    };
    let once = |shell: Option<&str>| TimedEvent {
        shell: shell.map(str::to_string),
        ..write(SECOND + EVERY, "/proc/sys/vm/swappiness", "10")
    };
    let written = |report: &Report| -> Vec<(u64, u64)> {
        report.writes.iter().map(|write| (write.at.0, write.done.unwrap().0.0)).collect()
    };

    let alone = two_seconds(vec![repeated(None)]);
    let times = written(&alone);
    assert!(times.is_sorted_by(|(_, done), (at, _)| done <= at), "one after the other: {times:?}");
    let is_timely = |at: u64, before: u64| (at - SECOND).is_multiple_of(EVERY) || at == before;
    assert!(times.windows(2).all(|two| is_timely(two[1].0, two[0].1)), "{times:?}");
    assert_eq!(times.len() as u64 + alone.timed_left_out, 11);
    assert!(alone.timed_left_out > 0);

    let shared = two_seconds(vec![repeated(Some("script")), once(Some("script"))]);
    let times = written(&shared);
    assert!(times.is_sorted_by(|(_, done), (at, _)| done <= at), "{times:?}");
    assert_eq!(times[1].0, times[0].1, "what waits does so until the shell is free, and no longer");
    assert!(shared.writes[1..3].iter().any(|write| write.path == "/proc/sys/vm/swappiness"));
    let apart = two_seconds(vec![repeated(Some("script")), once(Some("another"))]);
    assert_eq!(apart.writes[1].at.0, SECOND + EVERY);
}

#[test]
fn a_write_whose_timeout_is_over_ends_where_a_signal_ends_it_and_its_shell_goes_on() {
    const TIMEOUT: u64 = 500_000;
    let path = "/sys/fs/cgroup/job/memory.reclaim";
    let shell = Some("script".to_string());
    let request = |timeout: Option<u64>| {
        let (path, value) = (path.to_string(), "4M".to_string());
        let action = TimedAction::Write { path, value: Value::Text(value), timeout: timeout.map(Nanos) };
        TimedEvent { action, shell: shell.clone(), ..write(SECOND, "", "") }
    };
    let next = TimedEvent { shell: shell.clone(), ..write(SECOND + 1, "/proc/sys/vm/swappiness", "10") };
    let run = |policy: Policy, timeout: Option<u64>| {
        let mut rig = Rig::of(policy);
        let file = rig.file(2_000);
        rig.reader("reader", "/job", file, pages(0..2_000), 1_150);
        rig.events = vec![request(timeout), next.clone()];
        let report = rig.run();
        let writes = &report.writes;
        assert_eq!(writes[1].at, writes[0].done.unwrap().0, "the shell is busy until its write has ended");
        (writes[0].done.unwrap(), writes[0].is_interrupted)
    };

    let (policy, between_calls) = (Policy::of("classic@2026"), Policy::of("classic@6.12"));
    let mut before = between_calls;
    assert!(Switch::by_name("reclaim.on_signal").is_some_and(|rule| rule.set(&mut before, "goes_on")));
    let ((end, reclaimed), is_interrupted) = run(policy, Some(TIMEOUT));
    assert!(is_interrupted && end.0 >= SECOND + TIMEOUT, "{end:?}, {reclaimed}");
    assert!(0 < reclaimed && reclaimed < 1024, "{reclaimed}");
    let ((whole, all), is_interrupted) = run(policy, None);
    assert!(!is_interrupted && whole > end && all >= 1024, "{whole:?}, {all}");
    assert_eq!(
        run(policy, Some(whole.0 - SECOND)),
        run(policy, None),
        "what is done in time is not interrupted"
    );
    assert_eq!(run(before, Some(TIMEOUT)), run(before, None), "before 5.19 nothing ends it");
    let ((end, reclaimed), is_interrupted) = run(between_calls, Some(TIMEOUT));
    assert!(is_interrupted && end.0 >= SECOND + TIMEOUT, "{end:?}, {reclaimed}");
    assert!((256..1024).contains(&reclaimed), "a call that is under way goes on to its end: {reclaimed}");
    let ((_, reclaimed), is_interrupted) = run(policy, Some(TIMEOUT / 25));
    assert!(
        is_interrupted && reclaimed == 0,
        "it has found nothing by then, and does not give up but is ended"
    );
}

#[test]
fn lowering_a_limit_reclaims_down_to_it() {
    let report = two_seconds(vec![write(SECOND, "/sys/fs/cgroup/job/memory.max", "6M")]);
    let done = report.writes[0].done.unwrap();
    assert!(done.0 > Nanos(SECOND) && done.1 >= 400, "{done:?}");
}

#[test]
fn an_event_that_would_recur_without_end_is_refused() {
    let rig = Rig::new();
    let repeat = Repeat::Timer { every: Nanos(0), until: Nanos(u64::MAX) };
    let event = TimedEvent { repeat, ..read(0, "/proc/vmstat") };
    let error = Machine::new(rig.engine, rig.spec).unwrap().event_add(event).unwrap_err();
    assert_eq!(error.to_string(), "an event on /proc/vmstat recurs every 0 ns");
}

#[test]
fn a_file_that_the_engine_refuses_ends_the_run() {
    let story = |event| {
        let mut rig = Rig::new();
        let file = rig.file(10);
        rig.reader("reader", "/job", file, pages(0..10), 1);
        rig.events = vec![event];
        rig.start().1.unwrap_err().to_string()
    };
    let text = story(write(1_000, "/sys/fs/cgroup/job/memory.max", "some"));
    assert!(
        text.starts_with("1.0 us into the run: /sys/fs/cgroup/job/memory.max: invalid value `some`"),
        "{text}"
    );
    let text = story(read(0, "/proc/nothing"));
    assert!(text.starts_with("0 ns into the run: /proc/nothing: no such file"), "{text}");
}
