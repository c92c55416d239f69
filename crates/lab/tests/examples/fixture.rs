//! A folder in which every example finds what it names: scenarios, traces, recordings and dumps, all small.

use std::fs;
use std::path::{Path, PathBuf};

use super::{call, manifest};

/// A scenario with all that examples set, and the file `data.db`.
const WEB: &str = r#"question = "Does it run?"
[machine]
memory = "512MiB"
page_stands_for = 2
[[device]]
name = "disk"
preset = "nvme"
[[swap]]
kind = "disk"
size = "16MiB"
[[memcg]]
path = "/web"
memory.max = "2MiB"
[[file]]
name = "data.db"
size = "8MiB"
[[task]]
name = "reader"
memcg = "/web"
[[task.object]]
channel = "file"
file = "data.db"
workload = { pattern = "zipf", alpha = 0.9, ops = 3000 }
"#;

const PLAN: &str = r#"
traces = ["traces/*.u32"]
policy = ["lru", "classic@6.12"]
memory = ["20%..100%/4"]
"#;

const CHAPTER_OF_ONE: &str = "scenarios/chapters/zswap-lru.toml";

/// Generations of two groups, as `lru_gen` shows them.
fn dump() -> String {
    let mut text = String::new();
    for (id, path) in [(1, "/"), (29, "/web")] {
        text += &format!("memcg {id:5} {path}\n node     0\n");
        for (at, age) in (7..).zip([900_000, 300_000, 100_000, 20_000]) {
            text += &format!(" {at:10} {age:10} {:10}  {:10} \n", 5_000, 8_000);
        }
    }
    text
}

/// Reads in the kernel's text, with reclaim and a call of direct reclaim.
fn ftrace() -> String {
    let mut text = "# tracer: nop\n".to_string();
    for at in 0..900_u32 {
        let (time, from) = (1.0 + f64::from(at) / 1000.0, at % 450 * 4096);
        text += &format!(
            "  dd-7 [001] ..... {time:.6}: mm_filemap_get_pages: dev=254:0 ino=1f ofs={from}-{}\n",
            from + 4095
        );
    }
    text + "  dd-7 [001] ..... 2.000000: mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL\n\
              dd-7 [001] ..... 2.000500: mm_vmscan_direct_reclaim_end: nr_reclaimed=32\n"
}

/// `/proc/vmstat` with some reclaim by a task.
fn vmstat(reclaimed: u32) -> String {
    let mut text = "nr_free_pages 1000\n".to_string();
    for (name, value) in [
        ("pgscan_kswapd", 0),
        ("pgscan_direct", reclaimed),
        ("pgscan_khugepaged", 0),
        ("pgscan_anon", 0),
        ("pgscan_file", reclaimed),
        ("pgsteal_kswapd", 0),
        ("pgsteal_direct", reclaimed),
        ("pgsteal_khugepaged", 0),
        ("pgsteal_anon", 0),
        ("pgsteal_file", reclaimed),
    ] {
        text += &format!("{name} {value}\n");
    }
    text
}

fn pages() -> Vec<u32> {
    (0..4_000_u32).map(|at| (at ^ (at >> 5)).wrapping_mul(2_654_435_761) >> (19 + at % 3)).collect()
}

/// Records of 24 bytes: time, id, size, next access.
fn oracle_general() -> Vec<u8> {
    let record = |(at, page): (usize, u32)| {
        let mut record = (at as u32).to_le_bytes().to_vec();
        record.extend(u64::from(page).to_le_bytes());
        record.extend(4096_u32.to_le_bytes());
        record.extend((-1_i64).to_le_bytes());
        record
    };
    pages().into_iter().enumerate().flat_map(record).collect()
}

/// What `damo record` writes, of one snapshot.
const DAMO: &str = r#"[{"target_id": 0, "intervals": {"sample_us": 5000, "aggr_us": 100000, "ops_update_us": 1000000},
    "snapshots": [{"start_time": 1000000000, "end_time": 1100000000, "regions": [
        {"start": 1048576, "end": 2097152, "nr_accesses": {"samples": 5, "percent": null}, "age": {"usec": null, "aggr_intervals": 3}}]}]}]"#;

/// Makes the folder.
pub(crate) fn make(root: &Path) {
    let write = |name: &str, bytes: &[u8]| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let repository = manifest().join("../..");
    for folder in ["scenarios", "ground-truth"] {
        std::os::unix::fs::symlink(repository.join(folder), root.join(folder)).unwrap();
    }
    write("damon.data", DAMO.as_bytes());
    write("web.toml", WEB.as_bytes());
    write("mine.toml", WEB.as_bytes());
    write("loop.toml", &fs::read(repository.join("scenarios/predictions/02-loop-limit.toml")).unwrap());
    write("my/chapter.toml", &fs::read(repository.join(CHAPTER_OF_ONE)).unwrap());
    std::os::unix::fs::symlink(repository.join("scenarios/zswap-lru"), root.join("zswap-lru")).unwrap();
    write("plan.toml", PLAN.as_bytes());
    let words: Vec<u8> = pages().into_iter().flat_map(u32::to_le_bytes).collect();
    for name in ["traces/a.u32", "traces/b.u32", "pages.u32"] {
        write(name, &words);
    }
    write("w92.oracleGeneral.zst", &zstd::encode_all(&oracle_general()[..], 1).unwrap());
    let mut requests = "time,op,offset,size,volume\n".to_string();
    let mut blocks = "time,op,key,lba,bytes\n".to_string();
    let (mut msr, mut alibaba) = (String::new(), String::new());
    for (at, page) in pages().into_iter().enumerate() {
        let offset = u64::from(page) * 4096;
        requests += &format!("{at},read,{offset},4096,vol{}\n", page % 2);
        blocks += &format!("{at},read,{page},{},4096\n", page * 8);
        msr += &format!("{},prxy,0,Read,{offset},4096,100\n", 128_166_372_000_000_000 + at * 10_000);
        alibaba += &format!("1,R,{offset},4096,{}\n", 1_577_808_000_000_000 + at);
    }
    write("io.csv", requests.as_bytes());
    write("mytrace.csv", requests.as_bytes());
    write("blocks.csv", blocks.as_bytes());
    write("prxy_0.csv", msr.as_bytes());
    write("io_traces.csv", alibaba.as_bytes());
    write("data.bin", &vec![3; 32 << 20]);
    write("segment.bin", &vec![5; 4 << 20]);
    write("dump.rdb", &words);
    for name in ["web1@10:00.lru_gen", "web1@10:05.lru_gen", "fleet/web1.lru_gen", "fleet/db1.lru_gen"] {
        write(name, dump().as_bytes());
    }
    write("trace.txt", ftrace().as_bytes());
    write("before.txt", ftrace().as_bytes());
    write("after.txt.zst", &zstd::encode_all(ftrace().as_bytes(), 1).unwrap());
    write("before", vmstat(1_000).as_bytes());
    write("after", vmstat(9_000).as_bytes());
    write("blk.txt", b"8,0 1 1 0.000000000 7 Q R 2048 + 8 [dd]\n8,0 1 2 0.000100000 7 Q R 2056 + 8 [dd]\n");
    write("mem.txt", b"==7== Lackey\nI  04001000,3\n L 1ffeffe7e0,8\n S 1ffeffe7e8,8\n");
    write("bpf.txt", b"7 read a.db 0 4096\n7 read a.db 4096 4096\n");
    write("run-queries", b"#!/bin/sh\ncat web.toml > queried\n");
    for name in ["rec", "rec-2", "rec-3"] {
        for entry in fs::read_dir(manifest().join("tests/fixtures/twin/reads")).unwrap() {
            let entry = entry.unwrap();
            write(
                &format!("{name}/{}", entry.file_name().to_string_lossy()),
                &fs::read(entry.path()).unwrap(),
            );
        }
    }
    for name in ["a.pgt", "b.pgt", "c.pgt", "requests.pgt"] {
        let called = call(root, &["trace", "convert", "pages.u32", name], None);
        assert!(called.failure.is_none(), "{:?}", called.failure);
    }
    fs::create_dir_all(root.join("bin")).unwrap();
    std::os::unix::fs::symlink(super::binary(), root.join("bin/pageout")).unwrap();
    let called = call(root, &["sweep", "plan.toml", "--into", "made/results"], None);
    assert!(called.failure.is_none(), "{:?}", called.failure);
}

/// A folder for the examples of one text: what they name, as links, so that what they write is its own.
pub(crate) fn scratch(root: &Path) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let here = directory.path().join("here");
    fs::create_dir(&here).unwrap();
    for entry in fs::read_dir(root).unwrap().map(|entry| entry.unwrap()) {
        let (from, to) = (entry.path(), here.join(entry.file_name()));
        // What a line writes under such a name is no other's.
        match entry.file_type().unwrap().is_file() {
            true => _ = fs::copy(from, to).unwrap(),
            false => std::os::unix::fs::symlink(from, to).unwrap(),
        }
    }
    // `../before` is another build's checkout, `~` a home.
    let built = directory.path().join("before/target/release");
    fs::create_dir_all(&built).unwrap();
    std::os::unix::fs::symlink(super::binary(), built.join("pageout")).unwrap();
    fs::create_dir_all(here.join("src")).unwrap();
    std::os::unix::fs::symlink(manifest().join("../.."), here.join("src/pageout")).unwrap();
    (directory, here)
}
