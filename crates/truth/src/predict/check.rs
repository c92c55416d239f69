//! The commands by which someone with a kernel finds out whether a prediction is right.
//!
//! Commands that set up the scenario's machine and make the accesses. Comments replace the commands that are not possible.

use std::fmt::Write;
use std::path::Path;

use pageout_sim::scenario::{Advice, Channel, FileKind, PAGE_SIZE, Scalar, Scenario, Size, SwapKind, Task};

use super::Column;
use super::accesses::{is_of_files, name_of};

/// Commands of the first column, and of the others what differs from it.
pub(super) fn text(columns: &[Column], accesses: Option<&Path>, written: &[String]) -> String {
    let (first, others) = columns.split_first().expect("there is a column");
    let base = commands(&first.variant.scenario, accesses);
    let mut text = match columns.len() {
        1 => "As root, with cgroup v2:\n\n".to_string(),
        _ => format!("As root, with cgroup v2, for `{}`:\n\n", first.variant.label),
    };
    let _ = write!(text, "```sh\n{}\n```\n", base.join("\n"));
    for other in others {
        let commands = commands(&other.variant.scenario, accesses);
        let own: Vec<String> = commands.into_iter().filter(|line| !base.contains(line)).collect();
        let _ = match own.is_empty() {
            true => write!(text, "\nFor `{}` the same.\n", other.variant.label),
            false => write!(
                text,
                "\nFor `{}` replace the differing commands by:\n\n```sh\n{}\n```\n",
                other.variant.label,
                own.join("\n")
            ),
        };
    }
    if written.is_empty() {
        text += "\n`pageout predict FILE --accesses DIR` writes the access files that these commands use.\n";
    }
    text
}

fn commands(scenario: &Scenario, accesses: Option<&Path>) -> Vec<String> {
    let mut lines = Vec::new();
    kernel(scenario, &mut lines);
    memory(scenario, &mut lines);
    groups(scenario, &mut lines);
    lines.push("echo 3 > /proc/sys/vm/drop_caches".to_string());
    lines.push("cat /proc/vmstat > before".to_string());
    let directory = accesses.map_or_else(|| "DIR".to_string(), |directory| directory.display().to_string());
    for task in &scenario.task {
        run(scenario, task, &directory, &mut lines);
    }
    if !scenario.event.is_empty() {
        lines.push(format!(
            "# make the scenario's events ({}) during the run, each at its time",
            scenario.event.len()
        ));
    }
    lines.push("cat /proc/vmstat > after; pageout diff before after".to_string());
    let groups = scenario.memcg.iter().map(|group| group.path.as_str());
    lines.extend(groups.map(|path| format!("cat {}", file_of(path, "memory.stat"))));
    lines
}

fn kernel(scenario: &Scenario, lines: &mut Vec<String>) {
    let name = scenario.kernel.name();
    let (lists, version) = name.split_once('@').unwrap_or((name.as_str(), "a kernel with these rules"));
    let memory: u64 = scenario.machine.node_sizes().into_iter().map(|size| size.0).sum();
    let switch = |key: &str| scenario.kernel.switches.get(key).map(shown);
    let mut boot = vec![format!("mem={}", memory), format!("maxcpus={}", scenario.machine.cpus)];
    if switch("memcg.kmem").as_deref() == Some("false") {
        boot.push("cgroup.memory=nokmem".to_string());
    }
    let huge = switch("transparent_hugepage").unwrap_or_else(|| "never".to_string());
    boot.push(format!("transparent_hugepage={huge}"));
    lines.push(format!("uname -r    # {version}, booted with {}", boot.join(" ")));
    match lists {
        // Kernels before 6.1, and those built without MGLRU, have no such file.
        "classic" => {
            const FILE: &str = "/sys/kernel/mm/lru_gen/enabled";
            lines.push(format!("[ ! -e {FILE} ] || echo 0 > {FILE}"));
        }
        "mglru" => lines.push("echo 7 > /sys/kernel/mm/lru_gen/enabled".to_string()),
        other => lines.push(format!("# no kernel has the rules of {other}")),
    }
    if let Some(bytes) = switch("fault_around_bytes") {
        lines.push(format!("echo {} > /sys/kernel/debug/fault_around_bytes", in_bytes(&bytes)));
    }
    for (key, value) in scenario.kernel.switches.iter() {
        if !["memcg.kmem", "transparent_hugepage", "fault_around_bytes"].contains(&key) {
            lines
                .push(format!("# kernel.{key} = {value}: not a kernel setting, so change the kernel source"));
        }
    }
    for (key, value) in scenario.sysctl.iter() {
        lines.push(format!("sysctl -w {key}={}", shown(value)));
    }
    for (device, kb) in scenario.readahead() {
        lines.push(format!(
            "echo {kb} > /sys/class/bdi/$(mountpoint -d /mnt)/read_ahead_kb    # of {device}, the disk below /mnt"
        ));
    }
}

fn memory(scenario: &Scenario, lines: &mut Vec<String>) {
    let zrams = scenario.swap.iter().filter(|swap| swap.kind == SwapKind::Zram).count();
    let mut next = 0..zrams;
    for (at, swap) in scenario.swap.iter().enumerate() {
        let bytes = swap.size.0;
        lines.push(match (swap.kind, next.clone().next()) {
            (SwapKind::Zram, Some(zram)) => {
                next.next();
                format!(
                    "modprobe zram num_devices={zrams}; echo {bytes} > /sys/block/zram{zram}/disksize && mkswap /dev/zram{zram} && \
                     swapon /dev/zram{zram}"
                )
            }
            _ => {
                let file = format!("/mnt/swap{at}");
                format!(
                    "fallocate -l {bytes} {file} && chmod 600 {file} && mkswap {file} && swapon {file}    # or a disk of this size"
                )
            }
        });
    }
    let mut paths: Vec<(String, u64)> = Vec::new();
    for task in &scenario.task {
        for (at, object) in task.object.iter().enumerate() {
            let pages = scenario.files().object_pages(object);
            let path = path_of(scenario, task, at);
            if let Some(pages) = pages.filter(|_| object.channel != Channel::Anonymous)
                && paths.iter().all(|(known, _)| *known != path)
            {
                paths.push((path, pages));
            }
        }
    }
    lines.extend(
        paths.into_iter().map(|(path, pages)| format!("head -c {} /dev/urandom > {path}", pages * PAGE_SIZE)),
    );
}

fn groups(scenario: &Scenario, lines: &mut Vec<String>) {
    for group in &scenario.memcg {
        lines.push(format!("mkdir -p /sys/fs/cgroup{}", group.path));
        for (key, value) in group.files.iter() {
            lines.push(format!("echo {} > {}", in_bytes(&shown(value)), file_of(&group.path, key)));
        }
    }
}

fn run(scenario: &Scenario, task: &Task, directory: &str, lines: &mut Vec<String>) {
    let accesses = format!("{directory}/{}", name_of(task));
    let join = format!("echo $$ > {}", file_of(&task.memcg, "cgroup.procs"));
    if !is_of_files(task) {
        let sizes = task.object.iter().enumerate().map(|(at, object)| {
            let pages = scenario.files().object_pages(object);
            format!(
                "{at} {} of {} pages",
                object.channel.name(),
                pages.map_or("?".to_string(), |pages| pages.to_string())
            )
        });
        lines.push(format!(
            "# {}: a custom program in {} makes the accesses of {accesses}; objects: {}",
            task.name,
            task.memcg,
            sizes.collect::<Vec<_>>().join(", ")
        ));
    } else {
        let is_mapped = task.object.iter().any(|object| object.channel == Channel::Mapped);
        let engine = if is_mapped { "mmap" } else { "psync" };
        let advice = match task.object.first().map_or(Advice::Normal, |object| object.advice) {
            Advice::Random => " --fadvise_hint=random",
            Advice::Sequential => " --fadvise_hint=sequential",
            _ => " --fadvise_hint=0",
        };
        lines.push(format!(
            "sh -c '{join}; exec fio --name={} --ioengine={engine}{advice} --invalidate=0 --read_iolog={accesses}'",
            task.name
        ));
    }
    let others = [
        (task.copies > 1, format!("{} of it at the same time", task.copies)),
        (task.loops > 1, format!("{} times over", task.loops)),
        (task.think_time.0 > 0, format!("{} between two accesses", task.think_time)),
        (task.after.is_some(), format!("when {} is done", task.after.as_deref().unwrap_or_default())),
        (task.background, "until the others are done".to_string()),
    ];
    let others: Vec<String> = others.into_iter().filter_map(|(is_so, text)| is_so.then_some(text)).collect();
    if !others.is_empty() {
        lines.push(format!("# {}: {}", task.name, others.join(", ")));
    }
}

/// Where the file behind an object is on the machine of who checks.
pub(super) fn path_of(scenario: &Scenario, task: &Task, at: usize) -> String {
    let object = &task.object[at];
    let file = object.file.as_ref().and_then(|name| scenario.file.iter().find(|file| file.name == *name));
    let is_tmpfs = object.channel == Channel::Tmpfs || file.is_some_and(|file| file.kind == FileKind::Tmpfs);
    let name = object.file.clone().unwrap_or_else(|| format!("{}-{at}", task.name));
    format!("{}/{name}", if is_tmpfs { "/dev/shm" } else { "/mnt" })
}

fn file_of(group: &str, file: &str) -> String {
    format!("/sys/fs/cgroup{}/{file}", if group == "/" { "" } else { group })
}

fn shown(value: &Scalar) -> String {
    value.to_string().trim_matches('"').to_string()
}

/// A size in the kernel's form; other values unchanged.
fn in_bytes(value: &str) -> String {
    let is_size = value.chars().any(char::is_alphabetic);
    value
        .parse::<Size>()
        .ok()
        .filter(|_| is_size)
        .map_or_else(|| value.to_string(), |size| size.0.to_string())
}
