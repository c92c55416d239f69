//! The price of an access: by its node, whatever else the machine has.

use crate::{check_success, pageout, with_scenario};

/// Eight CPUs, which together can load ordinary memory.
const LOADED: &str = r#"
[machine]
cpus = 8
NODES

[[task]]
name = "db"
threads = 8

[[task.object]]
channel = "anonymous"
size = "32MiB"
workload = { pattern = "zipf", alpha = 0.9, ops = 12_000, write_ratio = 0.1 }

[[task]]
name = "reader"
threads = 4

[[task.object]]
channel = "file"
size = "16MiB"
request_size = "64KiB"
workload = { pattern = "uniform", ops = 1_500 }
"#;

/// How long the workload takes on these nodes.
fn runtime(nodes: &str, settings: &[&str]) -> u64 {
    let directory = with_scenario(&LOADED.replace("NODES", nodes));
    let arguments = settings.iter().flat_map(|setting| ["--set", setting]);
    let arguments: Vec<&str> = ["run", "scenario.toml", "--json"].into_iter().chain(arguments).collect();
    let run: serde_json::Value =
        serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap();
    run["end_ns"].as_u64().unwrap()
}

/// However the machine is written, what its pages stand for, and whatever the other node is.
#[test]
fn a_node_that_nobody_touches_changes_nothing() {
    let node = "[[machine.node]]\nmemory = \"512MiB\"\ncpus = 8\n";
    for costs in ["xeon-vm", "server-2025"] {
        for stands_for in [1, 1024] {
            let costs = format!("machine.costs={costs}");
            let stands_for = format!("machine.page_stands_for={stands_for}");
            let settings = [costs.as_str(), &stands_for];
            let alone = runtime("memory = \"512MiB\"", &settings);
            assert_eq!(alone, runtime(node, &settings), "{settings:?}");
            for preset in ["dram", "remote-socket", "cxl-1.1", "cxl-2.0-switch", "pmem"] {
                let other = format!("{node}[[machine.node]]\nmemory = \"64MiB\"\npreset = \"{preset}\"\n");
                assert_eq!(alone, runtime(&other, &settings), "{preset} {settings:?}");
            }
        }
    }
}

/// A second socket whose memory and CPUs are idle, beside slower memory or not.
#[test]
fn two_sockets_cost_the_same_with_slower_memory_that_nobody_touches() {
    let sockets = "[[machine.node]]\nmemory = \"256MiB\"\ncpus = 4\n".repeat(2);
    let beside = format!("{sockets}[[machine.node]]\nmemory = \"64MiB\"\npreset = \"cxl-1.1\"\n");
    assert_eq!(runtime(&sockets, &[]), runtime(&beside, &[]));
}

/// What all CPUs ask for is more than a node of this bandwidth gives: it takes as long as that gives it, alone and beside another.
#[test]
fn ordinary_memory_has_a_bandwidth_too() {
    let node = |bandwidth: &str| {
        format!(
            "[[machine.node]]\nmemory = \"512MiB\"\ncpus = 8\nread_bandwidth = \"{bandwidth}\"\nwrite_bandwidth = \"{bandwidth}\"\n"
        )
    };
    let idle = runtime(&node("307GB/s"), &[]);
    let busy = runtime(&node("1GB/s"), &[]);
    assert!(busy > 2 * idle, "{busy} {idle}");
    let beside = format!("{}[[machine.node]]\nmemory = \"64MiB\"\npreset = \"cxl-1.1\"\n", node("1GB/s"));
    assert_eq!(busy, runtime(&beside, &[]));
}
