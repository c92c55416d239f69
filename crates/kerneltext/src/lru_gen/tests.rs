use super::*;

/// A dump of Linux.
pub(super) fn parse(text: &str) -> Result<Dump, ParseError> {
    super::parse(text, GENERATIONS_MAX)
}

/// As recorded on a real 6.12 (two nodes), and a group that was never reclaimed.
pub(super) const PLAIN: &str = concat!(
    "memcg     1 /\n",
    " node     0\n",
    "          5     198536          0           0 \n",
    "          6     197976          0           6 \n",
    "          7     197692          1           0 \n",
    "          8     157820          2           0 \n",
    " node     1\n",
    "          0     393948          0           0 \n",
    "          1     393948          0           0 \n",
    "          2     393948         85           0 \n",
    "          3     393948        419           0 \n",
    "memcg    29 /system.slice/a b.service\n",
    " node     0\n",
    "          1      25068          0         751 \n",
    "          2      25068          0        1237 \n",
    "          3      25068          0           1 \n",
    " node     1\n",
    "          0      25068          0           0 \n",
    "          1      25068          0           0 \n",
    "          2      25068          0           0 \n",
    "          3      25068          0           0 \n",
);

/// `dump` as `lru_gen_full` writes it; `statistics` are the figures, in turn.
pub(super) fn full(dump: &Dump, statistics: &[u64]) -> String {
    let mut figures = statistics.iter().copied().cycle();
    let mut text = String::new();
    for line in dump.to_string().lines() {
        text += &format!("{line}\n");
        if line.starts_with(|c: char| c != ' ') || line.starts_with(" node") {
            continue;
        }
        for tier in 0..TIERS {
            text += &format!("            {tier:10}");
            for mark in ['r', 'e', 'p', 'R', 'T', 'x'] {
                text += &format!(" {:10}{mark}", figures.next().unwrap());
            }
            text.push('\n');
        }
        text += &" ".repeat(22);
        for mark in ['t', 'Y', 'x', 'a'] {
            text += &format!(" {:10}{mark}", figures.next().unwrap());
        }
        text.push('\n');
    }
    text
}

/// `dump` as `lru_gen_full` of kernels up to 6.8 writes it: no marks where there is nothing to say, six figures of walks.
fn full_early(dump: &Dump) -> String {
    let mut text = String::new();
    let mut age = 0;
    for line in dump.to_string().lines() {
        text += &format!("{line}\n");
        if line.starts_with(|c: char| c != ' ') || line.starts_with(" node") {
            continue;
        }
        age += 1;
        let marks = [["R", "T", " "], ["r", "e", "p"], [" ", " ", " "]][age % 3];
        for tier in 0..TIERS {
            text += &format!("            {tier:10}");
            for mark in marks.iter().cycle().take(6) {
                text += &format!(" {:10}{mark}", tier * age);
            }
            text.push('\n');
        }
        text += "                      ";
        for mark in ["LOYNFA", "loynfa", "      "][age % 3].chars() {
            text += &format!(" {age:10}{mark}");
        }
        text.push('\n');
    }
    text
}

#[test]
fn a_full_dump_of_an_early_kernel_holds_what_the_plain_one_does() {
    let dump = parse(PLAIN).unwrap();
    let text = full_early(&dump);
    let read = parse(&text).unwrap();
    assert!(read.is_full);
    assert_eq!(read.memcgs, dump.memcgs);
    let tight: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(parse(&(tight.join("\n") + "\n")).unwrap(), read, "blanks are read freely");
    let line = text.lines().position(|line| line.contains('L')).unwrap() + 1;
    let walk = |from: &str, to: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        lines[line - 1] = lines[line - 1].replacen(from, to, 1);
        lines.join("\n") + "\n"
    };
    check_fault(&walk("L", "Q"), line, &["unknown flag letter `Q`", "`L` or `l`"]);
    check_fault(&walk("L", "x"), line, &["unknown flag letter `x`"]);
    check_fault(&walk("A", " 7"), line, &["page-table walk has 6 columns, this one has 7"]);
}

#[test]
fn a_piece_of_a_dump_may_have_one_generation() {
    let rows = "          3       3000          0          7 \n";
    let text = format!("memcg     7 /a\n node     0\n{rows}");
    assert_eq!(parse(&text).unwrap().memcgs[0].nodes[0].generations.len(), 1);
    let dump = Dump { memcgs: parse(&text).unwrap().memcgs, is_full: true };
    assert_eq!(parse(&full_early(&dump)).unwrap(), dump);
    // After another node it is the rest of one.
    check_fault(&format!("{text} node     1\n{rows}"), 4, &["only one generation"]);
    check_fault(&format!("{PLAIN}memcg    30 /b\n node     0\n{rows}"), 24, &["truncated dump"]);
}

/// Expects a fault in this line (counted from 1; `None` for a text without lines) whose message and help have these `parts`.
#[track_caller]
fn check_fault(text: &str, line: usize, parts: &[&str]) {
    let fault = parse(text).expect_err("there is a fault in it");
    let said = format!("{}; {}", fault.message, fault.help.join("; "));
    for part in parts {
        assert!(said.contains(part), "expected {part:?} in: {said}");
    }
    assert_eq!(text[..fault.span.start].matches('\n').count() + 1, line, "{said}");
    assert!(said.contains("expected"), "{said}");
}

#[test]
fn a_dump_of_a_real_kernel_is_read_and_printed_as_it_was() {
    let dump = parse(PLAIN).unwrap();
    assert!(!dump.is_full);
    assert_eq!(dump.memcgs[1].path, "/system.slice/a b.service");
    assert_eq!(
        dump.memcgs[0].nodes[1].generations[3],
        Generation { seq: 3, age_ms: 393_948, pages: [419, 0] }
    );
    assert_eq!(dump.to_string(), PLAIN);
}

#[test]
fn a_full_dump_holds_what_the_plain_one_does() {
    let dump = parse(PLAIN).unwrap();
    let read = parse(&full(&dump, &[0, 17, u64::MAX])).unwrap();
    assert!(read.is_full);
    assert_eq!(read.memcgs, dump.memcgs);
    // If the oldest generation of a type is younger, the older rows of this type are marked.
    let marked =
        full(&dump, &[0]).replace("          5     198536          0 ", "          5     198536          0x");
    assert_eq!(parse(&marked).unwrap(), read);
}

#[test]
fn blanks_are_read_freely() {
    let dump = parse(PLAIN).unwrap();
    let tight: Vec<String> =
        PLAIN.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(parse(&(tight.join("\n") + "\n")).unwrap(), dump);
    assert_eq!(parse(&(tight.join("\r\n\r\n") + "\r\n")).unwrap(), dump);
    // Without memory cgroups there is one group, without a path, in the widths of either version.
    for head in ["memcg     0 \n", "memcg 0\n", "memcg     0\n"] {
        let dump = parse(&format!("{head} node 0\n 0 9 0 1 \n 1 9 0 1 \n")).unwrap();
        assert_eq!((dump.memcgs[0].id, dump.memcgs[0].path.as_str()), (0, ""));
    }
}

#[test]
fn time_may_pass_between_two_rows() {
    // As recorded on a real 6.12: both were born together, and the second row was written a tick later.
    let text = "memcg     1 /\n node     0\n          0      77120          0           0 \n          1      77124          0       14516 \n";
    assert_eq!(parse(text).unwrap().memcgs[0].nodes[0].generations[1].age_ms, 77_124);
}

#[test]
fn what_is_no_dump_is_told_what_one_is() {
    check_fault("", 1, &["empty file", "needs root"]);
    check_fault("\n \n", 1, &["empty file"]);
    check_fault("total 12\n", 1, &["not a dump of lru_gen", "/sys/kernel/debug/lru_gen"]);
    check_fault("0x0007\n", 1, &["not a dump of lru_gen", "enabled"]);
    check_fault(" node     0\n 1 2 3 4\n", 1, &["no beginning", "`memcg     1 /`"]);
    check_fault(" 1 2 3 4\n", 1, &["no beginning"]);
    check_fault(
        "memcg 1 /\n node 0\n 1 9 0 0\n 2 9 0 0\nDone\n",
        5,
        &["found `Done`, which does not begin a line of a dump"],
    );
}

#[test]
fn a_dump_that_breaks_off_is_no_dump() {
    let cut = |at: &str| &PLAIN[..PLAIN.rfind(at).unwrap()];
    check_fault(cut(" node     1"), 16, &["truncated dump", "memcg 29", "has node 0", "node 0, 1"]);
    check_fault(cut(" node     0"), 12, &["truncated dump", "no line of a node"]);
    check_fault(
        cut("          1      25068          0           0 "),
        18,
        &["truncated dump", "only one generation"],
    );
    check_fault(cut("           0 \n"), 21, &["4 columns, this one has 3", "truncated"]);
    // Digits may be missing from the last figure, or whole rows behind it.
    check_fault(PLAIN.trim_end(), 21, &["truncated dump", "no end"]);
    check_fault(PLAIN.trim_end_matches('\n'), 21, &["truncated dump", "no end"]);
    check_fault(&format!("{PLAIN}   "), 21, &["truncated dump", "no end"]);
    let text = full(&parse(PLAIN).unwrap(), &[5]);
    let lines: Vec<&str> = text.lines().collect();
    for kept in lines.len() - 5..lines.len() {
        let text = lines[..kept].join("\n") + "\n";
        check_fault(&text, kept, &["truncated dump", "generation 3 has"]);
    }
}

#[test]
fn columns_of_another_version_are_not_guessed_at() {
    let group = "memcg 1 /\n node 0\n";
    check_fault(&format!("{group} 1 9 0 0 0\n"), 3, &["4 columns, this one has 5", "another version"]);
    check_fault(
        &format!("{group} 1 9 0 0x\n 2 9 0 0\n"),
        3,
        &["unknown flag letter `x`", "flag letters of this column: none"],
    );
    check_fault("memcg 1 /\n node 0 zone 1\n", 2, &["2 columns, this one has 4"]);
    let text = full(&parse(PLAIN).unwrap(), &[5]);
    check_fault(&text.replacen("5R", "5Q", 1), 4, &["unknown flag letter `Q`", "`R` or `r` or `x`"]);
    check_fault(&text.replacen("5R", "5 ", 1), 4, &["no flag letter after it"]);
    check_fault(&text.replacen(" 2          5r", " 4          5r", 1), 6, &["found tier 4, expected tier 2"]);
    check_fault(&text.replacen("5Y", "5R", 1), 8, &["unknown flag letter `R`", "`Y` or `y` or `x`"]);
    let five_tiers =
        text.replacen("                      ", "            4 5r 5e 5p 5r 5e 5p\n                      ", 1);
    check_fault(&five_tiers, 8, &["page-table walk has 4 columns, this one has 7"]);
}

#[test]
fn figures_that_cannot_be_are_faults() {
    let with = |rows: &str| format!("memcg 1 /\n node 0\n{rows}");
    check_fault(&with(" 1 9 0 -5\n 2 9 0 0\n"), 3, &["-5 is negative", "file pages"]);
    check_fault(&with(" 1 9 0 0\n 3 9 0 0\n"), 4, &["generation 3 comes after generation 1", "without gaps"]);
    check_fault(&with(" 2 9 0 0\n 1 9 0 0\n"), 4, &["generation 1 comes after generation 2"]);
    check_fault(
        &with(" 1 9 0 0\n 2 1010 0 0\n"),
        4,
        &["generation 2 is 1010 ms old, older than", "49.7 days"],
    );
    check_fault(&with(" 1 9 0 a lot\n"), 3, &["4 columns, this one has 5"]);
    check_fault(&with(" 1 9 0 lots\n"), 3, &["`lots` is not a number"]);
    check_fault(&with(" 1 9 0 1.5\n"), 3, &["`1.5` is not a number"]);
    check_fault(&with(" 1 9 0 99999999999999999999\n"), 3, &["larger than any counter"]);
    check_fault(&with(" 1 9 0 99999999999999999\n"), 3, &["more pages than any machine has"]);
    check_fault(&with(" 1 9 0 40000000000000\n 2 9 0 40000000000000\n"), 4, &["more pages than"]);
}

#[test]
fn more_generations_than_linux_keeps_are_a_fault_unless_a_machine_is_said_to_keep_them() {
    let rows: String = (1..=5).map(|seq| format!(" {seq} 9 0 0\n")).collect();
    let text = format!("memcg 1 /\n node 0\n{rows}");
    check_fault(&text, 7, &["more than 4 generations", "of two nodes or groups?", "--generations"]);
    assert_eq!(super::parse(&text, 5).unwrap().memcgs[0].nodes[0].generations.len(), 5);
}

#[test]
fn groups_and_nodes_come_once_and_in_order() {
    let rows = " 1 9 0 0\n 2 9 0 0\n";
    check_fault(&format!("{PLAIN}{PLAIN}"), 22, &["duplicate memcg 1", "one dump per file"]);
    check_fault(&format!("memcg 1 /\n{rows}"), 2, &["memcg 1 / has no line of a node", "` node ID`"]);
    check_fault(&format!("memcg 1 /\n node 1\n{rows} node 0\n{rows}"), 5, &["node 0 comes after node 1"]);
    check_fault("memcg 1 /\n node 0\n node 1\n", 3, &["node 0 of memcg 1 / has no generation"]);
    check_fault(&format!("memcg 1 web\n node 0\n{rows}"), 1, &["invalid path of a group `web`"]);
    for path in ["/a/../b", "/..", "/a/./b", "/a//b", "/a/"] {
        check_fault(&format!("memcg 1 {path}\n node 0\n{rows}"), 1, &[path, "it has the step"]);
    }
    check_fault(&format!("memcg 1 /a\u{1b}[2J\n node 0\n{rows}"), 1, &["control character", "\\u{1b}"]);
    check_fault(&format!("memcg\n node 0\n{rows}"), 1, &["no number"]);
    check_fault(&format!("memcg x /\n node 0\n{rows}"), 1, &["`x` is not a number"]);
    check_fault(&format!("memcg 5000000000 /\n node 0\n{rows}"), 1, &["too large"]);
    let three = format!("memcg 1 /\n node 0\n{rows}memcg 2 /a\n node 1\n{rows}memcg 3 /b\n node 0\n{rows}");
    check_fault(&three, 5, &["memcg 2 /a has node 1, memcg 1 / has node 0"]);
}
