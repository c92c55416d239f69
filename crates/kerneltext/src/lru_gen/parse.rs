//! The parser of `lru_gen` text: it returns a [`Dump`], or the first error in the text.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::fields::{Field, Line};
use super::{Dump, GENERATIONS_MAX, Generation, Memcg, Node, PAGES_MAX, ParseError, TIERS};

const MEMCG: &str = "a line `memcg ID PATH`";
const NODE: &str = "a line ` node ID`";
const GENERATION: &str = "a row of a generation: seq, age in ms, anonymous pages, file pages";
const TIER: &str =
    "a row of a tier: its number; refaulted, evicted, protected of anonymous pages; the same of file pages";
const WALK: &str =
    "a row of the page-table walk: four counters, each with a flag letter, or six in kernels up to 6.8";

/// A generation may seem older than the one before it by this much: rows are dated one after the other, and time passes in
/// between. 4 ms did in a dump recorded on an idle machine.
const SLIP_MS: u64 = 1000;

/// Marks of a tier's three counters: the youngest generation's averages, an older one's counts, nothing to say.
const TIER_MARKS: [&str; 3] = ["Rrx", "Tex", "px"];

/// Which counters of page-table walks there are, and whether one that has nothing to say has no mark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Statistics {
    /// Kernels up to 6.8: pages of leaf tables (total, old, young), and of other tables (total, found, added).
    Early,
    /// Kernels since then.
    Modern,
}

impl Statistics {
    /// Marks of the page-table walk's counters.
    fn walk_marks(self) -> &'static [&'static str] {
        match self {
            Statistics::Early => &["Ll", "Oo", "Yy", "Nn", "Ff", "Aa"],
            Statistics::Modern => &["Ttx", "Yyx", "Ffx", "Aax"],
        }
    }
}

/// Reads a dump of a machine that keeps at most `generations_max` generations: [`GENERATIONS_MAX`] on Linux. Errors: the text is not
/// a whole dump of `lru_gen` or `lru_gen_full`.
pub fn parse(source: &str, generations_max: usize) -> Result<Dump, ParseError> {
    let lines = lines(source);
    let Some(first) = lines.first() else {
        return Err(ParseError {
            message: "empty file".into(),
            span: 0..0,
            help: vec![format!("expected: {MEMCG}; reading lru_gen needs root and a kernel with MGLRU")],
        });
    };
    if first.first() != "memcg" {
        return Err(not_a_dump(first));
    }
    let mut parser =
        Parser { source, lines: &lines, at: 0, generations_max, statistics: None, pages: 0, nodes_read: 0 };
    let memcgs = parser.memcgs()?;
    if !source.ends_with('\n') {
        return Err(ParseError {
            message: "truncated dump: its last line has no end".into(),
            span: lines[lines.len() - 1].span(),
            help: vec![
                "expected: an end of line, which the kernel writes after each row; $(...) drops it".into(),
            ],
        });
    }
    Ok(Dump { memcgs, is_full: parser.statistics.flatten().is_some() })
}

fn lines(source: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    let mut lines = Vec::new();
    for text in source.split_inclusive('\n') {
        let line = Line { text: text.trim_end_matches(['\n', '\r']), start };
        start += text.len();
        if !line.first().is_empty() {
            lines.push(line);
        }
    }
    lines
}

fn not_a_dump(first: &Line<'_>) -> ParseError {
    const STRANGER: &str = "not a dump of lru_gen";
    let (message, hint) = if first.first().starts_with("0x") {
        (
            STRANGER,
            "0x... is the content of /sys/kernel/mm/lru_gen/enabled; the dump is /sys/kernel/debug/lru_gen",
        )
    } else if first.first() == "node" || first.is_row() {
        (
            "the dump has no beginning: the first line must be that of a group",
            "was it truncated, or filtered with grep?",
        )
    } else {
        (STRANGER, "copy /sys/kernel/debug/lru_gen or lru_gen_full")
    };
    ParseError {
        message: message.into(),
        span: first.span(),
        help: vec![format!("expected: {MEMCG}, such as `memcg     1 /`"), hint.into()],
    }
}

struct Parser<'a> {
    source: &'a str,
    lines: &'a [Line<'a>],
    at: usize,
    generations_max: usize,
    /// The tiers that follow each generation, if any; known with the first one.
    statistics: Option<Option<Statistics>>,
    /// Pages of all rows so far.
    pages: u64,
    /// Nodes of all groups so far.
    nodes_read: u64,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Line<'a>> {
        self.lines.get(self.at)
    }

    /// The next line if it is as it should be.
    fn next_if(&mut self, is_expected: impl Fn(&Line<'a>) -> bool) -> Option<&'a Line<'a>> {
        let line = self.peek().filter(|line| is_expected(line))?;
        self.at += 1;
        Some(line)
    }

    /// The fault that the next line is not what was `expected` there, or that there is none.
    fn unexpected(&self, message: String, expected: &str) -> ParseError {
        let Some(line) = self.peek() else {
            return ParseError {
                message: format!("truncated dump: {message}"),
                span: self.last_line(),
                help: vec![format!("expected after this line: {expected}")],
            };
        };
        ParseError { message, span: line.span(), help: vec![format!("expected: {expected}")] }
    }

    fn last_line(&self) -> Range<usize> {
        self.lines.last().map_or(0..self.source.len(), Line::span)
    }

    fn memcgs(&mut self) -> Result<Vec<Memcg>, ParseError> {
        let mut memcgs: Vec<Memcg> = Vec::new();
        let mut paths: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
        while let Some(line) = self.next_if(|line| line.first() == "memcg") {
            let (id, path) = memcg_line(line)?;
            let known = paths.entry(id).or_default();
            // Removed groups may share the number 0.
            let is_shared = id == 0 || known.is_empty();
            if !known.insert(path.clone()) || !is_shared {
                return Err(ParseError {
                    message: format!("duplicate memcg {id}"),
                    span: line.span(),
                    help: vec!["expected: one dump per file, with each group once".into()],
                });
            }
            let memcg = Memcg { nodes: self.nodes(id, &path)?, id, path };
            if let Some(first) = memcgs.first()
                && !memcg.nodes.iter().map(|node| node.id).eq(first.nodes.iter().map(|node| node.id))
            {
                let message = format!(
                    "memcg {id} {} has {}, memcg {} {} has {}",
                    memcg.path,
                    numbers(&memcg),
                    first.id,
                    first.path,
                    numbers(first)
                );
                // The last group may have lost its end; of any other nothing more will come.
                const SAME: &str = "the same nodes for every group";
                return Err(match self.peek() {
                    None => self.unexpected(message, SAME),
                    Some(_) => {
                        ParseError { message, span: line.span(), help: vec![format!("expected: {SAME}")] }
                    }
                });
            }
            memcgs.push(memcg);
        }
        match self.peek() {
            None => Ok(memcgs),
            Some(line) => {
                let message = format!("found `{}`, which does not begin a line of a dump", line.first());
                Err(self.unexpected(message, &format!("{MEMCG}, {NODE}, or {GENERATION}")))
            }
        }
    }

    fn nodes(&mut self, memcg: u32, path: &str) -> Result<Vec<Node>, ParseError> {
        let mut nodes: Vec<Node> = Vec::new();
        while let Some(line) = self.next_if(|line| line.first() == "node") {
            let [_, id] = line.exactly("the line of a node", NODE)?;
            let number = id.number_u32(NODE)?;
            if let Some(before) = nodes.last().filter(|before| before.id >= number) {
                return Err(ParseError {
                    message: format!("node {number} comes after node {}", before.id),
                    span: id.span(),
                    help: vec!["expected: nodes in rising order".into()],
                });
            }
            nodes.push(Node { id: number, generations: self.generations(number, memcg, path)? });
        }
        if nodes.is_empty() {
            return Err(self.unexpected(format!("memcg {memcg} {path} has no line of a node"), NODE));
        }
        Ok(nodes)
    }

    fn generations(&mut self, node: u32, memcg: u32, path: &str) -> Result<Vec<Generation>, ParseError> {
        let mut generations: Vec<Generation> = Vec::new();
        while let Some(line) = self.next_if(Line::is_row) {
            let generation = self.generation(line, generations.last())?;
            if generations.len() == self.generations_max {
                return Err(too_many_generations(line, self.generations_max));
            }
            generations.push(generation);
        }
        let count = generations.len();
        // A single group with one generation is an excerpt; after other groups it is the end of a dump that was cut.
        let is_piece = count == 1 && self.peek().is_none() && self.nodes_read == 0;
        self.nodes_read += 1;
        if count < 2 && !is_piece {
            let rows = ["no generation", "only one generation"][count];
            let message = format!("node {node} of memcg {memcg} {path} has {rows}, expected two or more");
            return Err(self.unexpected(message, GENERATION));
        }
        Ok(generations)
    }

    fn generation(&mut self, line: &Line<'_>, older: Option<&Generation>) -> Result<Generation, ParseError> {
        let [seq, age, anon, file] = line.exactly("the row of a generation", GENERATION)?;
        let statistics = *self.statistics.get_or_insert_with(|| {
            let columns = |ahead: usize| {
                let line = self.lines.get(self.at + ahead).filter(|line| line.is_row());
                line.map_or(0, |line| line.fields().count())
            };
            match (columns(0), columns(TIERS)) {
                (7, 6) => Some(Statistics::Early),
                (7, _) => Some(Statistics::Modern),
                _ => None,
            }
        });
        let marks = if statistics.is_some() { "x" } else { "" };
        let pages = |field: Field<'_>| {
            let pages = field.marked(marks, true, GENERATION)?;
            if pages > PAGES_MAX {
                return Err(too_many(field.span()));
            }
            Ok(pages)
        };
        let generation = Generation {
            seq: seq.number(GENERATION)?,
            age_ms: age.number(GENERATION)?,
            pages: [pages(anon)?, pages(file)?],
        };
        self.pages = self.pages.saturating_add(generation.pages.iter().sum());
        if self.pages > PAGES_MAX {
            return Err(too_many(line.span()));
        }
        if let Some(older) = older {
            in_order(older, &generation, &seq, &age)?;
        }
        if let Some(statistics) = statistics {
            self.statistics(generation.seq, statistics)?;
        }
        Ok(generation)
    }

    /// The rows below a generation of `lru_gen_full`: checked, and left alone.
    fn statistics(&mut self, seq: u64, statistics: Statistics) -> Result<(), ParseError> {
        let may_lack = statistics == Statistics::Early;
        for tier in 0..TIERS {
            let Some(line) = self.next_if(Line::is_row) else {
                return Err(self.unexpected(format!("generation {seq} has {tier} of {TIERS} tiers"), TIER));
            };
            let [number, counters @ ..] = line.exactly::<7>("the row of a tier", TIER)?;
            if number.number(TIER)? != tier as u64 {
                return Err(ParseError {
                    message: format!("found tier {}, expected tier {tier}", number.text),
                    span: number.span(),
                    help: vec![format!("expected: {TIERS} tiers for each generation, counted from 0")],
                });
            }
            for (counter, marks) in counters.iter().zip(TIER_MARKS.iter().cycle()) {
                counter.marked(marks, may_lack, TIER)?;
            }
        }
        let Some(line) = self.next_if(Line::is_row) else {
            return Err(self.unexpected(format!("generation {seq} has no row of the page-table walk"), WALK));
        };
        const WHAT: &str = "the row of the page-table walk";
        let counters: &[Field<'_>] = match statistics {
            Statistics::Early => &line.exactly::<6>(WHAT, WALK)?,
            Statistics::Modern => &line.exactly::<4>(WHAT, WALK)?,
        };
        for (counter, marks) in counters.iter().zip(statistics.walk_marks()) {
            counter.marked(marks, may_lack, WALK)?;
        }
        Ok(())
    }
}

fn memcg_line(line: &Line<'_>) -> Result<(u32, String), ParseError> {
    let fault = |message: String| ParseError {
        message,
        span: line.span(),
        help: vec![format!("expected: {MEMCG}, such as `memcg    29 /web`")],
    };
    let Some(id) = line.fields().nth(1) else {
        return Err(fault("the line of a group has no number".into()));
    };
    let number = id.number_u32(MEMCG)?;
    let path = line.text[id.span().end - line.start..].trim_ascii();
    if !path.is_empty() && !path.starts_with('/') {
        return Err(fault(format!("invalid path of a group `{path}`: it does not begin with /")));
    }
    // The root is `/`; no other path has a step without a name.
    let mut steps = path.split('/').skip(1).filter(|_| path != "/");
    if let Some(step) = steps.find(|step| ["", ".", ".."].contains(step)) {
        return Err(fault(format!("invalid path of a group `{path}`: it has the step `{step}`")));
    }
    if path.contains(char::is_control) {
        return Err(fault(format!(
            "invalid path of a group `{}`: it has a control character",
            path.escape_debug()
        )));
    }
    Ok((number, path.to_string()))
}

/// Checks that `younger` can follow `older`.
fn in_order(
    older: &Generation,
    younger: &Generation,
    seq: &Field<'_>,
    age: &Field<'_>,
) -> Result<(), ParseError> {
    if older.seq.checked_add(1) != Some(younger.seq) {
        return Err(ParseError {
            message: format!("generation {} comes after generation {}", younger.seq, older.seq),
            span: seq.span(),
            help: vec!["expected: generations from the oldest to the youngest, without gaps".into()],
        });
    }
    if younger.age_ms > older.age_ms.saturating_add(SLIP_MS) {
        return Err(ParseError {
            message: format!(
                "generation {} is {} ms old, older than generation {} before it with {} ms",
                younger.seq, younger.age_ms, older.seq, older.age_ms
            ),
            span: age.span(),
            help: vec![
                "expected: ages that fall from the oldest to the youngest".into(),
                "the kernel's milliseconds have 32 bits, so after 49.7 days an age starts again at 0".into(),
            ],
        });
    }
    Ok(())
}

fn too_many_generations(line: &Line<'_>, most: usize) -> ParseError {
    ParseError {
        message: format!("a node has more than {most} generations"),
        span: line.span(),
        help: vec![
            format!(
                "expected: at most {GENERATIONS_MAX}, the limit of Linux; are these rows of two nodes or groups?"
            ),
            "a simulated machine can have more: give the number by --generations".into(),
        ],
    }
}

fn too_many(span: Range<usize>) -> ParseError {
    ParseError {
        message: "more pages than any machine has".into(),
        span,
        help: vec![format!("expected: at most {PAGES_MAX} pages in the dump")],
    }
}

fn numbers(memcg: &Memcg) -> String {
    let ids: Vec<String> = memcg.nodes.iter().map(|node| node.id.to_string()).collect();
    format!("node {}", ids.join(", "))
}
