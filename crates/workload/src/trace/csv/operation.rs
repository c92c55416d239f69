//! What an operation of a line does: by the read options, else by the names that traces have for it.

use std::collections::BTreeMap;

use super::super::options::CsvOptions;

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    Read,
    Write,
    /// What is named ends.
    Delete,
    /// It concerns no page.
    NoAccess,
    /// It is left out, and counted.
    Skip,
}

/// Operations by their names.
pub(super) struct Operations {
    /// Those that options name, in lower case.
    named: BTreeMap<String, Op>,
    skips_unknown: bool,
}

impl Operations {
    /// Creates them from the options. Errors: one value is in two lists.
    pub(super) fn of(options: &CsvOptions) -> Result<Operations, String> {
        let mut named = BTreeMap::new();
        let lists = [
            (&options.op_read, Op::Read),
            (&options.op_write, Op::Write),
            (&options.op_delete, Op::Delete),
            (&options.op_skip, Op::Skip),
        ];
        for (names, op) in lists {
            for name in names.iter().flat_map(|names| &names.0) {
                let before = named.insert(name.trim().to_ascii_lowercase(), op);
                if before.is_some_and(|before| before != op) {
                    return Err(format!(
                        "the operation `{name}` is in two of the lists `csv.op_read`, `csv.op_write`, `csv.op_delete` and `csv.op_skip`"
                    ));
                }
            }
        }
        Ok(Operations { named, skips_unknown: options.skip_unknown_ops })
    }

    /// Returns the meaning of an operation; `None` if it is unknown.
    pub(super) fn parse(&self, field: &[u8]) -> Option<Op> {
        let text = str::from_utf8(field).ok().map(str::to_ascii_lowercase);
        let text = text.as_deref();
        let named = text.and_then(|text| self.named.get(text).copied());
        named.or_else(|| usual(text?)).or(self.skips_unknown.then_some(Op::Skip))
    }
}

fn usual(text: &str) -> Option<Op> {
    Some(match text {
        "r" | "read" | "rs" | "ra" | "rm" | "rsm" | "ram" | "get" | "gets" | "get_lease" | "load" | "0" => {
            Op::Read
        }
        // READ and WRITE of 6, 10, 16 and 12 bytes.
        "08" | "28" | "88" | "a8" | "0x8" | "0x08" | "0x28" | "0x88" | "0xa8" => Op::Read,
        "0a" | "2a" | "8a" | "aa" | "0xa" | "0x0a" | "0x2a" | "0x8a" | "0xaa" => Op::Write,
        "w" | "write" | "ws" | "wm" | "wsm" | "wfs" | "fws" | "set" | "set_lease" | "put" | "store"
        | "add" | "replace" | "cas" | "append" | "prepend" | "incr" | "decr" | "update" | "insert" | "1" => {
            Op::Write
        }
        "d" | "trim" | "discard" | "unmap" | "delete" | "del" | "remove" | "unlink" | "invalidate" => {
            Op::Delete
        }
        "flush" | "sync" | "fsync" => Op::NoAccess,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::options::ColumnNames;
    use super::*;

    fn names(names: &[&str]) -> Option<ColumnNames> {
        Some(ColumnNames(names.iter().map(|name| name.to_string()).collect()))
    }

    #[test]
    fn operations_options_name_come_before_the_usual() {
        let options =
            CsvOptions { op_write: names(&["0"]), op_read: names(&["1", "HEAD"]), ..CsvOptions::default() };
        let operations = Operations::of(&options).unwrap();
        let parse = |op: &str| operations.parse(op.as_bytes());
        assert_eq!(
            (parse("0"), parse("1"), parse("head")),
            (Some(Op::Write), Some(Op::Read), Some(Op::Read))
        );
        assert_eq!((parse("delete"), parse("2")), (Some(Op::Delete), None));
        let skipping = Operations::of(&CsvOptions { skip_unknown_ops: true, ..options }).unwrap();
        assert_eq!(skipping.parse(b"2"), Some(Op::Skip));
    }

    #[test]
    fn operation_in_two_lists_is_refused() {
        let options =
            CsvOptions { op_read: names(&["x"]), op_delete: names(&["X"]), ..CsvOptions::default() };
        assert!(Operations::of(&options).is_err_and(|why| why.contains("`X` is in two")));
    }
}
