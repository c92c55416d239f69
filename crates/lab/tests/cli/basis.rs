//! What a figure is made from stands beside it: readahead and bounds, requests and sizes, deletes, units, operations.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::{check_failure, check_success, pageout, text};

/// A folder with these files.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(directory.path().join(name), bytes).unwrap();
    }
    directory
}

/// So many ids in libCacheSim's format, each of this size, none twice.
fn ids_once(count: u64, size: u32) -> Vec<u8> {
    (0..count).flat_map(|at| record(at as u32, at.wrapping_mul(0x9e37_79b9_7f4a_7c15), size)).collect()
}

fn record(time: u32, id: u64, size: u32) -> Vec<u8> {
    [&time.to_le_bytes()[..], &id.to_le_bytes(), &size.to_le_bytes(), &(-1i64).to_le_bytes()].concat()
}

/// Runs of eight pages in order, from a few places: readahead earns much.
fn runs_of_pages() -> Vec<u8> {
    let mut text = "time,offset,size\n".to_string();
    let mut draw = 12_345u64;
    for at in 0..800 {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let first = (draw >> 33) % 200 * 16;
        (0..8).for_each(|page| text += &format!("{at},{},4096\n", (first + page) * 4096));
    }
    text.into_bytes()
}

#[track_caller]
fn json(directory: &Path, arguments: &[&str]) -> Value {
    let output = pageout(directory, &[arguments, &["--json"]].concat());
    serde_json::from_str(&check_success(&output)).unwrap()
}

#[track_caller]
fn info(directory: &Path, file: &str, read: &[&str]) -> Value {
    let read: Vec<&str> = read.iter().flat_map(|option| ["--read", option]).collect();
    json(directory, &[&["trace", "info", file], &read[..]].concat())[0].clone()
}

#[test]
fn opaque_ids_are_not_read_ahead_by_any_command() {
    let directory = folder(&[
        ("ids.oracleGeneral", &ids_once(3_000, 4096)),
        ("keys.csv", (0..3_000).fold("key,op\n".to_string(), |text, at| text + &format!("k{at},get\n")).as_bytes()),
        ("blocks.u64", &(0..3_000u64).flat_map(|at| (at * 7_919 % 3_001).to_le_bytes()).collect::<Vec<_>>()),
        (
            "s.toml",
            b"[[memcg]]\npath = \"/a\"\nmemory.max = \"10%\"\n[[task]]\nname = \"t\"\nmemcg = \"/a\"\n[[task.object]]\n\
              channel = \"mapped\"\ntrace = \"ids.oracleGeneral\"\n",
        ),
        ("plan.toml", b"traces = ['ids.oracleGeneral']\npolicy = ['mglru@6.12']\nmemory = ['10%']\n"),
    ]);
    let at = directory.path();
    let misses = |arguments: &[&str]| {
        let result = json(at, &[&["replay"], arguments, &["--memory", "10%"]].concat());
        let point = &result["points"][0];
        (point["misses"].as_u64().unwrap(), point["read_ahead_kb"].as_u64().unwrap())
    };
    assert_eq!(misses(&["ids.oracleGeneral"]), (3_000, 0));
    assert_eq!(misses(&["keys.csv", "--channel", "mapped", "--policy", "mglru@6.12"]), (3_000, 0));
    assert_eq!(
        misses(&["blocks.u64", "--read", "page_ids=dense"]),
        (3_000, 0),
        "numbered anew, neighbours are gone"
    );
    // Converted, ids are still ids.
    check_success(&pageout(at, &["trace", "convert", "ids.oracleGeneral", "ids.pgt"]));
    assert_eq!(misses(&["ids.pgt"]), (3_000, 0));
    // Who asks for it has it, and block traces stay as they are.
    let (ahead, kib) = misses(&["ids.oracleGeneral", "--read-ahead-kb", "128"]);
    assert!(ahead < 300 && kib == 128, "{ahead}");
    assert_eq!(misses(&["blocks.u64"]).1, 128);
    let result = json(at, &["run", "s.toml"]);
    assert_eq!((&result["tasks"][0]["major"], &result["readahead"]["pages"]), (&3_000.into(), &0.into()));
    assert_eq!(result["readahead"]["read_ahead_kb"]["nvme"], 0);
    let ahead = json(at, &["run", "s.toml", "--set", "task.t.object[0].read_ahead=true"]);
    assert!(ahead["tasks"][0]["major"].as_u64().unwrap() < 300);
    let swapping = "[[swap]]\nsize = \"1GiB\"\nkind = \"disk\"\n[[memcg]]\npath = \"/a\"\nmemory.max = \"10%\"\n[[task]]\nname = \"t\"\nmemcg = \"/a\"\n\
                    loops = 2\n[[task.object]]\nchannel = \"anonymous\"\ntrace = \"ids.oracleGeneral\"\n";
    std::fs::write(at.join("swap.toml"), swapping).unwrap();
    let swapped_in = |set: &[&str]| {
        let result = json(at, &[&["run", "swap.toml"], set].concat());
        (result["vmstat"]["pswpin"].as_u64().unwrap(), result["vmstat"]["swap_ra"].as_u64().unwrap())
    };
    let (alone, ahead) = swapped_in(&[]);
    assert!(alone > 2_000 && ahead == 0, "{alone} pages from swap, {ahead} of them ahead");
    assert!(swapped_in(&["--set", "task.t.object[0].read_ahead=true"]).1 > 1_000);
    let compared = check_success(&pageout(at, &["compare", "s.toml", "--vary", "seed=1,2"]));
    assert!(compared.contains("readahead: off\n") && compared.contains("opaque ids"), "{compared}");
    check_success(&pageout(at, &["sweep", "plan.toml", "--into", "out"]));
    let rows = json(at, &["sweep", "--collect", "out"]);
    assert_eq!(rows.as_array().unwrap().len(), 1, "no bound where nothing reads ahead: {rows}");
    assert_eq!((&rows[0]["misses"], &rows[0]["read_ahead_kb"]), (&3_000.into(), &0.into()));
}

#[test]
fn bound_stands_beside_a_policy_that_reads_ahead() {
    let directory = folder(&[
        ("io.csv", &runs_of_pages()),
        ("plan.toml", b"traces = ['io.csv']\npolicy = ['classic@6.12']\nmemory = ['10%']\n"),
        (
            "off.toml",
            b"traces = ['io.csv']\npolicy = ['classic@6.12']\nmemory = ['10%']\nread_ahead_kb = 0\n",
        ),
    ]);
    let at = directory.path();
    let told = "classic@6.12 is below the bound at ";
    let alone = check_success(&pageout(at, &["replay", "io.csv", "--memory", "10%"]));
    assert!(alone.contains("readahead") && alone.contains("128 KiB") && alone.contains(told), "{alone}");
    let both =
        check_success(&pageout(at, &["replay", "io.csv", "--memory", "10%", "--policy", "lru,classic@6.12"]));
    assert!(
        both.contains("opt (bound)") && both.contains(told) && both.contains("this one reads ahead"),
        "{both}"
    );
    let result = json(at, &["replay", "io.csv", "--memory", "10%", "--policy", "lru,classic@6.12"]);
    let cells = result["traces"][0]["cells"].as_array().unwrap();
    let of = |policy: &str| cells.iter().find(|cell| cell["policy"] == policy).unwrap();
    assert_eq!((&of("classic@6.12")["read_ahead_kb"], &of("lru")["read_ahead_kb"]), (&128.into(), &0.into()));
    assert_eq!(
        (&of("classic@6.12")["is_below_bound"], &of("lru")["is_below_bound"]),
        (&true.into(), &false.into())
    );
    let off = check_success(&pageout(at, &["replay", "io.csv", "--memory", "10%", "--read-ahead-kb", "0"]));
    assert!(!off.contains("bound") && off.contains("off"), "{off}");
    let svg =
        ["replay", "io.csv", "--memory", "10%,30%", "--policy", "lru,classic@6.12", "--report", "a.svg"];
    check_success(&pageout(at, &svg));
    let svg = std::fs::read_to_string(at.join("a.svg")).unwrap();
    assert!(svg.contains("classic@6.12, readahead 128 KiB"), "{svg}");
    for (plan, rows, below) in [("plan.toml", 2, true), ("off.toml", 1, false)] {
        check_success(&pageout(at, &["sweep", plan, "--into", plan.trim_end_matches(".toml")]));
        let collected = pageout(at, &["sweep", "--collect", plan.trim_end_matches(".toml"), "--json"]);
        assert_eq!(text(&collected.stderr).contains("these policies read ahead"), below);
        let found: Value = serde_json::from_str(&check_success(&collected)).unwrap();
        assert_eq!(found.as_array().unwrap().len(), rows, "{found}");
        assert_eq!(found[0]["is_below_bound"], if below { Value::Bool(true) } else { Value::Null });
    }
}

#[test]
fn sizes_of_objects_are_told_beside_the_figure() {
    let trace: Vec<u8> = (0..50).flat_map(|at| record(at, (at % 20).into(), 64 * 1024)).collect();
    let directory = folder(&[("cdn.oracleGeneral", &trace)]);
    let at = directory.path();
    let told = "50 requests for 3.12 MiB became 800 pages; object sizes are not modelled (see --ignore-size)";
    for policy in ["lru", "classic@6.12", "lru,mglru@6.12"] {
        let arguments = ["replay", "cdn.oracleGeneral", "--memory", "50%", "--policy", policy];
        let printed = check_success(&pageout(at, &arguments));
        assert!(printed.contains(told), "{policy}: {printed}");
    }
    let result = json(at, &["replay", "cdn.oracleGeneral", "--memory", "50%", "--policy", "lru"]);
    let requests = &result["traces"][0]["requests"];
    assert_eq!(
        (&requests["requests"], &requests["pages"], &requests["bytes"]),
        (&50.into(), &800.into(), &3_276_800.into())
    );
    assert_eq!(requests["sizes_modelled"], false);
    let ignored = ["replay", "cdn.oracleGeneral", "--memory", "50%", "--policy", "lru", "--ignore-size"];
    assert!(!check_success(&pageout(at, &ignored)).contains("not modelled"));
    let info = check_success(&pageout(at, &["trace", "info", "cdn.oracleGeneral"]));
    assert!(info.contains("50 requests for 3.12 MiB became 800 pages"), "{info}");
}

#[test]
fn deleted_pages_miss_under_every_policy_and_in_the_machine() {
    let text = "id,op,ttl\na,get,60\nb,get,60\na,delete,0\na,get,0\nb,get,0\na,get,0\n";
    let directory = folder(&[("a.csv", text.as_bytes())]);
    let at = directory.path();
    let result = json(
        at,
        &[
            "replay",
            "a.csv",
            "--memory",
            "256KiB",
            "--policy",
            "fifo,lru,mru,clock,sieve,slru,lfu,lfu-da,lru-2,lru-k,mq,2q,arc,lirs,\
             clock-pro,qd-lp,s3-fifo,w-tinylfu,hyperbolic,lhd,lecar,cacheus,random,opt,classic@6.12,mglru@6.12",
        ],
    );
    let of = &result["traces"][0];
    for cell in of["cells"].as_array().unwrap() {
        assert_eq!(cell["misses"], 3, "{}", cell["policy"]);
    }
    assert_eq!((&of["requests"]["deletes"], &of["requests"]["with_ttl"]), (&1.into(), &2.into()));
    // Where the trace is read anew, as well.
    let streamed =
        json(at, &["replay", "a.csv", "--memory", "4KiB,8KiB", "--policy", "lru", "--trace-memory", "1B"]);
    assert_eq!(streamed["traces"][0]["cells"][1]["misses"], 3);
    let printed = check_success(&pageout(at, &["replay", "a.csv", "--memory", "256KiB"]));
    assert!(printed.contains("1 delete: the deleted pages leave memory"), "{printed}");
    assert!(printed.contains("2 requests with a time to live: expiry is not modelled"), "{printed}");
    let memory = ["replay", "a.csv", "--memory", "256KiB", "--policy", "lru,classic@6.12"];
    let anonymous = [&memory[..], &["--channel", "anonymous", "--swap", "zram"]].concat();
    let anonymous = check_success(&pageout(at, &anonymous));
    let mixed =
        "1 delete: textbook policies drop the deleted pages, anonymous memory of the machine keeps them";
    assert!(anonymous.contains(mixed), "{anonymous}");
    let memory = ["replay", "a.csv", "--memory", "256KiB", "--channel", "anonymous", "--swap", "zram"];
    let alone = check_success(&pageout(at, &memory));
    assert!(alone.contains("1 delete: anonymous memory keeps the deleted pages"), "{alone}");
    assert!(!alone.contains("leave memory"), "one sentence, not two that disagree: {alone}");
}

/// `u` and `v` share the ids; `v` deletes what only `u` reads. The last delete comes after all accesses.
const SHARED: &str = "ts,user,id,op\n0,u,a,get\n1,v,b,get\n2,u,a,get\n3,v,a,delete\n4,v,b,get\n5,u,a,get\n6,u,b,get\n7,u,b,delete\n";

#[test]
fn deletes_end_pages_of_all_tenants() {
    let directory = folder(&[("a.csv", SHARED.as_bytes())]);
    let policies = ["--policy", "lru,sieve,opt,classic@6.12,mglru@6.12", "--memory", "4MiB"];
    for timed in [&[][..], &["--timed", "--read", "csv.time_unit=s"]] {
        let asked = [&["replay", "a.csv", "--by", "user"], &policies[..], timed].concat();
        let result = json(directory.path(), &asked);
        for cell in result["traces"][0]["cells"].as_array().unwrap() {
            let figures: Vec<_> = cell["tenants"]
                .as_array()
                .unwrap()
                .iter()
                .map(|of| (of["tenant"].as_str(), of["misses"].as_u64(), of["misses_alone"].as_u64()))
                .collect();
            // Alone, `u` reads `b` from the device itself.
            let expected = [(Some("u"), Some(2), Some(3)), (Some("v"), Some(1), Some(1))];
            assert_eq!(figures, expected, "{} {timed:?}", cell["policy"]);
        }
        let printed = check_success(&pageout(directory.path(), &asked));
        assert!(printed.contains("2 deletes: the deleted pages leave memory"), "{printed}");
    }
}

#[test]
fn deletes_end_pages_in_an_open_loop() {
    let directory = folder(&[("a.csv", SHARED.as_bytes())]);
    let asked = [
        "replay",
        "a.csv",
        "--timed",
        "--read",
        "csv.time_unit=s",
        "--policy",
        "lru,opt,classic@6.12,mglru@6.12",
        "--memory",
        "4MiB",
    ];
    let result = json(directory.path(), &asked);
    for cell in result["traces"][0]["cells"].as_array().unwrap() {
        assert_eq!(cell["misses"], 3, "{}", cell["policy"]);
    }
    let printed = check_success(&pageout(directory.path(), &asked));
    assert!(printed.contains("2 deletes: the deleted pages leave memory"), "{printed}");
}

#[test]
fn column_that_multiplies_is_used_or_named() {
    let directory = folder(&[
        ("counted.csv", b"key,op,op_count\n7,GET,3\n8,SET,1\n7,GET,5\n"),
        ("named.csv", b"key,op,freq\n7,GET,3\n8,SET,1\n7,GET,5\n"),
    ]);
    let at = directory.path();
    let counted = info(at, "counted.csv", &[]);
    assert_eq!(
        (&counted["accesses"], &counted["distinct_pages"], &counted["writes"]),
        (&9.into(), &2.into(), &1.into())
    );
    let named = info(at, "named.csv", &[]);
    assert_eq!(named["accesses"], 3);
    assert!(named["doubts"][0].as_str().unwrap().contains("`freq` is ignored"), "{named}");
    assert_eq!(info(at, "named.csv", &["csv.count=freq"])["accesses"], 9);
    assert_eq!(info(at, "counted.csv", &["csv.count=\"\""])["accesses"], 3);
}

#[test]
fn operations_are_named_by_options_and_never_become_reads() {
    let rows = "key,op\n1,PEEK\n2,set\n2,delete\n1,get\n3,7\n";
    let directory = folder(&[("a.csv", rows.as_bytes())]);
    let at = directory.path();
    let refused = pageout(at, &["trace", "info", "a.csv"]);
    check_failure(
        &refused,
        2,
        &["found `PEEK`, expected one such as", "csv.op_read", "csv.skip_unknown_ops"],
    );
    assert!(!text(&refused.stderr).contains("csv.op = \"\""), "it would make reads of set and delete");
    let skipped = info(at, "a.csv", &["csv.skip_unknown_ops=true"]);
    assert_eq!(
        (&skipped["accesses"], &skipped["requests"]["skipped"], &skipped["requests"]["deletes"]),
        (&2.into(), &2.into(), &1.into())
    );
    assert_eq!(skipped["requests"]["skipped_by_operation"]["PEEK"], 1);
    let named = info(at, "a.csv", &["csv.op_read=PEEK", "csv.op_write=[7, \"set\"]"]);
    assert_eq!((&named["accesses"], &named["writes"]), (&4.into(), &2.into()));
    let named = info(at, "a.csv", &["csv.op_skip=[\"PEEK\", 7]"]);
    assert_eq!((&named["accesses"], &named["requests"]["skipped"]), (&2.into(), &2.into()));
    let twice =
        pageout(at, &["trace", "info", "a.csv", "--read", "csv.op_read=set", "--read", "csv.op_delete=set"]);
    check_failure(&twice, 2, &["`set` is in two of the lists"]);
}

#[test]
fn comment_lines_of_a_csv_are_skipped() {
    let directory = folder(&[
        ("above.csv", b"# a trace of the store, ops: [put 0, get 1], bytes\ntime,id,size\n# more\n1,a,10\n\n#1,b,10\n2,b,10\n"),
        ("header.csv", b"# time,id,size\n1,a,10\n2,b,10\n"),
        ("none.csv", b"# put 0, get 1\n1,0,a\n2,1,a\n"),
    ]);
    let at = directory.path();
    assert_eq!(info(at, "above.csv", &[])["accesses"], 2);
    assert_eq!(info(at, "header.csv", &[])["accesses"], 2);
    check_failure(&pageout(at, &["trace", "info", "none.csv"]), 2, &["set `csv.header = false`"]);
    let by_place =
        ["csv.header=false", "csv.time=#1", "csv.op=#2", "csv.id=#3", "csv.op_write=0", "csv.op_read=1"];
    let read = info(at, "none.csv", &by_place);
    assert_eq!((&read["accesses"], &read["writes"]), (&2.into(), &1.into()));
}

#[test]
fn units_that_do_not_fit_are_told() {
    let sectors = "sector,size\n0,100\n8,4096\n16,700\n";
    let offsets = "offset,size\n1001,4096\n1003,512\n77,8192\n";
    let sizes = "offset,size\n4096,8\n8192,16\n12288,8\n";
    let chain = "offset,size\n0,4096\n8,4096\n16,4096\n24,4096\n";
    let fine = "offset,size\n0,4096\n4096,4096\n65536,512\n";
    let files = [
        ("sectors.csv", sectors),
        ("offsets.csv", offsets),
        ("sizes.csv", sizes),
        ("chain.csv", chain),
        ("fine.csv", fine),
    ];
    let directory = folder(&files.map(|(name, text)| (name, text.as_bytes())));
    let at = directory.path();
    let doubts = |file: &str, read: &[&str]| info(at, file, read)["doubts"].to_string();
    assert!(doubts("sectors.csv", &[]).contains("2 of 3 sizes are not a multiple of 512, such as 100"));
    assert!(doubts("offsets.csv", &[]).contains("3 of 3 offsets are not a multiple of 512, such as 1001"));
    assert!(doubts("sizes.csv", &[]).contains("csv.size_unit = 512"));
    assert!(doubts("chain.csv", &[]).contains("requests are adjacent if offsets are sectors"));
    assert_eq!(doubts("fine.csv", &[]), "[]");
    assert_eq!(
        doubts("sectors.csv", &["csv.offset_unit=512", "csv.size_unit=1"]),
        "[]",
        "who says both is believed"
    );
    let late: String =
        (0..9_000).map(|at| format!("{},{}\n", at * 8, if at < 8_000 { 512 } else { 700 })).collect();
    std::fs::write(at.join("late.csv"), "sector,size\n".to_string() + &late).unwrap();
    for policy in ["lru", "classic@6.12"] {
        let replayed = pageout(at, &["replay", "late.csv", "--memory", "100%", "--policy", policy]);
        let told = text(&replayed.stderr);
        assert!(told.contains("1000 of 9000 sizes are not a multiple of 512"), "{policy}: {told}");
    }
    let replayed = pageout(at, &["replay", "sectors.csv", "--memory", "100%", "--policy", "lru"]);
    assert!(text(&replayed.stderr).contains("not a multiple of 512"), "{}", text(&replayed.stderr));
}

#[test]
fn blocks_and_counts_are_read_and_no_hint_makes_pages_of_times() {
    let lis = b"0 64 0 0\n64 64 0 1\n1024 8 0 2\n0 64 0 3\n";
    let directory = folder(&[("a.lis", lis), ("b.txt", b"1700000000,r,5\n1700000001,w,6\n"), ("c.dat", lis)]);
    let at = directory.path();
    let read = info(at, "a.lis", &[]);
    assert_eq!((&read["accesses"], &read["distinct_pages"]), (&200.into(), &136.into()));
    let forced = json(at, &["trace", "info", "c.dat", "--trace-format", "lis"]);
    assert_eq!(forced[0]["accesses"], 200);
    let hinted = pageout(at, &["trace", "info", "b.txt"]);
    check_failure(&hinted, 2, &["a time is not a page", "--trace-format lis"]);
    assert!(!text(&hinted.stderr).contains("csv.page=#1"), "the first column is a time");
}

#[test]
fn estimates_are_drawn_with_a_word_and_a_band() {
    let pages: Vec<u8> = (0..60_000u64).flat_map(|at| (at * at % 20_011).to_le_bytes()).collect();
    let directory = folder(&[("a.u64", &pages)]);
    let sampled = [
        "replay",
        "a.u64",
        "--policy",
        "lru,fifo",
        "--memory",
        "20%,40%,60%",
        "--sample",
        "0.2",
        "--report",
        "a.svg",
    ];
    check_success(&pageout(directory.path(), &sampled));
    let svg = std::fs::read_to_string(directory.path().join("a.svg")).unwrap();
    assert!(svg.contains("lru, estimated") && svg.contains("estimated from samples"), "{svg}");
    assert_eq!(svg.matches("<polygon").count(), 2, "a band a line");
}
