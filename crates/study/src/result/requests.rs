//! Sentences about the records of a trace that are not accesses. They are shown next to a figure over accesses.

use pageout_workload::trace::Requests;
use serde_json::{Value, json};

use crate::figures;

/// Operations that are named one by one.
const NAMED_MAX: usize = 5;

/// The effect of a trace's deletes on memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletes {
    /// They remove the pages that they name.
    Played,
    /// Anonymous memory keeps the pages.
    Kept,
    /// Textbook policies remove the pages, anonymous memory of the machine keeps them.
    KeptByMachine,
    /// Nothing is replayed: they are counted.
    Counted,
}

/// Returns a sentence, without its period, for each thing that the model omits or that is not an access.
pub fn says(of: &Requests, deletes: Deletes) -> Vec<String> {
    let mut says = Vec::new();
    if of.has_sizes() {
        let bytes = match of.bytes {
            0 => String::new(),
            bytes => format!(" for {}", figures::bytes(bytes)),
        };
        says.push(format!(
            "{}{bytes} became {}; object sizes are not modelled (see --ignore-size)",
            figures::counted(of.requests, "request"),
            figures::counted(of.pages, "page"),
        ));
    }
    if of.deletes > 0 {
        let effect = match deletes {
            Deletes::Counted => "",
            _ if of.pages_deleted == 0 => ": the deleted pages leave memory",
            Deletes::Played => ": the deleted pages leave memory",
            Deletes::Kept => ": anonymous memory keeps the deleted pages",
            Deletes::KeptByMachine => {
                ": textbook policies drop the deleted pages, anonymous memory of the machine keeps them"
            }
        };
        says.push(format!("{}{effect}", figures::counted(of.deletes, "delete")));
    }
    if of.ttls > 0 {
        says.push(format!(
            "{} with a time to live: expiry is not modelled",
            figures::counted(of.ttls, "request")
        ));
    }
    if of.skipped() > 0 {
        let mut named: Vec<(&String, &u64)> = of.skipped.iter().collect();
        named.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
        let more = if named.len() > NAMED_MAX { ", ..." } else { "" };
        let named =
            named.iter().take(NAMED_MAX).map(|(name, count)| format!("`{name}` {}", figures::count(**count)));
        says.push(format!(
            "{} skipped by operation: {}{more}",
            figures::counted(of.skipped(), "record"),
            named.collect::<Vec<_>>().join(", ")
        ));
    }
    says
}

/// The same as data.
pub fn json(of: &Requests) -> Value {
    json!({
        "requests": of.requests,
        "pages": of.pages,
        "bytes": (of.bytes > 0).then_some(of.bytes),
        "sizes_modelled": !of.has_sizes(),
        "deletes": of.deletes,
        "pages_deleted": of.pages_deleted,
        "with_ttl": of.ttls,
        "skipped": of.skipped(),
        "skipped_by_operation": of.skipped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_deletes_ttls_and_skips_are_each_a_sentence() {
        let mut of = Requests {
            requests: 2_000,
            pages: 123_360,
            bytes: 1 << 29,
            has_ids: true,
            ..Requests::default()
        };
        assert_eq!(
            says(&of, Deletes::Played),
            [
                "2,000 requests for 512 MiB became 123,360 pages; object sizes are not modelled (see --ignore-size)"
            ]
        );
        (of.pages, of.deletes, of.pages_deleted, of.ttls) = (2_000, 1, 3, 2);
        of.skipped.insert("HEAD".to_string(), 4);
        assert_eq!(
            says(&of, Deletes::Played),
            [
                "1 delete: the deleted pages leave memory",
                "2 requests with a time to live: expiry is not modelled",
                "4 records skipped by operation: `HEAD` 4"
            ]
        );
        assert_eq!(says(&of, Deletes::Kept)[0], "1 delete: anonymous memory keeps the deleted pages");
    }
}
