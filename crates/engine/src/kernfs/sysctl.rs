//! `/proc/sys`: the parameters that an administrator changes while the machine runs.

use crate::config::Parameter;
use crate::serve::engine::Engine;
use crate::switch::Values;

impl Engine {
    /// The value of a parameter; where it leaves a number to be computed, that number.
    pub(super) fn sysctl(&self, name: &'static str) -> String {
        if name == "vm.min_free_kbytes" {
            return self.core.memory.zones.min_free_kbytes().to_string();
        }
        parameter(name).get(&self.core.config)
    }

    /// Sets a parameter, and what follows from it; what it takes, where that is something else.
    pub(super) fn set_sysctl(&mut self, name: &'static str, value: &str) -> Result<(), String> {
        let parameter = parameter(name);
        let before = self.core.config.clone();
        if !parameter.set(&mut self.core.config, value) {
            return Err(match parameter.values {
                Values::Number(least, most) => format!("a number from {least} to {most}"),
                Values::Bool => "true or false".to_owned(),
                Values::Choice(words) => words.join(", "),
            });
        }
        if let Err(error) = self.core.config.check() {
            self.core.config = before;
            return Err(error.to_string());
        }
        self.core.memory.zones.set_marks(&self.core.config);
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
}

fn parameter(name: &'static str) -> &'static Parameter {
    Parameter::by_name(name).expect("a file of /proc/sys is named after a parameter")
}

#[cfg(test)]
mod tests {
    use crate::kernfs::files::{MACHINE_FILES, MachineTarget};
    use crate::*;

    #[test]
    fn every_parameter_of_an_administrator_has_its_file() {
        let names = MACHINE_FILES.iter().filter_map(|file| match file.target {
            MachineTarget::Sysctl(name) => Some((file.path.to_owned(), name)),
            _ => None,
        });
        let parameters = PARAMETERS.iter().filter(|parameter| parameter.section == Section::Sysctl);
        let mut expected: Vec<(String, &str)> = parameters
            .map(|parameter| (format!("/proc/sys/{}", parameter.name.replace('.', "/")), parameter.name))
            .collect();
        expected.sort();
        let mut found: Vec<(String, &str)> = names.collect();
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_sysctl_of_the_marks_moves_them() {
        let mut engine = Engine::new(Config::default()).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let low = |engine: &Engine| engine.zones().next().unwrap().low;
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
