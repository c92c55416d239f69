//! Pages that shrink, as most memory does: a number that names the page, and few different bytes.

use crate::measured::PAGE;

/// The contents of a page, of which lz4 leaves about two fifths.
pub(crate) fn fill(page: u64, bytes: &mut [u8]) {
    let mut state = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for word in bytes.as_chunks_mut::<8>().0 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // A pointer: its upper half is the same everywhere.
        *word = (0x7f3a_0000_0000 | state >> 44 << 4).to_le_bytes();
    }
    bytes[..8].copy_from_slice(&page.to_le_bytes());
}

pub(crate) fn page(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    fill(number, &mut bytes);
    bytes
}

/// Panics if bytes are not those of a page.
pub(crate) fn check(bytes: &[u8], page: u64) {
    assert_eq!(bytes[..8], page.to_le_bytes(), "page {page}");
}
