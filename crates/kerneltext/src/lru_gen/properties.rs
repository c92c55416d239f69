//! Property tests: what holds for dumps of any shape, and with any damage.

use proptest::prelude::*;

use super::tests::{PLAIN, full, parse};
use super::working_set::{Window, of_dump};
use super::{Dump, GENERATIONS_MAX, Generation, Memcg, Node};

fn dumps() -> impl Strategy<Value = Dump> {
    let generations = (
        0..1u64 << 40,
        prop::collection::vec((0..1000u64, 0..1u64 << 30, 0..1u64 << 30), 2..=GENERATIONS_MAX),
    );
    let generations = generations.prop_map(|(seq, rows)| {
        let mut age_ms: u64 = rows.iter().map(|row| row.0).sum();
        let row = |(seq, (step, anon, file))| {
            age_ms -= step;
            Generation { seq, age_ms, pages: [anon, file] }
        };
        (seq..).zip(rows).map(row).collect::<Vec<Generation>>()
    });
    let nodes = prop::collection::vec(generations, 6);
    let memcgs = prop::collection::vec(("(/[a-z.@ ]{0,8}[a-z])*", nodes), 1..5);
    (memcgs, 1..=6usize).prop_map(|(memcgs, node_count)| {
        let memcg = |(id, (path, nodes)): (u32, (String, Vec<Vec<Generation>>))| {
            let node = |(id, generations)| Node { id, generations };
            Memcg { id, path, nodes: (0..).zip(nodes).take(node_count).map(node).collect() }
        };
        Dump { memcgs: (1..).zip(memcgs).map(memcg).collect(), is_full: false }
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_what_was_read(dump in dumps(), statistics in prop::collection::vec(any::<u64>(), 1..40)) {
        prop_assert_eq!(&parse(&dump.to_string()).unwrap(), &dump);
        let read = parse(&full(&dump, &statistics)).unwrap();
        prop_assert_eq!((read.memcgs, read.is_full), (dump.memcgs, true));
    }

    #[test]
    fn no_text_is_too_strange(text in "(memcg|node|[0-9x/ \n\t-]|\\PC){0,200}") {
        if let Err(fault) = parse(&text) {
            prop_assert!(text.get(fault.span).is_some());
        }
    }

    /// One character of a dump changed, lost or doubled: it is read or refused, and the place of the fault is in the text.
    #[test]
    fn no_damage_is_too_strange(at in 0..PLAIN.len(), with in "[0-9a-z /\n-]{0,2}") {
        let text = format!("{}{with}{}", &PLAIN[..at], &PLAIN[at + 1..]);
        match parse(&text) {
            Ok(dump) => prop_assert_eq!(parse(&dump.to_string()).unwrap(), dump),
            Err(fault) => prop_assert!(text.get(fault.span).is_some()),
        }
    }

    #[test]
    fn a_longer_window_has_no_less_in_use_once_it_is_looked_into(dump in dumps(), short in 0..3000u64, more in 0..3000u64) {
        let aged_ms = dump.memcgs.iter().flat_map(|memcg| &memcg.nodes).map(|node| node.youngest().age_ms).max();
        let short = short.max(aged_ms.unwrap_or(0));
        let used = |within_ms| of_dump(&dump, Window { within_ms, has_swap: true }).total();
        let (short, long) = (used(short), used(short + more));
        prop_assert!(short.used.at_least <= short.used.at_most && short.used.at_most <= short.listed);
        prop_assert!(short.used.at_least <= long.used.at_least && short.used.at_most <= long.used.at_most);
        prop_assert_eq!(short.listed, long.listed);
    }
}
