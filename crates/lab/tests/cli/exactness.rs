//! The textbook LRU, against numbers that others have computed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{check_success, pageout};

/// Real traces that are not part of the project: in `$PAGEOUT_SHARED`, or in `shared` beside it.
fn shared_trace(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("PAGEOUT_SHARED").map_or(beside, PathBuf::from);
    let trace = shared.join("traces").join(name);
    trace.canonicalize().ok()
}

/// Misses of libCacheSim 0.3.5's LRU, object size ignored, by objects that fit.
const LIBCACHESIM: &[(u64, u64)] = &[(512, 95_370), (8192, 87_470)];

#[test]
fn one_list_and_batches_of_one_miss_as_often_as_libcachesims_lru() {
    let Some(trace) = shared_trace("cloudphysics-w92.oracleGeneral.zst") else {
        eprintln!("skipped: the trace cloudphysics-w92.oracleGeneral.zst is not here");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let replay = ["replay", trace.to_str().unwrap(), "--ignore-size", "--policy", "lru", "--print-scenario"];
    let scenario = check_success(&pageout(directory.path(), &[&replay[..], &["--memory", "2MiB"]].concat()));
    fs::write(directory.path().join("lru.toml"), scenario).unwrap();
    for &(pages, misses) in LIBCACHESIM {
        let size = format!("memcg.0.memory.max={}KiB", pages * 4);
        let settings = [&size, "kernel.folio_batch=1", "kernel.charge_stock=1", "kernel.reclaim_batch=1"];
        let mut arguments = vec!["run", "lru.toml", "--json"];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        let result: Value =
            serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap();
        assert_eq!(result["tasks"][0]["major"], misses, "{pages} pages");
    }
}
