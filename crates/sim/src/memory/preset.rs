//! Presets of memory (DRAM, CXL ...): every figure with its source. `pageout keys machine.node[].preset` prints them.

use super::MemorySpec;
use crate::device::Figure;

/// A class of memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Preset {
    /// The preset's name.
    pub name: &'static str,
    /// The class of memory that the preset stands for.
    pub class: &'static str,
    /// Nanoseconds of a load.
    pub read_latency: Figure<u64>,
    /// Nanoseconds of a store.
    pub write_latency: Figure<u64>,
    /// Bytes a second that all loads together can have.
    pub read_bandwidth: Figure<u64>,
    /// Bytes a second that all stores together can have.
    pub write_bandwidth: Figure<u64>,
}

impl Preset {
    pub(super) const fn spec(&self) -> MemorySpec {
        MemorySpec {
            read_latency: self.read_latency.value,
            write_latency: self.write_latency.value,
            read_bandwidth: self.read_bandwidth.value,
            write_bandwidth: self.write_bandwidth.value,
        }
    }
}

const fn ns(value: u64, source: &'static str) -> Figure<u64> {
    Figure { value, source }
}

const fn gb(value: u64, source: &'static str) -> Figure<u64> {
    Figure { value: value * 1_000_000_000, source }
}

const AS_READ: &str = "as for a load: the line is read first";
const DDR5: &str = "8 channels of DDR5-4800, 38.4 GB/s each (JEDEC JESD79-5)";

/// Memory next to the CPU.
pub(super) const DRAM: Preset = Preset {
    name: "dram",
    class: "ordinary memory next to the CPU",
    read_latency: ns(95, "middle of 80 to 110 on bare metal: docs/spec/costs.md, memory access"),
    write_latency: ns(95, AS_READ),
    read_bandwidth: gb(307, DDR5),
    write_bandwidth: gb(307, DDR5),
};

const UPI: &str = "3 links of 16 GT/s and 16 lanes between two sockets (Intel UPI 2.0), per direction";
const PCIE_5_X16: &str = "16 lanes of PCIe 5.0 at 32 GT/s, per direction (PCI-SIG, PCI Express 5.0)";
const PCIE_5_X8: &str = "8 lanes of PCIe 5.0, as in a port of a shared device, per direction";

/// Memory next to the CPUs of the other socket.
pub(super) const REMOTE_SOCKET: Preset = Preset {
    name: "remote-socket",
    class: "ordinary memory of the other socket",
    read_latency: ns(157, "1.65 times DRAM, the middle of 1.5 to 1.8: docs/spec/costs.md, memory access"),
    write_latency: ns(157, AS_READ),
    read_bandwidth: gb(96, UPI),
    write_bandwidth: gb(96, UPI),
};

/// All presets.
pub const PRESETS: &[Preset] = &[
    DRAM,
    REMOTE_SOCKET,
    Preset {
        name: "cxl-1.1",
        class: "memory behind its own CXL 1.1 link",
        read_latency: ns(
            210,
            "middle of 170 to 250: docs/spec/costs.md, memory access, after TPP (ASPLOS 2023)",
        ),
        write_latency: ns(210, AS_READ),
        read_bandwidth: gb(64, PCIE_5_X16),
        write_bandwidth: gb(64, PCIE_5_X16),
    },
    Preset {
        name: "cxl-2.0-switch",
        class: "memory behind a CXL 2.0 switch",
        read_latency: ns(325, "middle of 250 to 400: docs/spec/costs.md, memory access"),
        write_latency: ns(325, AS_READ),
        read_bandwidth: gb(32, PCIE_5_X8),
        write_bandwidth: gb(32, PCIE_5_X8),
    },
    Preset {
        name: "pmem",
        class: "persistent memory on the memory bus, 6 modules",
        read_latency: ns(325, "middle of 300 to 350: docs/spec/costs.md, memory access"),
        write_latency: ns(94, "into the controller's queue: Yang et al., An Empirical Guide (FAST 2020)"),
        read_bandwidth: gb(39, "6 modules of 6.6 GB/s each: Yang et al. (FAST 2020)"),
        write_bandwidth: gb(14, "6 modules of 2.3 GB/s each: Yang et al. (FAST 2020)"),
    },
];

/// The names of all presets.
pub(super) const NAMES: &[&str] = &crate::names_of!(PRESETS);

#[cfg(test)]
mod tests {
    use super::*;
    use pageout_engine::adistance;

    #[test]
    fn every_preset_but_dram_is_in_a_slower_tier_than_dram() {
        let dram = MemorySpec::DRAM.coordinate();
        let distances: Vec<_> = PRESETS
            .iter()
            .map(|preset| (preset.name, adistance(&preset.spec().coordinate(), &dram)))
            .collect();
        let expected = [
            ("dram", Some(576)),
            ("remote-socket", Some(3041)),
            ("cxl-1.1", Some(6106)),
            ("cxl-2.0-switch", Some(18_899)),
            ("pmem", Some(14_712)),
        ];
        assert_eq!(distances, expected);
    }
}
