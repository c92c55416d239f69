//! The keys of `workload` and `read` tables, which the workload crate defines: access patterns and trace options.
//!
//! The paths are those of the kind and not of the place: `workload.zipf.alpha` is `alpha` in any table with
//! `pattern = "zipf"`. A test compares the rows with what the workload crate accepts.

use std::sync::LazyLock;

use pageout_workload::trace::Format;

use super::{Accepts, Key};
use crate::scenario::Scale;
use crate::scenario::Scale::{Inside, Same, Twice};

const ANY: Accepts = Accepts::Integer(0, i64::MAX);
const PAGES: Accepts = Accepts::Integer(1, 1 << 40);
const COUNT: Accepts = Accepts::Integer(1, i64::MAX);
const FRACTION: Accepts = Accepts::Number(0.0, 1.0);
const PATTERN: Accepts = Accepts::Table("access pattern");

/// Keys of the tables that the workload crate defines.
pub static WORKLOAD_KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let key = |&(path, accepts, scale, default, meaning): &Row| Key {
        path: String::from(path),
        accepts,
        scale,
        default: String::from(default),
        meaning: String::from(meaning),
        versions: Vec::new(),
    };
    ROWS.iter().map(key).collect()
});

/// Path, accepted values, treatment when a page stands for half as many, default and meaning.
type Row = (&'static str, Accepts, Scale, &'static str, &'static str);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("workload.pattern", Accepts::Choice(PATTERNS), Same, "", "Which pages are accessed in which order; the other keys are those of the pattern."),

    ("workload.sequential.pages", PAGES, Twice, "the object's", "Pages of the pass, in ascending order."),
    ("workload.sequential.stride", COUNT, Same, "1", "Pages from one access to the next. 1 accesses every page."),
    ("workload.sequential.write_ratio", FRACTION, Same, "0", "Share of the accesses that write. A scan reads."),
    ("workload.sequential.seed", ANY, Same, "derived", "Seed of the choice of writes."),

    ("workload.loop.pages", PAGES, Twice, "the object's", "Pages of the loop, in ascending order."),
    ("workload.loop.ops", ANY, Twice, "", "Total number of accesses; the last round may be incomplete."),
    ("workload.loop.write_ratio", FRACTION, Same, "0", "Share of the accesses that write."),
    ("workload.loop.seed", ANY, Same, "derived", "Seed of the choice of writes."),

    ("workload.uniform.pages", PAGES, Twice, "the object's", "Pages, each accessed with the same probability."),
    ("workload.uniform.ops", ANY, Twice, "", "Accesses in total."),
    ("workload.uniform.write_ratio", FRACTION, Same, "0", "Share of the accesses that write."),
    ("workload.uniform.seed", ANY, Same, "derived", "Seed of pages and writes."),

    ("workload.zipf.pages", PAGES, Twice, "the object's", "Pages to choose from; the popular ones are scattered over them."),
    ("workload.zipf.ops", ANY, Twice, "", "Accesses in total."),
    ("workload.zipf.alpha", Accepts::Number(0.0, 100.0), Same, "0.99", "Skew: rank k has a probability proportional to k^-alpha; 0 is uniform. 0.99 is YCSB's."),
    ("workload.zipf.write_ratio", FRACTION, Same, "0", "Share of the accesses that write."),
    ("workload.zipf.seed", ANY, Same, "derived", "Seed of popularity, pages and writes."),

    ("workload.hot_set.pages", PAGES, Twice, "the object's", "Total number of pages, hot and cold; the hot ones are adjacent."),
    ("workload.hot_set.ops", ANY, Twice, "", "Accesses in total."),
    ("workload.hot_set.hot_pages_fraction", FRACTION, Same, "0.2", "Share of the pages that is hot. With the next key, the 80-20 rule."),
    ("workload.hot_set.hot_access_fraction", FRACTION, Same, "0.8", "Share of the accesses that go to hot pages."),
    ("workload.hot_set.move_every", ANY, Twice, "0", "Accesses after which the hot range moves by its own length; 0: never."),
    ("workload.hot_set.write_ratio", FRACTION, Same, "0", "Share of the accesses that write."),
    ("workload.hot_set.seed", ANY, Same, "derived", "Seed of pages and writes."),

    ("workload.zipf_scan.pages", Accepts::Integer(1, (1 << 40) - 1), Twice, "", "Popular pages, from page 0. Scanned pages lie above them, so the object is larger than this."),
    ("workload.zipf_scan.ops", ANY, Twice, "", "Zipf accesses, not including those of the scans."),
    ("workload.zipf_scan.alpha", Accepts::Number(0.0, 100.0), Same, "0.99", "As of zipf."),
    ("workload.zipf_scan.scan_every", COUNT, Twice, "", "Zipf accesses from one scan to the next."),
    ("workload.zipf_scan.scan_length", COUNT, Twice, "", "Pages of one scan."),
    ("workload.zipf_scan.scan_pages", COUNT, Twice, "total length of all scans", "Pages that the scans cycle through."),
    ("workload.zipf_scan.write_ratio", FRACTION, Same, "0", "Share of the accesses that write, scans included."),
    ("workload.zipf_scan.seed", ANY, Same, "derived", "Seed of pages and writes."),

    ("workload.phase_shift.phases[].pages", PAGES, Twice, "", "Pages of a phase."),
    ("workload.phase_shift.phases[].ops", ANY, Twice, "", "Accesses of a phase."),
    ("workload.phase_shift.phases[].offset", ANY, Twice, "0", "First page of a phase."),
    ("workload.phase_shift.phases[].order", Accepts::Choice(&["uniform", "looping"]), Same, "\"uniform\"", "Order of accesses in a phase."),
    ("workload.phase_shift.write_ratio", FRACTION, Same, "0", "Share of the accesses that write."),
    ("workload.phase_shift.seed", ANY, Same, "derived", "Seed of pages and writes."),

    ("workload.fill.pages", PAGES, Twice, "the object's", "Writes each page once, as programs initialize their memory."),

    ("workload.runs.pages", PAGES, Twice, "the object's", "Pages of all runs: complete files of a tree, one after the other."),
    ("workload.runs.ops", ANY, Twice, "", "Total number of accesses; the last run may be incomplete."),
    ("workload.runs.length", COUNT, Same, "4", "Pages of a run, which is read from its start to its end; 4 are the 16 KiB of a typical source file."),
    ("workload.runs.alpha", Accepts::Number(0.0, 100.0), Same, "0.99", "Skew of the popularity of runs, as for zipf; 0 is uniform."),
    ("workload.runs.write_ratio", FRACTION, Same, "0", "Share of the accesses that write."),
    ("workload.runs.seed", ANY, Same, "derived", "Seed of popularity, runs and writes."),

    ("workload.index.pages", PAGES, Twice, "the object's", "Pages of a search tree, the root first and the leaves last."),
    ("workload.index.ops", ANY, Twice, "", "Total number of accesses; a lookup makes one at each level."),
    ("workload.index.fanout", Accepts::Integer(2, i64::MAX), Same, "256", "Child pages per inner page; 256 entries of 16 bytes fill one."),
    ("workload.index.alpha", Accepts::Number(0.0, 100.0), Same, "0.99", "Skew of the popularity of leaves, as for zipf."),
    ("workload.index.write_ratio", FRACTION, Same, "0", "Share of the accesses that write, those to inner pages included."),
    ("workload.index.seed", ANY, Same, "derived", "Seed of popularity, lookups and writes."),

    ("workload.mix.parts[].of", PATTERN, Inside, "", "A pattern; the parts take turns at random."),
    ("workload.mix.parts[].weight", COUNT, Same, "1", "Its share of the accesses, relative to the other parts."),
    ("workload.mix.parts[].object", ANY, Same, "the mix's", "Number of the task's object that it accesses."),
    ("workload.mix.end", Accepts::Choice(&["first", "last"]), Same, "\"first\"", "Whether the mix ends with the first part that ends, so that the proportions hold, or with the last."),
    ("workload.mix.seed", ANY, Same, "derived", "Seed of the choice of parts."),

    ("workload.chain.parts[].of", PATTERN, Inside, "", "A pattern; the parts come one after the other."),
    ("workload.chain.parts[].object", ANY, Same, "the chain's", "Number of the task's object that it accesses."),

    ("workload.repeat.times", COUNT, Same, "", "Number of repetitions, each with the same random choices."),
    ("workload.repeat.of", PATTERN, Inside, "", "The pattern repeated."),

    ("workload.limit.ops", ANY, Twice, "", "Accesses to keep."),
    ("workload.limit.of", PATTERN, Inside, "", "The pattern to truncate."),

    ("read.format", Accepts::Choice(Format::NAMES), Same, "detected from content and name", Format::LIST),
    ("read.page_size", Accepts::Range("power of two from 512 to 2^30, as a number of bytes or a size such as \"64KiB\""), Same, "a .pgt's own, else 4096", "Bytes per page. Byte ranges are split into pages of this size, and simulated as pages of 4096."),
    ("read.ignore_size", Accepts::Bool, Same, "false", "One id is one page, whatever its size."),
    ("read.page_ids", Accepts::Choice(&["auto", "dense", "as_given"]), Same, "\"auto\"", "Whether pages keep their numbers. auto: offsets and page numbers do; opaque ids are numbered in order of first appearance. Pages renumbered this way have no neighbours: files of them are not read ahead by default."),
    ("read.keep_ids", Accepts::Bool, Same, "false", "Conversion only: keep a table of the original ids."),
    ("read.unterminated_ok", Accepts::Bool, Same, "false", "Accept a text file whose last line has no line feed; the line may be incomplete."),
    ("read.implausible_ok", Accepts::Bool, Same, "false", "Accept implausible values: in oracle-general, times that go back and impossible next accesses; in any format, sizes that make far more pages per record than usual."),
    ("read.csv.delimiter", Accepts::Text, Same, "a tab in a .tsv, else a comma; if the first line has none, a tab, ;, | or blanks", "Delimiter between fields: one ASCII character, \"tab\", or \"blank\" (also \" \") for any number of blanks and tabs."),
    ("read.csv.header", Accepts::Bool, Same, "true", "Whether the first line names the columns."),
    ("read.csv.time", Accepts::Text, Same, "by its usual names, else none", "Column of the time; `trace info` and task.timed use it. Columns are named as in the header, or #1, #2, ... Columns that are not selected are found by usual names (timestamp, volume, offset, lba, len, rw, ...); \"\" selects none."),
    ("read.csv.time_unit", Accepts::Choice(&["s", "ms", "us", "ns"]), Same, "not known", "Unit of the time, for task.timed. Formats with known columns define their own."),
    ("read.csv.object", Accepts::Text, Same, "by its usual names (all such columns), else one object", "Column of the file, volume or region accessed, or a list of columns that identify it together: [\"Hostname\", \"DiskNumber\"]. Pages of different objects are different pages. Usual names (volume, disk, dev, lun, asu, host, file, path, inode, ... also with id or number) are found in any case; [] selects none of them."),
    ("read.csv.id", Accepts::Text, Same, "by its usual names", "Column of an opaque id. Exactly one of id, page and offset is required."),
    ("read.csv.page", Accepts::Text, Same, "by its usual names", "Column of a page number within the object."),
    ("read.csv.offset", Accepts::Text, Same, "by its usual names", "Column of an offset within the object. Usual names are offset and address, and also lba, lbn, sector and blkno, which count sectors."),
    ("read.csv.size", Accepts::Text, Same, "by its usual names, else one page each", "Column of the size."),
    ("read.csv.op", Accepts::Text, Same, "by its usual names, else all are reads", "Column of the operation: r, read, get, w, write, set, ..., or SCSI's codes in hexadecimal (28 reads, 2a writes)."),
    ("read.csv.op_read", Accepts::Text, Same, "the usual names", "Values of the operation that read, one or a list: [\"GET\", \"HEAD\"] or 1. They have priority over the usual names. Upper and lower case are equal."),
    ("read.csv.op_write", Accepts::Text, Same, "the usual names", "Values of the operation that write, one or a list."),
    ("read.csv.op_delete", Accepts::Text, Same, "the usual names", "Values of the operation that delete, one or a list: the pages of the named range leave memory."),
    ("read.csv.op_skip", Accepts::Text, Same, "none", "Values of the operation whose records are skipped, one or a list. They are counted."),
    ("read.csv.skip_unknown_ops", Accepts::Bool, Same, "false", "Skip records of unknown operations, and count them. Without it the first one is an error."),
    ("read.csv.count", Accepts::Text, Same, "op_count and similar names, else one request per line", "Column of the number of requests per line."),
    ("read.csv.ttl", Accepts::Text, Same, "ttl and similar names, else none", "Column of the time to live. Lines that have one are counted; nothing expires."),
    ("read.csv.offset_unit", COUNT, Same, "512 if the column is called lba, lbn, sector or blkno, else 1", "Bytes per unit of the offset, such as 512 for sectors."),
    ("read.csv.size_unit", COUNT, Same, "512 if the column is called sectors, bcount or similar, else 1", "Bytes per unit of the size."),
];

/// The patterns there are.
const PATTERNS: &[&str] = &[
    "sequential",
    "loop",
    "uniform",
    "zipf",
    "hot_set",
    "zipf_scan",
    "phase_shift",
    "fill",
    "runs",
    "index",
    "mix",
    "chain",
    "repeat",
    "limit",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pageout_workload::{Pattern, ReadOptions};
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    /// The keys that serde says would have been right.
    fn accepted<T: DeserializeOwned>(table: Value) -> BTreeSet<String> {
        let error =
            serde_json::from_value::<T>(table).err().expect("the table has an unknown key").to_string();
        assert!(error.starts_with("unknown field `?`"), "{error}");
        error.split('`').skip(3).step_by(2).map(str::to_string).collect()
    }

    /// The keys listed right under `prefix`.
    fn listed(prefix: &str) -> BTreeSet<String> {
        let names = WORKLOAD_KEYS.iter().filter_map(|key| key.path.strip_prefix(prefix));
        names.map(|name| name.split(['.', '[']).next().unwrap_or(name).to_string()).collect()
    }

    #[test]
    fn every_pattern_is_listed_with_the_keys_it_accepts() {
        for pattern in PATTERNS {
            let keys = accepted::<Pattern>(json!({ "pattern": pattern, "?": 1 }));
            assert_eq!(listed(&format!("workload.{pattern}.")), keys, "{pattern}");
        }
        let error = serde_json::from_value::<Pattern>(json!({ "pattern": "?" })).unwrap_err().to_string();
        let known: BTreeSet<&str> = error.split('`').skip(3).step_by(2).collect();
        for pattern in PATTERNS {
            assert!(known.contains(pattern), "{pattern}: {error}");
        }
        let aliases = ["looping", "interleave"];
        assert!(known.iter().all(|name| PATTERNS.contains(name) || aliases.contains(name)), "{known:?}");
    }

    #[test]
    fn every_option_of_the_trace_reader_is_listed() {
        assert_eq!(listed("read."), accepted::<ReadOptions>(json!({ "?": 1 })));
        let csv = accepted::<ReadOptions>(json!({ "csv": { "?": 1 } }));
        assert_eq!(listed("read.csv."), csv);
    }
}
