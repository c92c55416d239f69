//! A cache out of JSON. The keys and their defaults are in the header.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pageout_live::{Backend, Builder, Delay, Group, Limits, Memory, Node};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::failure::Failure;

/// A cache, and its groups by name.
pub(crate) struct Cache {
    pub(crate) memory: Memory,
    groups: Mutex<BTreeMap<String, Group>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Setup {
    budget: Option<u64>,
    budget_max: Option<u64>,
    files: Option<u64>,
    policy: Option<String>,
    #[serde(deserialize_with = "distinct")]
    sysctl: BTreeMap<String, serde_json::Value>,
    backend: Option<Reader>,
    io_threads: Option<usize>,
    read_ahead: Option<u64>,
    #[serde(deserialize_with = "distinct")]
    groups: BTreeMap<String, Object<Bounds>>,
    nodes: Vec<Object<Place>>,
    swap: Option<Object<Swap>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Swap {
    folder: String,
    bytes: u64,
    #[serde(default)]
    buffered: bool,
}

/// What is made of an object, by its fields' names. By itself a list would do, too, and its values be taken for the first fields.
#[derive(Default)]
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Reader {
    Any,
    Uring,
    Threads,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Bounds {
    max: Option<u64>,
    high: Option<u64>,
    low: Option<u64>,
    min: Option<u64>,
}

impl Bounds {
    fn limits(&self) -> Limits {
        let &Bounds { max, high, low, min } = self;
        Limits { max, high, low, min }
    }
}

/// An object that names each of its fields once. If a field were given twice, the last one would apply silently.
fn distinct<'de, D, V>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    struct Once<V>(PhantomData<V>);

    impl<'de, V: Deserialize<'de>> Visitor<'de> for Once<V> {
        type Value = BTreeMap<String, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut fields = BTreeMap::new();
            while let Some((name, value)) = map.next_entry::<String, V>()? {
                if fields.contains_key(&name) {
                    return Err(de::Error::custom(format!("found two `{name}`")));
                }
                fields.insert(name, value);
            }
            Ok(fields)
        }
    }

    deserializer.deserialize_map(Once(PhantomData))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    slow: Option<u64>,
    numa_node: Option<u32>,
    delay_ns: Option<u64>,
}

/// One second. No memory is that slow, and a value in another unit would cause endless waits.
const DELAY_NS_MAX: u64 = 1_000_000_000;

/// No address space is larger.
const SLOW_BYTES_MAX: u64 = 1 << 56;

impl Place {
    fn node(&self) -> Result<Node, Failure> {
        if let Some(bytes) = self.slow.filter(|&bytes| bytes > SLOW_BYTES_MAX) {
            return Err(Failure::invalid(format!(
                "`slow` is {bytes}: the maximum is {SLOW_BYTES_MAX} bytes"
            )));
        }
        match (self.slow, self.numa_node, self.delay_ns) {
            (None, Some(node), None) => Ok(Node::bound_to(node)),
            (Some(bytes), Some(node), None) => Ok(Node::slow(bytes).on_numa_node(node)),
            (Some(bytes), None, Some(delay)) => {
                if delay > DELAY_NS_MAX {
                    let told = format!("`delay_ns` is {delay}: the maximum per page is {DELAY_NS_MAX}");
                    return Err(Failure::invalid(told));
                }
                Ok(Node::slow(bytes).emulated(Delay::per_page(Duration::from_nanos(delay))))
            }
            _ => Err(Failure::invalid(
                "a node must have a `numa_node`, or be `slow` with a `numa_node` or a `delay_ns`",
            )),
        }
    }
}

impl Cache {
    pub(crate) fn new(json: &str) -> Result<Cache, Failure> {
        let Object(setup): Object<Setup> = serde_json::from_str(json)
            .map_err(|error| Failure::invalid(format!("invalid configuration of the cache: {error}")))?;
        let memory = setup.builder()?.build()?;
        let group = |(name, Object(bounds)): (String, Object<Bounds>)| {
            let group = memory.group(&name, bounds.limits())?;
            Ok((name, group))
        };
        let groups = setup.groups.into_iter().map(group).collect::<Result<_, Failure>>()?;
        Ok(Cache { memory, groups: Mutex::new(groups) })
    }

    fn groups(&self) -> MutexGuard<'_, BTreeMap<String, Group>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A group by its name.
    pub(crate) fn group(&self, name: &str) -> Result<Group, Failure> {
        self.groups().get(name).cloned().ok_or_else(|| {
            Failure::invalid(format!(
                "there is no group {name}; help: name it in `groups` when the cache is built, or call pageout_group_new"
            ))
        })
    }

    /// Creates a group with limits in JSON.
    pub(crate) fn add_group(&self, name: &str, limits: &str) -> Result<(), Failure> {
        let Object(bounds): Object<Bounds> = serde_json::from_str(limits)
            .map_err(|error| Failure::invalid(format!("invalid limits of a group: {error}")))?;
        // A second group of this name is refused before the first one is replaced.
        let group = self.memory.group(name, bounds.limits())?;
        self.groups().insert(name.to_owned(), group);
        Ok(())
    }

    pub(crate) fn remove_group(&self, name: &str) -> Result<(), Failure> {
        let group = self.groups().get(name).cloned();
        let group = group.ok_or_else(|| Failure::new(libc::ENOENT, format!("there is no group {name}")))?;
        group.remove()?;
        // Another thread may have created one of this name meanwhile, which stays.
        self.groups().retain(|of, group| of != name || group.stats().is_ok());
        Ok(())
    }

    /// A kernel file, or the text of `describe`.
    pub(crate) fn text(&self, path: &str) -> Result<String, Failure> {
        Ok(match path {
            "describe" => self.memory.describe(),
            "stats" => self.stats()?,
            "prometheus" => self.memory.prometheus()?,
            path => self.memory.read(path)?,
        })
    }

    /// Figures in lines, as those of `/proc/vmstat`.
    fn stats(&self) -> Result<String, Failure> {
        let stats = self.memory.stats()?;
        let rows = [
            ("hits", stats.hits),
            ("misses", stats.misses),
            ("device_reads", stats.device_reads),
            ("device_bytes", stats.device_bytes),
            ("device_writes", stats.device_writes),
            ("device_bytes_written", stats.device_bytes_written),
            ("dirty", stats.dirty),
            ("writeback", stats.writeback),
            ("refaults", stats.refaults),
            ("resident", stats.resident),
            ("frames", stats.frames),
            ("table_bytes", stats.table_bytes),
            ("table_frames", stats.table_frames),
            ("pinned", stats.pinned),
            ("kept_by_pins", stats.kept_by_pins),
            ("lock_times", stats.lock_held.times()),
        ];
        Ok(rows.iter().map(|(name, value)| format!("{name} {value}\n")).collect())
    }
}

impl Setup {
    fn builder(&self) -> Result<Builder, Failure> {
        let mut builder = Memory::builder();
        if let Some(bytes) = self.budget {
            builder = builder.budget(bytes);
        }
        if let Some(bytes) = self.budget_max {
            builder = builder.budget_max(bytes);
        }
        if let Some(bytes) = self.files {
            builder = builder.files(bytes);
        }
        if let Some(policy) = &self.policy {
            builder = builder.policy(policy);
        }
        for (name, value) in &self.sysctl {
            builder = match value {
                serde_json::Value::String(text) => builder.sysctl(name, text),
                value => builder.sysctl(name, value),
            };
        }
        if let Some(reader) = self.backend {
            builder = builder.backend(match reader {
                Reader::Any => Backend::Any,
                Reader::Uring => Backend::Uring,
                Reader::Threads => Backend::Threads,
            });
        }
        if let Some(threads) = self.io_threads {
            builder = builder.io_threads(threads);
        }
        if let Some(bytes) = self.read_ahead {
            builder = builder.read_ahead(bytes);
        }
        if let Some(Object(Swap { folder, bytes, buffered })) = &self.swap {
            builder = builder.swap_file(folder, *bytes).swap_buffered(*buffered);
        }
        for Object(place) in &self.nodes {
            builder = builder.node(place.node()?);
        }
        Ok(builder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_as_its_json_says() {
        let cache = Cache::new(
            r#"{"budget": 16777216, "files": 67108864, "policy": "classic@6.12", "sysctl": {"vm.swappiness": 40},
                "backend": "threads", "io_threads": 2, "read_ahead": 65536, "groups": {"a": {"max": 8388608}, "b": {}}}"#,
        )
        .expect("it can be had");
        assert!(cache.memory.describe().starts_with("classic@6.12, "), "{}", cache.memory.describe());
        assert_eq!(cache.memory.read("/proc/sys/vm/swappiness").expect("it is there").trim(), "40");
        assert_eq!(
            cache.group("a").expect("it is there").read("memory.max").expect("it is there").trim(),
            "8388608"
        );
        assert_eq!(cache.groups().len(), 2);
    }

    #[test]
    fn what_is_not_known_is_told_by_its_name() {
        for (json, name) in [
            (r#"{"bugdet": 1}"#, "bugdet"),
            (r#"{"backend": "aio"}"#, "aio"),
            (r#"{"groups": {"a": {"limit": 1}}}"#, "limit"),
            (r#"{"policy": "arc@9"}"#, "arc@9"),
            (r#"{"nodes": [{"slow": 4194304}]}"#, "delay_ns"),
            (r#"{"budget": 4096}"#, "too small"),
            (r#"[16777216]"#, "expected an object"),
            (r#"{"groups": {"a": [8388608]}}"#, "expected an object"),
            (r#"{"nodes": [[4194304, 0, 1]]}"#, "expected an object"),
            (
                r#"{"nodes": [{"slow": 4194304, "delay_ns": 18446744073709551615}]}"#,
                "maximum per page is 1000000000",
            ),
            (
                r#"{"nodes": [{"slow": 18446744073709551615, "delay_ns": 1}]}"#,
                "the maximum is 72057594037927936",
            ),
            (r#"{"swap": {"folder": "/tmp"}}"#, "bytes"),
            (r#"{"swap": ["/tmp", 4096]}"#, "expected an object"),
            (r#"{"io_threads": 100000000}"#, "in the range 0 to 1024"),
            (r#"{"budget": 16777216, "budget": 33554432}"#, "budget"),
            (r#"{"groups": {"a": {"max": 8388608}, "a": {}}}"#, "found two `a`"),
            (r#"{"sysctl": {"vm.swappiness": 1, "vm.swappiness": 2}}"#, "found two `vm.swappiness`"),
        ] {
            let Err(failure) = Cache::new(json) else { panic!("{json} is taken") };
            assert!(format!("{failure:?}").contains(name), "{json}: {failure:?}");
        }
    }
}
