//! A program with policies of its own (`pageout_lab::main_with`), as `pageout new-policy` writes one. Called by its checks, it is that program; called
//! by `cargo test`, it runs them.

// The checks write the files they need, and a check that can't is a failed check.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::collections::VecDeque;
use std::path::Path;
use std::process::{Command, ExitCode, Output};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pageout_lab::MakePolicy;
use pageout_policy::{Arrival, End, Fifo, PageId, Policy, Sieve, Slot};
use serde_json::Value;

/// What a policy does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Nothing,
    Twice,
    NotThere,
    Panic,
    GivesUp,
    NeverReturns,
    Abort,
    Exit,
    Overflow,
    TakesAll,
}

/// FIFO that does something wrong when it is asked for the 500th time.
struct Liar {
    fault: Fault,
    queue: VecDeque<Slot>,
    asked: u32,
    hoard: Vec<Vec<u8>>,
}

/// Deeper than any stack, for all that the compiler knows.
fn deep(at: u32) -> u32 {
    let frame = std::hint::black_box([at; 1024]);
    if frame[7] == u32::MAX { at } else { deep(at + 1) + frame[8] }
}

fn liar(fault: Fault) -> Box<dyn Policy> {
    Box::new(Liar { fault, queue: VecDeque::new(), asked: 0, hoard: Vec::new() })
}

impl Policy for Liar {
    fn resized(&mut self, _capacity: u32) {}

    fn added(&mut self, arrival: &Arrival) {
        self.queue.push_back(arrival.slot);
    }

    fn used(&mut self, _slots: &[Slot]) {}

    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        self.asked += 1;
        if self.asked >= 500 {
            match self.fault {
                Fault::Nothing => return,
                Fault::Twice => return victims.extend([self.queue[0], self.queue[0]]),
                Fault::NotThere => return victims.push(Slot(4_000_000)),
                Fault::Panic => panic!("no idea"),
                Fault::GivesUp => pageout_lab::end_with_fault("it gives up".to_string()),
                Fault::NeverReturns => loop {
                    std::hint::spin_loop();
                },
                Fault::Abort => std::process::abort(),
                Fault::Exit => std::process::exit(0),
                Fault::Overflow => victims.push(Slot(deep(want))),
                Fault::TakesAll => loop {
                    self.hoard.push(Vec::with_capacity(1 << 28));
                },
            }
        }
        victims.extend(self.queue.iter().take(want as usize));
    }

    fn ended(&mut self, slot: Slot, _page: PageId, end: End) {
        self.queue.retain(|&other| other != slot);
        if end == End::Spared {
            self.queue.push_back(slot);
        }
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, f64)) {
        tell("asked", self.asked.into());
    }
}

const POLICIES: &[(&str, MakePolicy)] = &[
    ("mine", |_| Box::new(Fifo::default())),
    ("my-sieve", |_| Box::new(Sieve::default())),
    ("silent", |_| liar(Fault::Nothing)),
    ("twice", |_| liar(Fault::Twice)),
    ("absent", |_| liar(Fault::NotThere)),
    ("panics", |_| liar(Fault::Panic)),
    ("gives-up", |_| liar(Fault::GivesUp)),
    ("hangs", |_| liar(Fault::NeverReturns)),
    ("aborts", |_| liar(Fault::Abort)),
    ("exits", |_| liar(Fault::Exit)),
    ("overflows", |_| liar(Fault::Overflow)),
    ("unmade", |_| panic!("not today")),
    ("hoards", |_| liar(Fault::TakesAll)),
];

/// What tells this program to be that program.
const BE: &str = "PAGEOUT_TEST_IS_THE_PROGRAM";

fn main() -> ExitCode {
    if std::env::var_os(BE).is_some() {
        return pageout_lab::main_with(POLICIES);
    }
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    let checks: Vec<_> = CHECKS.iter().filter(|(name, _)| is_wanted(name)).collect();
    // As many at a time as there are CPUs.
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some((name, check)) = checks.get(next.fetch_add(1, Relaxed)) {
            let is_ok = std::panic::catch_unwind(check).is_ok();
            println!("test {name} ... {}", if is_ok { "ok" } else { "FAILED" });
            failed.fetch_add(usize::from(!is_ok), Relaxed);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner();
    let said = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {said}. {} passed; {failed} failed; 0 ignored", checks.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

type Check = (&'static str, fn());

const CHECKS: &[Check] = &[
    ("an_own_policy_stands_beside_the_built_in_ones_with_equal_misses", equal_misses),
    ("an_own_policy_runs_in_the_machine_for_the_whole_and_for_a_group", in_the_machine),
    ("a_policy_that_lies_ends_a_replay_with_its_call_and_slot", liars_in_replay),
    ("with_fallback_the_oldest_page_goes_and_is_counted", fallback),
    ("a_run_of_the_machine_with_fallbacks_says_so_in_each_form", fallback_in_the_machine),
    ("a_sweep_with_fallbacks_has_them_in_its_rows_and_says_so", fallback_in_sweep),
    ("a_policy_that_lies_is_a_row_of_a_sweep_and_the_other_cells_come_out", liars_in_sweep),
    ("an_own_policy_is_checked_by_its_name", checked),
];

/// A folder with a trace.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let pages = (0..30_000_u32).map(|at| (at ^ (at >> 5)).wrapping_mul(2_654_435_761) >> (20 + at % 3));
    std::fs::write(folder.path().join("a.u32"), pages.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
        .unwrap();
    folder
}

fn program(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(BE, "1").env_remove("COLUMNS").current_dir(folder).args(words).output().unwrap()
}

fn json(folder: &Path, words: &[&str]) -> Value {
    let output = program(folder, words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn error(folder: &Path, words: &[&str]) -> String {
    let output = program(folder, words);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    told
}

fn equal_misses() {
    let folder = folder();
    let words =
        ["replay", "a.u32", "--policy", "fifo,mine,sieve,my-sieve", "--memory", "5%,20%,80%", "--json"];
    let result = json(folder.path(), &words);
    let cells = result["traces"][0]["cells"].as_array().unwrap();
    for size in 0..3 {
        for pair in [0, 2] {
            let misses = |at: usize| cells[at * 3 + size]["misses"].as_u64().unwrap();
            assert_eq!(misses(pair), misses(pair + 1));
        }
    }
    assert!(cells[3]["policy_hash"].as_str().is_some_and(|hash| hash.len() == 32));
    assert_eq!(cells[0]["policy_hash"], Value::Null);
    let text = program(folder.path(), &["replay", "a.u32", "--policy", "mine,lru", "--memory", "5%,20%"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("mine is a custom policy: BLAKE3 "), "{text}");
}

fn in_the_machine() {
    let folder = folder();
    let words = ["replay", "a.u32", "--policy", "fifo@machine,mine@machine", "--memory", "20%", "--json"];
    let result = json(folder.path(), &words);
    let cells = result["traces"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[0]["misses"], cells[1]["misses"]);
    let counters = |own: &str| {
        std::fs::write(folder.path().join("s.toml"), two_groups(own, "classic@6.12")).unwrap();
        json(folder.path(), &["run", "s.toml", "--json"])["memcgs"].clone()
    };
    let (mine, fifo, kernels) = (counters("mine"), counters("fifo"), counters("classic@6.12"));
    assert_eq!(mine[0]["counters"], fifo[0]["counters"], "group by group it is the same as the one built in");
    assert_ne!(mine, kernels);
}

/// The forms of a broken contract, and the message for each.
const LIES: [(&str, &str); 10] = [
    ("silent", "): nothing is nominated, but there are "),
    ("twice", "is nominated twice"),
    ("absent", "): slot 4000000 is nominated, but holds no page"),
    ("panics", "): panicked: no idea"),
    ("gives-up", "): it gives up"),
    ("hangs", "): has not returned for 500ms"),
    ("aborts", "): ended by SIGABRT"),
    ("exits", "): has called exit"),
    ("overflows", "): ended by SIGSEGV"),
    ("unmade", "call 0, make(): panicked: not today"),
];

fn liars_in_replay() {
    let folder = folder();
    for (liar, wrong) in LIES {
        for policy in [liar.to_string(), format!("{liar}@machine")] {
            let words =
                ["replay", "a.u32", "--policy", &policy, "--memory", "816KiB", "--call-limit", "500ms"];
            let told = error(folder.path(), &words);
            assert!(told.contains(&format!("policy {liar}")) && told.contains("call "), "{told}");
            assert!(told.contains(wrong), "{wrong}: {told}");
            assert_eq!(told.matches("error: ").count(), 1, "{told}");
        }
        let told = error(folder.path(), &["check-policy", liar, "--call-limit", "500ms"]);
        assert!(told.contains("call ") && told.contains(wrong), "{wrong}: {told}");
    }
    // The policies beside it have their figures.
    let output = program(folder.path(), &["replay", "a.u32", "--policy", "lru,silent", "--memory", "5%,20%"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().any(|line| line.starts_with("lru ") && line.contains("0.")), "{text}");
    assert!(text.lines().any(|line| line.starts_with("silent ") && line.contains("failed")), "{text}");
    let told = error(folder.path(), &["replay", "a.u32", "--policy", "silent@machine", "--memory", "20%"]);
    assert!(told.contains("policy silent of cgroup /replay: call "), "{told}");
}

fn fallback() {
    let folder = folder();
    for liar in ["silent", "absent"] {
        let words = ["replay", "a.u32", "--policy", liar, "--memory", "816KiB", "--fallback", "--json"];
        let helped = json(folder.path(), &words);
        let fifo =
            json(folder.path(), &["replay", "a.u32", "--policy", "fifo", "--memory", "816KiB", "--json"]);
        let cell = |of: &Value| of["traces"][0]["cells"][0].clone();
        assert_eq!(
            cell(&helped)["misses"],
            cell(&fifo)["misses"],
            "all it does is to be FIFO, or to be helped"
        );
        let evictions = cell(&fifo)["misses"].as_f64().unwrap() - 204.0;
        assert_eq!(cell(&helped)["policy_figures"]["fallbacks"], evictions - 499.0);
        assert_eq!(cell(&helped)["policy_figures"]["asked"], evictions);
    }
}

fn fallback_in_the_machine() {
    let folder = folder();
    let warning = "warning: policy silent: ";
    let whole = |words: &[&str]| {
        let output = program(folder.path(), words);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && told.contains(warning), "{told}");
        String::from_utf8(output.stdout).unwrap()
    };
    let policies = [
        ("silent@machine", "816KiB"),
        ("silent,silent@machine,fifo", "816KiB"),
        ("fifo,silent@machine", "5%,20%"),
    ];
    for (policy, memory) in policies {
        let words = ["replay", "a.u32", "--policy", policy, "--memory", memory, "--fallback"];
        let text = whole(&words);
        assert!(text.contains("silent@machine tells fallbacks: "), "{text}");
        assert!(text.contains("silent@machine tells asked: "), "{text}");
        let result: Value = serde_json::from_str(&whole(&[&words[..], &["--json"]].concat())).unwrap();
        let cells = result["points"].as_array().or(result["traces"][0]["cells"].as_array()).unwrap();
        let helped: Vec<&Value> = cells.iter().filter(|cell| cell["policy_figures"].is_object()).collect();
        assert_eq!(helped.len(), policy.matches("silent").count() * (1 + memory.matches(',').count()));
        for cell in helped {
            assert!(cell["policy_figures"]["fallbacks"].as_f64() > Some(0.0), "{cell}");
        }
    }
    // In a scenario each group has figures of its own, and the whole is told.
    std::fs::write(folder.path().join("s.toml"), two_groups("silent", "my-sieve")).unwrap();
    let text = whole(&["run", "s.toml", "--fallback"]);
    assert!(text.contains("policy silent of /a tells: fallbacks ") && text.contains(", asked "), "{text}");
    let result: Value = serde_json::from_str(&whole(&["run", "s.toml", "--fallback", "--json"])).unwrap();
    let own = result["own_policies"].as_array().unwrap();
    let figures = |at: usize| own[at]["figures"]["fallbacks"].as_f64().unwrap();
    assert_eq!((own[0]["memcg"].as_str(), own[1]["memcg"].as_str()), (Some("/a"), Some("/b")), "{own:?}");
    assert!(figures(0) > 0.0 && figures(1) == 0.0, "{own:?}");
    for words in [
        ["compare", "s.toml", "--vary", "memcg./a.memory.max=8MiB,9MiB"],
        ["ablate", "s.toml", "--switch", "reclaim.proactive_counters"],
    ] {
        whole(&[&words[..], &["--fallback"]].concat());
    }
}

fn fallback_in_sweep() {
    let folder = folder();
    let plan =
        "traces = [\"a.u32\"]\npolicy = [\"silent\", \"silent@machine\", \"mine\"]\nmemory = [\"816KiB\"]\n";
    std::fs::write(folder.path().join("plan.toml"), plan).unwrap();
    for words in [
        vec!["sweep", "plan.toml", "--into", "all", "--fallback"],
        vec!["sweep", "--collect", "all", "--json"],
    ] {
        let output = program(folder.path(), &words);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success()
                && told.contains("warning: in 2 rows a custom policy gave an invalid answer"),
            "{told}"
        );
    }
    let rows = json(folder.path(), &["sweep", "--collect", "all", "--json"]);
    // The bound is added beside a kernel policy.
    for row in rows.as_array().unwrap().iter().filter(|row| row["policy"] != "opt") {
        let fallbacks = row["policy_fallbacks"].as_f64().unwrap();
        assert_eq!(fallbacks > 0.0, row["policy"] != "mine", "{row}");
    }
}

/// A scenario of two groups, each with a policy and a task.
fn two_groups(a: &str, b: &str) -> String {
    let group = |path: &str, own: &str| {
        format!(
            "[[memcg]]\npath = \"/{path}\"\npolicy = \"{own}\"\nmemory.max = \"8MiB\"\n\
             [[task]]\nname = \"{path}\"\nmemcg = \"/{path}\"\n[[task.object]]\nchannel = \"file\"\nsize = \"32MiB\"\n\
             workload = {{ pattern = \"zipf\", alpha = 0.9, ops = 20000 }}\n"
        )
    };
    format!(
        "[machine]\nmemory = \"256MiB\"\n[[device]]\nname = \"disk\"\npreset = \"nvme\"\n{}{}",
        group("a", a),
        group("b", b)
    )
}

fn liars_in_sweep() {
    let folder = folder();
    let plan = "traces = [\"a.u32\"]\npolicy = [\"silent\", \"hangs\", \"mine\", \"panics\", \"aborts\", \"hoards\", \"fifo\", \"exits\", \
                \"overflows\", \"unmade\", \"silent@machine\", \"mine@machine\", \"overflows@machine\"]\nmemory = [\"816KiB\", \"1632KiB\"]\n";
    std::fs::write(folder.path().join("plan.toml"), plan).unwrap();
    let words = ["sweep", "plan.toml", "--into", "all", "--call-limit", "3s", "--policy-memory", "1GiB"];
    let output = program(folder.path(), &words);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = json(folder.path(), &["sweep", "--collect", "all", "--json"]);
    let rows = rows.as_array().unwrap();
    // Thirteen policies, and the bound, which is added beside a kernel policy.
    assert_eq!(rows.len(), 28);
    let of = |policy: &str| rows.iter().filter(|row| row["policy"] == policy).collect::<Vec<_>>();
    let misses = |policy: &str| of(policy).iter().map(|row| row["misses"].clone()).collect::<Vec<_>>();
    assert_eq!(misses("mine"), misses("fifo"));
    assert!(misses("mine").iter().chain(&misses("mine@machine")).all(|misses| misses.is_u64()));
    for (policy, wrong) in [
        ("silent", "nominate(1): nothing is nominated"),
        ("hangs", "nominate(1): has not returned for 3s"),
        ("panics", "nominate(1): panicked: no idea"),
        ("aborts", "nominate(1): ended by SIGABRT"),
        // How its call ends is a matter of time: it is aborted, and on a busy machine that may take longer than a call may.
        ("hoards", "nominate(1): "),
        ("exits", "nominate(1): has called exit"),
        ("overflows", "nominate(1): ended by SIGSEGV"),
        ("unmade", "make(): panicked: not today"),
        ("silent@machine", "nothing is nominated"),
        ("overflows@machine", "): ended by SIGSEGV"),
    ] {
        for row in of(policy) {
            let told = row["error"].as_str().unwrap();
            assert!(told.contains("call ") && told.contains(wrong), "{policy}: {told}");
            for of_memory in ["memory allocation of ", "(--policy-memory 1GiB)"] {
                assert_eq!(told.contains(of_memory), policy == "hoards", "{told}");
            }
            assert!(row["policy_hash"].is_string(), "{row}");
        }
    }
    // Nothing is run again.
    let again = program(folder.path(), &words);
    assert!(String::from_utf8_lossy(&again.stdout).starts_with("0 of 28 cells run, 28 found"));
}

fn checked() {
    let folder = folder();
    let good = program(folder.path(), &["check-policy", "mine"]);
    assert!(String::from_utf8_lossy(&good.stdout).starts_with("mine keeps the contract"));
    assert!(error(folder.path(), &["check-policy", "silent"]).contains("nothing is nominated"));
    assert!(error(folder.path(), &["check-policy", "mien"]).contains("did you mean `mine`?"));
}
