//! The textbook policies, against numbers that others have computed.

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

/// Misses of libCacheSim 0.3.5, object size ignored, by objects that fit; see `docs/results/data/fidelity.md`.
const LIBCACHESIM: &[(&str, &[(u64, u64)])] =
    &[("lru", &[(512, 95_370), (8192, 87_470)]), ("sieve", &[(512, 94_367), (8192, 84_376)])];

#[test]
fn with_batches_of_one_lru_and_sieve_miss_as_often_as_libcachesims() {
    let Some(trace) = shared_trace("cloudphysics-w92.oracleGeneral.zst") else {
        eprintln!("skipped: the trace cloudphysics-w92.oracleGeneral.zst is not here");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let replay =
        ["replay", trace.to_str().unwrap(), "--ignore-size", "--read-ahead-kb", "0", "--print-scenario"];
    let scenario = check_success(&pageout(directory.path(), &[&replay[..], &["--memory", "2MiB"]].concat()));
    fs::write(directory.path().join("trace.toml"), scenario).unwrap();
    for &(policy, curve) in LIBCACHESIM {
        let profile = format!("kernel.profile={policy}");
        for &(pages, misses) in curve {
            let size = format!("memcg.0.memory.max={}KiB", pages * 4);
            let settings =
                [&profile, &size, "kernel.folio_batch=1", "kernel.charge_stock=1", "kernel.reclaim_batch=1"];
            let mut arguments = vec!["run", "trace.toml", "--json"];
            settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
            let result: Value =
                serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap();
            assert_eq!(result["tasks"][0]["read_misses_io"], misses, "{policy}, {pages} pages");
        }
    }
}
