//! Parameters that an administrator changes while the machine runs: `/proc/sys`, and those of modules and debugfs, which write yes and no in
//! another way.

use super::machine::parameter;
use super::numa::kernel_bool;
use crate::access::engine::Engine;
use crate::units::NodeId;
use pageout_rules::Values;

impl Engine {
    /// The value of a parameter; where it leaves a number to be computed, that number.
    pub(super) fn sysctl(&self, name: &'static str) -> String {
        if name == "vm.min_free_kbytes" {
            return self.core.mm.memory.zones.min_free_kbytes().to_string();
        }
        parameter(name).get(&self.core.mm.config)
    }

    /// Sets a parameter, and what follows from it; what it takes, where that is something else.
    pub(super) fn set_sysctl(&mut self, name: &'static str, value: &str) -> Result<(), String> {
        let parameter = parameter(name);
        let before = self.core.mm.config.clone();
        if !parameter.set(&mut self.core.mm.config, value) {
            return Err(match parameter.values {
                Values::Number(least, most) => format!("a number from {least} to {most}"),
                Values::Bool => "true or false".to_owned(),
                Values::Choice(words) => words.join(", "),
            });
        }
        let refused = match self.core.mm.config.check() {
            Err(error) => Some(error.to_string()),
            Ok(()) if name == "vm.pghot_target_nid" => self.wrong_promotion_target(),
            Ok(()) => None,
        };
        if let Some(expected) = refused {
            self.core.mm.config = before;
            return Err(expected);
        }
        self.core.mm.memory.zones.set_marks(&self.core.mm.config);
        self.core.dirty_limits_changed();
        if name == "kernel.numa_balancing" {
            self.core.restart_promotion();
        }
        if name.starts_with("vm.pghot_record_") {
            self.core.pghot_sources_changed();
        }
        if name == "vm.compaction_proactiveness" {
            self.core.compaction_proactiveness_changed();
        }
        Ok(())
    }

    /// A parameter of a module: a number, or `Y` or `N`.
    pub(super) fn module_parameter(&self, name: &'static str) -> String {
        let text = self.sysctl(name);
        match text.as_str() {
            "true" => "Y".to_owned(),
            "false" => "N".to_owned(),
            _ => text,
        }
    }

    pub(super) fn set_module_parameter(&mut self, name: &'static str, value: &str) -> Result<(), String> {
        let is_bool = parameter(name).values == Values::Bool;
        let flag = is_bool.then(|| kernel_bool(value).ok_or("`Y` or `N`")).transpose()?;
        let value = flag.map_or(value.to_owned(), |flag| flag.to_string());
        self.set_sysctl(name, &value)?;
        self.core.zswap_start_worker();
        Ok(())
    }

    /// What `vm.pghot_target_nid` takes, where it names another node: hot pages go up, to memory that is in use.
    fn wrong_promotion_target(&self) -> Option<String> {
        let tiers = &self.core.mm.tiers;
        let is_right = tiers.is_promotion_target(NodeId(self.core.mm.config.pghot_target_nid));
        (!is_right).then(|| format!("an online node of the top tier: {}", tiers.promotion_targets()))
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn every_parameter_of_an_administrator_has_its_file() {
        let names = MACHINE_FILES.iter().filter_map(|file| Some((file.path.to_owned(), file.sysctl()?)));
        let parameters = PARAMETERS.iter().filter(|parameter| parameter.section == Section::Sysctl);
        let mut expected: Vec<(String, &str)> = parameters
            .map(|parameter| (format!("/proc/sys/{}", parameter.name.replace('.', "/")), parameter.name))
            .collect();
        expected.sort();
        let mut found: Vec<(String, &str)> = names.collect();
        found.sort();
        assert_eq!(found, expected);
    }

    /// Two nodes of DRAM, of which the second has no CPUs and may leave, and a slow one.
    #[test]
    fn hot_pages_are_sent_to_no_node_that_is_not_there_not_fast_or_not_in_use() {
        let slow = MemoryType::Adistance(ADISTANCE_DAX_KMEM);
        let layout =
            Layout { memory_types: vec![MemoryType::Dram, MemoryType::Dram, slow], ..Layout::default() };
        let mut engine =
            Engine::new(Config { node_pages: vec![4096; 3], layout, ..Config::default() }).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let target = "/proc/sys/vm/pghot_target_nid";
        let refused = |engine: &mut Engine, value: &str, expected: &str| {
            let error = engine.write_file(task, target, value).unwrap_err().to_string();
            assert_eq!(error, format!("{target}: invalid value `{value}` (EINVAL): expected {expected}"));
            assert_eq!(engine.read_file(target).unwrap(), "0\n");
        };
        refused(&mut engine, "7", "an online node of the top tier: 0-1");
        refused(&mut engine, "2", "an online node of the top tier: 0-1");
        refused(&mut engine, "-1", "a number from 0 to 63");
        let online = "/sys/devices/system/node/node1/memory*/online";
        let _ = engine.write_file(task, online, "0").unwrap();
        refused(&mut engine, "1", "an online node of the top tier: 0");
        let _ = engine.write_file(task, online, "1").unwrap();
        let _ = engine.write_file(task, target, "1").unwrap();
        assert_eq!(engine.read_file(target).unwrap(), "1\n");
    }

    #[test]
    fn a_sysctl_of_the_marks_moves_them() {
        let mut engine = Engine::new(Config::default()).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let low = |engine: &Engine| engine.figures().zones().next().unwrap().low;
        // 2^18 pages: the root of 16 times 2^20 kB is 4096.
        assert_eq!(engine.read_file("/proc/sys/vm/min_free_kbytes").unwrap(), "4096\n");
        assert_eq!(low(&engine), 1024 + 262);
        let _ = engine.write_file(task, "/proc/sys/vm/watermark_scale_factor", "100").unwrap();
        assert_eq!(low(&engine), 1024 + 2621);
        let _ = engine.write_file(task, "/proc/sys/vm/min_free_kbytes", "8192").unwrap();
        assert_eq!(low(&engine), 2048 + 2621);
        assert_eq!(engine.read_file("/proc/sys/vm/min_free_kbytes").unwrap(), "8192\n");
        let error = engine.write_file(task, "/proc/sys/vm/watermark_scale_factor", "0").unwrap_err();
        assert!(error.to_string().ends_with("expected a number from 1 to 3000"), "{error}");
        let fraction = "/proc/sys/vm/percpu_pagelist_high_fraction";
        assert!(engine.write_file(task, fraction, "7").is_err());
        assert_eq!(engine.read_file(fraction).unwrap(), "0\n");
    }
}
