//! Contents of pages that compress in different ways.
#![allow(dead_code, reason = "each test uses a part of it")]

const PAGE: usize = 4096;

/// Numbers that look like chance.
pub(crate) fn draws(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |sides| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % sides
    }
}

/// The contents of a page: zeroes at version 0, and else as many bytes that do not shrink as its number says.
pub(crate) fn contents(page: u64, version: u64) -> Vec<u8> {
    if version == 0 {
        return vec![0; PAGE];
    }
    let name = [page, version].map(u64::to_le_bytes).concat();
    if page.is_multiple_of(9) {
        return (page << 32 | version).to_le_bytes().repeat(PAGE / 8);
    }
    let mut draw = draws(page << 20 | version);
    let mut bytes = name.repeat(PAGE / 16);
    let random = page * 769 % 5000;
    bytes[16..].iter_mut().take(random as usize).for_each(|byte| *byte = draw(256) as u8);
    bytes
}
