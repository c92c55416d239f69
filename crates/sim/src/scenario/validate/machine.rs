//! Checks of `[machine]`, `[kernel]`, `[sysctl]` and `[[memcg]]`: sizes, tiers, sockets, and settings that need each other.

use std::collections::BTreeSet;

use pageout_engine::{CGROUP_FILES, CgroupFile, Kernel, NodeId, PghotQuirks, Policy, Profile, RecordSize};

use super::{Check, LIMIT_PAGES_MIN, Problem};
use crate::scenario::keys::Limit;

use crate::scenario::memcg::{GROUPS_MAX, PATH_MAX};
use crate::scenario::{Node, Scalar, Scenario, Size, TimeSpan};

/// Bytes that are too many for a machine.
const MEMORY_END: u64 = 16 << 40;
/// A pageblock.
const BLOCK: u64 = 2 << 20;

/// What turns klruscand on.
const PGTSCANS: &str = "sysctl.vm.pghot_record_pgtscans_enable";

/// The version of cgroups.
const VERSION: &str = "memcg.cgroup_version";

impl Check<'_> {
    /// A slice begins with the switch to its task. If it is no longer than the switch, the task gives way before it has done anything, and so does the
    /// next one.
    fn timeslice(&mut self) {
        let machine = &self.scenario.machine;
        // A table that can't be read is reported with its own key.
        let Ok(costs) = self.scenario.costs() else { return };
        let switch = TimeSpan(costs.context_switch);
        if machine.timeslice <= switch {
            let problem =
                format!("{} is shorter than a switch of tasks, which takes {switch}", machine.timeslice);
            self.report(
                Problem::new("machine.timeslice", problem)
                    .help("it must be longer than machine.price.context_switch"),
            );
        }
    }

    pub(super) fn machine(&mut self) {
        let machine = &self.scenario.machine;
        self.ranges("machine.", machine);
        self.settings("machine.price", &machine.price);
        self.timeslice();
        if let (Some(_), false) = (machine.memory, machine.node.is_empty()) {
            let problem = Problem::new(
                "machine.memory",
                "both `machine.memory` and [[machine.node]] define the memory",
            );
            self.report(problem.help("keep one of the two"));
        }
        for (index, node) in machine.node.iter().enumerate() {
            self.ranges(&format!("machine.node[{index}]."), node);
            if node.movable > node.memory {
                let (movable, memory) = (node.movable, node.memory);
                let problem = format!("{movable} of zone Movable exceed the {memory} of the node");
                self.report(Problem::new(format!("machine.node[{index}].movable"), problem));
            }
            let blocks = node.memory.0.saturating_sub(node.movable.0) / BLOCK;
            if node.unmovable_blocks > 0 && node.memory.0 > Node::BLOCKS_MAX * BLOCK {
                let problem = format!("a node of {} is too large for scattered unmovable pages", node.memory);
                let problem = Problem::new(format!("machine.node[{index}].unmovable_blocks"), problem);
                let largest = Size(Node::BLOCKS_MAX * BLOCK);
                self.report(
                    problem.help(format!("each page of the node then has a record; the limit is {largest}")),
                );
            } else if node.unmovable_blocks > blocks {
                let problem = format!(
                    "{} blocks of 2 MiB exceed the {blocks} that the kernel may use of the node",
                    node.unmovable_blocks
                );
                self.report(Problem::new(format!("machine.node[{index}].unmovable_blocks"), problem));
            }
        }
        // More than frames are numbered: 2^32 pages, without what keeps nodes apart.
        let all: u64 = machine.node.iter().map(|node| node.memory.0.saturating_add(node.reserved.0)).sum();
        if all >= MEMORY_END {
            let largest =
                (0..machine.node.len()).max_by_key(|&index| machine.node[index].memory.0).unwrap_or(0);
            let problem =
                format!("all nodes together have {}, but a machine must have less than 16TiB", Size(all));
            self.report(Problem::new(format!("machine.node[{largest}].memory"), problem));
        }
        self.node_cpus();
        self.distances();
        self.sockets();
        self.ranges("machine.hints.", &machine.hints);
        for key in machine.hints.useless() {
            let message =
                format!("`{key}`: hardware of the class {} has no such figure", machine.hints.preset);
            let help =
                "processors that sample (ibs, pebs) have a period; memory that counts (cxl-hmu) has counters";
            self.report(Problem::new(format!("machine.hints.{key}"), message).help(help));
        }
        if let Some(unit) = machine.hints.unit
            && !unit.0.is_power_of_two()
        {
            self.report(Problem::new("machine.hints.unit", format!("{unit} is not a power of two")));
        }
        let first = machine.node_sizes()[0];
        if machine.init_memory.0 > 0 && machine.init_memory >= first {
            let problem = format!("{} are the complete {first} of the first node", machine.init_memory);
            self.report(
                Problem::new("machine.init_memory", problem).help("a kernel frees some hundred pages"),
            );
        }
        if machine.tlb_entries > 0 && !machine.tlb_entries.is_power_of_two() {
            let problem = format!("{} is not a power of two", machine.tlb_entries);
            self.report(Problem::new("machine.tlb_entries", problem));
        }
    }

    /// Nodes have no processors that the machine lacks.
    fn node_cpus(&mut self) {
        let machine = &self.scenario.machine;
        let mut of_nodes = 0;
        for (at, node) in machine.node.iter().enumerate() {
            of_nodes += u64::from(node.cpus.unwrap_or(0));
            if of_nodes > u64::from(machine.cpus) {
                let cpus = machine.cpus;
                let message =
                    format!("the nodes up to here have {of_nodes} processors, and machine.cpus is {cpus}");
                let problem = Problem::new(format!("machine.node[{at}].cpus"), message);
                let help = "set machine.cpus to those of all nodes together, or give this node fewer";
                return self.report(problem.help(help));
            }
        }
    }

    /// A row of distances has a number for each node: 10 to itself, and more to others.
    fn distances(&mut self) {
        let machine = &self.scenario.machine;
        let rows = machine.node.iter().enumerate().filter(|(_, node)| !node.distances.is_empty());
        let wrong = rows.filter_map(|(at, node)| {
            let of = &node.distances;
            let is_right = |to: usize, far: u8| if to == at { far == 10 } else { (11..=254).contains(&far) };
            let message = if of.len() != machine.node.len() {
                format!(
                    "found {} distances, expected one for each of the {} nodes",
                    of.len(),
                    machine.node.len()
                )
            } else if let Some((to, far)) = of.iter().enumerate().find(|&(to, &far)| !is_right(to, far)) {
                format!("found distance {far} to node {to}")
            } else if node.distance != Node::DISTANCE {
                "`distance` is given, too, for the same purpose".to_string()
            } else {
                return None;
            };
            Some(Problem::new(format!("machine.node[{at}].distances"), format!("`distances`: {message}")))
        });
        for problem in wrong.collect::<Vec<_>>() {
            let help = "give one number per node, in their order: 10 for the node itself, 11 to 254 for others, such as `distances = [10, 32, 50]`";
            self.report(problem.help(help));
        }
    }

    /// Settings of the link between sockets need two sockets.
    fn sockets(&mut self) {
        let machine = &self.scenario.machine;
        let given = [
            ("remote_latency", machine.remote_latency.is_some()),
            ("remote_bandwidth", machine.remote_bandwidth.is_some()),
        ];
        for (key, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
            let at = format!("machine.{key}");
            if machine.sockets() < 2 {
                let message = format!("`{key}`: fewer than two nodes of this machine have processors");
                let help = "give two [[machine.node]] cpus, or leave it out";
                self.report(Problem::new(at, message).help(help));
            } else if key == "remote_bandwidth" && machine.links().is_none() {
                let message = "`remote_bandwidth` has no effect if remote_latency is 0s";
                self.report(
                    Problem::new(at, message)
                        .help("leave remote_latency at its 62ns, or give one that is not 0s"),
                );
            }
        }
    }

    pub(super) fn kernel(&mut self) {
        self.ranges("kernel.", &self.scenario.kernel);
        self.version();
        self.settings("kernel", &self.scenario.kernel.switches);
        self.settings("sysctl", &self.scenario.sysctl);
        self.damon_modules();
        self.scan_periods();
        self.tiers();
    }

    /// A version takes the place of a profile that is one, too; what no version has can't have one.
    fn version(&mut self) {
        let kernel = &self.scenario.kernel;
        let key = match (&kernel.version, &kernel.lists) {
            (Some(_), _) => "kernel.version",
            (None, Some(_)) => "kernel.lists",
            (None, None) => return,
        };
        let is_version = Profile::by_name(&kernel.profile).is_none_or(Profile::is_version);
        if !is_version {
            let problem = format!("`{}` (kernel.profile) is not a kernel version", kernel.profile);
            self.report(Problem::new(key, problem).help("keep one of the two"));
        } else if self.problems.is_empty()
            && let Some(why) =
                Kernel::parse(&kernel.name()).is_none().then(|| Kernel::why_not(&kernel.name())).flatten()
        {
            self.report(Problem::new(key, why).help("kernel.lists = \"classic\" is the classic LRU"));
        }
    }

    /// The target of hot pages without a known user must be a node of the top tier.
    pub(super) fn promotion_target(&mut self, key: &str, value: &Scalar) {
        let (Ok(node), Ok(tiers)) = (value.to_string().parse::<u8>(), self.scenario.machine.tiers()) else {
            return;
        };
        let problem = match usize::from(node) < self.scenario.machine.node_sizes().len() {
            false => Problem::new(key, format!("there is no node {node}")),
            true if !tiers.is_promotion_target(NodeId(node)) => {
                Problem::new(key, format!("node {node} is of a lower tier, and nothing is promoted to it"))
            }
            true => return,
        };
        self.report(problem.help(format!("nodes of the top tier: {}", tiers.promotion_targets())));
    }

    /// The third posting of hot-page tracking knows one size of records.
    fn posted_record(&mut self) {
        let Ok(config) = self.scenario.config() else { return };
        if config.pghot_quirks == PghotQuirks::V3 && config.pghot_record != RecordSize::U64 {
            let message = "the third posting has records of 8 bytes, and so have its bugs";
            let is_given = self.scenario.kernel.switches.get("pghot.record").is_some();
            let key = if is_given { "kernel.pghot.record" } else { "kernel.pghot.quirks" };
            let problem = Problem::new(key, message);
            self.report(problem.help("set kernel.pghot.record = \"u64\""));
        }
    }

    /// The period of scans begins at its minimum, and ends at its maximum.
    fn scan_periods(&mut self) {
        const MIN: &str = "sched.numa_balancing.scan_period_min_ms";
        const MAX: &str = "sched.numa_balancing.scan_period_max_ms";
        let Ok(config) = self.scenario.config() else { return };
        let (min, max) = (config.scan_period_min_ms, config.scan_period_max_ms);
        if self.problems.is_empty() && min > max {
            let is_given = self.scenario.kernel.switches.get(MAX).is_some();
            let message = format!("`{MAX}`: found {max}, expected at least {min}, which is `{MIN}`");
            let problem = Problem::new(format!("kernel.{}", if is_given { MAX } else { MIN }), message);
            self.report(problem.help(format!("raise `kernel.{MAX}`, or lower `kernel.{MIN}`")));
        }
    }

    /// Mechanisms that move pages between tiers need two tiers.
    fn tiers(&mut self) {
        let Scenario { machine, kernel, sysctl, .. } = self.scenario;
        let is_true = |value: &Scalar| matches!(value, Scalar::Bool(true));
        let listens = |name: &str| sysctl.get(name).is_some_and(|value| value.to_string() == "1");
        let is_on = |name: &str| kernel.switches.get(name).is_some_and(is_true);
        let asked = [
            ("kernel.numa.demotion_enabled", is_on("numa.demotion_enabled")),
            ("kernel.numa.pagecache_promotion_enabled", is_on("numa.pagecache_promotion_enabled")),
            ("sysctl.kernel.numa_balancing", self.scenario.balances_tiers_only()),
            ("sysctl.vm.pghot_record_hwhints_enable", listens("vm.pghot_record_hwhints_enable")),
            (PGTSCANS, listens("vm.pghot_record_pgtscans_enable")),
            ("sysctl.vm.pghot_record_hintfaults_enable", listens("vm.pghot_record_hintfaults_enable")),
            ("sysctl.vm.pghot_record_fma_enable", listens("vm.pghot_record_fma_enable")),
        ];
        if listens("vm.pghot_record_pgtscans_enable") && !self.walks_page_tables() {
            let problem =
                Problem::new(PGTSCANS, "no group of this scenario has a policy that walks page tables");
            self.report(problem.help("klruscand needs MGLRU: kernel.profile = \"mglru@6.12\""));
        }
        if !self.problems.is_empty() {
            return;
        }
        self.posted_record();
        // On a machine without a list of nodes, the caller that builds it reports this.
        if let Some(node) = sysctl.get("vm.pghot_target_nid").filter(|_| !machine.node.is_empty()) {
            self.promotion_target("sysctl.vm.pghot_target_nid", node);
        }
        if asked.iter().all(|(_, is_asked)| !is_asked) {
            return;
        }
        let tiers = match machine.tiers() {
            Ok(tiers) => tiers,
            Err(error) => return self.report(Problem::new("machine.node", error.to_string())),
        };
        if tiers.has_lower_tier() {
            return;
        }
        for (key, _) in asked.into_iter().filter(|(_, is_asked)| *is_asked) {
            let problem = Problem::new(key, "all memory of this machine is in its top tier");
            self.report(
                problem
                    .help("add a [[machine.node]] without cpus and with slower memory: preset = \"cxl-1.1\""),
            );
        }
    }

    /// Returns true if the policy of the root walks page tables, or that of a group that has its own.
    fn walks_page_tables(&self) -> bool {
        let walks = |policy: &Policy| policy.group.harvest.page_table_walk;
        let own = self.scenario.memcg.iter().filter_map(|memcg| memcg.policy.as_deref());
        let walks_itself = own.filter_map(Policy::by_name).any(|policy| walks(&policy));
        walks_itself || self.scenario.config().map_or(true, |config| walks(&config.policy))
    }

    pub(super) fn memcgs(&mut self) {
        if self.known.memcgs.listed.len() > GROUPS_MAX {
            let message = format!("there are more than {GROUPS_MAX} cgroups, parents and the root included");
            self.report(
                Problem::new("memcg", message).help("Linux numbers them with 16 bits, and so does pageout"),
            );
        }
        let mut seen = BTreeSet::new();
        for (index, memcg) in self.scenario.memcg.iter().enumerate() {
            let prefix = format!("memcg[{index}]");
            let path_key = format!("{prefix}.path");
            let path = memcg.path.as_str();
            if path == "/" {
                let problem = Problem::new(&path_key, "the root cgroup has no limits to set");
                self.report(problem.help("as on a running system, put the tasks into a cgroup below it"));
            } else if !path.starts_with('/')
                || path.split('/').skip(1).any(|step| ["", ".", ".."].contains(&step))
            {
                let problem = Problem::new(&path_key, format!("`{path}` is not a path of a cgroup"));
                self.report(problem.help("write it from the root, such as \"/job/web\""));
            } else if self.is_path_too_long(&path_key, path) {
            } else if !seen.insert(path) {
                self.report(Problem::new(&path_key, format!("there are two cgroups called `{path}`")));
            }
            self.no_control_characters(&path_key, path, &[]);
            self.ranges(&format!("{prefix}."), memcg);
            self.settings(&prefix, &memcg.files);
            for name in ["memory.max", "memory.high"] {
                if let Some(value) = memcg.files.get(name) {
                    self.holds_a_fault(&format!("{prefix}.{name}"), name, value);
                }
            }
            for file in CGROUP_FILES {
                if memcg.files.get(file.name).is_some() {
                    self.has_cgroup_file(&format!("{prefix}.{}", file.name), file.name);
                }
            }
            if let Some(nodes) = memcg.files.get("cpuset.mems") {
                self.cpuset_mems(&format!("{prefix}.cpuset.mems"), &nodes.to_string());
            }
        }
    }

    /// Says so, too.
    pub(super) fn is_path_too_long(&mut self, key: &str, path: &str) -> bool {
        if path.len() <= PATH_MAX {
            return false;
        }
        let problem = Problem::new(key, format!("a path of {} bytes is too long for a cgroup", path.len()));
        let allowed = format!("allowed: up to {PATH_MAX} bytes; Linux allows 4096, /sys/fs/cgroup included");
        self.report(problem.help(allowed));
        true
    }

    /// The machine's version of cgroups has this file.
    pub(super) fn has_cgroup_file(&mut self, key: &str, name: &str) {
        let Some(needed) = CgroupFile::by_name(name).and_then(|file| file.only_in) else { return };
        let version = if self.has_version_1() { 1 } else { 2 };
        if version != needed {
            let told = format!("`{name}` is a file of cgroup v{needed}, but this machine has v{version}");
            let help = match needed {
                1 => format!("set kernel.{VERSION} = 1; v2 has memory.low and memory.high instead"),
                _ => format!("leave kernel.{VERSION} out, or set it to 2"),
            };
            self.report(Problem::new(key, told).help(help));
        }
    }

    fn has_version_1(&self) -> bool {
        self.scenario.kernel.switches.get(VERSION).is_some_and(|version| version.to_string() == "1")
    }

    /// A limit that can't hold what one fault needs can't be run under.
    fn holds_a_fault(&mut self, key: &str, name: &str, value: &Scalar) {
        if let Ok(Limit::Size(size)) = value.to_string().parse()
            && size.pages_floor() < LIMIT_PAGES_MIN
        {
            let least = Size::from_pages(LIMIT_PAGES_MIN);
            let problem = Problem::new(key, format!("`{name}`: {size} is below what one fault needs"));
            self.report(
                problem.help(format!("allowed: from {least}, which is one reclaim batch, or \"max\"")),
            );
        }
    }
}
