//! Working sets in tables, with remarks on what makes them uncertain.

use std::fmt::Write;

use pageout_kerneltext::lru_gen::working_set::{Bracket, Estimate, of_memcg, of_node};
use pageout_kerneltext::lru_gen::{Memcg, Node};

use pageout_study::working_set::rank::Landing;
use pageout_study::working_set::trend::{History, Trend};
use pageout_study::working_set::{Answer, Landings};

use crate::print::{Layout, figures};

/// Rows of a table without `--all`.
const ROWS: usize = 10;

/// Everything that is to be printed.
pub(super) struct Report<'a> {
    pub(super) answer: &'a Answer,
    pub(super) all: bool,
    pub(super) layout: Layout,
}

impl Report<'_> {
    pub(super) fn to_text(&self) -> String {
        let mut parts = Vec::new();
        if let Some(landings) = &self.answer.landings {
            parts.push(self.ranking(landings));
        } else {
            let window = &self.answer.window;
            parts
                .push(format!("In use within {window} of each machine's latest dump, at least to at most\n"));
        }
        if self.answer.landings.is_none() && (self.answer.histories.len() > 1 || self.knows_memory()) {
            parts.push(self.overview());
        }
        // A ranking answers the question; its basis is printed on request.
        if self.answer.landings.is_none() || self.all {
            parts.extend(self.answer.histories.iter().map(|history| self.machine(history)));
        }
        let remarks: String = self.remarks().iter().map(|remark| self.layout.wrap(remark, "")).collect();
        if !remarks.is_empty() {
            parts.push(remarks);
        }
        parts.join("\n")
    }

    fn ranking(&self, landings: &Landings) -> String {
        let job = self.bytes(landings.job.pages);
        let mut text = format!(
            "Machines for a job of {job}, ordered by the memory in use within {} that it would evict\n\n",
            self.answer.window
        );
        let mut rows =
            vec![row(["machine", "landing there", "memory", "free", "idle", "in use", "headroom"])];
        for landing in &landings.machines {
            rows.push(vec![
                landing.machine.clone(),
                self.verdict(landing),
                self.bytes(landing.memory),
                self.bytes(landing.free),
                self.bracket(landing.idle),
                self.bracket(landing.used),
                self.signed(landing.headroom),
            ]);
        }
        text += &self.layout.table(&rows, 2);
        text
    }

    fn verdict(&self, landing: &Landing) -> String {
        let (evicted, pushed_out) = (self.bytes(landing.evicted), landing.pushed_out);
        if !landing.fits() {
            format!("does not fit: {} short with all evicted", self.bytes(landing.lacking))
        } else if landing.evicted == 0 {
            "in free memory".to_string()
        } else if pushed_out.at_most == 0 {
            format!("evicts {evicted}, all idle")
        } else if pushed_out.at_least == 0 {
            format!("evicts {evicted}, up to {} in use", self.bytes(pushed_out.at_most))
        } else {
            format!("evicts {evicted}, {} in use", self.bracket(pushed_out))
        }
    }

    fn knows_memory(&self) -> bool {
        self.answer.rooms.iter().any(Option::is_some)
    }

    /// One row a machine.
    fn overview(&self) -> String {
        let mut rows = vec![row(["machine", "in use", "anon", "file", "idle", "total", "dumps", "trend"])];
        if self.knows_memory() {
            rows[0].splice(1..1, row(["memory", "free"]));
        }
        for (history, room) in self.answer.histories.iter().zip(&self.answer.rooms) {
            let estimate = history.estimate();
            let mut row = self.cells(&history.machine.name, &estimate);
            if self.knows_memory() {
                let known = room.map(|room| [self.bytes(room.memory), self.bytes(room.free(&estimate))]);
                row.splice(1..1, known.unwrap_or(["-", "-"].map(str::to_string)));
            }
            row.push(figures::count(history.estimates.len() as u64));
            row.push(self.trend(history));
            rows.push(row);
        }
        self.layout.table(&rows, 1)
    }

    /// The groups of one machine, and how it came to its state.
    fn machine(&self, history: &History) -> String {
        let (name, latest) = (&history.machine.name, history.latest());
        let mut memcgs: Vec<(&Memcg, Estimate)> = latest
            .dump
            .memcgs
            .iter()
            .map(|memcg| (memcg, of_memcg(memcg, self.answer.question)))
            .filter(|(_, estimate)| estimate.total().listed > 0)
            .collect();
        memcgs.sort_by_key(|(_, estimate)| {
            let used = estimate.total().used;
            std::cmp::Reverse((used.at_most, used.at_least))
        });
        let shown = if self.all { memcgs.len() } else { memcgs.len().min(ROWS) };

        let mut rows = vec![row(["memcg", "in use", "anon", "file", "idle", "total"])];
        rows.extend(memcgs[..shown].iter().map(|(memcg, estimate)| self.cells(path(memcg), estimate)));
        if shown < memcgs.len() {
            let mut others = Estimate::default();
            memcgs[shown..].iter().for_each(|(_, estimate)| others += *estimate);
            rows.push(self.cells(&format!("{} more (--all)", memcgs.len() - shown), &others));
        }
        rows.push(self.cells("total", &history.estimate()));
        let mut text = format!("machine {name}, {}\n", latest.file);
        text += &self.layout.table(&rows, 1);

        let count = history.estimates.len();
        if count > 1 {
            let first = if self.all { 0 } else { count.saturating_sub(ROWS) };
            let mut rows = vec![row(["dump", "in use", "anon", "file", "idle", "total"])];
            let readings = history.machine.dumps.iter().zip(&history.estimates).skip(first);
            rows.extend(readings.map(|(reading, estimate)| self.cells(&reading.file, estimate)));
            let _ = write!(text, "\n{}", self.layout.table(&rows, 1));
            let _ = writeln!(text, "trend: {}", self.trend(history));
        }
        text
    }

    fn cells(&self, name: &str, estimate: &Estimate) -> Vec<String> {
        let total = estimate.total();
        let brackets = [total.used, estimate.anon.used, estimate.file.used, total.idle()];
        let mut cells = vec![name.to_string()];
        cells.extend(brackets.map(|bracket| self.bracket(bracket)));
        cells.push(self.bytes(total.listed));
        cells
    }

    fn trend(&self, history: &History) -> String {
        match history.trend() {
            None => "-".to_string(),
            Some(Trend::Up(by)) => format!("up {}", self.bracket(by)),
            Some(Trend::Down(by)) => format!("down {}", self.bracket(by)),
            Some(Trend::Unclear) => "none certain".to_string(),
        }
    }

    /// What the reader has to know to judge the figures, a paragraph each.
    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let window = &self.answer.window;
        let open = self.machines_with(|history| history.estimate().not_looked_at);
        if let Some((machine, memcg, node)) = self.least_looked_at() {
            let (id, node_id, youngest) = (memcg.id, node.id, node.youngest());
            let age = figures::time(youngest.age_ms.saturating_mul(1_000_000));
            remarks.push(format!(
                "No aging within {window}, so all or nothing may be in use: {open}. The largest part is memcg {id} {}, \
                 node {node_id} of machine {machine}, last aged {age} before the dump; to age it:\n\
                 echo '+ {id} {node_id} {}' > /sys/kernel/debug/lru_gen",
                path(memcg),
                youngest.seq
            ));
        }
        let drained = self.machines_with(|history| history.estimate().in_drain);
        if !drained.is_empty() {
            remarks.push(format!(
                "In oldest generations younger than {window}: {drained}. Unused pages of any age gather there. A shorter \
                 --within, or less frequent aging, would narrow it."
            ));
        }
        for history in &self.answer.histories {
            let (name, dumps) = (&history.machine.name, &history.machine.dumps);
            if history.since > 0 {
                remarks.push(format!(
                    "Machine {name}: generations have smaller numbers in {} than in {}. It was restarted in between, or the \
                     names are not in the order of time. The trend begins there.",
                    dumps[history.since].file,
                    dumps[history.since - 1].file
                ));
            }
            let nodes = history.latest().dump.memcgs.iter().flat_map(|memcg| &memcg.nodes);
            if nodes.clone().any(|node| node.generations.len() == 1) {
                remarks.push(format!(
                    "Machine {name}: {} has one generation, and Linux always has two or more, so it is a piece of a dump. Pages of \
                     younger ones are missing in all figures.",
                    history.latest().file
                ));
            }
            if !history.has_root() {
                remarks.push(format!(
                    "Machine {name}: {} has no group `/`, so it is only a part of the machine.",
                    history.latest().file
                ));
            }
        }
        if self.knows_memory() && !self.answer.is_reserved {
            remarks.push(
                "All memory in no generation counts as free, also the kernel's own, mlocked and huge pages; \
                 --reserve sets some aside."
                    .to_string(),
            );
        }
        if !self.answer.skipped.is_empty() {
            let files: Vec<&str> = self.answer.skipped.iter().map(|skipped| skipped.file.as_str()).collect();
            remarks.push(format!("Ignored because they are not complete dumps: {}.", files.join(", ")));
        }
        remarks
    }

    /// The machines with such pages, and how many.
    fn machines_with(&self, pages: impl Fn(&History) -> u64) -> String {
        let named = self.answer.histories.iter().filter(|history| pages(history) > 0);
        let named: Vec<String> = named
            .map(|history| format!("{} ({})", history.machine.name, self.bytes(pages(history))))
            .collect();
        named.join(", ")
    }

    /// The machine, group and node with the most pages that were not used within the window.
    fn least_looked_at(&self) -> Option<(&str, &Memcg, &Node)> {
        let pages = |node: &Node| of_node(node, self.answer.question).not_looked_at;
        let nodes = self.answer.histories.iter().flat_map(|history| {
            let memcgs = history.latest().dump.memcgs.iter();
            let nodes = memcgs.flat_map(|memcg| memcg.nodes.iter().map(move |node| (memcg, node)));
            nodes.map(|(memcg, node)| (history.machine.name.as_str(), memcg, node))
        });
        nodes.filter(|(.., node)| pages(node) > 0).max_by_key(|(.., node)| pages(node))
    }

    fn bytes(&self, pages: u64) -> String {
        figures::bytes(pages.saturating_mul(self.answer.page_size))
    }

    fn bracket(&self, bracket: Bracket) -> String {
        let (low, high) = (self.bytes(bracket.at_least), self.bytes(bracket.at_most));
        if low == high { low } else { format!("{low} to {high}") }
    }

    fn signed(&self, (low, high): (i64, i64)) -> String {
        let show = |pages: i64| {
            let sign = if pages < 0 { "-" } else { "" };
            format!("{sign}{}", self.bytes(pages.unsigned_abs()))
        };
        let (low, high) = (show(low), show(high));
        if low == high { low } else { format!("{low} to {high}") }
    }
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_string).to_vec()
}

fn path(memcg: &Memcg) -> &str {
    if memcg.path.is_empty() { "(no cgroups)" } else { &memcg.path }
}
