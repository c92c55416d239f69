//! The files of a folder of recordings: where they are, and how they are read.
//!
//! Accesses and maps are always compressed with zstd. The runs may be: with their counters in many windows they shrink to a tenth.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use anyhow::{Context, anyhow, bail, ensure};
use pageout_workload::trace::{self, Format};
use pageout_workload::{Access, ReadOptions};
use serde::de::{self, DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Inputs and answers of a folder's runs.
const RUNS: &str = "ground-truth.json";

/// The suffix of a compressed file's name.
const ZSTD: &str = "zst";

/// Returns true if a folder has runs with counters.
pub(super) fn runs_are_in(dir: &Path) -> bool {
    dir.join(RUNS).exists() || compressed(&dir.join(RUNS)).exists()
}

/// The file of a folder's runs, compressed or not.
pub(super) fn runs_path(dir: &Path) -> anyhow::Result<PathBuf> {
    let plain = dir.join(RUNS);
    let compressed = compressed(&plain);
    ensure!(
        !(plain.exists() && compressed.exists()),
        "{}: found both this file and {}, which can differ\nhelp: remove one",
        compressed.display(),
        plain.display()
    );
    Ok(if compressed.exists() { compressed } else { plain })
}

fn compressed(path: &Path) -> PathBuf {
    path.with_added_extension(ZSTD)
}

/// The file of a sequence. A set that lies in the folder of another can use that one's sequences.
pub(super) fn words_path(dir: &Path, sequence: &str) -> PathBuf {
    let path = |dir: &Path| dir.join("sequences").join(format!("{sequence}.u32.zst"));
    let (own, above) = (path(dir), dir.join(".."));
    if own.exists() || !runs_are_in(&above) || !path(&above).exists() { own } else { path(&above) }
}

/// The accesses of a sequence, in order.
pub(super) fn read_words(dir: &Path, sequence: &str) -> anyhow::Result<Vec<Access>> {
    let options = ReadOptions { format: Some(Format::Words), ..ReadOptions::default() };
    let mut stream = trace::open(&words_path(dir, sequence), &options)?;
    let mut accesses = Vec::new();
    while stream.fill(&mut accesses, 1 << 16)? > 0 {}
    Ok(accesses)
}

/// Versions of the form of a folder's runs that are read here. A file that names none has the first; later ones add fields.
const VERSIONS: std::ops::RangeInclusive<u64> = 1..=3;

/// The version of a file's format.
#[derive(Deserialize)]
struct Form {
    format: Option<Value>,
}

/// A file of runs, in the version that is known here. A later one may mean something else by the same fields.
pub(super) fn read_runs<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    // The reader of the fields reports a malformed file.
    let form = read_json::<Form>(path).ok();
    let is_known = |format: &Value| format.as_u64().is_some_and(|format| VERSIONS.contains(&format));
    if let Some(format) = form.and_then(|form| form.format).filter(|format| !is_known(format)) {
        bail!(
            "{}: found `format` {format}, expected {} to {}",
            path.display(),
            VERSIONS.start(),
            VERSIONS.end()
        );
    }
    read_json(path)
}

/// A JSON file, compressed if its name says so.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = if path.extension().is_some_and(|extension| extension == ZSTD) {
        read_compressed(path)?
    } else {
        fs::read(path).with_context(|| format!("cannot read {}", path.display()))?
    };
    let what = || format!("{} is malformed", path.display());
    serde_json::from_slice::<Distinct>(&text).with_context(what)?;
    serde_json::from_slice(&text).with_context(what)
}

/// Any JSON whose objects have each field once. With a duplicate field only the last one would be read, without a message.
struct Distinct;

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Distinct, D::Error> {
        deserializer.deserialize_any(Distinct)
    }
}

impl<'de> Visitor<'de> for Distinct {
    type Value = Distinct;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Distinct, A::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if names.contains(&name) {
                return Err(de::Error::custom(format!("duplicate key `{name}`")));
            }
            map.next_value::<Distinct>()?;
            names.insert(name);
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Distinct, A::Error> {
        while seq.next_element::<Distinct>()?.is_some() {}
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Distinct, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Distinct, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Distinct, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Distinct, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Distinct, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Distinct, E> {
        Ok(self)
    }
}

/// Little-endian words of 32 bits, compressed.
pub(super) fn read_u32s(path: &Path) -> anyhow::Result<Vec<u32>> {
    let bytes = read_compressed(path)?;
    ensure!(bytes.len() % 4 == 0, "{}: the file ends in the middle of a word", path.display());
    Ok(bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// Lines of a compressed text. One that was cut off would pass for a shorter one, so its last line has to end as well.
pub(super) fn read_lines(path: &Path) -> anyhow::Result<String> {
    let text = String::from_utf8(read_compressed(path)?)
        .map_err(|_| anyhow!("{}: found bytes that are not UTF-8, expected text", path.display()))?;
    let number = text.lines().count();
    ensure!(
        text.is_empty() || text.ends_with('\n'),
        "{}:{number}: the last line has no end: part of the text is missing",
        path.display()
    );
    Ok(text)
}

/// What a compressed file holds. Compressed emptiness has bytes as well: a file without any was cut off, or never written.
pub(super) fn read_compressed(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = fs::read(path).with_context(|| format!("cannot open {}", path.display()))?;
    ensure!(!bytes.is_empty(), "{}: empty file: truncated or never written", path.display());
    zstd::decode_all(&bytes[..]).with_context(|| format!("{}: damaged", path.display()))
}
