//! Tenants of one memory: shared, alone, and in the split with the fewest misses.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{check_failure, check_success, pageout};

fn replay(directory: &Path, arguments: &[&str]) -> std::process::Output {
    pageout(directory, &[&["replay", "--quiet"], arguments].concat())
}

fn json(directory: &Path, arguments: &[&str]) -> Value {
    let printed = check_success(&replay(directory, &[arguments, &["--json"]].concat()));
    serde_json::from_str(&printed).unwrap()
}

/// Volume `b` goes round in 100 pages, volume `a` in 300, in turn; each access is an uid's, and there are two.
fn two_loops(directory: &Path) {
    let mut text = "ts,vol,page,uid\n".to_string();
    for at in 0..3_000 {
        let _ = writeln!(text, "{},a,{},{}", 2 * at, at % 300, at / 7 % 2);
        let _ = writeln!(text, "{},b,{},{}", 2 * at + 1, at % 100, at / 7 % 2);
    }
    fs::write(directory.join("io.csv"), text).unwrap();
}

fn tenants(cell: &Value) -> &Vec<Value> {
    cell["tenants"].as_array().unwrap()
}

#[test]
fn the_split_gives_memory_to_whom_it_saves_misses() {
    let directory = tempfile::tempdir().unwrap();
    two_loops(directory.path());
    let asked = ["io.csv", "--by", "vol", "--policy", "lru", "--memory", "150pages"];
    let found = json(directory.path(), &asked);
    let cell = &found["traces"][0]["cells"][0];
    // Between two uses of a page of b are 100 of a and 99 of b, and 150 fit: all miss. Of their own, b needs 100, and a has no use for the rest.
    assert_eq!((cell["shared_misses"].as_u64(), cell["split_misses"].as_u64()), (Some(6_000), Some(3_100)));
    assert_eq!(cell["split_unused_pages"], 49);
    let figures = |tenant: &Value| {
        let number = |key: &str| tenant[key].as_u64().unwrap();
        (number("tenant_accesses"), number("misses"), number("misses_alone"), number("own_pages"))
    };
    assert_eq!(
        tenants(cell).iter().map(|tenant| tenant["tenant"].as_str().unwrap()).collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert_eq!(figures(&tenants(cell)[0]), (3_000, 3_000, 3_000, 0));
    assert_eq!(figures(&tenants(cell)[1]), (3_000, 3_000, 100, 100));
    let printed = check_success(&replay(directory.path(), &asked));
    assert!(printed.contains("2 tenants by vol\n"), "{printed}");
    assert!(
        printed
            .contains("misses 48.33% less than the shared memory; 196 KiB of it would not reduce misses\n"),
        "{printed}"
    );
    let rows = check_success(&replay(
        directory.path(),
        &[&asked[..], &["--format", "csv", "--figure", "tenant,misses,curve_misses"]].concat(),
    ));
    assert!(rows.starts_with("tenant,misses,curve_misses\na,3000,3000;3000"), "{rows}");
}

#[test]
fn misses_of_all_tenants_are_those_of_the_trace() {
    let directory = tempfile::tempdir().unwrap();
    two_loops(directory.path());
    let policies = "lru,s3-fifo,arc,opt,classic@6.12,mglru@6.12";
    let asked = ["io.csv", "--memory", "30%,80%", "--policy", policies];
    let whole = json(directory.path(), &asked);
    let by = |column: &str| json(directory.path(), &[&asked[..], &["--by", column]].concat());
    let (by_volume, by_user) = (by("vol"), by("#4"));
    for (at, cell) in whole["traces"][0]["cells"].as_array().unwrap().iter().enumerate() {
        let shared = |found: &Value| found["traces"][0]["cells"][at]["shared_misses"].as_u64().unwrap();
        if cell["is_textbook"] == true {
            assert_eq!(shared(&by_volume), cell["misses"].as_u64().unwrap(), "{cell}");
            assert_eq!(shared(&by_user), cell["misses"].as_u64().unwrap(), "{cell}");
        } else {
            // Each tenant reads ahead for itself.
            assert!(shared(&by_volume) > 0, "{cell}");
        }
    }
    let told = check_success(&replay(directory.path(), &[&asked[..], &["--by", "uid"]].concat()));
    assert!(told.contains("some pages are several tenants'"), "{told}");
}

#[test]
fn one_tenant_in_the_machine_is_the_replay_itself() {
    let directory = tempfile::tempdir().unwrap();
    let mut text = "page,who\n".to_string();
    (0..20_000_u64).for_each(|at| _ = writeln!(text, "{},x", at * at % 1_013 + at % 7 * 100));
    fs::write(directory.path().join("one.csv"), text).unwrap();
    let asked = ["one.csv", "--memory", "40%", "--policy", "classic@6.12,mglru@6.12", "--read-ahead-kb", "0"];
    let whole = json(directory.path(), &asked);
    let by = json(directory.path(), &[&asked[..], &["--by", "who"]].concat());
    for at in 0..2 {
        let (cell, of_by) = (&whole["traces"][0]["cells"][at], &by["traces"][0]["cells"][at]);
        let shared = of_by["shared_misses"].as_u64().unwrap();
        let misses = cell["misses"].as_u64().unwrap();
        // A cgroup more, which holds nothing itself, moves a batch of the page cache by some pages.
        assert!(shared.abs_diff(misses) * 100 <= misses, "{shared} and {misses}");
        let alone = tenants(of_by)[0]["misses_alone"].as_u64().unwrap();
        assert_eq!(alone, misses);
    }
}

#[test]
fn tenants_of_the_machine_take_turns_in_the_order_of_the_trace() {
    let directory = tempfile::tempdir().unwrap();
    // `late` reads what `early` has read already: were it ahead, it would be the one that misses.
    let mut text = "page,who\n".to_string();
    for round in 0..40 {
        (0..50).for_each(|page| _ = writeln!(text, "{},early", round * 50 + page));
        (0..50).for_each(|page| _ = writeln!(text, "{},late", round * 50 + page));
    }
    fs::write(directory.path().join("turns.csv"), text).unwrap();
    let asked =
        ["turns.csv", "--by", "who", "--memory", "100%", "--policy", "classic@6.12", "--read-ahead-kb", "0"];
    let found = json(directory.path(), &asked);
    let misses = |at: usize| tenants(&found["traces"][0]["cells"][0])[at]["misses"].as_u64();
    assert_eq!([misses(0), misses(1)], [Some(2_000), Some(0)]);
    let printed = check_success(&replay(directory.path(), &asked));
    assert!(printed.contains("each tenant is a cgroup under one parent, which has the limit\n"), "{printed}");
}

#[test]
fn other_formats_have_objects_and_what_is_not_there_is_told_with_what_is() {
    let directory = tempfile::tempdir().unwrap();
    two_loops(directory.path());
    let fails =
        |arguments: &[&str], parts: &[&str]| check_failure(&replay(directory.path(), arguments), 2, parts);
    fails(
        &["io.csv", "--by", "pid", "--policy", "lru"],
        &["no column `pid`: there are ts, vol, page, uid, object"],
    );
    fails(&["io.csv", "--by", "ts", "--policy", "lru"], &["column `ts` has more than 1000 values"]);
    fails(&["io.csv", "--by", "vol", "--policy", "lru", "--sample", "0.5"], &["--sample excludes --by"]);
    fails(&["io.csv", "--by", "vol", "--print-scenario"], &["--print-scenario excludes --by"]);
    fails(
        &["io.csv", "--by", "vol", "--policy", "lru", "--trace-memory", "4KiB"],
        &["--by keeps the trace in memory", "use a larger --trace-memory"],
    );
    let log =
        "fio version 3 iolog\n0 /x add\n0 /y add\n1 /x read 0 8192\n2 /y read 0 4096\n3 /x read 0 4096\n";
    fs::write(directory.path().join("job.iolog"), log).unwrap();
    let by_file =
        json(directory.path(), &["job.iolog", "--by", "file", "--policy", "lru", "--memory", "3pages"]);
    let cell = &by_file["traces"][0]["cells"][0];
    let row = |at: usize| {
        (
            tenants(cell)[at]["tenant"].as_str().unwrap(),
            tenants(cell)[at]["tenant_accesses"].as_u64().unwrap(),
        )
    };
    assert_eq!([row(0), row(1)], [("/x", 3), ("/y", 1)]);
    let lcs = include_bytes!("../../../workload/tests/suite/lcs/version-3.lcs.zst");
    fs::write(directory.path().join("t.lcs.zst"), lcs).unwrap();
    let by_tenant =
        json(directory.path(), &["t.lcs.zst", "--by", "tenant", "--policy", "lru", "--memory", "3pages"]);
    let names =
        tenants(&by_tenant["traces"][0]["cells"][0]).iter().map(|tenant| tenant["tenant"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["3", "4"]);
    fails(&["t.lcs.zst", "--by", "user", "--policy", "lru"], &["no column `user`: there are tenant"]);
    fs::write(directory.path().join("p.pages-u32"), [7_u32.to_le_bytes(), 9_u32.to_le_bytes()].concat())
        .unwrap();
    fails(&["p.pages-u32", "--by", "object", "--policy", "lru"], &["it has no field for tenants"]);
}

#[test]
fn a_page_has_the_curve_of_each_tenant() {
    let directory = tempfile::tempdir().unwrap();
    two_loops(directory.path());
    check_success(&replay(
        directory.path(),
        &["io.csv", "--by", "vol", "--policy", "lru", "--memory", "200pages", "--report", "t.html"],
    ));
    let page = fs::read_to_string(directory.path().join("t.html")).unwrap();
    assert!(page.contains("Miss ratio of each tenant alone, io.csv, lru") && page.contains("\"name\":\"b\""));
}
