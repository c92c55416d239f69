//! Tiers of memory as files: `/sys/devices/virtual/memory_tiering/memory_tierN/nodelist` and `/sys/kernel/mm/numa/demotion_enabled`.

use crate::serve::engine::Engine;
use crate::units::NodeId;

/// The number of the tier in the path of its list of nodes.
pub(super) fn tier_of_path(path: &str) -> Option<u32> {
    let number =
        path.strip_prefix("/sys/devices/virtual/memory_tiering/memory_tier")?.strip_suffix("/nodelist")?;
    // As the kernel writes it: without a sign or zeroes in front.
    number.parse().ok().filter(|tier: &u32| tier.to_string() == number)
}

/// Nodes as the kernel lists them: `0-2,5`.
fn nodelist(nodes: &[NodeId]) -> String {
    let mut text = String::new();
    for run in nodes.chunk_by(|a, b| a.0 + 1 == b.0) {
        let comma = if text.is_empty() { "" } else { "," };
        let (first, last) = (run[0].0, run[run.len() - 1].0);
        text += &if first == last { format!("{comma}{first}") } else { format!("{comma}{first}-{last}") };
    }
    text
}

/// The words in which the kernel takes yes or no.
pub(super) fn boolean(value: &str) -> Option<bool> {
    match value {
        "true" | "1" | "y" | "Y" | "on" => Some(true),
        "false" | "0" | "n" | "N" | "off" => Some(false),
        _ => None,
    }
}

impl Engine {
    /// The nodes of a tier; `None` where there is no such tier.
    pub(super) fn nodelist_text(&self, tier: u32) -> Option<String> {
        let tier = self.core.tiers.iter().find(|known| known.id == tier)?;
        Some(nodelist(&tier.nodes) + "\n")
    }

    pub(super) fn set_demotion_enabled(&mut self, value: &str) -> Result<(), String> {
        self.core.config.demotion_enabled = boolean(value).ok_or("true or false")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::page_alloc::request::{Gfp, Request};
    use crate::*;

    fn engine() -> Engine {
        let slow = MemoryType::Adistance(ADISTANCE_DAX_KMEM);
        let layout = Layout { memory_types: vec![MemoryType::Dram, slow, slow, slow], ..Layout::default() };
        Engine::new(Config { node_pages: vec![1 << 14; 4], layout, ..Config::default() }).unwrap()
    }

    #[test]
    fn each_tier_lists_its_nodes_and_others_do_not_exist() {
        let mut engine = engine();
        let mut read = |tier: &str| {
            engine.read_file(&format!("/sys/devices/virtual/memory_tiering/memory_tier{tier}/nodelist"))
        };
        assert_eq!(read("4").unwrap(), "0\n");
        assert_eq!(read("22").unwrap(), "1-3\n");
        assert!(matches!(read("5"), Err(FileError::NoSuchFile(_))));
        assert!(matches!(read("04"), Err(FileError::NoSuchFile(_))));
        assert_eq!(super::nodelist(&[0, 1, 3, 5, 6, 7].map(NodeId)), "0-1,3,5-7");
    }

    #[test]
    fn demotion_is_off_until_someone_turns_it_on() {
        let mut engine = engine();
        let path = "/sys/kernel/mm/numa/demotion_enabled";
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        assert_eq!(engine.read_file(path).unwrap(), "false\n");
        let _ = engine.write_file(task, path, "1").unwrap();
        assert_eq!(engine.read_file(path).unwrap(), "true\n");
        let error = engine.write_file(task, path, "2").unwrap_err();
        assert!(error.to_string().ends_with("expected true or false"), "{error}");
        let tier = "/sys/devices/virtual/memory_tiering/memory_tier4/nodelist";
        assert!(matches!(engine.write_file(task, tier, "1"), Err(FileError::NotPermitted(_))));
    }

    /// Blocks that are too large for a CPU's own list, and less than half of the distance of two marks.
    #[test]
    fn with_tiers_kswapd_rests_at_the_promo_mark() {
        for (numa_balancing, rests_between) in [(0, true), (1, true), (2, false), (3, false)] {
            let mut engine = Engine::new(Config { numa_balancing, ..Config::default() }).unwrap();
            let rests =
                |engine: &Engine| engine.core.memory.zones.is_balanced(NodeId(0), 0, ZoneType::Movable);
            assert!(rests(&engine));
            let request = Request { order: 5, ..Request::movable(Gfp::KERNEL, NodeId(0)) };
            let zone = engine.zones().next().unwrap();
            while engine.zones().next().unwrap().free > (zone.high + zone.promo) / 2 {
                engine.core.alloc_pages(&request, MemcgId::ROOT).expect("there is enough");
            }
            assert_eq!(rests(&engine), rests_between, "numa_balancing {numa_balancing}");
        }
    }
}
