//! Figures by file and by group, and their text for Prometheus.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files and threads")]

use crate::made::{Made, PAGE};
use pageout::{Error, File, Limits, Memory, Open, RegionOptions};
use std::collections::{BTreeMap, BTreeSet};

fn open(memory: &Memory, made: &Made, how: Open) -> File {
    memory.open(&made.0, how.random().buffered(true)).unwrap()
}

fn read(file: &File, pages: impl IntoIterator<Item = u64>) {
    pages.into_iter().for_each(|page| file.read_at(&mut [0; 8], page * PAGE as u64).unwrap());
}

#[test]
fn hits_and_misses_are_counted_by_file_and_group() {
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let made = [Made::new("hits-a", 64 * PAGE), Made::new("hits-b", 64 * PAGE)];
    let groups = ["one", "two"].map(|name| memory.group(name, Limits::NONE).unwrap());
    let a_of_one = open(&memory, &made[0], Open::read().group(&groups[0]));
    let a_of_two = open(&memory, &made[0], Open::read().group(&groups[1]));
    let b_of_two = open(&memory, &made[1], Open::read_write().group(&groups[1]));
    read(&a_of_one, 0..10);
    read(&a_of_one, 0..10);
    read(&a_of_two, 0..5);
    read(&b_of_two, 0..20);
    // Threads that end, and others that use the same handles.
    for _ in 0..3 {
        std::thread::scope(|scope| {
            scope.spawn(|| read(&a_of_one, 0..10));
            scope.spawn(|| read(&b_of_two, (0..20).chain(0..20)));
        });
    }
    b_of_two.write_at(&[1; 8], 0).unwrap();
    (0..7).for_each(|_| b_of_two.write_at(&[1; 8], 0).unwrap());
    assert_eq!(b_of_two.page(3).unwrap().len(), PAGE);
    let a = a_of_one.stats().unwrap();
    assert_eq!((a.hits, a.misses, a.resident), (10 + 5 + 30, 10, 10));
    assert_eq!((a.device_bytes, a.device_reads), (10 * PAGE as u64, 10));
    let b = b_of_two.stats().unwrap();
    assert_eq!((b.hits, b.misses, b.resident, b.dirty), (120 + 7 + 1, 20 + 1, 20, 1));
    let [one, two] = groups.each_ref().map(|group| group.stats().unwrap());
    assert_eq!((one.hits, one.misses, one.resident), (10 + 30, 10, 10));
    assert_eq!((two.hits, two.misses, two.resident), (5 + 128, 21, 20));
    assert!(two.charged >= 20);
    let all = memory.stats().unwrap();
    assert_eq!((all.hits, all.misses), (a.hits + b.hits, a.misses + b.misses));
    // What handles have counted stays with file and group.
    drop((a_of_one, a_of_two));
    b_of_two.sync_data().unwrap();
    let again = open(&memory, &made[0], Open::read());
    let of_file = again.stats().unwrap();
    assert_eq!((of_file.hits, of_file.misses), (a.hits, a.misses));
    assert_eq!(groups[0].stats().unwrap(), one);
    let written = b_of_two.stats().unwrap();
    assert_eq!((written.device_bytes_written, written.device_writes, written.dirty), (PAGE as u64, 1, 0));
    b_of_two.clone().forget().unwrap();
    assert!(matches!(b_of_two.stats(), Err(Error::Forgotten { .. })));
    assert_eq!(groups[1].stats().unwrap().hits, two.hits);
}

#[test]
fn evictions_and_refaults_are_counted_where_they_happen() {
    let memory = Memory::builder().budget(32 << 20).policy("classic@6.12").build().unwrap();
    let made = [Made::new("evict-a", 256 * PAGE), Made::new("evict-b", 256 * PAGE)];
    let small = memory.group("small", Limits { max: Some(100 * PAGE as u64), ..Limits::NONE }).unwrap();
    let a = open(&memory, &made[0], Open::read().group(&small));
    let b = open(&memory, &made[1], Open::read());
    read(&b, 0..256);
    (0..3).for_each(|_| read(&a, 0..256));
    let (of_a, of_b, of_group) = (a.stats().unwrap(), b.stats().unwrap(), small.stats().unwrap());
    assert_eq!((of_b.evictions, of_b.refaults, of_b.resident), (0, 0, 256));
    assert!(of_a.evictions >= 2 * 156, "{of_a:?}");
    assert!(of_a.refaults >= 156, "{of_a:?}");
    assert_eq!(of_a.resident + of_a.evictions, 3 * 256 - of_a.hits);
    assert_eq!((of_group.evictions, of_group.refaults), (of_a.evictions, of_a.refaults));
    assert_eq!((of_group.resident, of_group.misses), (of_a.resident, of_a.misses));
    assert_eq!(memory.stats().unwrap().refaults, of_a.refaults);
}

#[test]
fn accesses_to_regions_count_for_their_group() {
    let builder = Memory::builder().budget(33 << 18).swap_file(std::env::temp_dir(), 16 << 20);
    let memory = builder.swap_buffered(true).build().unwrap();
    let query = memory.group("query", Limits::NONE).unwrap();
    let region = memory.region(64 * PAGE as u64, RegionOptions::new().group(&query)).unwrap();
    region.write_at(&[1; 64 * PAGE], 0).unwrap();
    region.read_at(&mut [0; 64 * PAGE], 0).unwrap();
    let stats = query.stats().unwrap();
    assert_eq!((stats.hits, stats.misses, stats.anon), (64, 64, 64));
    drop(region);
    let stats = query.stats().unwrap();
    assert_eq!((stats.hits, stats.misses, stats.anon, stats.swapped), (64, 64, 0, 0));
}

/// A sample: its name, its labels, its value.
type Sample = (String, BTreeMap<String, String>, f64);

/// Reads the labels of a sample, up to their end; returns what follows.
fn labels(mut text: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
    loop {
        let (name, rest) = text.split_once("=\"").unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "label {name}");
        let (mut value, mut chars) = (String::new(), rest.char_indices());
        let end = loop {
            match chars.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next().unwrap().1 {
                    'n' => '\n',
                    escaped @ ('\\' | '"') => escaped,
                    other => panic!("an escape that the format does not know: {other}"),
                }),
                (_, other) => value.push(other),
            }
        };
        assert_eq!(labels.insert(name.to_owned(), value), None, "label {name} is there twice");
        text = &rest[end + 1..];
        match text.strip_prefix(',') {
            Some(rest) => text = rest,
            None => return (labels, text.strip_prefix('}').unwrap()),
        }
    }
}

/// Reads a text as Prometheus does, and checks it against the conventions.
fn parsed(text: &str) -> Vec<Sample> {
    let (mut samples, mut families, mut series) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut lines = text.lines().peekable();
    assert!(text.ends_with('\n'));
    while let Some(help) = lines.next() {
        let (name, help) = help.strip_prefix("# HELP ").unwrap().split_once(' ').unwrap();
        assert!(!help.is_empty() && !help.contains('\\'), "{name}");
        assert!(
            name.starts_with("pageout_")
                && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        );
        assert!(families.insert(name.to_owned()), "family {name} is there twice");
        let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {name} ")).unwrap();
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
        assert!(["counter", "gauge"].contains(&kind));
        let before = samples.len();
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let rest = line.strip_prefix(name).unwrap();
            let (labels, value) = match rest.strip_prefix('{') {
                Some(rest) => labels(rest),
                None => (BTreeMap::new(), rest),
            };
            let value: f64 = value.strip_prefix(' ').unwrap().parse().unwrap();
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert!(series.insert((name.to_owned(), labels.clone())), "{line} is there twice");
            samples.push((name.to_owned(), labels, value));
        }
        assert!(samples.len() > before, "family {name} has no sample");
    }
    samples
}

#[track_caller]
fn value(samples: &[Sample], name: &str, label: Option<(&str, &str)>) -> f64 {
    let mut found = samples.iter().filter(|(of, labels, _)| {
        of == name && label.is_none_or(|(label, value)| labels.get(label).is_some_and(|of| of == value))
    });
    let (_, _, value) = found.next().unwrap();
    assert!(found.next().is_none(), "{name} {label:?} is there more than once");
    *value
}

#[test]
fn prometheus_text_has_all_figures() {
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let names = ["plain", "quote\" back\\slash\nline"];
    let made = names.map(|name| Made::new(name, 64 * PAGE));
    let group = memory.group("a \"group\"", Limits::NONE).unwrap();
    let files = made.each_ref().map(|made| open(&memory, made, Open::read_write().group(&group)));
    read(&files[0], 0..10);
    read(&files[0], 0..10);
    read(&files[1], 0..30);
    files[1].write_at(&[1], 0).unwrap();
    let samples = parsed(&memory.prometheus().unwrap());
    let path = |at: usize| Some(("file", made[at].0.to_str().unwrap()));
    assert_eq!(value(&samples, "pageout_hits_total", None), 10.0);
    assert_eq!(value(&samples, "pageout_misses_total", None), 41.0);
    assert_eq!(value(&samples, "pageout_resident_bytes", Some(("type", "file"))), 40.0 * PAGE as f64);
    for (at, hits, misses, dirty) in [(0, 10.0, 10.0, 0.0), (1, 0.0, 31.0, PAGE as f64)] {
        assert_eq!(value(&samples, "pageout_file_hits_total", path(at)), hits);
        assert_eq!(value(&samples, "pageout_file_misses_total", path(at)), misses);
        assert_eq!(value(&samples, "pageout_file_dirty_bytes", path(at)), dirty);
    }
    let of_group = Some(("group", "a \"group\""));
    assert_eq!(value(&samples, "pageout_group_hits_total", of_group), 10.0);
    assert_eq!(value(&samples, "pageout_group_misses_total", of_group), 41.0);
    // A file of the same path is another one.
    std::fs::rename(&made[0].0, made[0].0.with_extension("old")).unwrap();
    made[0].fill(64 * PAGE);
    let other = open(&memory, &made[0], Open::read());
    read(&other, 0..1);
    let samples = parsed(&memory.prometheus().unwrap());
    let of_path = samples.iter().filter(|(name, labels, _)| {
        name == "pageout_file_misses_total" && labels["file"] == made[0].0.to_str().unwrap()
    });
    assert_eq!(of_path.map(|(_, _, value)| *value).collect::<Vec<_>>(), [10.0, 1.0]);
    std::fs::remove_file(made[0].0.with_extension("old")).unwrap();
}

#[test]
fn prometheus_text_of_a_new_cache_is_valid() {
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let samples = parsed(&memory.prometheus().unwrap());
    assert!(samples.iter().all(|(name, ..)| !name.contains("_file_") && !name.contains("_group_")));
}
