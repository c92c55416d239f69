//! `[machine]` and `[kernel]`: the hardware, and which kernel's rules run on it.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Knobs, Size, TimeSpan};

/// The simulated hardware.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    /// Processors; tasks and kernel threads compete for them.
    pub cpus: u16,
    /// Timer ticks a second (`CONFIG_HZ`); periods such as the statistics flush are made of ticks.
    pub hz: u32,
    /// Memory of a machine with one node; not together with `node`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// NUMA nodes, in order of their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node: Vec<Node>,
    /// How far a task may run ahead on its own clock through hits before others get their turn.
    pub quantum: TimeSpan,
    /// Translations that a processor holds; accesses through them set no accessed bit.
    pub tlb_entries: u32,
    /// Which table of CPU costs prices the work.
    pub costs: String,
}

impl Machine {
    /// Memory of a machine that says nothing about it.
    pub const DEFAULT_MEMORY: Size = Size(1 << 30);

    /// Memory of each node, in order.
    pub fn node_sizes(&self) -> Vec<Size> {
        if self.node.is_empty() {
            vec![self.memory.unwrap_or(Machine::DEFAULT_MEMORY)]
        } else {
            self.node.iter().map(|node| node.memory).collect()
        }
    }
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            cpus: 4,
            hz: 250,
            memory: None,
            node: Vec::new(),
            quantum: TimeSpan(100_000),
            tlb_entries: 0,
            costs: "xeon-vm".to_string(),
        }
    }
}

/// One NUMA node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its memory.
    pub memory: Size,
}

/// Which kernel's rules. `profile` bundles them by policy and era; every other key is one switch by its dotted name.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// The bundle, such as `classic@6.12`.
    pub profile: String,
    /// Single switches and batch sizes that differ from the bundle.
    pub switches: Knobs,
}

impl Kernel {
    /// The profile of a scenario that names none.
    pub const DEFAULT_PROFILE: &str = "classic@6.12";
}

impl Default for Kernel {
    fn default() -> Kernel {
        Kernel { profile: Kernel::DEFAULT_PROFILE.to_string(), switches: Knobs::default() }
    }
}

impl Serialize for Kernel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("profile", &self.profile)?;
        for (name, value) in self.switches.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Kernel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Kernel, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Kernel;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table with `profile` and switches")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Kernel, M::Error> {
                let mut kernel = Kernel::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "profile" => kernel.profile = map.next_value()?,
                        _ => kernel.switches.read(key, &mut map)?,
                    }
                }
                Ok(kernel)
            }
        }

        deserializer.deserialize_map(Reader)
    }
}
