//! Sysctls and cgroup files of a scenario, written to the kernel's files before anything runs.

use pageout_engine::{CgroupFile, CpuId, Engine, Holds, MemcgId, Step};

use super::problem;
use crate::scenario::keys::Limit;
use crate::scenario::measure::Touchable;
use crate::scenario::validate::LIMIT_PAGES_MIN;
use crate::scenario::{Problem, Scalar, Scenario, Size};

impl Scenario {
    /// Sysctls and the files of cgroups, through the files themselves.
    pub(super) fn write_settings(&self, engine: &mut Engine, touchable: &Touchable) -> Result<(), Problem> {
        let process = engine.process_create(MemcgId::ROOT);
        let shell = engine.task_create(process, CpuId(0));
        let mut write =
            |key: String, path: String, value: String| match engine.write_file(shell, &path, &value) {
                Ok(Step::Done(_)) => Ok(()),
                Ok(step) => {
                    unreachable!("nothing is in memory yet, but a write to {path} wants to reclaim: {step:?}")
                }
                Err(error) => Err(problem(&key, error)),
            };
        for (name, value) in self.sysctl.iter() {
            write(
                format!("sysctl.{name}"),
                format!("/proc/sys/{}", name.replace('.', "/")),
                value.to_string(),
            )?;
        }
        for (index, memcg) in self.memcg.iter().enumerate() {
            for (name, value) in memcg.files.iter() {
                let key = format!("memcg[{index}].{name}");
                let written = memcg_value(touchable, &memcg.path, name, value, &key)?;
                let is_tiny =
                    written.parse::<u64>().is_ok_and(|bytes| Size(bytes).pages_floor() < LIMIT_PAGES_MIN);
                if is_tiny && matches!(name, "memory.max" | "memory.high") {
                    let touched = touchable.pages(&memcg.path).unwrap_or(0);
                    let message = format!(
                        "`{name}`: {value} of the {touched} distinct pages that tasks in {} can access is",
                        memcg.path
                    );
                    return Err(problem(&key, format!("{message} below what one fault needs")));
                }
                write(key, format!("/sys/fs/cgroup{}/{name}", memcg.path), written)?;
            }
        }
        Ok(())
    }
}

/// A value as the kernel's file takes it: bytes in digits, percentages of what the cgroup's tasks can touch.
pub(super) fn memcg_value(
    touchable: &Touchable,
    memcg: &str,
    file: &str,
    value: &Scalar,
    key: &str,
) -> Result<String, Problem> {
    let is_limit = CgroupFile::by_name(file).is_some_and(|file| matches!(file.holds, Holds::Limit(_)));
    let pages = match value.to_string().parse::<Limit>() {
        Ok(Limit::Size(size)) if is_limit => return Ok(size.0.to_string()),
        Ok(limit @ Limit::Percent(_)) if is_limit => {
            let touched = touchable.pages(memcg);
            limit.pages(touched.ok_or_else(|| {
                problem(key, "a percentage of the pages of a trace, but the trace was not read")
            })?)
        }
        _ => None,
    };
    Ok(pages.map_or(value.to_string(), |pages| Size::from_pages(pages).0.to_string()))
}

/// The text for `memory.reclaim`: its size in the kernel's format, followed by the unchanged options.
pub(super) fn reclaim_value(value: &str) -> String {
    // A unit may stand apart from its number, so the size ends where the options begin.
    let options_at = value.find(" swappiness=").unwrap_or(value.len());
    let (size, options) = value.split_at(options_at);
    size.parse::<Size>().map_or(value.to_string(), |size| format!("{}{options}", size.0))
}
