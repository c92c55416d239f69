//! Threads of a process, queue depth, programs that are run again and again, and tasks that wait for others.

use pageout_engine::{LruType, Nanos};
use pageout_sim::scenario::Scenario;
use pageout_sim::{Ended, Machine, Report};

fn scenario(tasks: &str) -> Scenario {
    let text = format!(
        r#"{{
            "memcg": [{{"path": "/job"}}],
            "device": [{{"name": "disk", "read_ahead_kb": 0, "read_latency": "100us", "read_p99": "100us"}}],
            "task": [{tasks}]
        }}"#
    );
    serde_json::from_str(&text).unwrap()
}

fn run(tasks: &str) -> (Machine, Report) {
    let scenario = scenario(tasks);
    assert_eq!(scenario.validate(), []);
    let mut machine = scenario.build().unwrap();
    assert_eq!(machine.run(&mut ()).unwrap(), Ended::Complete);
    machine.engine().check_invariants();
    let report = machine.report();
    (machine, report)
}

fn usage(machine: &mut Machine, path: &str) -> u64 {
    let text = machine.engine_mut().read_file(&format!("/sys/fs/cgroup{path}/memory.current")).unwrap();
    text.trim().parse::<u64>().unwrap() / 4096
}

const FILL: &str = r#""memcg": "/job", "object":
    [{"channel": "anonymous", "size": "1000 pages", "workload": {"pattern": "fill"}}]"#;

#[test]
fn memory_lives_to_the_end_of_the_run_unless_the_task_exits() {
    let (mut machine, stays) = run(&format!(r#"{{"name": "t", {FILL}}}"#));
    assert!((1000..1064).contains(&usage(&mut machine, "/job")));
    let (mut machine, exits) = run(&format!(r#"{{"name": "t", "lifetime": "task", {FILL}}}"#));
    assert!(usage(&mut machine, "/job") < 64, "no more than the charge ahead of its CPU");
    assert_eq!((exits.work.zapped, exits.work.unmapped), (1000, 0));
    assert!(exits.tasks[0].cpu_time > stays.tasks[0].cpu_time, "exiting takes time");
}

#[test]
fn each_loop_is_a_process_of_its_own_where_it_is_to_be() {
    let (mut machine, report) = run(&format!(r#"{{"name": "t", "lifetime": "loop", "loops": 5, {FILL}}}"#));
    let task = &report.tasks[0];
    assert_eq!((task.accesses, task.minor, task.hits), (5000, 5000, 0), "a first touch each");
    assert!(usage(&mut machine, "/job") < 64);
    let (_, report) = run(&format!(r#"{{"name": "t", "loops": 5, {FILL}}}"#));
    assert_eq!((report.tasks[0].minor, report.tasks[0].hits), (1000, 4000));
}

#[test]
fn a_new_process_writes_its_memory_before_it_reads_it() {
    let uniform = r#""object": [{"channel": "anonymous", "size": "100 pages",
        "workload": {"pattern": "loop", "ops": 150}}]"#;
    let (_, report) = run(&format!(r#"{{"name": "t", "lifetime": "loop", "loops": 3, {uniform}}}"#));
    // A read of memory that was never written would map the zero page, and the write after it would fault again.
    assert_eq!((report.tasks[0].minor, report.tasks[0].hits), (300, 150));
}

#[test]
fn what_one_thread_has_brought_in_is_there_for_all() {
    let task = |threads: u32, copies: u32| {
        format!(
            r#"{{"name": "t", "memcg": "/job", "threads": {threads}, "copies": {copies}, "object":
                [{{"channel": "anonymous", "size": "1000 pages", "workload": {{"pattern": "fill"}}}}]}}"#
        )
    };
    let (mut machine, report) = run(&task(4, 1));
    assert_eq!(report.tasks.len(), 1, "a process is one row");
    let threads = &report.tasks[0];
    assert_eq!((threads.threads, threads.accesses, threads.minor + threads.hits), (4, 4000, 4000));
    assert!(threads.minor < 1100, "{threads:?}");
    assert!((1000..1300).contains(&usage(&mut machine, "/job")));
    let (mut machine, report) = run(&task(1, 4));
    assert_eq!(report.tasks.len(), 4);
    assert!(usage(&mut machine, "/job") >= 4000);
}

#[test]
fn an_address_space_goes_with_its_last_thread() {
    let (mut machine, report) = run(&format!(r#"{{"name": "t", "threads": 3, "lifetime": "task", {FILL}}}"#));
    assert!(usage(&mut machine, "/job") < 3 * (64 + 31), "charged ahead, and in the batches of three CPUs");
    assert_eq!(report.work.zapped, 1000);
}

#[test]
fn threads_read_a_file_by_one_position_or_by_their_own() {
    let active = |opened_by: &str| {
        let (machine, _) = run(&format!(
            r#"{{"name": "t", "memcg": "/job", "cpu": 0, "threads": 2, "object": [{{"channel": "file", "size": "500 pages",
                "opened_by": "{opened_by}", "workload": {{"pattern": "sequential"}}}}]}}"#
        ));
        let job = machine.engine().figures().memcg_by_path("/job").unwrap();
        machine.engine().figures().list_sizes(job, LruType::File).1
    };
    // Both read each page once, one right behind the other.
    let [together, apart] = [active("process"), active("thread")];
    assert!(together < 20 && apart > 400, "{together} pages seem to be read twice, {apart} are");
}

#[test]
fn copies_share_the_file_of_an_object_or_have_one_each() {
    let read = |more: &str| {
        let (_, report) = run(&format!(
            r#"{{"name": "dd", "memcg": "/job", "cpu": 0, "copies": 3, "object": [{{"channel": "file", "size": "50 pages"{more},
                "workload": {{"pattern": "sequential"}}}}]}}"#
        ));
        report.file_pages_read
    };
    assert_eq!((read(""), read(r#", "per_copy": true"#)), (50, 150));
    // Two of three share one, and the third has its own.
    assert_eq!(read(r#", "copies_per_file": 2"#), 100);
}

/// A reader of a file that is never cached twice, with so many reads in flight; how long it took.
fn deep(depth: u32) -> (u64, Report) {
    let (_, report) = run(&format!(
        r#"{{"name": "fio", "memcg": "/job", "cpu": 0, "depth": {depth}, "object":
            [{{"channel": "file", "size": "3000 pages", "workload": {{"pattern": "sequential"}}}}]}}"#
    ));
    let fio = &report.tasks[0];
    assert_eq!((fio.accesses, fio.read_misses_io), (3000, 3000), "every access is made once, at any depth");
    (fio.runtime.0, report)
}

#[test]
fn reads_in_flight_overlap_up_to_the_queue_depth() {
    let (one, _) = deep(1);
    for depth in [4, 16] {
        let (time, report) = deep(depth);
        let speedup = one as f64 / time as f64;
        let depth = f64::from(depth);
        assert!((0.85 * depth..1.01 * depth).contains(&speedup), "depth {depth}: {speedup}");
        assert_eq!(report, deep(depth as u32).1, "equal runs");
    }
}

#[test]
fn workers_take_one_stream_in_its_order_and_loop_after_loop() {
    let (_, report) = run(r#"{"name": "fio", "memcg": "/job", "depth": 8, "loops": 3, "object":
            [{"channel": "file", "size": "100 pages", "workload": {"pattern": "sequential"}}]}"#);
    let fio = &report.tasks[0];
    assert_eq!((fio.accesses, fio.read_misses_io), (300, 100));
}

#[test]
fn a_task_starts_when_all_that_it_waits_for_have_ended() {
    let (_, report) = run(&format!(
        r#"{{"name": "link", "after": "compile", "start": "1ms", {FILL}}},
           {{"name": "compile", "copies": 3, "start": "2ms", "think_time": "1us", {FILL}}}"#
    ));
    let [link, compile @ ..] = report.tasks.as_slice() else { panic!("four tasks") };
    let last = compile.iter().filter_map(|task| task.ended).max().unwrap();
    assert_eq!(link.started, last + Nanos(1_000_000));
    assert_eq!(link.ended, Some(report.end));
    assert_eq!(link.cpu_wait, Nanos::ZERO, "waiting for a task is not waiting for a CPU");
}

#[test]
fn a_run_that_is_cut_short_tells_of_a_task_that_has_not_started() {
    let scenario = scenario(&format!(r#"{{"name": "a", {FILL}}}, {{"name": "b", "after": "a", {FILL}}}"#));
    let mut machine = scenario.build().unwrap();
    assert_eq!(machine.run_until(Nanos(100_000), &mut ()).unwrap(), Ended::TimeUp);
    let waiting = &machine.report().tasks[1];
    assert_eq!((waiting.accesses, waiting.runtime, waiting.ended), (0, Nanos::ZERO, None));
    assert_eq!((waiting.cpu_time, waiting.cpu_wait), (Nanos::ZERO, Nanos::ZERO));
    assert_eq!(machine.run(&mut ()).unwrap(), Ended::Complete);
}

#[test]
fn in_a_session_one_copy_runs_at_a_time_and_the_others_idle() {
    let session = r#"{"name": "tab", "memcg": "/job", "copies": 5, "cpu": 0,
        "session": {"visits": 40, "dwell": "10ms", "busy": "2ms", "first_ops": 120, "visit_ops": 30},
        "object": [{"channel": "anonymous", "size": "100 pages", "workload": {"pattern": "chain", "parts":
            [{"of": {"pattern": "fill"}}, {"of": {"pattern": "uniform", "ops": 100000}}]}}]}"#;
    let (_, report) = run(session);
    assert_eq!(report.accesses, 5 * 120 + 35 * 30);
    for tab in &report.tasks {
        assert_eq!(tab.minor, 100);
        assert!(tab.cpu_wait.0 < 20_000, "they meet on their CPU at the start only: {tab:?}");
        assert!(tab.idle.0 > tab.runtime.0 * 9 / 10, "{tab:?}");
    }
    // Half to one and a half times the dwell, 40 times; the last visit is over when its accesses are.
    assert!((200_000_000..600_000_000).contains(&report.end.0), "{}", report.end);
    assert_eq!(report, run(session).1);
}

/// The kernel divides its scan period by the size of the process in units of scan_size_mb: here that is 0 ms.
#[test]
fn scan_period_of_zero_scans_once_per_tick_and_ends() {
    let text = r#"{
        "kernel": {"sched.numa_balancing.scan_size_mb": 1, "sched.numa_balancing.scan_period_min_ms": 1},
        "sysctl": {"kernel.numa_balancing": 2},
        "machine": {"cpus": 2, "node": [{"memory": "32MiB", "cpus": 2}, {"memory": "32MiB", "preset": "cxl-1.1"}]},
        "task": [{"name": "server", "think_time": "100us", "object": [{"channel": "anonymous", "size": "16MiB", "populate_node": 1,
            "workload": {"pattern": "uniform", "ops": 60000}}]}]
    }"#;
    let scenario: Scenario = serde_json::from_str(text).unwrap();
    assert_eq!(scenario.validate(), []);
    let mut machine = scenario.build().unwrap();
    machine.run(&mut ()).unwrap();
    let vmstat = machine.read_file("/proc/vmstat").unwrap();
    let marked = vmstat.lines().find_map(|line| line.strip_prefix("numa_pte_updates ")).unwrap();
    assert!(marked.parse::<u64>().unwrap() > 1_000, "{marked} entries were marked");
}
