//! Eras: in which versions of the kernel a rule had a value, and how that is known. [kernels 1]
//!
//! ```text
//!   Keep => "..7.0" "A B"       up to 7.0, read in trees A and B
//!   Reparent => "7.1.." "C"     from 7.1 on
//! ```
//! A span is `from..to`, both included, after the lists that it is for, if it is not for both: `generations 6.14..7.2`. A series at its start is its
//! first version, and at its end its last. Spans of stable versions are written like others: `6.1.68..6.1`. `posted` and `never` mark values that no
//! version had. `rests ..6.13` covers versions in which a rule chose among mechanisms that did not exist. `beside ..6.15` marks a value that some
//! machines had because of their file system, while the other spans hold for the rest.
//!
//! Marks say how it is known. Letters A to E: it was read in that tree ([`TREES`], and E, `mm/vmscan.c` of 6.6). M: in a commit's message
//! or a posting, h: in the history of a file, S: in another document; the rest from memory (m) or from its neighbours (I).

use crate::version::Version;

/// The lists that a version may keep: Linux has had two kinds since 6.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lists {
    /// Active and inactive.
    Classic,
    /// Generations.
    Mglru,
}

impl Lists {
    /// The word of scenarios: `classic` or `mglru`.
    pub const fn name(self) -> &'static str {
        match self {
            Lists::Classic => "classic",
            Lists::Mglru => "mglru",
        }
    }

    /// The lists of a word.
    pub fn by_name(name: &str) -> Option<Lists> {
        [Lists::Classic, Lists::Mglru].into_iter().find(|lists| lists.name() == name)
    }
}

/// The source of knowledge about a rule's value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Known {
    /// It was read in the source of a version of that series.
    Recorded,
    /// A commit's message, a posting or a document says so.
    Documented,
    /// From versions before and after it, or from memory.
    Inferred,
    /// Proposed, and in no version.
    Posted,
    /// No version had it.
    Never,
}

impl Known {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Known::Recorded => "recorded",
            Known::Documented => "documented",
            Known::Inferred => "inferred",
            Known::Posted => "posted",
            Known::Never => "never in a kernel",
        }
    }
}

/// Versions whose source was read as a whole, with their letters.
pub const TREES: &[(char, Version)] = &[
    ('A', Version::parse_const("6.1.192")),
    ('B', Version::parse_const("6.12.117")),
    ('C', Version::parse_const("7.2.13")),
    ('D', Version::parse_const("7.3.4")),
];

/// The tree that was read in parts.
const IN_PARTS: (char, Version) = ('E', Version::parse_const("6.6"));

/// Time in which a value held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// From a version to another one, both included.
    Versions(Version, Version),
    /// The same, on some machines only.
    Beside(Version, Version),
    /// From a version to another one it made no difference: what it chooses among did not exist.
    Rests(Version, Version),
    /// In a posting.
    Posted,
    /// In no version.
    Never,
}

/// A value of a rule and when it held.
#[derive(Clone, Copy, Debug)]
pub struct Era {
    /// The value's word.
    pub value: &'static str,
    /// The lists it is for; `None`: both.
    pub lists: Option<Lists>,
    /// Time in which it held.
    pub when: When,
    marks: &'static str,
}

impl Era {
    /// An era of the tables. One that can't be read does not compile.
    pub(crate) const fn new(value: &'static str, span: &'static str, marks: &'static str) -> Era {
        let (lists, span) = match after(span, "two_lists ") {
            Some(rest) => (Some(Lists::Classic), rest),
            None => match after(span, "generations ") {
                Some(rest) => (Some(Lists::Mglru), rest),
                None => (None, span),
            },
        };
        let when = match span.as_bytes() {
            b"posted" => When::Posted,
            b"never" => When::Never,
            _ => match (after(span, "beside "), after(span, "rests ")) {
                (Some(span), _) => {
                    let (from, to) = ends(span);
                    When::Beside(from, to)
                }
                (None, Some(span)) => {
                    let (from, to) = ends(span);
                    When::Rests(from, to)
                }
                (None, None) => {
                    let (from, to) = ends(span);
                    When::Versions(from, to)
                }
            },
        };
        Era { value, lists, when, marks }
    }

    /// Returns whether it is one of the versions in which lists of this kind had the value.
    pub fn holds(&self, version: Version, lists: Lists) -> bool {
        self.is_for(lists) && self.covers(version)
    }

    /// Returns whether it is of this version, whichever lists.
    pub fn covers(&self, version: Version) -> bool {
        matches!(self.when, When::Versions(from, to) if from <= version && version <= to)
    }

    fn is_for(&self, lists: Lists) -> bool {
        self.lists.is_none_or(|of| of == lists)
    }

    /// Returns the source of knowledge about the value in a version.
    pub fn known_at(&self, version: Version) -> Known {
        match self.when {
            When::Posted => Known::Posted,
            When::Never => Known::Never,
            When::Versions(..) | When::Beside(..) | When::Rests(..) => {
                let is_read = |(letter, tree): &(char, Version)| {
                    self.marks.contains(*letter) && tree.series() == version.series()
                };
                match TREES.iter().any(is_read) || is_read(&IN_PARTS) {
                    true => Known::Recorded,
                    false if self.marks.contains(['M', 'h', 'S']) => Known::Documented,
                    false => Known::Inferred,
                }
            }
        }
    }

    /// The versions in whose sources it was read, or else how it is known.
    pub fn sources(&self) -> String {
        let trees = TREES.iter().chain([&IN_PARTS]);
        let trees = trees.filter(|(letter, tree)| self.marks.contains(*letter) && self.covers(*tree));
        let mut trees: Vec<Version> = trees.map(|&(_, tree)| tree).collect();
        trees.sort();
        let told = if self.marks.contains(['M', 'h', 'S']) { Known::Documented } else { Known::Inferred };
        match (self.when, trees.is_empty()) {
            (When::Posted, _) => Known::Posted.name().to_owned(),
            (When::Never, _) => Known::Never.name().to_owned(),
            (_, true) => told.name().to_owned(),
            (_, false) => {
                let read: Vec<String> = trees.iter().map(ToString::to_string).collect();
                let read = format!("read in {}", read.join(", "));
                if told == Known::Documented { format!("{read}; documented") } else { read }
            }
        }
    }

    /// The span as the tables of documents have it.
    pub fn span(&self) -> String {
        let of = |from: Version, to: Version| {
            let from = if from == Version::BEFORE_ALL { String::new() } else { from.shown_as_begin() };
            let to = if to == Version::AFTER_ALL { String::new() } else { to.to_string() };
            if !from.is_empty() && from == to { from } else { format!("{from}..{to}") }
        };
        match self.when {
            When::Versions(from, to) => of(from, to),
            When::Beside(from, to) => format!("beside it {}", of(from, to)),
            When::Rests(from, to) => format!("rests {}", of(from, to)),
            When::Posted => "posted".to_owned(),
            When::Never => "never".to_owned(),
        }
    }
}

/// Value of a rule in a version.
#[derive(Clone, Copy, Debug)]
pub enum Held {
    /// This, and how it is known.
    Value(&'static str, Known),
    /// It is not known. The value of the next version for which it is known stands for it, after that of the last one before.
    NotKnown {
        /// The last value before, if one is known.
        before: Option<&'static str>,
        /// The next value.
        next: &'static str,
    },
    /// There was no such mechanism, or it makes no difference in this version. A value stands for it where a row of its eras names one, so that
    /// versions on both sides of its beginning do not differ by it.
    Rests(Option<&'static str>),
}

/// Returns the value of a rule of these eras in a version with these lists.
pub fn held(eras: &'static [Era], version: Version, lists: Lists) -> Held {
    if let Some(era) = eras.iter().find(|era| era.holds(version, lists)) {
        return Held::Value(era.value, era.known_at(version));
    }
    let rests = |era: &&Era| matches!(era.when, When::Rests(from, to) if from <= version && version <= to);
    if let Some(era) = eras.iter().filter(|era| era.is_for(lists)).find(rests) {
        return Held::Rests(Some(era.value));
    }
    let spans = || {
        eras.iter().filter(|era| era.is_for(lists)).filter_map(|era| match era.when {
            When::Versions(from, to) => Some((from, to, era.value)),
            _ => None,
        })
    };
    let before = spans().filter(|&(_, to, _)| to < version).max_by_key(|&(_, to, _)| to);
    let next = spans().filter(|&(from, ..)| from > version).min_by_key(|&(from, ..)| from);
    match (before, next) {
        (_, None) => Held::Rests(None),
        // Generations and what belongs to them began with 6.1.
        (None, Some((from, ..))) if from.begins_with_generations() => Held::Rests(None),
        (before, Some((.., next))) => Held::NotKnown { before: before.map(|(.., value)| value), next },
    }
}

/// The first version with MGLRU.
pub const GENERATIONS_SINCE: Version = Version::parse_begin("6.1");

/// The last tree that was read before a version, and the first one after it: it says how near the reading comes.
pub fn between_trees(version: Version) -> (Option<Version>, Option<Version>) {
    let trees = || TREES.iter().map(|&(_, tree)| tree);
    let is_before = |tree: &Version| *tree <= version || tree.series() == version.series();
    (trees().rfind(is_before), trees().find(|tree| !is_before(tree)))
}

/// The rest of a text that begins so.
const fn after(text: &'static str, begin: &str) -> Option<&'static str> {
    let (bytes, wanted) = (text.as_bytes(), begin.as_bytes());
    if bytes.len() < wanted.len() {
        return None;
    }
    let mut at = 0;
    while at < wanted.len() {
        if bytes[at] != wanted[at] {
            return None;
        }
        at += 1;
    }
    Some(text.split_at(wanted.len()).1)
}

/// The ends of a span.
const fn ends(span: &'static str) -> (Version, Version) {
    let bytes = span.as_bytes();
    let mut at = 0;
    while at + 1 < bytes.len() {
        if bytes[at] == b'.' && bytes[at + 1] == b'.' {
            let (from, rest) = span.split_at(at);
            let to = rest.split_at(2).1;
            let from = if from.is_empty() { Version::BEFORE_ALL } else { Version::parse_begin(from) };
            return (from, if to.is_empty() { Version::AFTER_ALL } else { Version::parse_const(to) });
        }
        at += 1;
    }
    panic!("a span is from..to")
}
