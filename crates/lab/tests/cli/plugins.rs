//! Policies that are shared libraries: projects that `new-policy` writes, and libraries that are wrong.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{binary, check_success, pageout};

/// A folder with a trace.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let pages = (0..30_000_u32).map(|at| (at ^ (at >> 5)).wrapping_mul(2_654_435_761) >> (20 + at % 3));
    std::fs::write(folder.path().join("a.u32"), pages.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
        .unwrap();
    folder
}

/// Builds a library of a policy in C; `change` is what is to be in place of another text of the one that `new-policy` writes.
fn library(folder: &Path, name: &str, change: (&str, &str)) {
    check_success(&pageout(folder, &["new-policy", name, "--c"]));
    let source = folder.join(name).join("policy.c");
    let text = std::fs::read_to_string(&source).unwrap();
    assert!(text.contains(change.0), "{}", change.0);
    std::fs::write(&source, text.replacen(change.0, change.1, 1)).unwrap();
    let arguments = ["-O2", "-fPIC", "-shared", "-o", "mine.so", "policy.c"];
    let built = Command::new("cc").args(arguments).current_dir(folder.join(name)).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

const UNCHANGED: (&str, &str) = ("", "");

fn refused(folder: &Path, words: &[&str]) -> String {
    let output = pageout(folder, words);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    told
}

#[test]
fn a_library_misses_where_the_policy_built_in_does_bare_and_in_the_machine() {
    let folder = folder();
    library(folder.path(), "mine", UNCHANGED);
    let checked =
        check_success(&pageout(folder.path(), &["check-policy", "mine/mine.so", "--allow-plugins"]));
    assert!(checked.starts_with("mine/mine.so keeps the contract"), "{checked}");
    let policies = "fifo,./mine/mine.so,fifo@machine,./mine/mine.so@machine";
    let words = ["replay", "a.u32", "--allow-plugins", "--policy", policies, "--memory", "10%,40%", "--json"];
    let result: Value = serde_json::from_str(&check_success(&pageout(folder.path(), &words))).unwrap();
    let cells = result["traces"][0]["cells"].as_array().unwrap();
    for at in [0, 1, 4, 5] {
        assert_eq!(cells[at]["misses"], cells[at + 2]["misses"]);
        assert_eq!(cells[at + 2]["policy_hash"].as_str().map(str::len), Some(32));
    }
}

#[test]
fn a_library_runs_only_where_it_is_allowed_to_and_its_hash_is_in_each_row() {
    let folder = folder();
    library(folder.path(), "mine", UNCHANGED);
    let told = refused(folder.path(), &["replay", "a.u32", "--policy", "./mine/mine.so"]);
    assert!(told.contains("./mine/mine.so") && told.contains("allow it with --allow-plugins"), "{told}");
    let plan = "traces = [\"a.u32\"]\npolicy = [\"./mine/mine.so\", \"fifo\"]\nmemory = [\"10%\", \"20%\"]\n";
    std::fs::write(folder.path().join("plan.toml"), plan).unwrap();
    let told = refused(folder.path(), &["sweep", "plan.toml", "--into", "all"]);
    assert!(told.contains("allow it with --allow-plugins"), "{told}");
    check_success(&pageout(folder.path(), &["sweep", "plan.toml", "--into", "all", "--allow-plugins"]));
    let rows = check_success(&pageout(folder.path(), &["sweep", "--collect", "all", "--json"]));
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    let hashes = || rows.iter().filter_map(|row| row["policy_hash"].as_str());
    assert_eq!((rows.len(), hashes().count()), (4, 2));
    assert_eq!(rows[0]["misses"], rows[2]["misses"]);
    // Another build of it is another policy: its cells are run.
    library(folder.path(), "other", ("first in, first out", "first in, first out, again"));
    let other = std::fs::read(folder.path().join("other/mine.so")).unwrap();
    std::fs::write(folder.path().join("mine/mine.so"), [other, vec![0]].concat()).unwrap();
    let again = pageout(folder.path(), &["sweep", "plan.toml", "--into", "all", "--allow-plugins"]);
    let again = check_success(&again);
    assert!(again.starts_with("2 of 4 cells run, 2 found"), "{again}");
}

#[test]
fn a_library_is_named_from_where_the_scenario_is_and_in_an_option_from_where_the_program_is() {
    let folder = folder();
    for place in ["exp", "plans"] {
        std::fs::create_dir(folder.path().join(place)).unwrap();
    }
    library(&folder.path().join("exp"), "mine", UNCHANGED);
    let scenario = |name: &str, kernel: &str, group: &str| {
        let text = format!(
            "{kernel}\n[machine]\nmemory = \"64MiB\"\n[[memcg]]\npath = \"/a\"\nmemory.max = \"8MiB\"\n{group}\n\
             [[task]]\nname = \"a\"\nmemcg = \"/a\"\n[[task.object]]\nchannel = \"file\"\nsize = \"16MiB\"\n\
             workload = {{ pattern = \"zipf\", alpha = 0.9, ops = 5000 }}\n"
        );
        std::fs::write(folder.path().join(name), text).unwrap();
    };
    scenario("exp/kernel.toml", "kernel.profile = \"mine/mine.so\"", "");
    scenario("exp/group.toml", "kernel.profile = \"fifo\"", "policy = \"./mine/mine.so\"");
    scenario("exp/fifo.toml", "kernel.profile = \"fifo\"", "");
    let counters = |words: &[&str]| {
        let words = [words, &["--allow-plugins", "--json"]].concat();
        let result: Value = serde_json::from_str(&check_success(&pageout(folder.path(), &words))).unwrap();
        result["memcgs"][0]["counters"].clone()
    };
    let fifo = counters(&["run", "exp/fifo.toml"]);
    assert_eq!(counters(&["run", "exp/kernel.toml"]), fifo);
    assert_eq!(counters(&["run", "exp/group.toml"]), fifo);
    assert_eq!(counters(&["run", "exp/fifo.toml", "--set", "kernel.profile=exp/mine/mine.so"]), fifo);
    let told = refused(
        folder.path(),
        &["run", "exp/fifo.toml", "--allow-plugins", "--set", "kernel.profile=./mine/mine.so"],
    );
    assert!(told.contains("./mine/mine.so"), "{told}");
    let plan = "scenarios = [\"../exp/kernel.toml\", \"../exp/group.toml\", \"../exp/fifo.toml\"]\n";
    std::fs::write(folder.path().join("plans/plan.toml"), plan).unwrap();
    let words = ["sweep", "plans/plan.toml", "--into", "all", "--allow-plugins"];
    check_success(&pageout(folder.path(), &words));
    let rows = check_success(&pageout(folder.path(), &["sweep", "--collect", "all", "--json"]));
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    assert!(rows.iter().all(|row| row["misses"].is_u64() && row["misses"] == rows[0]["misses"]), "{rows:?}");
}

#[test]
fn a_library_of_another_version_or_without_a_table_is_refused() {
    let folder = folder();
    let wrong = [
        (
            "version",
            (".version = PAGEOUT_POLICY_VERSION", ".version = 7"),
            "version 7, but this program supports version 1",
        ),
        ("short", (".size = sizeof table", ".size = 16"), "but version 1 needs at least 72"),
        ("lacks", (".nominate = nominate", ".nominate = 0"), "its table lacks the call `nominate`"),
        ("uses", (".uses = PAGEOUT_USES_EACH", ".uses = 9"), "uses = 9"),
        ("null", ("return &table;", "(void)table; return NULL;"), "pageout_policy() returns NULL"),
        (
            "name",
            ("pageout_policy(void)", "some_policy(void)"),
            "it does not export a function pageout_policy",
        ),
    ];
    for (name, change, why) in wrong {
        library(folder.path(), name, change);
        let told = refused(folder.path(), &["check-policy", &format!("{name}/mine.so"), "--allow-plugins"]);
        assert!(told.contains(why) && told.contains("mine.so"), "{why}: {told}");
    }
    let told = refused(folder.path(), &["replay", "a.u32", "--allow-plugins", "--policy", "./a.u32.so"]);
    assert!(told.contains("./a.u32.so: it can't be loaded"), "{told}");
    // The system says why.
    std::fs::write(folder.path().join("text.so"), "no library").unwrap();
    let told = refused(folder.path(), &["check-policy", "./text.so", "--allow-plugins"]);
    assert!(told.contains("dlopen failed: ") && told.matches("text.so").count() > 1, "{told}");
}

#[test]
fn a_library_that_ends_the_program_when_it_is_loaded_is_named_and_in_a_sweep_a_row() {
    let folder = folder();
    let begins = |code: &str| {
        format!("__attribute__((constructor)) static void begin(void) {{ {code} }}\n\nstatic void *make")
    };
    library(folder.path(), "mine", UNCHANGED);
    library(folder.path(), "exits", ("static void *make", &begins("exit(0);")));
    library(folder.path(), "aborts", ("static void *make", &begins("abort();")));
    library(folder.path(), "faults", ("static void *make", &begins("*(volatile int *)8 = 1;")));
    library(folder.path(), "hangs", ("static void *make", &begins("for (volatile int go = 1; go;) ;")));
    library(
        folder.path(),
        "waits",
        ("{\n    return &table;", "{\n    for (volatile int go = 1; go;) ;\n    return &table;"),
    );
    library(folder.path(), "other", (".version = PAGEOUT_POLICY_VERSION", ".version = 7"));
    let hangs = "has not returned for 200ms";
    let ends = [
        ("exits", "has called exit"),
        ("aborts", "ended by SIGABRT"),
        ("faults", "ended by SIGSEGV"),
        ("hangs", hangs),
        ("waits", hangs),
    ];
    for (name, why) in ends {
        let file = format!("./{name}/mine.so");
        for words in [
            vec!["check-policy", &file, "--allow-plugins"],
            vec!["replay", "a.u32", "--allow-plugins", "--policy", &file],
        ] {
            let words = [words, vec!["--call-limit", "200ms"]].concat();
            let told = refused(folder.path(), &words);
            assert!(told.contains(&format!("policy {file}: call 0, load(): {why}")), "{told}");
        }
    }
    let names = ends.map(|(name, _)| format!("\"./{name}/mine.so\"")).join(", ");
    let plan = format!(
        "traces = [\"a.u32\"]\nmemory = [\"10%\"]\npolicy = [{names}, \"./other/mine.so\", \"./mine/mine.so\", \"fifo\"]\n"
    );
    std::fs::write(folder.path().join("plan.toml"), plan).unwrap();
    let words = ["sweep", "plan.toml", "--into", "all", "--allow-plugins", "--call-limit", "200ms"];
    assert_eq!(pageout(folder.path(), &words).status.code(), Some(1));
    let rows = check_success(&pageout(folder.path(), &["sweep", "--collect", "all", "--json"]));
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    let of = |name: &str| rows.iter().find(|row| row["policy"] == name).unwrap();
    assert_eq!(of("./mine/mine.so")["misses"], of("fifo")["misses"]);
    for (name, why) in ends.into_iter().chain([("other", "version 7")]) {
        let row = of(&format!("./{name}/mine.so"));
        let told = row["error"].as_str().unwrap_or_default();
        assert!(told.contains("make()") && told.contains(why), "{row}");
    }
}

#[test]
fn a_library_that_goes_wrong_when_the_program_ends_is_named_and_costs_no_row() {
    let folder = folder();
    let ends = |code: &str| {
        format!("__attribute__((destructor)) static void end(void) {{ {code} }}\n\nstatic void *make")
    };
    let wrong = [
        ("hangs", "for (volatile int go = 1; go;) ;", "has not returned for 200ms"),
        ("faults", "*(volatile int *)8 = 1;", "ended by SIGSEGV"),
        ("aborts", "abort();", "ended by SIGABRT"),
    ];
    for (name, code, why) in wrong {
        library(folder.path(), name, ("static void *make", &ends(code)));
        let file = format!("./{name}/mine.so");
        let words = ["replay", "a.u32", "--allow-plugins", "--policy", &file, "--memory", "10%", "--json"];
        let output = pageout(folder.path(), &[&words[..], &["--call-limit", "200ms"]].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(&format!("policy {file}: call 0, unload(): {why}")), "{told}");
        let result: Value = serde_json::from_slice(&output.stdout).expect("the result is whole");
        assert_eq!(result["complete"], true);
    }
    let names = wrong.map(|(name, ..)| format!("\"./{name}/mine.so\"")).join(", ");
    let plan = format!("traces = [\"a.u32\"]\nmemory = [\"10%\"]\npolicy = [{names}, \"fifo\"]\n");
    std::fs::write(folder.path().join("plan.toml"), plan).unwrap();
    let words = ["sweep", "plan.toml", "--into", "all", "--allow-plugins", "--call-limit", "200ms"];
    check_success(&pageout(folder.path(), &words));
    let rows = check_success(&pageout(folder.path(), &["sweep", "--collect", "all", "--json"]));
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    assert_eq!(rows.len(), 4);
    assert!(
        rows.iter()
            .all(|row| row["misses"] == rows[0]["misses"] && row.get("error").is_none_or(Value::is_null)),
        "{rows:?}"
    );
}

#[test]
fn a_library_that_does_wrong_is_told_with_its_call_and_slot() {
    let folder = folder();
    let nominate = "    struct fifo *fifo = self;\n    uint32_t count = 0;\n";
    let with = |code: &str| format!("{nominate}    {code}\n");
    let wrong = [
        ("silent", with("if (want) return 0;"), "nothing is nominated"),
        (
            "twice",
            with("if (want > 1) { victims[0] = victims[1] = fifo->next[0] - 1; return 2; }"),
            "is nominated twice",
        ),
        (
            "absent",
            with("if (want) { victims[0] = 77777; return 1; }"),
            "slot 77777 is nominated, but holds no page",
        ),
        ("many", with("if (want) return want + 5;"), "slots are nominated"),
        ("crash", with("*(volatile int *)8 = 1;"), "ended by SIGSEGV"),
        ("abort", with("abort();"), "ended by SIGABRT"),
        ("exit", with("exit(0);"), "has called exit"),
        (
            "deep",
            with("victims[0] = nominate(self, want + 1, victims); if (victims[0]) return 1;"),
            "ended by SIGSEGV",
        ),
        ("hang", with("for (volatile int go = 1; go;) ;"), "has not returned for 300ms"),
    ];
    for (name, code, why) in wrong {
        library(folder.path(), name, (nominate, &code));
        let file = format!("./{name}/mine.so");
        let told =
            refused(folder.path(), &["check-policy", &file, "--allow-plugins", "--call-limit", "300ms"]);
        assert!(told.contains(why) && told.contains("nominate("), "{name}: {told}");
        if name == "twice" {
            continue; // a replay asks for one at a time
        }
        let words = ["replay", "a.u32", "--allow-plugins", "--policy", &file, "--call-limit", "300ms"];
        let told = refused(folder.path(), &words);
        assert!(
            told.contains(why) && told.contains("nominate(1)") && told.contains("call "),
            "{name}: {told}"
        );
    }
}

#[test]
fn make_check_of_a_new_c_policy_passes() {
    let folder = tempfile::tempdir().unwrap();
    check_success(&pageout(folder.path(), &["new-policy", "mine", "--c"]));
    let program = format!("PAGEOUT={}", binary());
    let made =
        Command::new("make").args(["check", &program]).current_dir(folder.path().join("mine")).output();
    check_success(&made.unwrap());
}

#[test]
fn a_project_is_written_once_and_under_a_name_of_its_own() {
    let folder = folder();
    check_success(&pageout(folder.path(), &["new-policy", "my-own"]));
    let main = std::fs::read_to_string(folder.path().join("my-own/src/main.rs")).unwrap();
    assert!(main.contains("pageout_lab::main_with(&[(\"my-own\", policy::MyOwn::make)])"), "{main}");
    let files = |folder: &Path| {
        let mut text = String::new();
        for name in ["Cargo.toml", "README.md", "src/policy.rs"] {
            text += &std::fs::read_to_string(folder.join(name)).unwrap();
        }
        text
    };
    assert!(!files(&folder.path().join("my-own")).contains("{{"), "nothing is left to fill in");
    assert!(
        folder.path().join("my-own/Cargo.lock").is_file(),
        "with the versions that pageout was tried with"
    );
    for (words, why) in [
        (vec!["new-policy", "my-own"], "my-own: the folder exists"),
        (vec!["new-policy", "lru"], "name is in use: found `lru`"),
        (vec!["new-policy", "My Own"], "invalid name: found `My Own`, expected up to 40 of a-z"),
        (vec!["new-policy", "other", "--pageout", "."], "not a checkout of pageout"),
    ] {
        let told = refused(folder.path(), &words);
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn library_to_be_checked_needs_leave_to_run() {
    let folder = folder();
    library(folder.path(), "mine", UNCHANGED);
    for file in ["mine/mine.so", "./mine/mine.so"] {
        let told = refused(folder.path(), &["check-policy", file]);
        assert!(told.contains("allow it with --allow-plugins"), "{told}");
    }
    // A file whose name is none of a library's is no exception.
    std::fs::copy(folder.path().join("mine/mine.so"), folder.path().join("plain")).unwrap();
    let told = refused(folder.path(), &["check-policy", "plain"]);
    assert!(told.contains("allow it with --allow-plugins"), "{told}");
    check_success(&pageout(folder.path(), &["check-policy", "plain", "--allow-plugins"]));
}
