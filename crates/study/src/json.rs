//! JSON objects put together, and the version of their form.

use serde_json::Value;

/// The version of the form of results as JSON: figures of programs that tell another one can't be compared.
pub const FORMAT_VERSION: u64 = 1;

/// The members of two JSON objects in one.
pub fn merged(mut first: Value, second: Value) -> Value {
    if let (Value::Object(members), Value::Object(more)) = (&mut first, second) {
        members.extend(more);
    }
    first
}
