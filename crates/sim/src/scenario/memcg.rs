//! `[[memcg]]`: a memory cgroup and the values written to its files before anything runs.

use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Knobs;

/// One memory cgroup. The keys beside `path` and `policy` are the names of its files, as in `/sys/fs/cgroup`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Memcg {
    /// Where in the hierarchy, from the root: `/job/web`.
    pub path: String,
    /// The reclaim policy of this cgroup's lruvecs; `None` is the kernel's profile.
    pub policy: Option<String>,
    /// `memory.max`, `memory.high`, `memory.low`, `memory.min`, `memory.swap.max`, ...
    pub files: Knobs,
}

impl Serialize for Memcg {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("path", &self.path)?;
        if let Some(policy) = &self.policy {
            map.serialize_entry("policy", policy)?;
        }
        for (name, value) in self.files.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Memcg {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Memcg, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Memcg;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table with `path` and the values of the cgroup's files")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Memcg, M::Error> {
                let mut path = None;
                let mut memcg = Memcg::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "path" => path = Some(map.next_value()?),
                        "policy" => memcg.policy = Some(map.next_value()?),
                        _ => memcg.files.read(key, &mut map)?,
                    }
                }
                memcg.path = path.ok_or_else(|| M::Error::missing_field("path"))?;
                Ok(memcg)
            }
        }

        deserializer.deserialize_map(Reader)
    }
}
