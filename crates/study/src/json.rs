//! Building blocks of JSON results, and the version of their form.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The version of the form of results as JSON: figures of programs with another version are not comparable.
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

/// A list, or one element alone. Errors: those of the element, which says what is wrong with it.
pub fn one_or_more<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let read = match Value::deserialize(deserializer)? {
        Value::Array(more) => more.into_iter().map(serde_json::from_value).collect(),
        one => serde_json::from_value(one).map(|one| vec![one]),
    };
    read.map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::variation::Variation;

    #[test]
    fn wrong_element_is_refused_for_its_own_reason() {
        let read = |text: &str| one_or_more::<_, Variation>(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(read(r#""a=1,2""#).unwrap(), read(r#"["a=1,2"]"#).unwrap());
        for (text, told) in [
            (r#""a=1,1""#, "duplicate value `1`"),
            (r#"["a=1,2", "a=1"]"#, "fewer than two values"),
            ("5", "integer `5`, expected a string"),
            ("[null]", "null, expected a string"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
