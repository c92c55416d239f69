//! `lru_gen` and `lru_gen_full`: the text of the generations, and the commands that age and evict them.
//!
//! ```text
//!   memcg     2 /service                                         once a group
//!    node     0                                                  once a node
//!             1      25068          0         751                seq, age in ms, anonymous pages, file pages
//!                     0          3r        120e          0p  ... lru_gen_full: four tiers of each generation,
//!                           4096t        311y          8f ...    then what the walks saw while it was the youngest
//! ```
//! A letter after a number is its meaning. `R`, `T` are the averages of refaulted and of all pages; `r`, `e`, `p` are refaulted, evicted and
//! protected pages. `t`, `y`, `f`, `a` are scanned entries, young ones, tables found by the filter, and tables added to it; `x` is nothing. The
//! kernel is assumed to be built with full statistics, as the recorded one is. Groups are numbered from 1, the root's number, in the order of their
//! creation; ages are counted in ticks of the timer.
//!
//! ```text
//!   + memcg_id node_id max_gen [swappiness [force_scan]]         commands end with a comma, a semicolon or a line
//!   - memcg_id node_id min_gen [swappiness [nr_to_reclaim]]
//! ```
//! Commands are done in order, each in steps, up to the first that is rejected. A missing number has its largest value: `+` forces its scan and `-`
//! takes all. Which of them fail, and how, depends on the era (`lru.interface`). The error of a malformed number is not known. Here a number too
//! large for its field is ERANGE, and any other text is EINVAL. [reclaim 4.12; reclaim-6.12 4.12]

use super::{Errno, FileError, WriteError};
use crate::access::engine::Engine;
use crate::balance::TIERS;
use crate::lru::{GenerationLists, GenerationRequest, GenerationWork, Refused, Requested, WorkStep};
use crate::machine::step::{Served, Step};
use crate::units::{LruType, MemcgId, NodeId, TaskId};
use pageout_rules::lru::{Interface, SWAPPINESS_ANON_ONLY};
use std::fmt::Write;

pub(super) const LRU_GEN: &str = "/sys/kernel/debug/lru_gen";

/// A write in progress.
pub(crate) struct LruGenWrite {
    /// The commands not begun yet.
    rest: String,
    /// Number of commands begun.
    number: usize,
    /// The command begun last.
    command: String,
    work: Option<GenerationWork>,
    reclaimed: u64,
}

impl LruGenWrite {
    fn new(text: &str) -> Box<LruGenWrite> {
        let (rest, command) = (text.to_owned(), String::new());
        Box::new(LruGenWrite { rest, number: 0, command, work: None, reclaimed: 0 })
    }

    /// The next command that isn't empty.
    fn next(&mut self) -> Option<String> {
        while !self.rest.is_empty() {
            let end = self.rest.find([',', ';', '\n']).unwrap_or(self.rest.len());
            let command = self.rest[..end].trim().to_owned();
            self.rest = self.rest.get(end + 1..).unwrap_or_default().to_owned();
            if !command.is_empty() {
                self.number += 1;
                return Some(command);
            }
        }
        None
    }

    fn refused(&self, refused: Refused) -> FileError {
        FileError::Refused {
            path: LRU_GEN.to_owned(),
            number: self.number,
            command: self.command.clone(),
            errno: refused.errno,
            expected: refused.expected,
        }
    }
}

const FORM: &str = "`+ memcg_id node_id max_gen [swappiness [force_scan]]` or \
                    `- memcg_id node_id min_gen [swappiness [nr_to_reclaim]]`";

/// Does the commands, as far as one step goes.
pub(super) fn lru_gen_store(engine: &mut Engine, task: TaskId, commands: &str) -> Result<Step, WriteError> {
    engine.lru_gen_write(task, LruGenWrite::new(commands)).map_err(WriteError::Told)
}

impl Engine {
    /// Goes on with a write to `lru_gen` up to the end of a batch.
    #[doc(alias = "lru_gen_seq_write")]
    pub(crate) fn lru_gen_write(
        &mut self,
        task: TaskId,
        mut write: Box<LruGenWrite>,
    ) -> Result<Step, FileError> {
        loop {
            if let Some(work) = &mut write.work {
                match self.core.generation_work_step(work) {
                    WorkStep::Again => {
                        self.current(task).suspend_lru_gen(write);
                        return Ok(Step::Again);
                    }
                    WorkStep::Done(result) => {
                        write.work = None;
                        write.reclaimed += result.map_err(|refused| write.refused(refused))?;
                    }
                }
            }
            let Some(command) = write.next() else {
                return Ok(Step::Done(Served::Written { reclaimed: write.reclaimed }));
            };
            let begun = self.parse_command(&command).and_then(|request| self.core.generation_work(request));
            write.command = command;
            write.work = begun.map_err(|refused| write.refused(refused))?;
        }
    }

    /// Opens a generation after `max_gen`, as `+` does. `swappiness` 0 leaves anonymous memory alone; `None` is the system's.
    pub fn lru_gen_age(
        &mut self,
        task: TaskId,
        memcg: MemcgId,
        node: NodeId,
        max_gen: u64,
        swappiness: Option<u8>,
        force_scan: bool,
    ) -> Result<Step, FileError> {
        let what = Requested::Age { is_forced: force_scan };
        self.lru_gen_request(task, GenerationRequest { memcg, node, seq: max_gen, swappiness, what })
    }

    /// Evicts generations up to `min_gen`, or this many pages of them, as `-` does; the last step returns how many it reclaimed.
    pub fn lru_gen_evict(
        &mut self,
        task: TaskId,
        memcg: MemcgId,
        node: NodeId,
        min_gen: u64,
        swappiness: Option<u8>,
        nr_to_reclaim: Option<u64>,
    ) -> Result<Step, FileError> {
        let what = Requested::Evict { nr_to_reclaim: nr_to_reclaim.unwrap_or(u64::MAX) };
        self.lru_gen_request(task, GenerationRequest { memcg, node, seq: min_gen, swappiness, what })
    }

    fn lru_gen_request(&mut self, task: TaskId, request: GenerationRequest) -> Result<Step, FileError> {
        self.enter(task);
        let mut write = LruGenWrite::new("");
        write.number = 1;
        let sign = if matches!(request.what, Requested::Age { .. }) { '+' } else { '-' };
        write.command = format!("{sign} {} {} {}", request.memcg.0 + 1, request.node.0, request.seq);
        let checked = if self.core.mm.has_lruvec(request.memcg, request.node) {
            self.check_swappiness(request.memcg, request.swappiness)
        } else {
            Err(Refused::invalid("a group and a node of this machine"))
        };
        let begun = checked.and_then(|()| self.core.generation_work(request));
        write.work = begun.map_err(|refused| write.refused(refused))?;
        self.lru_gen_write(task, write)
    }

    fn parse_command(&self, command: &str) -> Result<GenerationRequest, Refused> {
        let sign = command.chars().next().expect("a command is not empty");
        if !matches!(sign, '+' | '-') {
            return Err(Refused::invalid(FORM));
        }
        let mut fields = command[1..].split_whitespace();
        let mut number = |largest: u64| {
            let field = fields.next().ok_or_else(|| Refused::invalid(FORM))?;
            parse_number(field, largest)
        };
        let (memcg, node, seq) = (number(u32::MAX.into())?, number(u32::MAX.into())?, number(u64::MAX)?);
        let memcg = (memcg.checked_sub(1).and_then(|id| u16::try_from(id).ok()).map(MemcgId))
            .filter(|&memcg| self.core.mm.memcgs.contains(memcg))
            .ok_or_else(|| Refused::invalid("the id of a group, as in lru_gen"))?;
        let node = (u8::try_from(node).ok().map(NodeId))
            .filter(|node| node.index() < self.core.mm.config.node_pages.len())
            .ok_or_else(|| Refused::invalid("the id of a node, as in lru_gen"))?;
        let swappiness = match fields.next() {
            None => None,
            Some(field) => Some(self.parse_swappiness(memcg, field)?),
        };
        let last = fields.next().map_or(Ok(u64::MAX), |field| parse_number(field, u64::MAX))?;
        if fields.next().is_some() {
            return Err(Refused::invalid(FORM));
        }
        let what = match sign {
            '+' => Requested::Age { is_forced: last != 0 },
            _ => Requested::Evict { nr_to_reclaim: last },
        };
        Ok(GenerationRequest { memcg, node, seq, swappiness, what })
    }

    fn parse_swappiness(&self, memcg: MemcgId, field: &str) -> Result<u8, Refused> {
        let number = match self.core.mm.memcgs[memcg].policy.generations.interface {
            Interface::Linux6_12 => parse_number(field, u32::MAX.into())?,
            Interface::Linux6_16 if field == "max" => u64::from(SWAPPINESS_ANON_ONLY),
            Interface::Linux6_16 => u64::from(parse_c_integer(field)?),
        };
        let swappiness = u8::try_from(number).unwrap_or(u8::MAX);
        self.check_swappiness(memcg, Some(swappiness)).map(|()| swappiness)
    }

    fn check_swappiness(&self, memcg: MemcgId, swappiness: Option<u8>) -> Result<(), Refused> {
        let (largest, expected) = match self.core.mm.memcgs[memcg].policy.generations.interface {
            Interface::Linux6_12 => (200, "a swappiness from 0 to 200"),
            Interface::Linux6_16 => (SWAPPINESS_ANON_ONLY, "a swappiness from 0 to 200, or `max`"),
        };
        if swappiness.is_none_or(|swappiness| swappiness <= largest) {
            Ok(())
        } else {
            Err(Refused::invalid(expected))
        }
    }

    /// The text of debugfs `lru_gen`, or of `lru_gen_full`.
    #[doc(alias = "lru_gen_seq_show")]
    pub(super) fn lru_gen_text(&self, is_full: bool) -> String {
        let mut text = String::new();
        for memcg in self.core.mm.memcgs.subtree(MemcgId::ROOT) {
            line(&mut text, format_args!("memcg {:5} {}", memcg.0 + 1, self.core.mm.memcgs.path(memcg)));
            for node in self.core.mm.memory.nodes() {
                line(&mut text, format_args!(" node {:5}", node.0));
                self.generation_rows(&mut text, memcg, node, is_full);
            }
        }
        text
    }

    fn generation_rows(&self, text: &mut String, memcg: MemcgId, node: NodeId, is_full: bool) {
        let lruvec = self.core.mm.lruvecs.id(memcg, node);
        let Some(generations) = &self.core.mm.lruvecs[lruvec].generations else { return };
        let oldest = if is_full {
            generations.oldest_that_can_exist()
        } else {
            self.core.mm.oldest_shown(lruvec, generations)
        };
        for seq in oldest..=generations.max_seq {
            let pages = generations.pages(seq);
            let mark = |kind: LruType| {
                if is_full && seq < generations.min_seq[kind as usize] { 'x' } else { ' ' }
            };
            let age = self.core.age_ms(generations.birth(seq));
            let (anon, file) = (LruType::Anon, LruType::File);
            line(
                text,
                format_args!(
                    " {seq:10} {age:10} {:10}{} {:10}{}",
                    pages[0],
                    mark(anon),
                    pages[1],
                    mark(file)
                ),
            );
            if is_full {
                self.history_rows(text, generations, memcg, node, seq);
            }
        }
    }

    /// Tiers and walks of a generation.
    fn history_rows(
        &self,
        text: &mut String,
        generations: &GenerationLists,
        memcg: MemcgId,
        node: NodeId,
        seq: u64,
    ) {
        let lruvec = &self.core.mm.lruvecs[self.core.mm.lruvecs.id(memcg, node)];
        let is_youngest = seq == generations.max_seq;
        for tier in 0..TIERS {
            let mut row = format!("{:12}{tier:10}", "");
            for kind in LruType::BOTH {
                if is_youngest {
                    let (refaulted, total) = lruvec.feedback.past(kind, tier);
                    let _ = write!(row, " {refaulted:10}R {total:10}T {:10}x", 0);
                } else {
                    let slot = generations.slot(seq);
                    let (refaulted, evicted, protected) = lruvec.feedback.present(slot, kind, tier);
                    let _ = write!(row, " {refaulted:10}r {evicted:10}e {protected:10}p");
                }
            }
            line(text, format_args!("{row}"));
        }
        let walk = lruvec.walk.seen(seq);
        let seen = [walk.leaf_total, walk.leaf_young, walk.nonleaf_found, walk.nonleaf_added];
        let mut row = format!("{:22}", "");
        for (count, mark) in seen.into_iter().zip("tyfa".chars()) {
            let (count, mark) = if is_youngest { (0, 'x') } else { (count, mark) };
            let _ = write!(row, " {count:10}{mark}");
        }
        line(text, format_args!("{row}"));
    }
}

fn line(text: &mut String, row: std::fmt::Arguments<'_>) {
    writeln!(text, "{row}").expect("writing to a string can't fail");
}

/// A decimal number.
fn parse_number(field: &str, largest: u64) -> Result<u64, Refused> {
    if field.is_empty() || !field.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refused::invalid(FORM));
    }
    let too_large = || Refused { errno: Errno::Erange, expected: format!("a number of at most {largest}") };
    field.parse().ok().filter(|&number| number <= largest).ok_or_else(too_large)
}

/// A number as C writes it: decimal, `0x` hexadecimal, `0` octal.
pub(super) fn parse_c_integer(text: &str) -> Result<u32, Refused> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (&digits[2..], 16),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(Refused::invalid("an integer"));
    }
    let too_large = |_| Refused { errno: Errno::Erange, expected: "an integer of 32 bits".to_owned() };
    u32::from_str_radix(digits, radix).map_err(too_large)
}
