//! Escaping for HTML and JSON: text stays text, whatever is in it, as a task may be called `<script>`.

use serde_json::Value;

/// `text` for the inside of an element or of a quoted attribute. Characters that no one sees, and that could turn the reading
/// direction of what follows, are shown as what they are not.
pub(super) fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => escaped.push(char::REPLACEMENT_CHARACTER),
            c if c.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
    }
    escaped
}

/// `value` for the inside of a script element: nothing in it ends the element or begins a comment.
pub(crate) fn json(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_text_ends_its_element_or_begins_another() {
        let evil = "</script><img src=x onerror='alert(1)'>\" & \u{202e}\u{1b}";
        let text = html(evil);
        assert!(!text.contains(['<', '>', '"', '\'', '\u{202e}', '\u{1b}']), "{text}");
        let data = super::json(&json!({ "name": evil, "<!--": "]]>" }));
        assert!(!data.contains(['<', '>', '&']), "{data}");
        assert_eq!(serde_json::from_str::<Value>(&data).unwrap()["name"], evil);
    }
}
