//! How a table of a scenario is declared: once. The struct, reading and writing, defaults, rows of the reference and the check of
//! each value all follow from that.
//!
//! ```text
//!   section! {
//!       /// The simulated hardware.
//!       pub struct Machine {
//!           cpus: u16, [default 4] in Accepts::Integer(1, 4096) => Same, "Processors. ...";
//!       }                 │              │                     │         └─ documentation of the field, and row of the reference
//!   }                     │              │                     └─ what becomes of it where a page stands for half as many (`scale.rs`)
//!                         │              └─ what the check accepts, and the reference says so
//!                         └─ what it is when absent, and the reference says so
//! ```
//!
//! When a key is absent:
//!
//! | | |
//! |---|---|
//! | `[required]` | reading fails |
//! | `[default VALUE]` | it has that value, and is written all the same |
//! | `[unless VALUE]` | it has that value, and is left out of what is written |
//! | `[absent "text"]` | it is `None`; the reference has the text |
//! | `[rest]` | all keys that are not declared are collected here |
//!
//! The rest describes the value of a key: `in` and its accepted values, `each` for a list of tables, `table` for one table, or `knobs` for dotted
//! names (a function gives their rows).
//!
//! serde's derive can't store a default next to its field, so reading and writing are spelled out here. The errors are serde's own sentences, which
//! the caller turns into messages of this crate.

use std::path::PathBuf;

use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Visitor};
use serde::{Deserializer, de};

use super::compressed::Deciles;
use super::keys::{Accepts, Key};
use super::scale::Halving;
use super::{
    Bandwidth, CallsFile, Condition, Knobs, Relation, Scalar, Share, Size, Table, TimeSpan, TraceFile,
};

/// A table of a scenario, as declared.
pub trait Section {
    /// Adds the rows of the reference; `prefix` is the way to the table, such as `machine.` or `task[].object[].`.
    fn rows(prefix: &str, rows: &mut Vec<Key>);

    /// Calls `each` with every present value, its key and its accepted values. Nested tables are not visited.
    fn values(&self, each: &mut dyn FnMut(&'static str, Accepts, &Scalar));

    /// Makes it that of a machine whose pages stand for half as many, tables below included; `prefix` is the way to it, with indices.
    fn halve(&mut self, prefix: &str, halving: &mut Halving);
}

/// What a key of a section holds.
pub(super) trait Held {
    /// The value as a check takes it; `None` when there is none, or reading it was check enough.
    fn scalar(&self) -> Option<Scalar>;

    /// The value as it is written.
    fn text(&self) -> String {
        match self.scalar() {
            Some(Scalar::Text(text)) => format!("\"{text}\""),
            Some(value) => value.to_string(),
            None => String::new(),
        }
    }
}

impl<T: Held> Held for Option<T> {
    fn scalar(&self) -> Option<Scalar> {
        self.as_ref()?.scalar()
    }
}

macro_rules! held {
    ($($type:ty: $self:ident => $scalar:expr;)*) => {
        $(impl Held for $type {
            fn scalar(&$self) -> Option<Scalar> {
                $scalar
            }
        })*
    };
}

held! {
    bool: self => Some(Scalar::Bool(*self));
    i8: self => Some(Scalar::Integer((*self).into()));
    i16: self => Some(Scalar::Integer((*self).into()));
    u8: self => Some(Scalar::Integer((*self).into()));
    u16: self => Some(Scalar::Integer((*self).into()));
    u32: self => Some(Scalar::Integer((*self).into()));
    // TOML numbers are below 2^63.
    u64: self => Some(Scalar::Integer(i64::try_from(*self).unwrap_or(i64::MAX)));
    f64: self => Some(Scalar::Float(*self));
    String: self => Some(Scalar::Text(self.clone()));
    Size: self => Some(Scalar::Text(self.to_string()));
    Bandwidth: self => Some(Scalar::Text(self.to_string()));
    Share: self => Some(Scalar::Text(self.to_string()));
    Deciles: self => Some(Scalar::Text(self.to_string()));
    Scalar: self => Some(self.clone());
    Relation: self => None;
    TraceFile: self => None;
    PathBuf: self => None;
    CallsFile: self => None;
    Condition: self => None;
}

impl Held for TimeSpan {
    fn scalar(&self) -> Option<Scalar> {
        Some(Scalar::Text(self.to_string()))
    }

    fn text(&self) -> String {
        if self.0 == 0 { "\"0s\"".to_string() } else { format!("\"{self}\"") }
    }
}

/// Collections have no default but the empty one.
macro_rules! held_empty {
    ($($type:ty: $text:literal;)*) => {
        $(impl Held for $type {
            fn scalar(&self) -> Option<Scalar> {
                None
            }

            fn text(&self) -> String {
                $text.to_string()
            }
        })*
    };
}

held_empty! {
    Vec<String>: "[]";
    Vec<u8>: "[]";
    Table: "{}";
    Knobs: "{}";
}

/// Reads the name of a key, which has to be a known one unless unknown ones are collected.
pub(super) struct Name {
    pub(super) known: &'static [&'static str],
    pub(super) is_open: bool,
}

impl<'de> DeserializeSeed<'de> for Name {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name {
    type Value = String;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the name of a key")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<String, E> {
        if self.is_open || self.known.contains(&name) {
            Ok(name.to_string())
        } else {
            Err(E::unknown_field(name, self.known))
        }
    }
}

/// Keeps what was read for a key; JSON, unlike TOML, may have it twice.
pub(super) fn keep<T, E: de::Error>(place: &mut Option<T>, name: &'static str, value: T) -> Result<(), E> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(name)),
    }
}

/// Returns true if a value isn't the default, which takes its type from it.
pub(super) fn differ<T: PartialEq>(value: &T, default: &T) -> bool {
    value != default
}

/// The section in which every key is absent. Every one has to have a default.
pub(super) fn from_nothing<T: DeserializeOwned>() -> T {
    from_texts(&[])
}

/// The section in which only these keys are given. They have to be all that are required.
pub(super) fn from_texts<T: DeserializeOwned>(keys: &[(&str, &str)]) -> T {
    let given = MapDeserializer::<_, de::value::Error>::new(keys.iter().copied());
    T::deserialize(given).expect("what is required is given")
}

/// Declares a section; see the head of this file.
macro_rules! section {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $($field:ident: $type:ty, $absence:tt $(in $accepts:expr => $scale:ident,)? $(each $element:ty,)? $(table $table:ty,)?
                $(knobs $rows:path,)? $meaning:literal;)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq)]
        // `[[file]]` in a text for the command line is TOML and no link.
        #[allow(rustdoc::broken_intra_doc_links)]
        pub struct $name {
            $(#[doc = $meaning] pub $field: $type,)*
        }

        impl $crate::scenario::section::Section for $name {
            fn rows(prefix: &str, rows: &mut Vec<$crate::scenario::keys::Key>) {
                $(
                    $(rows.push($crate::scenario::keys::Key {
                        path: format!("{prefix}{}", stringify!($field)),
                        accepts: $accepts,
                        scale: $crate::scenario::scale::Scale::$scale,
                        default: section!(@default $type, $absence),
                        meaning: $meaning.to_string(),
                        versions: Vec::new(),
                    });)?
                    $(<$element as $crate::scenario::section::Section>::rows(&format!("{prefix}{}[].", stringify!($field)), rows);)?
                    $(<$table as $crate::scenario::section::Section>::rows(&format!("{prefix}{}.", stringify!($field)), rows);)?
                    $(rows.extend($rows());)?
                )*
            }

            #[allow(unused_variables, reason = "some sections have tables only")]
            fn values(
                &self,
                each: &mut dyn FnMut(&'static str, $crate::scenario::keys::Accepts, &$crate::scenario::Scalar),
            ) {
                $($(if let Some(value) = $crate::scenario::section::Held::scalar(&self.$field) {
                    each(stringify!($field), $accepts, &value);
                })?)*
            }

            #[allow(unused_variables, reason = "some sections have nothing that changes")]
            fn halve(&mut self, prefix: &str, halving: &mut $crate::scenario::scale::Halving) {
                $(
                    $(section!(@halve $scale, halving, self.$field, format!("{prefix}{}", stringify!($field)));)?
                    $(for (index, element) in self.$field.iter_mut().enumerate() {
                        let prefix = format!("{prefix}{}[{index}].", stringify!($field));
                        <$element as $crate::scenario::section::Section>::halve(element, &prefix, halving);
                    })?
                    // A table that is absent has nothing that was written at a scale.
                    $(if self.$field != <$table>::default() {
                        let prefix = format!("{prefix}{}.", stringify!($field));
                        <$table as $crate::scenario::section::Section>::halve(&mut self.$field, &prefix, halving);
                    })?
                    $(halving.knobs(
                        &section!(@way prefix, $field, $absence),
                        &$rows(),
                        &mut self.$field,
                    );)?
                )*
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                $(section!(@write map, self.$field, stringify!($field), $absence);)*
                map.end()
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                struct Reader;

                impl<'de> serde::de::Visitor<'de> for Reader {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a table")
                    }

                    fn visit_map<M: serde::de::MapAccess<'de>>(self, mut map: M) -> Result<$name, M::Error> {
                        const KNOWN: &[&str] = &[$(stringify!($field)),*];
                        const IS_OPEN: bool = false $(|| section!(@is_rest $absence))*;
                        $(let mut $field: Option<$type> = None;)*
                        let name = || $crate::scenario::section::Name { known: KNOWN, is_open: IS_OPEN };
                        while let Some(key) = map.next_key_seed(name())? {
                            $(section!(@read map, key, $field, $absence);)*
                        }
                        Ok($name { $($field: section!(@take M, $field, $absence),)* })
                    }
                }

                deserializer.deserialize_map(Reader)
            }
        }
    };

    (@default $type:ty, [required]) => { String::new() };
    (@default $type:ty, [default $value:expr]) => { <$type as $crate::scenario::section::Held>::text(&$value) };
    (@default $type:ty, [unless $value:expr]) => { <$type as $crate::scenario::section::Held>::text(&$value) };
    (@default $type:ty, [absent $text:expr]) => { $text.to_string() };

    (@halve Same, $halving:ident, $value:expr, $key:expr) => {};
    (@halve Twice, $halving:ident, $value:expr, $key:expr) => { $halving.twice(&$key, &mut $value) };
    (@halve Half, $halving:ident, $value:expr, $key:expr) => { $halving.half(&$key, &mut $value) };
    (@halve Never, $halving:ident, $value:expr, $key:expr) => { $halving.never(&$key, &$value) };
    (@halve Inside, $halving:ident, $value:expr, $key:expr) => { $halving.inside(&$key, &mut $value) };
    // For a table that is compared as one value.
    (@halve ByFile, $halving:ident, $value:expr, $key:expr) => {};

    (@way $prefix:ident, $field:ident, [rest]) => { $prefix.to_string() };
    (@way $prefix:ident, $field:ident, $absence:tt) => { format!("{}{}.", $prefix, stringify!($field)) };

    (@is_rest [rest]) => { true };
    (@is_rest $absence:tt) => { false };

    (@read $map:ident, $key:ident, $field:ident, [rest]) => {
        $field.get_or_insert_with(Default::default).read($key, &mut $map)?;
    };
    (@read $map:ident, $key:ident, $field:ident, $absence:tt) => {
        if $key == stringify!($field) {
            $crate::scenario::section::keep(&mut $field, stringify!($field), $map.next_value()?)?;
            continue;
        }
    };

    (@take $M:ident, $field:ident, [required]) => {
        $field.ok_or_else(|| <$M::Error as serde::de::Error>::missing_field(stringify!($field)))?
    };
    (@take $M:ident, $field:ident, [default $value:expr]) => { $field.unwrap_or_else(|| $value) };
    (@take $M:ident, $field:ident, [unless $value:expr]) => { $field.unwrap_or_else(|| $value) };
    (@take $M:ident, $field:ident, [absent $text:expr]) => { $field.unwrap_or(None) };
    (@take $M:ident, $field:ident, [rest]) => { $field.unwrap_or_default() };

    (@write $map:ident, $value:expr, $name:expr, [unless $default:expr]) => {
        if $crate::scenario::section::differ(&$value, &$default) {
            $map.serialize_entry($name, &$value)?;
        }
    };
    (@write $map:ident, $value:expr, $name:expr, [absent $text:expr]) => {
        if let Some(value) = &$value {
            $map.serialize_entry($name, value)?;
        }
    };
    (@write $map:ident, $value:expr, $name:expr, [rest]) => {
        for (name, value) in $value.iter() {
            $map.serialize_entry(name, value)?;
        }
    };
    (@write $map:ident, $value:expr, $name:expr, $absence:tt) => {
        $map.serialize_entry($name, &$value)?;
    };
}
pub(super) use section;

/// Words that a key accepts, each naming a variant.
macro_rules! words {
    ($(#[$attribute:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// The words that a scenario may use.
            pub const WORDS: &[&str] = &[$($word),*];

            /// As it is written in a scenario.
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }

        impl $crate::scenario::section::Held for $name {
            fn scalar(&self) -> Option<$crate::scenario::Scalar> {
                Some($crate::scenario::Scalar::Text(self.name().to_string()))
            }
        }
    };
}
pub(super) use words;
