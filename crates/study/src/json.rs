//! JSON objects put together, and the version of their form.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The version of the form of results as JSON: figures of programs that tell another one can't be compared.
pub const FORMAT_VERSION: u64 = 1;

/// Has types be a text in JSON: the one that they print, and are read from.
macro_rules! as_text {
    ($($of:ty),+) => {$(
        impl serde::Serialize for $of {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $of {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$of, D::Error> {
                let text: String = serde::Deserialize::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}
pub(crate) use as_text;

/// The members of two JSON objects in one.
pub fn merged(mut first: Value, second: Value) -> Value {
    if let (Value::Object(members), Value::Object(more)) = (&mut first, second) {
        members.extend(more);
    }
    first
}

/// Texts: a list of them, or one text, with commas between several as an option of the command line has them.
pub(crate) fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts: Vec<String> = one_or_more(deserializer)?;
    Ok(texts.iter().flat_map(|text| text.split(',')).map(str::to_string).collect())
}

/// A list, or one element alone.
pub(crate) fn one_or_more<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(match OneOrMore::deserialize(deserializer)? {
        OneOrMore::One(one) => vec![one],
        OneOrMore::More(more) => more,
    })
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}
