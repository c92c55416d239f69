//! Settings under dotted names: sysctls, the files of a memory cgroup, kernel switches.
//!
//! The names are the kernel's own and there are many, so they are a map and not struct fields. `vm.swappiness = 60`, `"vm.swappiness" = 60` and `vm =
//! { swappiness = 60 }` are the same entry. [`super::keys`] has the existing names, their accepted values and their defaults; [`super::validate`]
//! checks against them.

use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A value as the file had it.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// A quoted text.
    Text(String),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(value) => value.fmt(f),
            Scalar::Integer(value) => value.fmt(f),
            Scalar::Float(value) => value.fmt(f),
            Scalar::Text(value) => value.fmt(f),
        }
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Scalar::Bool(value) => serializer.serialize_bool(*value),
            Scalar::Integer(value) => serializer.serialize_i64(*value),
            Scalar::Float(value) => serializer.serialize_f64(*value),
            Scalar::Text(value) => serializer.serialize_str(value),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        let mut found = Knobs::default();
        let reader = Flatten { name: String::new(), into: &mut found };
        reader.deserialize(deserializer)?;
        match found.0.pop() {
            Some((name, value)) if name.is_empty() => Ok(value),
            _ => Err(de::Error::custom("found a table, expected a single value")),
        }
    }
}

/// Dotted names and their values, in the order of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Knobs(pub Vec<(String, Scalar)>);

impl Knobs {
    /// The value of `name`; of several, the last.
    pub fn get(&self, name: &str) -> Option<&Scalar> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// All entries in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Scalar)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Reads the value of key `name` from the map being visited, whether a plain value or a table of dotted names.
    pub(super) fn read<'de, M: MapAccess<'de>>(&mut self, name: String, map: &mut M) -> Result<(), M::Error> {
        map.next_value_seed(Flatten { name, into: self })
    }
}

impl Serialize for Knobs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Knobs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Knobs, D::Error> {
        struct Top;

        impl<'de> Visitor<'de> for Top {
            type Value = Knobs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of settings")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Knobs, M::Error> {
                let mut knobs = Knobs::default();
                while let Some(name) = map.next_key::<String>()? {
                    knobs.read(name, &mut map)?;
                }
                Ok(knobs)
            }
        }

        deserializer.deserialize_map(Top)
    }
}

/// Reads a value into `into` under `name`, and a table as one entry for each of its leaves.
struct Flatten<'a> {
    name: String,
    into: &'a mut Knobs,
}

impl<'de> DeserializeSeed<'de> for Flatten<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Flatten<'_> {
    fn leaf<E>(self, value: Scalar) -> Result<(), E> {
        self.into.0.push((self.name, value));
        Ok(())
    }
}

impl<'de> Visitor<'de> for Flatten<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a text, true or false")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.leaf(Scalar::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.leaf(Scalar::Integer(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        let value = i64::try_from(value).map_err(|_| E::custom(format!("{value} is too large")))?;
        self.leaf(Scalar::Integer(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.leaf(Scalar::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.leaf(Scalar::Text(value.to_string()))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let name = if self.name.is_empty() { key } else { format!("{}.{key}", self.name) };
            map.next_value_seed(Flatten { name, into: &mut *self.into })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_quoted_and_inline_spellings_are_one_name() {
        for text in [
            r#"{"vm": {"swappiness": 60}}"#,
            r#"{"vm.swappiness": 60}"#,
            r#"{"vm": {"swappiness": 60}, "a": {}}"#,
        ] {
            let knobs: Knobs = serde_json::from_str(text).unwrap();
            assert_eq!(knobs.get("vm.swappiness"), Some(&Scalar::Integer(60)), "{text}");
            assert_eq!(knobs.0.len(), 1, "{text}");
        }
    }

    #[test]
    fn a_list_is_no_setting() {
        let error = serde_json::from_str::<Knobs>(r#"{"vm.swappiness": [1]}"#).unwrap_err().to_string();
        assert!(error.contains("expected a number, a text, true or false"), "{error}");
    }
}
