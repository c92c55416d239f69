//! The check that a machine's watermarks leave memory to run in: what its zones keep free must not be all of it.
//!
//! A machine whose high watermarks are above its memory can't boot: kswapd would never sleep, and the first task would find no page for its stack.
//! The check reports this before the run, with the key that asks for too much, instead of an OOM kill of all tasks.

use pageout_engine::{Config, Engine, PAGE_SIZE, Parameter, ZoneInfo, ZoneType};

use super::{Problem, Scenario, Size};

/// What the smallest task takes: a stack of four pages, page tables, a node of an index, and a page or two to access.
const TASK_PAGES: u64 = 16;

/// Pages that a request of this class finds above the high marks of the zones that it may use.
fn usable(zones: &[ZoneInfo], class: ZoneType) -> u64 {
    let of_zone = |zone: &ZoneInfo| zone.free.saturating_sub(zone.high + zone.lowmem_reserve[class as usize]);
    zones.iter().filter(|zone| zone.zone <= class).map(of_zone).sum()
}

/// Sysctls that raise the marks.
const RAISING: [&str; 2] = ["vm.min_free_kbytes", "vm.watermark_scale_factor"];

/// Free memory that a machine of this configuration keeps, if no task can run because of it.
fn shortage(config: Config) -> Result<Option<String>, Problem> {
    let engine = Engine::new(config).map_err(|error| Problem::new("machine", error.to_string()))?;
    let zones: Vec<ZoneInfo> = engine.figures().zones().collect();
    let bytes = |pages: u64| Size(pages * PAGE_SIZE);
    let managed: u64 = zones.iter().map(|zone| zone.managed).sum();
    let for_kernel: u64 =
        zones.iter().filter(|zone| zone.zone <= ZoneType::Normal).map(|zone| zone.managed).sum();
    if for_kernel == 0 {
        let message = format!(
            "all {} of the machine are zone Movable, but the kernel's own memory (stacks, page tables) must be elsewhere",
            bytes(managed)
        );
        return Err(
            Problem::new("machine.node[0].movable", message).help("exclude a part of a node from `movable`")
        );
    }
    let least = usable(&zones, ZoneType::Normal).min(usable(&zones, ZoneType::Movable));
    let marks: u64 = zones.iter().map(|zone| zone.high).sum();
    Ok((least < TASK_PAGES).then(|| {
        format!(
            "no task can run: the zones' watermarks keep {} free, but the machine has {}",
            bytes(marks),
            bytes(managed)
        )
    }))
}

impl Scenario {
    /// Rejects a machine on which no task can run, from the start or once an event has raised its watermarks. All other checks must have passed.
    pub(super) fn check_room(&self) -> Result<(), Problem> {
        let config = self.engine_config()?;
        if let Some(message) = shortage(config.clone())? {
            let raised = RAISING.into_iter().find(|name| self.sysctl.get(name).is_some());
            let (key, message) = match raised {
                Some(name) => (format!("sysctl.{name}"), format!("`{name}`: {message}")),
                None if self.machine.node.is_empty() => ("machine.memory".to_string(), message),
                None => ("machine.node[0].memory".to_string(), message),
            };
            return Err(too_little(key, message));
        }
        for (index, event) in self.event.iter().enumerate() {
            let written = event.write.as_deref().and_then(|path| path.strip_prefix("/proc/sys/"));
            let name =
                written.map(|name| name.replace('/', ".")).filter(|name| RAISING.contains(&name.as_str()));
            let (Some(name), Some(value)) = (name, &event.value) else { continue };
            let mut config = config.clone();
            Parameter::by_name(&name).expect("it is a knob").set(&mut config, &value.to_string());
            if let Some(message) = shortage(config)? {
                return Err(too_little(format!("event[{index}].value"), format!("`{name}`: {message}")));
            }
        }
        Ok(())
    }
}

fn too_little(key: String, message: String) -> Problem {
    Problem::new(key, message).help("lower the watermarks, or give the machine more memory")
}
