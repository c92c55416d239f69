//! JSON objects put together.

use serde_json::Value;

/// The members of two JSON objects in one.
pub fn merged(mut first: Value, second: Value) -> Value {
    if let (Value::Object(members), Value::Object(more)) = (&mut first, second) {
        members.extend(more);
    }
    first
}
