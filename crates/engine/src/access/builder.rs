//! [`EngineBuilder`]: the hardware of a machine, which exists before anything runs. Memory and CPUs come from its [`Config`]; files and swap are on
//! devices. Groups, files, processes and tasks come and go later: they belong to the [`Engine`].

use crate::access::engine::{Engine, TABLE_PAGES_MAX};
use crate::config::{Config, ConfigError, SwapSpec, check_range};
use crate::core::Core;
use crate::machine::accessed_bits::{AccessedBits, Sampler};
use crate::machine::gate::FrameGate;
use crate::machine::op::FullPlug;
use crate::memory::room::check_room;
use crate::memory::table_memory::{TableHost, TableMemory};
use crate::swap::SwapDevice;
use crate::swap::contents::{Compressibility, PageContents};
use crate::swap::zram::Zram;
use crate::units::{BdiId, SwapId};
use crate::writeback::BdiLimits;
use std::ops::Range;
use std::sync::Arc;

/// The highest priority of a swap device.
const SWAP_PRIORITY_MAX: u16 = 32_767;

/// Builds a machine.
pub struct EngineBuilder {
    core: Core,
}

impl EngineBuilder {
    /// Creates a machine without devices.
    pub(super) fn new(config: Config) -> Result<EngineBuilder, ConfigError> {
        Ok(EngineBuilder { core: Core::new(config)? })
    }

    /// Returns the machine, which contains only the root group.
    pub fn build(self) -> Engine {
        Engine::of(self.core)
    }

    /// Adds a device for regular files, with the thread that writes them back. `name` distinguishes the threads.
    pub fn bdi_register(&mut self, name: &str) -> Result<BdiId, ConfigError> {
        self.core.bdi_register_checked(name)
    }

    /// Sets a device's share of the dirty limit.
    pub fn bdi_set_limits(&mut self, bdi: BdiId, limits: BdiLimits) -> Result<(), ConfigError> {
        if bdi.index() >= self.core.writeback.bdis() {
            return Err(ConfigError::Unknown(format!("backing device {}", bdi.0)));
        }
        check_range("max_ratio", limits.max_ratio.into(), 0, 100)?;
        check_range("min_ratio", limits.min_ratio.into(), 0, limits.max_ratio.into())?;
        self.core.writeback.set_bdi_limits(bdi, limits);
        Ok(())
    }

    /// Enables a swap device below all those that were enabled this way before: such devices are used in their order.
    pub fn swap_on(&mut self, spec: SwapSpec) -> Result<SwapId, ConfigError> {
        self.swap_on_at(spec, None)
    }

    /// Enables a swap device of a given priority, from 0 to 32767: the highest is used first, equal ones in turn. `None`: below all others, those
    /// without a priority and those with one.
    pub fn swap_on_at(&mut self, spec: SwapSpec, priority: Option<u16>) -> Result<SwapId, ConfigError> {
        if let Some(priority) = priority {
            check_range("priority of a swap device", priority.into(), 0, u64::from(SWAP_PRIORITY_MAX))?;
        }
        check_range("pages of a swap device", spec.pages, 1, TABLE_PAGES_MAX)?;
        check_room("a swap device", spec.pages, SwapDevice::bytes_for(spec.pages))?;
        check_range("swap devices", self.core.mm.memory.swap.devices() as u64 + 1, 1, 32)?;
        Ok(self.core.mm.memory.swap.add(spec, priority))
    }

    /// Declares that a swap device has to seek: readahead then follows positions on it.
    pub fn swap_rotational(&mut self, swap: SwapId) -> Result<(), ConfigError> {
        if swap.index() >= self.core.mm.memory.swap.devices() {
            return Err(ConfigError::Unknown(format!("swap device {}", swap.0)));
        }
        self.core.mm.memory.swap.set_rotational(swap);
        Ok(())
    }

    /// Sets how well pages compress on the way to a swap device, unless their region defines it.
    pub fn swap_compressibility(
        &mut self,
        swap: SwapId,
        compressibility: Compressibility,
    ) -> Result<(), ConfigError> {
        compressibility.check()?;
        let device = self.core.mm.memory.swap.device_mut(swap);
        let device = device.ok_or_else(|| ConfigError::Unknown(format!("swap device {}", swap.0)))?;
        device.compressibility = compressibility;
        Ok(())
    }

    /// Limits the memory of a synchronous swap device, in pages (`mem_limit`); `None` for no limit.
    pub fn zram_limit(&mut self, swap: SwapId, pages: Option<u64>) -> Result<(), ConfigError> {
        self.zram_mut(swap)?.limit = pages;
        Ok(())
    }

    /// Makes the engine ask the machine about a full plug, which is submitted in the middle of a batch. Without this, no write ends before its batch:
    /// a batch takes microseconds, a device longer.
    pub fn set_full_plug(&mut self, full_plug: FullPlug) {
        self.core.full_plug = Some(full_plug);
    }

    /// Returns the numbers of each node's frames, node by node. Numbers between two nodes may have no frame.
    pub fn frames(&self) -> Vec<Range<u32>> {
        let zones = &self.core.mm.memory.zones;
        let of_node = |node| {
            let of_node = zones.of_node(node).iter().map(|zone| zone.start..zone.end());
            of_node.reduce(|all, zone| all.start.min(zone.start)..all.end.max(zone.end)).unwrap_or(0..0)
        };
        zones.nodes().map(of_node).collect()
    }

    /// Makes room for the records of all frames, which take memory when a frame is first used, and keep it. Without this, records move when the machine uses
    /// more frames, or when many are free again: for each GiB, that takes milliseconds, during which a host can't use the engine.
    pub fn reserve_records(&mut self) {
        let frames = self.frames().iter().map(|frames| frames.end).max().unwrap_or(0) as usize;
        self.core.mm.memory.reserve_records(frames);
        self.core.mm.numa_balancing.reserve(frames);
    }

    /// Makes the engine ask the machine before it takes a page that may be in use. The machine may have users of a page that the engine does not
    /// know. Without this, it has none.
    pub fn set_frame_gate(&mut self, gate: Box<dyn FrameGate>) {
        self.core.gate = Some(gate);
    }

    /// Makes the engine ask the host for accessed bits ([`Engine::sample_accessed_bits`]).
    pub fn set_accessed_bits(&mut self, bits: Box<dyn AccessedBits>) {
        self.core.sampler = Some(Sampler::new(bits));
    }

    /// Makes the engine ask the machine about the contents of pages that go to swap. Without this, the contents are drawn from distributions
    /// ([`EngineBuilder::swap_compressibility`]).
    pub fn set_page_contents(&mut self, contents: Box<dyn PageContents>) {
        self.core.contents = Some(contents);
    }

    /// Takes the memory for tables of files and processes from the host, which counts it. Without this, the allocator has it.
    pub fn set_table_host(&mut self, host: Arc<dyn TableHost>) {
        self.core.mm.memory.tables = TableMemory::of(host);
    }

    fn zram_mut(&mut self, swap: SwapId) -> Result<&mut Zram, ConfigError> {
        let zram = self.core.mm.memory.swap.zram_mut(swap);
        zram.ok_or_else(|| ConfigError::Unknown(format!("compressed swap device {}", swap.0)))
    }
}
