//! Parts of lines of text, as several readers take and show them.

/// A line up to a comment, without surrounding blanks.
pub(super) fn without_comment(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b'#').next().unwrap_or_default().trim_ascii()
}

/// A decimal number, or a hexadecimal one behind `0x`.
pub(super) fn page_number(text: &[u8]) -> Option<u64> {
    let text =
        str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_alphanumeric()))?;
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A field as an error shows it: short, and readable whatever its bytes.
pub(super) fn shown(field: &[u8]) -> String {
    String::from_utf8_lossy(&field[..field.len().min(80)]).escape_debug().to_string()
}
