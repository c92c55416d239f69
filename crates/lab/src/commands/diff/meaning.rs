//! The meaning of changed counters, in a sentence or two for each subject, with the figures that they rest on.
//!
//! A sentence is only said where its counters are there. Limits that a verdict goes by are constants here, each with its reason.

use super::change::Change;
use super::snapshot::Kind;
use crate::print::figures::{count, counted, percent, rate, share};

/// A sentence about one subject.
#[derive(Debug)]
pub(super) struct Meaning {
    /// What it is about.
    pub(super) topic: &'static str,
    pub(super) says: String,
    /// Names and by how much they grew.
    pub(super) rests_on: Vec<(String, u64)>,
}

/// Above this share of pages freed that come back, memory is too small for what is in use; below the other, they were not needed.
const NEEDED: f64 = 0.25;
const NOT_NEEDED: f64 = 0.05;

/// Below this share of pages looked at that are freed, reclaim works hard for little; above the other it is easy.
const HARD: f64 = 0.3;
const EASY: f64 = 0.8;

/// A larger share freed by tasks themselves says that kswapd comes too late.
const DIRECT: f64 = 0.1;

/// What there is to say of `change`, within so many seconds if that is known.
pub(super) fn means(change: &Change, seconds: Option<f64>) -> Vec<Meaning> {
    let teller = Teller { change, seconds };
    let subjects = [
        Teller::reclaim,
        Teller::who,
        Teller::refaults_of_files,
        Teller::refaults_of_anon,
        Teller::swap,
        Teller::zswap,
        Teller::major_faults,
        Teller::writing,
        Teller::huge_pages,
        Teller::compaction,
        Teller::tiers,
        Teller::oom,
    ];
    subjects.iter().filter_map(|subject| subject(&teller)).collect()
}

struct Teller<'a> {
    change: &'a Change,
    seconds: Option<f64>,
}

/// A sum of counters, and which they are.
#[derive(Clone, Default)]
struct Sum {
    total: u64,
    of: Vec<(String, u64)>,
}

impl Teller<'_> {
    /// The counters of these names that are there; `None` if none is.
    fn sum(&self, names: &[&str]) -> Option<Sum> {
        self.sum_of(|name| names.contains(&name))
    }

    /// Those whose names begin so, as a counter that each zone has of its own on older kernels.
    fn by_zone(&self, begin: &str) -> Option<Sum> {
        const ZONES: [&str; 6] = ["", "_dma", "_dma32", "_normal", "_movable", "_device"];
        self.sum_of(|name| name.strip_prefix(begin).is_some_and(|zone| ZONES.contains(&zone)))
    }

    fn sum_of(&self, is_one: impl Fn(&str) -> bool) -> Option<Sum> {
        let counters = self.change.counters.iter().filter(|counter| is_one(&counter.name));
        let of: Vec<(String, u64)> = counters
            .map(|counter| (counter.name.clone(), u64::try_from(counter.change()).unwrap_or(0)))
            .collect();
        // Of a sum that lacks a part the total is not known.
        if of.is_empty() || self.change.went_back.iter().any(|counter| is_one(&counter.name)) {
            return None;
        }
        Some(Sum { total: of.iter().fold(0, |sum, (_, change)| sum.saturating_add(*change)), of })
    }

    fn scanned(&self) -> Option<Sum> {
        self.sum(&["pgscan"]).or_else(|| self.by_who("pgscan"))
    }

    fn freed(&self) -> Option<Sum> {
        self.sum(&["pgsteal"]).or_else(|| self.by_who("pgsteal"))
    }

    /// The sum over all that reclaim.
    fn by_who(&self, what: &str) -> Option<Sum> {
        let parts =
            ["kswapd", "direct", "khugepaged", "proactive"].map(|who| self.by_zone(&format!("{what}_{who}")));
        let parts: Vec<Sum> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| joined(&parts))
    }

    /// ` (2.00 k/s)`, if the time is known.
    fn per_second(&self, total: u64) -> String {
        self.seconds.map_or(String::new(), |seconds| format!(" ({})", rate(total as f64 / seconds)))
    }

    fn reclaim(&self) -> Option<Meaning> {
        let (scanned, freed) = (self.scanned()?, self.freed()?);
        let says = if scanned.total == 0 && freed.total == 0 {
            "Nothing was reclaimed.".to_string()
        } else {
            let efficiency = share(freed.total, scanned.total);
            let verdict = match efficiency {
                hard if hard < HARD => {
                    "It works hard for little: most of what it looks at is in use, dirty or protected."
                }
                easy if easy >= EASY => "That is easy: most of what it looks at can go.",
                _ => "A part of what it looks at is in use.",
            };
            format!(
                "Reclaim looked at {}{} and freed {} of them{}, {}. {verdict}",
                counted(scanned.total, "page"),
                self.per_second(scanned.total),
                count(freed.total),
                self.per_second(freed.total),
                percent(efficiency)
            )
        };
        Some(meaning("reclaim", says, &[&scanned, &freed]))
    }

    /// kswapd against tasks that wait.
    fn who(&self) -> Option<Meaning> {
        let (kswapd, direct) = (self.by_zone("pgsteal_kswapd")?, self.by_zone("pgsteal_direct")?);
        let freed = kswapd.total.saturating_add(direct.total);
        if freed == 0 {
            return None;
        }
        let stalls = self.by_zone("allocstall");
        let by_tasks = share(direct.total, freed);
        let calls = match &stalls {
            Some(stalls) => format!(", in {} (allocstall)", counted(stalls.total, "call")),
            None => String::new(),
        };
        let verdict = match (self.change.kind, by_tasks) {
            (Kind::Vmstat, share) if share >= DIRECT => {
                " kswapd comes too late: a larger vm.watermark_scale_factor wakes it earlier. Reclaim at cgroups' limits is in this \
                 share, too, and no watermark changes that."
            }
            (Kind::Vmstat, _) => " kswapd keeps up.",
            (_, share) if share >= DIRECT => {
                " That is the cgroup's own limit (memory.max, memory.high) where the machine has memory left; kswapd's share is the \
                 machine's shortage."
            }
            _ => " The machine's shortage took it, not the cgroup's limit.",
        };
        let says = format!(
            "Tasks freed {} ({}) themselves, while they waited{calls}; kswapd freed {}.{verdict}",
            counted(direct.total, "page"),
            percent(by_tasks),
            count(kswapd.total)
        );
        let parts: Vec<&Sum> =
            [Some(&kswapd), Some(&direct), stalls.as_ref()].into_iter().flatten().collect();
        Some(meaning("who", says, &parts))
    }

    fn refaults_of_files(&self) -> Option<Meaning> {
        // Until 5.9 only files had refaults, and the counter no type.
        let Some(refaults) = self.sum(&["workingset_refault_file", "workingset_refault"]) else {
            let freed = self.freed().filter(|freed| freed.total > 0)?;
            let says = "No counter of refaults tells whether what was freed was needed again.".to_string();
            return Some(meaning("refaults of files", says, &[&freed]));
        };
        let restored = self.sum(&["workingset_restore_file", "workingset_restore"]);
        let activated = self.sum(&["workingset_activate_file", "workingset_activate"]);
        let by_type = self.sum(&["pgsteal_file"]);
        let freed = by_type.clone().or_else(|| self.freed());
        self.refaults(
            "refaults of files",
            "pages of files",
            &refaults,
            freed.as_ref(),
            by_type.is_some(),
            [activated, restored],
        )
    }

    fn refaults_of_anon(&self) -> Option<Meaning> {
        let refaults = self.sum(&["workingset_refault_anon"])?;
        let (activated, restored) =
            (self.sum(&["workingset_activate_anon"]), self.sum(&["workingset_restore_anon"]));
        let freed = self.sum(&["pgsteal_anon"]).or_else(|| self.sum(&["pswpout"]));
        self.refaults(
            "refaults of anonymous memory",
            "anonymous pages",
            &refaults,
            freed.as_ref(),
            true,
            [activated, restored],
        )
    }

    /// How many of the pages that were freed came back. `is_of_type`: what was freed is known of this type alone.
    fn refaults(
        &self,
        topic: &'static str,
        pages: &str,
        refaults: &Sum,
        freed: Option<&Sum>,
        is_of_type: bool,
        [activated, restored]: [Option<Sum>; 2],
    ) -> Option<Meaning> {
        let freed_total = freed.map_or(0, |freed| freed.total);
        if refaults.total == 0 && freed_total == 0 {
            return None;
        }
        let of_freed = share(refaults.total, freed_total);
        let what = if self.change.kind == Kind::Vmstat { "Memory" } else { "The cgroup's limit" };
        let verdict = match of_freed {
            _ if freed_total == 0 => " They had been freed before.".to_string(),
            needed if needed >= NEEDED => format!(
                " What is freed is needed again: {} is too small for what is in use.",
                what.to_lowercase()
            ),
            not if not < NOT_NEEDED => " What is freed is hardly needed again.".to_string(),
            _ => " Some of what is freed is needed again.".to_string(),
        };
        let against = match freed {
            None => ", and how many were freed is not told".to_string(),
            Some(_) if freed_total == 0 => String::new(),
            Some(_) if is_of_type => format!(", for {} freed: {}", count(freed_total), percent(of_freed)),
            Some(_) => format!(", for {} freed of any type: {}", count(freed_total), percent(of_freed)),
        };
        let mut more = String::new();
        if let Some(activated) = activated.as_ref().filter(|_| refaults.total > 0) {
            more += &format!(
                " {} of them had been away for so short a time that they became active at once",
                percent(share(activated.total, refaults.total))
            );
            if let Some(restored) = &restored {
                more +=
                    &format!(", {} had been active before", percent(share(restored.total, refaults.total)));
            }
            more.push('.');
        }
        let says = format!(
            "{} came back after they had been freed{}{against}.{more}{verdict}",
            plural(refaults.total, pages),
            self.per_second(refaults.total)
        );
        let parts: Vec<&Sum> =
            [Some(refaults), freed, activated.as_ref(), restored.as_ref()].into_iter().flatten().collect();
        Some(meaning(topic, says, &parts))
    }

    fn swap(&self) -> Option<Meaning> {
        let (in_, out) = (self.sum(&["pswpin"])?, self.sum(&["pswpout"])?);
        if in_.total == 0 && out.total == 0 {
            return None;
        }
        let verdict = match (in_.total, out.total) {
            (0, _) => " Nothing of it was needed again yet.",
            (_, 0) => " It had been written before.",
            (in_, out) if in_ >= out / 2 => " It goes both ways: what is swapped out is in use.",
            _ => " Most of it stays there.",
        };
        let says = format!(
            "{} were written to swap{} and {} read back{}.{verdict}",
            counted(out.total, "page"),
            self.per_second(out.total),
            count(in_.total),
            self.per_second(in_.total)
        );
        Some(meaning("swap", says, &[&out, &in_]))
    }

    fn zswap(&self) -> Option<Meaning> {
        let (out, in_) = (self.sum(&["zswpout"])?, self.sum(&["zswpin"])?);
        if in_.total == 0 && out.total == 0 {
            return None;
        }
        let written = self.sum(&["zswpwb"]);
        let wrote = written
            .as_ref()
            .map_or(String::new(), |written| format!(", and {} written on to swap", count(written.total)));
        let says = format!(
            "zswap took {}{}, {} came back{wrote}.",
            counted(out.total, "page"),
            self.per_second(out.total),
            count(in_.total)
        );
        let parts: Vec<&Sum> = [Some(&out), Some(&in_), written.as_ref()].into_iter().flatten().collect();
        Some(meaning("zswap", says, &parts))
    }

    fn major_faults(&self) -> Option<Meaning> {
        let (major, all) = (self.sum(&["pgmajfault"])?, self.sum(&["pgfault"])?);
        if major.total == 0 {
            return None;
        }
        let says = format!(
            "{} of {} waited for a device{}.",
            counted(major.total, "major fault"),
            counted(all.total, "fault"),
            self.per_second(major.total)
        );
        Some(meaning("major faults", says, &[&major, &all]))
    }

    fn writing(&self) -> Option<Meaning> {
        let written = self.sum(&["nr_vmscan_write"])?;
        let immediate = self.sum(&["nr_vmscan_immediate_reclaim"]);
        if written.total == 0 && immediate.as_ref().is_none_or(|sum| sum.total == 0) {
            return None;
        }
        let met = immediate.as_ref().map_or(String::new(), |met| {
            format!(" It met {} that were dirty or being written, and marked them to be freed at the end of that.", counted(met.total, "page"))
        });
        let says = format!(
            "Reclaim wrote {} itself, to swap most likely{}.{met}",
            counted(written.total, "page"),
            self.per_second(written.total)
        );
        let parts: Vec<&Sum> = [Some(&written), immediate.as_ref()].into_iter().flatten().collect();
        Some(meaning("writing in reclaim", says, &parts))
    }

    fn huge_pages(&self) -> Option<Meaning> {
        let (alloc, fallback) = (self.sum(&["thp_fault_alloc"])?, self.sum(&["thp_fault_fallback"])?);
        let faults = alloc.total.saturating_add(fallback.total);
        let split = self.sum(&["thp_split_page"]);
        if faults == 0 && split.as_ref().is_none_or(|sum| sum.total == 0) {
            return None;
        }
        let mut says = format!(
            "Of {} that wanted a huge page, {} got none ({}).",
            counted(faults, "fault"),
            count(fallback.total),
            percent(share(fallback.total, faults))
        );
        if let Some(split) = split.as_ref().filter(|split| split.total > 0) {
            says += &format!(" {} were split.", counted(split.total, "huge page"));
        }
        let parts: Vec<&Sum> =
            [Some(&alloc), Some(&fallback), split.as_ref()].into_iter().flatten().collect();
        Some(meaning("huge pages", says, &parts))
    }

    fn compaction(&self) -> Option<Meaning> {
        let stalls = self.sum(&["compact_stall"])?;
        let (fail, success) = (self.sum(&["compact_fail"]), self.sum(&["compact_success"]));
        let moved = self.sum(&["compact_migrate_scanned"]);
        if stalls.total == 0 && moved.as_ref().is_none_or(|moved| moved.total == 0) {
            return None;
        }
        let mut says = format!(
            "Tasks waited for compaction {}{}",
            plural(stalls.total, "times"),
            self.per_second(stalls.total)
        );
        if let (Some(fail), Some(success)) = (&fail, &success) {
            says += &format!(": {} got their block, {} did not", count(success.total), count(fail.total));
            if fail.total > success.total {
                says += ", so most of the waiting was for nothing";
            }
        }
        says.push('.');
        if let Some(moved) = &moved {
            says +=
                &format!(" It looked at {} to move, kcompactd's with them.", counted(moved.total, "page"));
        }
        let parts: Vec<&Sum> =
            [Some(&stalls), success.as_ref(), fail.as_ref(), moved.as_ref()].into_iter().flatten().collect();
        Some(meaning("compaction", says, &parts))
    }

    fn tiers(&self) -> Option<Meaning> {
        let demoted =
            self.sum(&["pgdemote_kswapd", "pgdemote_direct", "pgdemote_khugepaged", "pgdemote_proactive"]);
        let promoted = self.sum(&["pgpromote_success"]);
        let parts: Vec<&Sum> = [demoted.as_ref(), promoted.as_ref()].into_iter().flatten().collect();
        if joined_refs(&parts).total == 0 {
            return None;
        }
        let (down, up) =
            (demoted.as_ref().map_or(0, |sum| sum.total), promoted.as_ref().map_or(0, |sum| sum.total));
        let verdict = if up >= down / 2 && down >= up / 2 && up > 0 && down > 0 {
            " It goes both ways: pages may thrash between the tiers."
        } else {
            ""
        };
        let says = format!(
            "{} were demoted to slower memory{} and {} promoted{}.{verdict}",
            counted(down, "page"),
            self.per_second(down),
            count(up),
            self.per_second(up)
        );
        Some(meaning("memory tiers", says, &parts))
    }

    fn oom(&self) -> Option<Meaning> {
        let kills = self.sum(&["oom_kill"]).filter(|kills| kills.total > 0)?;
        let says = format!(
            "{} killed for want of memory.",
            if kills.total == 1 {
                "One task was".to_string()
            } else {
                format!("{} tasks were", count(kills.total))
            }
        );
        Some(meaning("out of memory", says, &[&kills]))
    }
}

fn plural(n: u64, what: &str) -> String {
    match (n, what.strip_suffix('s')) {
        (1, Some("time")) => "once".to_string(),
        _ => format!("{} {what}", count(n)),
    }
}

fn joined(parts: &[Sum]) -> Sum {
    joined_refs(&parts.iter().collect::<Vec<_>>())
}

fn joined_refs(parts: &[&Sum]) -> Sum {
    Sum {
        total: parts.iter().fold(0, |total, sum| total.saturating_add(sum.total)),
        of: parts.iter().flat_map(|sum| sum.of.iter().cloned()).collect(),
    }
}

fn meaning(topic: &'static str, says: String, parts: &[&Sum]) -> Meaning {
    Meaning { topic, says, rests_on: joined_refs(parts).of }
}
