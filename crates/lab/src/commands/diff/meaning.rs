//! The meaning of changed counters, in a sentence or two for each subject, with the figures that they rest on.
//!
//! Each sentence names the counters that it needs, and is made from them alone ([`pageout_study::basis`]). If a part of the counters of a
//! subject is there and another is missing, the subject is unknown. Limits that a verdict goes by are constants here, each with its reason.

use pageout_study::basis::{Evidence, Verdict, verdict};

use super::change::{Change, State};
use super::snapshot::Kind;
use crate::print::figures::{count, counted, percent, rate, share, time};

/// A sentence about one subject.
#[derive(Debug)]
pub(super) struct Meaning {
    /// What it is about.
    pub(super) topic: &'static str,
    /// The sentence, or the counters that are missing.
    pub(super) says: Verdict,
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

/// What is said of a subject, if anything happened.
type Said = Verdict<Option<(String, Sum)>>;

/// A subject, and how the names of its counters begin: without any of them there is nothing to be unknown.
struct Subject {
    topic: &'static str,
    about: &'static [&'static str],
    say: fn(&Teller) -> Said,
}

const SUBJECTS: &[Subject] = &[
    Subject { topic: "pressure", about: &["some_total_us"], say: |teller| teller.pressure() },
    Subject { topic: "reclaim", about: &["pgscan", "pgsteal"], say: |teller| teller.reclaim() },
    Subject { topic: "who", about: &["pgsteal_kswapd", "pgsteal_direct"], say: |teller| teller.who() },
    Subject {
        topic: "refaults of files",
        about: &["workingset_refault", "pgsteal"],
        say: |teller| teller.refaults_of_files(),
    },
    Subject {
        topic: "refaults of anonymous memory",
        about: &["workingset_refault_anon"],
        say: |teller| teller.refaults_of_anon(),
    },
    Subject { topic: "swap", about: &["pswp"], say: |teller| teller.swap() },
    Subject { topic: "zswap", about: &["zswpin", "zswpout"], say: |teller| teller.zswap() },
    Subject { topic: "major faults", about: &["pgmajfault"], say: |teller| teller.major_faults() },
    Subject { topic: "writing in reclaim", about: &["nr_vmscan_write"], say: |teller| teller.writing() },
    Subject { topic: "huge pages", about: &["thp_fault_"], say: |teller| teller.huge_pages() },
    Subject { topic: "compaction", about: &["compact_stall"], say: |teller| teller.compaction() },
    Subject {
        topic: "memory tiers",
        about: &["pgdemote_", "pgpromote_success"],
        say: |teller| teller.tiers(),
    },
    Subject { topic: "out of memory", about: &["oom_kill"], say: |teller| teller.oom() },
];

/// What there is to say of `change`, within so many seconds if that is known.
pub(super) fn means(change: &Change, seconds: Option<f64>) -> Vec<Meaning> {
    let teller = Teller { change, seconds };
    let meaning = |subject: &Subject| -> Option<Meaning> {
        let is_about = |name: &str| subject.about.iter().any(|begin| name.starts_with(begin));
        if !change.names().any(is_about) {
            return None;
        }
        let topic = subject.topic;
        match (subject.say)(&teller) {
            Ok(None) => None,
            Ok(Some((says, rests_on))) => Some(Meaning { topic, says: Ok(says), rests_on: rests_on.of }),
            Err(unknown) => Some(Meaning { topic, says: Err(unknown), rests_on: Vec::new() }),
        }
    };
    SUBJECTS.iter().filter_map(meaning).collect()
}

struct Teller<'a> {
    change: &'a Change,
    seconds: Option<f64>,
}

/// A sum of counters, and which they are.
#[derive(Clone, Default)]
pub(super) struct Sum {
    total: u64,
    of: Vec<(String, u64)>,
}

/// Counters that a sentence needs. None of them may have gone back, or be in one file alone.
#[derive(Clone, Copy)]
pub(super) enum Need {
    /// The first of these names that is there: kernels have called it differently.
    First(&'static [&'static str]),
    /// All of these.
    All(&'static [&'static str]),
    /// A counter that each zone has of its own on some kernels: all zones.
    Zones(&'static str),
    /// A counter that each reclaimer has of its own: the sum over all of them.
    Reclaimers(&'static str),
    /// As many of these as the kernel has, at least one.
    Some(&'static [&'static str]),
}

/// The zones that kernels have had, as names of counters end.
const ZONES: [&str; 6] = ["_dma", "_dma32", "_normal", "_high", "_movable", "_device"];

/// Families of counters that have one counter per zone, on some kernels or on all.
const BY_ZONE: [&str; 8] = [
    "pgalloc",
    "pgskip",
    "allocstall",
    "pgrefill",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
];

/// Who reclaims.
const RECLAIMERS: [&str; 4] = ["kswapd", "direct", "khugepaged", "proactive"];

impl Evidence for Change {
    type Need = Need;
    type Seen = Sum;

    fn seen(&self, need: &Need) -> Result<Sum, String> {
        match need {
            Need::First(names) => {
                let found = names.iter().find(|name| self.state(name) != State::Absent);
                self.one(found.unwrap_or(&names[0]))
            }
            Need::All(names) => joined_all(names.iter().map(|name| self.one(name))),
            Need::Zones(begin) => self.zones(begin),
            Need::Reclaimers(what) => {
                let is_there = |who: &&str| {
                    let has = |what: &str| self.has_zones(&format!("{what}_{who}"));
                    // Who scans also frees: one of the two alone is a part that is missing.
                    ["kswapd", "direct"].contains(who) || has("pgscan") || has("pgsteal")
                };
                let parts = RECLAIMERS.into_iter().filter(is_there);
                joined_all(parts.map(|who| self.zones(&format!("{what}_{who}"))))
            }
            Need::Some(names) => {
                let there = names.iter().filter(|name| self.state(name) != State::Absent);
                let sums: Vec<_> = there.map(|name| self.one(name)).collect();
                if sums.is_empty() { Err(format!("no {}", names[0])) } else { joined_all(sums.into_iter()) }
            }
        }
    }
}

impl Change {
    fn one(&self, name: &str) -> Result<Sum, String> {
        match self.state(name) {
            State::Grew(change) => Ok(Sum { total: change, of: vec![(name.to_string(), change)] }),
            State::WentBack => Err(format!("{name} went back")),
            State::InOneFile => Err(format!("{name} is in one file only")),
            State::Absent => Err(format!("no {name}")),
        }
    }

    fn has_zones(&self, begin: &str) -> bool {
        self.state(begin) != State::Absent
            || ZONES.iter().any(|zone| self.state(&format!("{begin}{zone}")) != State::Absent)
    }

    /// Whether the counter has one part per zone.
    fn is_by_zone(&self, begin: &str) -> bool {
        self.state(begin) == State::Absent && self.has_zones(begin)
    }

    /// The sum over all zones, each of which some family of counters shows.
    fn zones(&self, begin: &str) -> Result<Sum, String> {
        if !self.is_by_zone(begin) {
            return self.one(begin);
        }
        let is_there = |zone: &&str| {
            BY_ZONE.iter().any(|family| self.state(&format!("{family}{zone}")) != State::Absent)
        };
        joined_all(ZONES.into_iter().filter(is_there).map(|zone| self.one(&format!("{begin}{zone}"))))
    }
}

/// One sum of all. Errors: every part that is missing.
fn joined_all(parts: impl Iterator<Item = Result<Sum, String>>) -> Result<Sum, String> {
    let (mut sums, mut missing) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Ok(sum) => sums.push(sum),
            Err(lack) => missing.push(lack),
        }
    }
    if missing.is_empty() { Ok(joined(&sums)) } else { Err(missing.join(", ")) }
}

fn joined(parts: &[Sum]) -> Sum {
    Sum {
        total: parts.iter().fold(0, |total, sum| total.saturating_add(sum.total)),
        of: parts.iter().flat_map(|sum| sum.of.iter().cloned()).collect(),
    }
}

/// All that reclaim did of a kind (scan, steal), and how much of it at cgroups' limits where counters tell.
struct Reclaimed {
    all: Sum,
    /// Kernels before 7.1 leave reclaim at limits out of the counters by reclaimer, and have it in those by type.
    at_limits: Verdict<u64>,
}

const BY_TYPE_SCAN: Need = Need::All(&["pgscan_anon", "pgscan_file"]);
const BY_TYPE_STEAL: Need = Need::All(&["pgsteal_anon", "pgsteal_file"]);

impl Teller<'_> {
    /// The sum of a need, where a sentence is said without it, too.
    fn sum(&self, need: Need) -> Verdict<Sum> {
        verdict(self.change, [need], |[sum]| sum)
    }

    /// The total over all types and reclaimers.
    fn total(&self, all: Need, reclaimers: &'static str, by_type: Need) -> Verdict<Reclaimed> {
        // A cgroup's own file has the sum itself.
        if self.change.state(reclaimers) != State::Absent {
            return Ok(Reclaimed { all: self.sum(all)?, at_limits: Ok(0) });
        }
        let has_reclaimers =
            RECLAIMERS.iter().any(|who| self.change.has_zones(&format!("{reclaimers}_{who}")));
        let by_type = self.sum(by_type);
        if !has_reclaimers && let Ok(by_type) = by_type {
            let at_limits = self.sum(Need::Reclaimers(reclaimers)).map(|_| 0);
            return Ok(Reclaimed { all: by_type, at_limits });
        }
        let by_who = self.sum(Need::Reclaimers(reclaimers))?;
        if self.change.kind != Kind::Vmstat {
            return Ok(Reclaimed { all: by_who, at_limits: Ok(0) });
        }
        Ok(match by_type {
            // The kernel adds to the two one after the other, so they may differ by a few.
            Ok(by_type) => {
                let (total, at_limits) =
                    (by_who.total.max(by_type.total), by_type.total.saturating_sub(by_who.total));
                let all = Sum { total, of: joined(&[by_who, by_type]).of };
                Reclaimed { all, at_limits: Ok(at_limits) }
            }
            Err(unknown) => Reclaimed { all: by_who, at_limits: Err(unknown) },
        })
    }

    fn scanned(&self) -> Verdict<Reclaimed> {
        self.total(Need::All(&["pgscan"]), "pgscan", BY_TYPE_SCAN)
    }

    fn freed(&self) -> Verdict<Reclaimed> {
        self.total(Need::All(&["pgsteal"]), "pgsteal", BY_TYPE_STEAL)
    }

    /// ` (2.00 k/s)`, if the time is known.
    fn per_second(&self, total: u64) -> String {
        self.seconds.map_or(String::new(), |seconds| format!(" ({})", rate(total as f64 / seconds)))
    }

    fn pressure(&self) -> Said {
        verdict(self.change, [Need::All(&["some_total_us"])], |[some]| {
            let of_time = |us: u64| match self.seconds {
                Some(seconds) => format!(" ({} of the time)", percent(us as f64 / 1e6 / seconds)),
                None => String::new(),
            };
            let full = self.sum(Need::All(&["full_total_us"]));
            let all = match &full {
                Ok(full) => format!(
                    "; for {}{} of it all tasks that had work waited",
                    time(full.total.saturating_mul(1000)),
                    of_time(full.total)
                ),
                Err(_) => String::new(),
            };
            let says = format!(
                "For {}{} at least one task waited for this resource{all}.",
                time(some.total.saturating_mul(1000)),
                of_time(some.total)
            );
            Some((says, joined(&[vec![some], full.into_iter().collect()].concat())))
        })
    }

    fn reclaim(&self) -> Said {
        let (scanned, freed) = (self.scanned()?, self.freed()?);
        let (looked_at, got) = (scanned.all.total, freed.all.total);
        let at_limits = match (&freed.at_limits, self.change.kind) {
            (Ok(0), _) => String::new(),
            (Ok(pages), _) => format!(
                " {} of those freed went at cgroups' limits: a kernel before 7.1 counts them in \
                 pgsteal_anon and pgsteal_file, and not in pgsteal_kswapd and pgsteal_direct.",
                count(*pages)
            ),
            (Err(unknown), Kind::Vmstat) => {
                format!(
                    " How much went at cgroups' limits is {unknown}; a kernel before 7.1 does not count it above."
                )
            }
            (Err(_), _) => String::new(),
        };
        let says = if looked_at == 0 && got == 0 {
            format!("Nothing was reclaimed.{at_limits}")
        } else {
            let efficiency = share(got, looked_at);
            let verdict = match efficiency {
                hard if hard < HARD => {
                    "It works hard for little: most of what it looks at is in use, dirty or protected."
                }
                easy if easy >= EASY => "That is easy: most of what it looks at can go.",
                _ => "A part of what it looks at is in use.",
            };
            format!(
                "Reclaim looked at {}{} and freed {} of them{}, {}. {verdict}{at_limits}",
                counted(looked_at, "page"),
                self.per_second(looked_at),
                count(got),
                self.per_second(got),
                percent(efficiency)
            )
        };
        Ok(Some((says, joined(&[scanned.all, freed.all]))))
    }

    /// kswapd against tasks that wait.
    fn who(&self) -> Said {
        let needs = [Need::Zones("pgsteal_kswapd"), Need::Zones("pgsteal_direct")];
        verdict(self.change, needs, |[kswapd, direct]| {
            let freed = kswapd.total.saturating_add(direct.total);
            if freed == 0 {
                return None;
            }
            let stalls = self.sum(Need::Zones("allocstall")).ok();
            let by_tasks = share(direct.total, freed);
            let calls = match &stalls {
                Some(stalls) => format!(", in {} (allocstall)", counted(stalls.total, "call")),
                None => String::new(),
            };
            let verdict = match (self.change.kind, by_tasks) {
                (Kind::Vmstat, share) if share >= DIRECT => {
                    // Counters by zone are of kernels before 4.8, which may lack the factor (4.6).
                    let knob = match self.change.is_by_zone("pgsteal_kswapd") {
                        true => "vm.min_free_kbytes",
                        false => "vm.watermark_scale_factor",
                    };
                    let limits = match self.freed().map(|freed| freed.at_limits) {
                        Ok(Ok(0)) => {
                            " On a kernel from 7.1 reclaim at cgroups' limits is in this share, too, and no watermark changes that."
                        }
                        _ => "",
                    };
                    format!(" kswapd comes too late: a larger {knob} wakes it earlier.{limits}")
                }
                (Kind::Vmstat, _) => " kswapd keeps up.".to_string(),
                (Kind::Unclear, _) => {
                    " Whether the machine or a cgroup was short is unknown: no line is of /proc/vmstat or of memory.stat alone."
                        .to_string()
                }
                (_, share) if share >= DIRECT => {
                    " That is the cgroup's own limit (memory.max, memory.high) where the machine has memory left; kswapd's share is the \
                     machine's shortage."
                        .to_string()
                }
                _ => " The machine's shortage took it, not the cgroup's limit.".to_string(),
            };
            let says = format!(
                "Tasks freed {} ({}) themselves, while they waited{calls}; kswapd freed {}.{verdict}",
                counted(direct.total, "page"),
                percent(by_tasks),
                count(kswapd.total)
            );
            Some((says, joined(&[vec![kswapd, direct], stalls.into_iter().collect()].concat())))
        })
    }

    fn refaults_of_files(&self) -> Said {
        // Until 5.9 only files had refaults, and the counter no type.
        let needs = [Need::First(&["workingset_refault_file", "workingset_refault"])];
        let refaults = verdict(self.change, needs, |[refaults]| refaults)?;
        let restored = self.sum(Need::First(&["workingset_restore_file", "workingset_restore"])).ok();
        let activated = self.sum(Need::First(&["workingset_activate_file", "workingset_activate"])).ok();
        let freed = match self.sum(Need::All(&["pgsteal_file"])) {
            Ok(sum) => Ok(Freed { sum, of: "" }),
            Err(_) => self.freed().map(|freed| Freed {
                of: match (&freed.at_limits, self.change.kind) {
                    (Err(_), Kind::Vmstat) => " of any type, without those at cgroups' limits",
                    _ => " of any type",
                },
                sum: freed.all,
            }),
        };
        Ok(self.refaults("pages of files", refaults, freed, [activated, restored]))
    }

    fn refaults_of_anon(&self) -> Said {
        let refaults =
            verdict(self.change, [Need::All(&["workingset_refault_anon"])], |[refaults]| refaults)?;
        let activated = self.sum(Need::All(&["workingset_activate_anon"])).ok();
        let restored = self.sum(Need::All(&["workingset_restore_anon"])).ok();
        let freed = match self.sum(Need::All(&["pgsteal_anon"])) {
            Ok(sum) => Ok(Freed { sum, of: "" }),
            // Pages that zswap stores were not written to swap.
            Err(_) => verdict(self.change, [Need::All(&["pswpout"])], |[written]| {
                let stored = self.sum(Need::All(&["zswpout"])).ok();
                Freed { sum: joined(&[vec![written], stored.into_iter().collect()].concat()), of: "" }
            }),
        };
        Ok(self.refaults("anonymous pages", refaults, freed, [activated, restored]))
    }

    /// How many of the pages that were freed came back.
    fn refaults(
        &self,
        pages: &str,
        refaults: Sum,
        freed: Verdict<Freed>,
        [activated, restored]: [Option<Sum>; 2],
    ) -> Option<(String, Sum)> {
        let freed_total = freed.as_ref().map_or(0, |freed| freed.sum.total);
        if refaults.total == 0 && freed_total == 0 {
            return None;
        }
        let of_freed = share(refaults.total, freed_total);
        let what = match self.change.kind {
            Kind::Vmstat => "memory",
            Kind::Unclear => "memory, or the cgroup's limit,",
            _ => "the cgroup's limit",
        };
        let verdict = match of_freed {
            _ if freed.is_err() => String::new(),
            _ if freed_total == 0 => " They had been freed before.".to_string(),
            needed if needed >= NEEDED => {
                format!(" What is freed is needed again: {what} is too small for what is in use.")
            }
            not if not < NOT_NEEDED => " What is freed is hardly needed again.".to_string(),
            _ => " Some of what is freed is needed again.".to_string(),
        };
        let against = match &freed {
            Err(unknown) => format!("; how many were freed is {unknown}"),
            Ok(_) if freed_total == 0 => String::new(),
            Ok(freed) => format!(", for {} freed{}: {}", count(freed_total), freed.of, percent(of_freed)),
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
        let freed = freed.ok().map(|freed| freed.sum);
        let parts = [Some(refaults), freed, activated, restored];
        Some((says, joined(&parts.into_iter().flatten().collect::<Vec<_>>())))
    }

    fn swap(&self) -> Said {
        verdict(self.change, [Need::All(&["pswpin"]), Need::All(&["pswpout"])], |[in_, out]| {
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
            Some((says, joined(&[out, in_])))
        })
    }

    fn zswap(&self) -> Said {
        verdict(self.change, [Need::All(&["zswpout"]), Need::All(&["zswpin"])], |[out, in_]| {
            if in_.total == 0 && out.total == 0 {
                return None;
            }
            let written = self.sum(Need::All(&["zswpwb"])).ok();
            let wrote = written.as_ref().map_or(String::new(), |written| {
                format!(", and {} written on to swap", count(written.total))
            });
            let says = format!(
                "zswap took {}{}, {} came back{wrote}.",
                counted(out.total, "page"),
                self.per_second(out.total),
                count(in_.total)
            );
            Some((says, joined(&[vec![out, in_], written.into_iter().collect()].concat())))
        })
    }

    fn major_faults(&self) -> Said {
        verdict(self.change, [Need::All(&["pgmajfault"]), Need::All(&["pgfault"])], |[major, all]| {
            let says = format!(
                "{} of {} waited for a device{}.",
                counted(major.total, "major fault"),
                counted(all.total, "fault"),
                self.per_second(major.total)
            );
            (major.total > 0).then(|| (says, joined(&[major, all])))
        })
    }

    fn writing(&self) -> Said {
        verdict(self.change, [Need::All(&["nr_vmscan_write"])], |[written]| {
            let immediate = self.sum(Need::All(&["nr_vmscan_immediate_reclaim"])).ok();
            if written.total == 0 && immediate.as_ref().is_none_or(|sum| sum.total == 0) {
                return None;
            }
            let met = immediate.as_ref().map_or(String::new(), |met| {
                format!(
                    " It met {} that were dirty or being written, and marked them to be freed at the end of that.",
                    counted(met.total, "page")
                )
            });
            let says = format!(
                "Reclaim wrote {} itself, to swap most likely{}.{met}",
                counted(written.total, "page"),
                self.per_second(written.total)
            );
            Some((says, joined(&[vec![written], immediate.into_iter().collect()].concat())))
        })
    }

    fn huge_pages(&self) -> Said {
        let needs = [Need::All(&["thp_fault_alloc"]), Need::All(&["thp_fault_fallback"])];
        verdict(self.change, needs, |[alloc, fallback]| {
            let faults = alloc.total.saturating_add(fallback.total);
            let split = self.sum(Need::All(&["thp_split_page"])).ok();
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
            Some((says, joined(&[vec![alloc, fallback], split.into_iter().collect()].concat())))
        })
    }

    fn compaction(&self) -> Said {
        verdict(self.change, [Need::All(&["compact_stall"])], |[stalls]| {
            let outcome = [Need::All(&["compact_success"]), Need::All(&["compact_fail"])];
            let outcome = verdict(self.change, outcome, |outcome| outcome).ok();
            let moved = self.sum(Need::All(&["compact_migrate_scanned"])).ok();
            if stalls.total == 0 && moved.as_ref().is_none_or(|moved| moved.total == 0) {
                return None;
            }
            let mut says = format!(
                "Tasks waited for compaction {}{}",
                plural(stalls.total, "times"),
                self.per_second(stalls.total)
            );
            if let Some([success, fail]) = &outcome {
                says += &format!(": {} got their block, {} did not", count(success.total), count(fail.total));
                if fail.total > success.total {
                    says += ", so most of the waiting was for nothing";
                }
            }
            says.push('.');
            if let Some(moved) = &moved {
                says += &format!(
                    " It looked at {} to move, kcompactd's with them.",
                    counted(moved.total, "page")
                );
            }
            let outcome = outcome.into_iter().flatten();
            let parts = std::iter::once(stalls).chain(outcome).chain(moved);
            Some((says, joined(&parts.collect::<Vec<_>>())))
        })
    }

    fn tiers(&self) -> Said {
        const DEMOTED: Need =
            Need::Some(&["pgdemote_kswapd", "pgdemote_direct", "pgdemote_khugepaged", "pgdemote_proactive"]);
        verdict(self.change, [DEMOTED], |[demoted]| {
            // Kernels that demote and do not count promotions have none to tell.
            let promoted = self.sum(Need::All(&["pgpromote_success"]));
            let (down, up) = (demoted.total, promoted.as_ref().map_or(0, |sum| sum.total));
            if down == 0 && up == 0 {
                return None;
            }
            let verdict = if up >= down / 2 && down >= up / 2 && up > 0 && down > 0 {
                " It goes both ways: pages may thrash between the tiers."
            } else {
                ""
            };
            let promotions = match &promoted {
                Ok(_) => format!(" and {} promoted{}", count(up), self.per_second(up)),
                Err(unknown) => format!("; how many were promoted is {unknown}"),
            };
            let says = format!(
                "{} were demoted to slower memory{}{promotions}.{verdict}",
                counted(down, "page"),
                self.per_second(down),
            );
            Some((says, joined(&[vec![demoted], promoted.into_iter().collect()].concat())))
        })
    }

    fn oom(&self) -> Said {
        verdict(self.change, [Need::All(&["oom_kill"])], |[kills]| {
            let says = match kills.total {
                0 => return None,
                1 => "One task was killed because there was no memory.".to_string(),
                more => format!("{} tasks were killed because there was no memory.", count(more)),
            };
            Some((says, kills))
        })
    }
}

/// What was freed, and how that sum differs from pages of the type in question.
struct Freed {
    sum: Sum,
    of: &'static str,
}

fn plural(n: u64, what: &str) -> String {
    match (n, what.strip_suffix('s')) {
        (1, Some("time")) => "once".to_string(),
        _ => format!("{} {what}", count(n)),
    }
}
