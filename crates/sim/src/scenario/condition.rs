//! `when` of an event: a kernel file, and what it has to show.
//!
//! ```text
//!   memory.current > 95%                        of memory.max of the group whose file the event writes
//!   /sys/fs/cgroup/db/memory.stat file_dirty >= 64MiB          a line by its first word
//!   memory.pressure some avg10 > 20             a figure of a line
//!   /proc/meminfo MemFree < 5%                  of MemTotal
//!   /proc/vmstat pgscan_kswapd > 100000         since the start of the run, as the kernel counts
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{KernelFile, Size};

/// Where cgroups are.
const CGROUP: &str = "/sys/fs/cgroup";
const MEMINFO: &str = "/proc/meminfo";

/// The content of a kernel file at which an event happens.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The path of the file, or the name of one in the directory of the event's cgroup.
    file: String,
    /// The first word of the line, and the name of a figure in it; empty for a file that is one number.
    words: Vec<String>,
    order: Order,
    bound: Bound,
    /// The bound as it was written.
    text: String,
}

/// The order of a shown figure and the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `<=`
    AtMost,
}

/// The operators, those that begin with another first.
const ORDERS: [(&str, Order); 4] =
    [(">=", Order::AtLeast), ("<=", Order::AtMost), (">", Order::Above), ("<", Order::Below)];

/// With what a figure is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// A number in the unit of the file; bytes where a size was given.
    Number(f64),
    /// So many hundredths of what the file is measured by: see [`Condition::whole`].
    Percent(f64),
}

impl Order {
    /// Returns true if a figure stands to a bound as it should.
    pub fn holds(self, figure: f64, bound: f64) -> bool {
        match self {
            Order::Above => figure > bound,
            Order::AtLeast => figure >= bound,
            Order::Below => figure < bound,
            Order::AtMost => figure <= bound,
        }
    }
}

impl Condition {
    /// The path of the file. A bare name is a file of the cgroup in which the event's own file is; `None` if that is in none.
    pub fn path(&self, of_event: Option<&str>) -> Option<String> {
        if self.file.starts_with('/') {
            return Some(self.file.clone());
        }
        let KernelFile::Memcg { path, .. } = KernelFile::parse(of_event?)? else { return None };
        Some(format!("{CGROUP}{}/{}", path.trim_end_matches('/'), self.file))
    }

    /// The value of a file's 100 %: `memory.max` of a cgroup (`memory.swap.max` for swap), or MemTotal of /proc/meminfo. `None` if a percentage has
    /// no meaning, as for a count.
    pub fn whole(&self, path: &str) -> Option<(String, Option<&'static str>)> {
        match KernelFile::parse(path)? {
            KernelFile::Memcg { path: memcg, file } => {
                let limit = match file.as_str() {
                    "memory.current" | "memory.peak" => "memory.max",
                    "memory.stat" if !self.is_count() => "memory.max",
                    "memory.swap.current" => "memory.swap.max",
                    _ => return None,
                };
                Some((format!("{CGROUP}{}/{limit}", memcg.trim_end_matches('/')), None))
            }
            KernelFile::Proc(name) if name == "meminfo" => Some((MEMINFO.to_string(), Some("MemTotal"))),
            _ => None,
        }
    }

    /// Returns true if a line of `memory.stat` counts events, which its name tells.
    fn is_count(&self) -> bool {
        self.words.first().is_none_or(|name| {
            ["pg", "workingset_", "thp_", "zswpin", "zswpout", "zswpwb", "numa_"]
                .iter()
                .any(|of| name.starts_with(of))
        })
    }

    /// The words that lead to the figure within the file.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the order that the figure and the bound must have.
    pub fn order(&self) -> Order {
        self.order
    }

    /// With what the figure is compared.
    pub fn bound(&self) -> Bound {
        self.bound
    }
}

/// The figure that some words lead to in a kernel file, in bytes where the file says kB. `max` is beyond every bound.
pub(crate) fn figure(text: &str, words: &[String]) -> Option<f64> {
    let number = |word: &str| match word {
        "max" => Some(f64::INFINITY),
        _ => word.parse::<f64>().ok().filter(|number| number.is_finite()),
    };
    let Some((first, rest)) = words.split_first() else {
        let mut all = text.split_whitespace();
        return all.next().and_then(number).filter(|_| all.next().is_none());
    };
    let is_line =
        |line: &&str| line.split_whitespace().next().is_some_and(|word| word.trim_end_matches(':') == first);
    let mut fields = text.lines().find(is_line)?.split_whitespace().skip(1);
    match rest.first() {
        None => {
            let value = fields.next().and_then(number)?;
            Some(if fields.next() == Some("kB") { value * 1024.0 } else { value })
        }
        Some(name) => fields.find_map(|field| number(field.strip_prefix(name.as_str())?.strip_prefix('=')?)),
    }
}

/// The reason why a text is not a condition; `Display` is a complete sentence with an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionError(String);

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Condition, ConditionError> {
        let wrong = |what: &str| {
            ConditionError(format!(
                "`{text}` {what}: expected a kernel file, a word of its lines if it has several, `>`, `>=`, `<` or `<=`, and a number, size or percentage, such as \"memory.current > 95%\" or \"/proc/meminfo MemFree < 64MiB\""
            ))
        };
        let at = text.find(['<', '>']).ok_or_else(|| wrong("compares nothing"))?;
        let (left, right) = text.split_at(at);
        let &(sign, order) =
            ORDERS.iter().find(|(sign, _)| right.starts_with(sign)).expect("it begins with one");
        let mut words = left.split_whitespace().map(str::to_string);
        let file = words.next().ok_or_else(|| wrong("names no file"))?;
        let words: Vec<String> = words.collect();
        if words.len() > 2 {
            return Err(wrong("has more than two words after its file"));
        }
        let written = right[sign.len()..].trim();
        let finite = |number: &str| {
            number.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
        };
        let bound = match written.strip_suffix('%') {
            Some(number) => finite(number).map(Bound::Percent),
            // A number of bytes is exact up to 2^53.
            None => finite(written)
                .or_else(|| written.parse::<Size>().ok().map(|size| size.0 as f64))
                .map(Bound::Number),
        };
        let bound = bound.ok_or_else(|| wrong("does not compare with a number"))?;
        Ok(Condition { file, words, order, bound, text: written.to_string() })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        self.words.iter().try_for_each(|word| write!(f, " {word}"))?;
        let (sign, _) = ORDERS.iter().find(|(_, order)| *order == self.order).expect("each has a sign");
        write!(f, " {sign} {}", self.text)
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Condition, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(text: &str) -> Condition {
        text.parse().unwrap()
    }

    #[test]
    fn a_condition_is_read_as_it_is_written() {
        for text in [
            "memory.current > 95%",
            "memory.current >= 0x1000",
            "/proc/meminfo MemFree < 64MiB",
            "memory.pressure some avg10 <= 2.5",
        ] {
            assert_eq!(condition(text).to_string(), text);
        }
        assert_eq!(condition("memory.current>1KiB").to_string(), "memory.current > 1KiB");
        assert_eq!(condition("memory.current > 0x1000").bound(), Bound::Number(4096.0));
    }

    #[test]
    fn what_is_no_condition_says_what_one_is() {
        for text in [
            "",
            "memory.current",
            "> 5",
            "memory.current > much",
            "memory.current == 5",
            "a b c d > 1",
            "x > -1",
            "x > nan%",
        ] {
            let error = text.parse::<Condition>().unwrap_err().to_string();
            assert!(error.contains("such as \"memory.current > 95%\""), "{error}");
        }
    }

    #[test]
    fn a_bare_name_is_a_file_of_the_cgroup_that_the_event_writes() {
        let current = condition("memory.current > 95%");
        let of = |event: &str| current.path(Some(event));
        assert_eq!(
            of("/sys/fs/cgroup/web/memory.high").as_deref(),
            Some("/sys/fs/cgroup/web/memory.current")
        );
        assert_eq!(of("/proc/vmstat"), None);
        assert_eq!(condition("/proc/meminfo MemFree < 1").path(None).as_deref(), Some("/proc/meminfo"));
    }

    #[test]
    fn a_figure_is_found_in_files_of_every_form() {
        let shown = |text: &str, words: &[&str]| {
            figure(text, &words.iter().map(|word| (*word).to_string()).collect::<Vec<_>>())
        };
        assert_eq!(shown("4096\n", &[]), Some(4096.0));
        assert_eq!(shown("max\n", &[]), Some(f64::INFINITY));
        assert_eq!(shown("anon 5\nfile 7\n", &["file"]), Some(7.0));
        assert_eq!(shown("MemFree:      3 kB\n", &["MemFree"]), Some(3072.0));
        assert_eq!(
            shown("some avg10=1.50 total=3\nfull avg10=0.25 total=1\n", &["full", "avg10"]),
            Some(0.25)
        );
        for (text, words) in [
            ("anon 5\nfile 7\n", &[][..]),
            ("anon 5\n", &["file"]),
            ("some avg10=1\n", &["some", "avg60"]),
            ("", &[]),
        ] {
            assert_eq!(shown(text, words), None, "{text:?} {words:?}");
        }
    }

    #[test]
    fn a_percentage_is_of_the_limit_or_of_all_memory_and_never_of_a_count() {
        let whole = |text: &str| {
            let condition = condition(text);
            let path = condition.path(Some("/sys/fs/cgroup/web/memory.high")).unwrap();
            condition.whole(&path).map(|(path, _)| path)
        };
        assert_eq!(whole("memory.current > 9%").as_deref(), Some("/sys/fs/cgroup/web/memory.max"));
        assert_eq!(whole("memory.swap.current > 9%").as_deref(), Some("/sys/fs/cgroup/web/memory.swap.max"));
        assert_eq!(whole("memory.stat file_dirty > 9%").as_deref(), Some("/sys/fs/cgroup/web/memory.max"));
        assert_eq!(whole("/proc/meminfo MemFree < 9%").as_deref(), Some("/proc/meminfo"));
        for count in [
            "memory.stat pgscan > 9%",
            "memory.stat workingset_refault_file > 9%",
            "/proc/vmstat pgfault > 9%",
            "memory.pressure some avg10 > 9%",
        ] {
            assert_eq!(whole(count), None, "{count}");
        }
    }
}
