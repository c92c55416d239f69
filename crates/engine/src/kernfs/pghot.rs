//! `enabled_sources`: which sources of hot-page tracking are on, as bits of one number. Postings do not agree which bit is whose, so each file has
//! its own list. [tiering 3.6]

use super::{WRITTEN, WriteError, invalid};
use crate::access::engine::Engine;
use crate::machine::step::Step;

/// Sources of hot pages as the eighth posting numbers them.
pub(super) const SOURCES: &[&str] = &["vm.pghot_record_hintfaults_enable", "vm.pghot_record_hwhints_enable"];

/// As the fourth and fifth do in debugfs; the last bit is an unposted branch's.
pub(super) const DEBUG_SOURCES: &[&str] = &[
    "vm.pghot_record_hwhints_enable",
    "vm.pghot_record_pgtscans_enable",
    "vm.pghot_record_hintfaults_enable",
    "vm.pghot_record_fma_enable",
];

pub(super) fn sources_show(engine: &mut Engine, switches: &[&'static str]) -> String {
    let is_on = |name: &'static str| u32::from(engine.sysctl(name) == "1");
    let bits = switches.iter().enumerate().map(|(bit, &name)| is_on(name) << bit);
    format!("{}\n", bits.sum::<u32>())
}

/// Sources without a bit in this file stay unchanged.
pub(super) fn sources_store(
    engine: &mut Engine,
    switches: &[&'static str],
    value: &str,
) -> Result<Step, WriteError> {
    let most = (1 << switches.len()) - 1;
    let number = match value.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => value.parse(),
    };
    let bits = number.ok().filter(|&bits| bits <= most);
    let bits = bits.ok_or_else(|| invalid(format!("a number from 0 to {most}, one bit per source")))?;
    for (bit, &name) in switches.iter().enumerate() {
        engine.set_sysctl(name, if bits >> bit & 1 == 1 { "1" } else { "0" }).map_err(WriteError::Invalid)?;
    }
    Ok(WRITTEN)
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn each_posting_turns_sources_on_by_its_own_bits() {
        let mut engine = Engine::new(Config::default()).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let [sysctl, debug] =
            ["/proc/sys/vm/pghot_enabled_sources", "/sys/kernel/debug/pghot/enabled_sources"];
        let write = |engine: &mut Engine, path: &str, value: &str| {
            engine.write_file(task, path, value).map(|_| ()).map_err(|error| error.to_string())
        };
        write(&mut engine, sysctl, "0x1").unwrap();
        assert_eq!(engine.read_file("/proc/sys/vm/pghot_record_hintfaults_enable").unwrap(), "1\n");
        assert_eq!(engine.read_file(debug).unwrap(), "4\n");
        write(&mut engine, debug, "11").unwrap();
        assert_eq!(engine.read_file(sysctl).unwrap(), "2\n");
        write(&mut engine, sysctl, "0").unwrap();
        assert_eq!(engine.read_file(debug).unwrap(), "10\n", "it knows nothing of the others");
        let error = write(&mut engine, sysctl, "4").unwrap_err();
        assert!(error.ends_with("expected a number from 0 to 3, one bit per source"), "{error}");
    }

    /// The third posting moved the sysctl, and later ones brought the old name back.
    #[test]
    fn the_limit_of_promotion_is_the_same_under_both_its_names() {
        let mut engine = Engine::new(Config::default()).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let _ = engine.write_file(task, "/proc/sys/vm/pghot_promote_rate_limit_MBps", "64").unwrap();
        let old = "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps";
        assert_eq!(engine.read_file(old).unwrap(), "64\n");
    }
}
