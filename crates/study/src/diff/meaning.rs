//! The meaning of changed counters, in a sentence or two for each subject, with the figures that they rest on.
//!
//! Each sentence names the counters that it needs, and is made from them alone ([`crate::basis`]). If a part of the counters of a
//! subject is there and another is missing, the subject is unknown. Limits that a verdict goes by are constants here, each with its reason.

use crate::basis::{Evidence, Unknown, Verdict, verdict};
use pageout_kerneltext::counters::{Change, Counters, FileKind, Reclaimed, Sum};

use crate::figures::{count, counted, percent, rate, share, time};

/// A sentence about one subject.
#[derive(Debug)]
pub struct Meaning {
    /// The topic.
    pub topic: &'static str,
    /// The sentence, or the counters that are missing.
    pub says: Verdict,
    /// Names and by how much they grew.
    pub rests_on: Vec<(String, u64)>,
}

/// Above this share of pages freed that come back, memory is too small for what is in use; below the other, they were not needed.
const NEEDED: f64 = 0.25;
const NOT_NEEDED: f64 = 0.05;

/// Below this share of freed pages among scanned ones, reclaim frees few of them; above the other it is easy.
const HARD: f64 = 0.3;
const EASY: f64 = 0.8;

/// A larger share freed by tasks themselves says that kswapd comes too late.
const DIRECT: f64 = 0.1;

/// The sentence about a subject, if anything happened.
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

/// Returns the meaning of `change`. `seconds` is the time between the snapshots, if known.
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

/// The counters that changed, as evidence of verdicts.
struct Counted<'a>(&'a Change);

impl Evidence for Counted<'_> {
    type Need = Counters<'static>;
    type Seen = Sum;

    fn seen(&self, need: &Counters<'static>) -> Result<Sum, String> {
        self.0.sum(need).map_err(|missing| missing.to_string())
    }
}

impl Teller<'_> {
    /// A verdict from counters that it needs.
    fn verdict<T, const N: usize>(
        &self,
        needs: [Counters<'static>; N],
        say: impl FnOnce([Sum; N]) -> T,
    ) -> Verdict<T> {
        verdict(&Counted(self.change), needs, say)
    }

    /// The sum of counters that are optional for a sentence.
    fn sum(&self, counters: Counters<'static>) -> Verdict<Sum> {
        self.verdict([counters], |[sum]| sum)
    }

    fn scanned(&self) -> Verdict<Reclaimed> {
        self.change.scanned().map_err(Unknown::of)
    }

    fn freed(&self) -> Verdict<Reclaimed> {
        self.change.freed().map_err(Unknown::of)
    }

    /// ` (2.00 k/s)`, if the time is known.
    fn per_second(&self, total: u64) -> String {
        self.seconds.map_or(String::new(), |seconds| format!(" ({})", rate(total as f64 / seconds)))
    }

    fn pressure(&self) -> Said {
        self.verdict([Counters::AllOf(&["some_total_us"])], |[some]| {
            let of_time = |us: u64| match self.seconds {
                Some(seconds) => format!(" ({} of the time)", percent(us as f64 / 1e6 / seconds)),
                None => String::new(),
            };
            let full = self.sum(Counters::AllOf(&["full_total_us"]));
            let all = match &full {
                Ok(full) => format!(
                    "; for {}{} of this time all non-idle tasks waited",
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
            Some((says, Sum::joined(&[vec![some], full.into_iter().collect()].concat())))
        })
    }

    fn reclaim(&self) -> Said {
        let (scanned, freed) = (self.scanned()?, self.freed()?);
        let (looked_at, got) = (scanned.all.total, freed.all.total);
        let at_limits = match (&freed.at_limits, self.change.kind) {
            (Ok(0), _) => String::new(),
            (Ok(pages), _) => format!(
                " {} of the freed pages were freed at cgroup limits: a kernel before 7.1 counts them in \
                 pgsteal_anon and pgsteal_file, but not in pgsteal_kswapd and pgsteal_direct.",
                count(*pages)
            ),
            (Err(missing), FileKind::Vmstat) => {
                format!(
                    " The number of pages freed at cgroup limits is unknown: {missing}; a kernel before 7.1 does not count them above."
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
                    "It frees few of them: most scanned pages are in use, dirty or protected."
                }
                easy if easy >= EASY => "It is easy: most scanned pages can be freed.",
                _ => "Some of the scanned pages are in use.",
            };
            format!(
                "Reclaim scanned {}{} and freed {} of them{}, {}. {verdict}{at_limits}",
                counted(looked_at, "page"),
                self.per_second(looked_at),
                count(got),
                self.per_second(got),
                percent(efficiency)
            )
        };
        Ok(Some((says, Sum::joined(&[scanned.all, freed.all]))))
    }

    /// kswapd against tasks that wait.
    fn who(&self) -> Said {
        let needs = [Counters::AllZones("pgsteal_kswapd"), Counters::AllZones("pgsteal_direct")];
        self.verdict(needs, |[kswapd, direct]| {
            let freed = kswapd.total.saturating_add(direct.total);
            if freed == 0 {
                return None;
            }
            let stalls = self.sum(Counters::AllZones("allocstall")).ok();
            let by_tasks = share(direct.total, freed);
            let calls = match &stalls {
                Some(stalls) => format!(", in {} (allocstall)", counted(stalls.total, "call")),
                None => String::new(),
            };
            let verdict = match (self.change.kind, by_tasks) {
                (FileKind::Vmstat, share) if share >= DIRECT => {
                    // Counters by zone are of kernels before 4.8, which may lack the factor (4.6).
                    let knob = match self.change.is_by_zone("pgsteal_kswapd") {
                        true => "vm.min_free_kbytes",
                        false => "vm.watermark_scale_factor",
                    };
                    let limits = match self.freed().map(|freed| freed.at_limits) {
                        Ok(Ok(0)) => {
                            " From 7.1 this share includes reclaim at cgroup limits, which no watermark changes."
                        }
                        _ => "",
                    };
                    format!(" kswapd starts too late: a larger {knob} wakes it earlier.{limits}")
                }
                (FileKind::Vmstat, _) => " kswapd keeps up.".to_string(),
                (FileKind::Excerpt, _) => {
                    " It is unknown if the machine or a cgroup was short of memory: no line belongs to only one of /proc/vmstat and memory.stat."
                        .to_string()
                }
                (_, share) if share >= DIRECT => {
                    " If the machine has free memory, the cause is the cgroup's own limit (memory.max, \
                     memory.high); kswapd's share comes from a shortage of the machine."
                        .to_string()
                }
                _ => " The cause is a shortage of the machine, not the cgroup's limit.".to_string(),
            };
            let says = format!(
                "Tasks freed {} ({}) in direct reclaim{calls}; kswapd freed {}.{verdict}",
                counted(direct.total, "page"),
                percent(by_tasks),
                count(kswapd.total)
            );
            Some((says, Sum::joined(&[vec![kswapd, direct], stalls.into_iter().collect()].concat())))
        })
    }

    fn refaults_of_files(&self) -> Said {
        // Until 5.9 only files had refaults, and the counter no type.
        let needs = [Counters::FirstOf(&["workingset_refault_file", "workingset_refault"])];
        let refaults = self.verdict(needs, |[refaults]| refaults)?;
        let restored = self.sum(Counters::FirstOf(&["workingset_restore_file", "workingset_restore"])).ok();
        let activated =
            self.sum(Counters::FirstOf(&["workingset_activate_file", "workingset_activate"])).ok();
        let freed = match self.sum(Counters::AllOf(&["pgsteal_file"])) {
            Ok(sum) => Ok(Freed { sum, of: "" }),
            Err(_) => self.freed().map(|freed| Freed {
                of: match (&freed.at_limits, self.change.kind) {
                    (Err(_), FileKind::Vmstat) => " of any type, without those freed at cgroup limits",
                    _ => " of any type",
                },
                sum: freed.all,
            }),
        };
        Ok(self.refaults("pages of files", refaults, freed, [activated, restored]))
    }

    fn refaults_of_anon(&self) -> Said {
        let refaults =
            self.verdict([Counters::AllOf(&["workingset_refault_anon"])], |[refaults]| refaults)?;
        let activated = self.sum(Counters::AllOf(&["workingset_activate_anon"])).ok();
        let restored = self.sum(Counters::AllOf(&["workingset_restore_anon"])).ok();
        let freed = match self.sum(Counters::AllOf(&["pgsteal_anon"])) {
            Ok(sum) => Ok(Freed { sum, of: "" }),
            // Pages that zswap stores were not written to swap.
            Err(_) => self.verdict([Counters::AllOf(&["pswpout"])], |[written]| {
                let stored = self.sum(Counters::AllOf(&["zswpout"])).ok();
                Freed { sum: Sum::joined(&[vec![written], stored.into_iter().collect()].concat()), of: "" }
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
            FileKind::Vmstat => "memory",
            FileKind::Excerpt => "memory, or the cgroup's limit,",
            _ => "the cgroup's limit",
        };
        let verdict = match of_freed {
            _ if freed.is_err() => String::new(),
            _ if freed_total == 0 => " They were freed before the first snapshot.".to_string(),
            needed if needed >= NEEDED => {
                format!(" Freed pages are needed again: {what} is too small for the pages in use.")
            }
            not if not < NOT_NEEDED => " Few of the freed pages are needed again.".to_string(),
            _ => " Some of the freed pages are needed again.".to_string(),
        };
        let against = match &freed {
            Err(unknown) => format!("; the number of freed pages is {unknown}"),
            Ok(_) if freed_total == 0 => String::new(),
            Ok(freed) => {
                format!(", compared with {} freed{}: {}", count(freed_total), freed.of, percent(of_freed))
            }
        };
        let mut more = String::new();
        if let Some(activated) = activated.as_ref().filter(|_| refaults.total > 0) {
            more += &format!(
                " {} of them returned soon enough to be activated immediately",
                percent(share(activated.total, refaults.total))
            );
            if let Some(restored) = &restored {
                more += &format!(
                    ", {} were active before their eviction",
                    percent(share(restored.total, refaults.total))
                );
            }
            more.push('.');
        }
        let says = format!(
            "{} returned after eviction{}{against}.{more}{verdict}",
            plural(refaults.total, pages),
            self.per_second(refaults.total)
        );
        let freed = freed.ok().map(|freed| freed.sum);
        let parts = [Some(refaults), freed, activated, restored];
        Some((says, Sum::joined(&parts.into_iter().flatten().collect::<Vec<_>>())))
    }

    fn swap(&self) -> Said {
        self.verdict([Counters::AllOf(&["pswpin"]), Counters::AllOf(&["pswpout"])], |[in_, out]| {
            if in_.total == 0 && out.total == 0 {
                return None;
            }
            let verdict = match (in_.total, out.total) {
                (0, _) => " None of them was needed again yet.",
                (_, 0) => " They were written before the first snapshot.",
                (in_, out) if in_ >= out / 2 => " Swap traffic goes both ways: swapped-out pages are in use.",
                _ => " Most of them stay in swap.",
            };
            let says = format!(
                "{} were written to swap{} and {} read back{}.{verdict}",
                counted(out.total, "page"),
                self.per_second(out.total),
                count(in_.total),
                self.per_second(in_.total)
            );
            Some((says, Sum::joined(&[out, in_])))
        })
    }

    fn zswap(&self) -> Said {
        self.verdict([Counters::AllOf(&["zswpout"]), Counters::AllOf(&["zswpin"])], |[out, in_]| {
            if in_.total == 0 && out.total == 0 {
                return None;
            }
            let written = self.sum(Counters::AllOf(&["zswpwb"])).ok();
            let wrote = written.as_ref().map_or(String::new(), |written| {
                format!(", and it wrote {} back to swap", count(written.total))
            });
            let says = format!(
                "zswap stored {}{}, {} were loaded again{wrote}.",
                counted(out.total, "page"),
                self.per_second(out.total),
                count(in_.total)
            );
            Some((says, Sum::joined(&[vec![out, in_], written.into_iter().collect()].concat())))
        })
    }

    fn major_faults(&self) -> Said {
        self.verdict([Counters::AllOf(&["pgmajfault"]), Counters::AllOf(&["pgfault"])], |[major, all]| {
            let says = format!(
                "{} of {} waited for a device{}.",
                counted(major.total, "major fault"),
                counted(all.total, "fault"),
                self.per_second(major.total)
            );
            (major.total > 0).then(|| (says, Sum::joined(&[major, all])))
        })
    }

    fn writing(&self) -> Said {
        self.verdict([Counters::AllOf(&["nr_vmscan_write"])], |[written]| {
            let immediate = self.sum(Counters::AllOf(&["nr_vmscan_immediate_reclaim"])).ok();
            if written.total == 0 && immediate.as_ref().is_none_or(|sum| sum.total == 0) {
                return None;
            }
            let met = immediate.as_ref().map_or(String::new(), |met| {
                format!(
                    " It found {} dirty or under writeback and marked them to be freed after writeback.",
                    counted(met.total, "page")
                )
            });
            let says = format!(
                "Reclaim itself wrote {}, most likely to swap{}.{met}",
                counted(written.total, "page"),
                self.per_second(written.total)
            );
            Some((says, Sum::joined(&[vec![written], immediate.into_iter().collect()].concat())))
        })
    }

    fn huge_pages(&self) -> Said {
        let needs = [Counters::AllOf(&["thp_fault_alloc"]), Counters::AllOf(&["thp_fault_fallback"])];
        self.verdict(needs, |[alloc, fallback]| {
            let faults = alloc.total.saturating_add(fallback.total);
            let split = self.sum(Counters::AllOf(&["thp_split_page"])).ok();
            if faults == 0 && split.as_ref().is_none_or(|sum| sum.total == 0) {
                return None;
            }
            let mut says = format!(
                "{} asked for a huge page, {} of them did not get one ({}).",
                counted(faults, "fault"),
                count(fallback.total),
                percent(share(fallback.total, faults))
            );
            if let Some(split) = split.as_ref().filter(|split| split.total > 0) {
                says += &format!(" {} were split.", counted(split.total, "huge page"));
            }
            Some((says, Sum::joined(&[vec![alloc, fallback], split.into_iter().collect()].concat())))
        })
    }

    fn compaction(&self) -> Said {
        self.verdict([Counters::AllOf(&["compact_stall"])], |[stalls]| {
            let outcome = [Counters::AllOf(&["compact_success"]), Counters::AllOf(&["compact_fail"])];
            let outcome = self.verdict(outcome, |outcome| outcome).ok();
            let moved = self.sum(Counters::AllOf(&["compact_migrate_scanned"])).ok();
            if stalls.total == 0 && moved.as_ref().is_none_or(|moved| moved.total == 0) {
                return None;
            }
            let mut says = format!(
                "Tasks waited for compaction {}{}",
                plural(stalls.total, "times"),
                self.per_second(stalls.total)
            );
            if let Some([success, fail]) = &outcome {
                says += &format!(": {} got a block, {} did not", count(success.total), count(fail.total));
                if fail.total > success.total {
                    says += ", so most of the waits gained nothing";
                }
            }
            says.push('.');
            if let Some(moved) = &moved {
                says += &format!(
                    " Compaction, including kcompactd, scanned {} to move.",
                    counted(moved.total, "page")
                );
            }
            let outcome = outcome.into_iter().flatten();
            let parts = std::iter::once(stalls).chain(outcome).chain(moved);
            Some((says, Sum::joined(&parts.collect::<Vec<_>>())))
        })
    }

    fn tiers(&self) -> Said {
        const DEMOTED: Counters<'static> = Counters::AnyOf(&[
            "pgdemote_kswapd",
            "pgdemote_direct",
            "pgdemote_khugepaged",
            "pgdemote_proactive",
        ]);
        self.verdict([DEMOTED], |[demoted]| {
            // Kernels that demote and do not count promotions have none to tell.
            let promoted = self.sum(Counters::AllOf(&["pgpromote_success"]));
            let (down, up) = (demoted.total, promoted.as_ref().map_or(0, |sum| sum.total));
            if down == 0 && up == 0 {
                return None;
            }
            let verdict = if up >= down / 2 && down >= up / 2 && up > 0 && down > 0 {
                " Migration goes both ways: pages may thrash between memory tiers."
            } else {
                ""
            };
            let promotions = match &promoted {
                Ok(_) => format!(" and {} promoted{}", count(up), self.per_second(up)),
                Err(unknown) => format!("; the number of promotions is {unknown}"),
            };
            let says = format!(
                "{} were demoted to slower memory{}{promotions}.{verdict}",
                counted(down, "page"),
                self.per_second(down),
            );
            Some((says, Sum::joined(&[vec![demoted], promoted.into_iter().collect()].concat())))
        })
    }

    fn oom(&self) -> Said {
        self.verdict([Counters::AllOf(&["oom_kill"])], |[kills]| {
            let says = match kills.total {
                0 => return None,
                1 => "The OOM killer ended one task.".to_string(),
                more => format!("The OOM killer ended {} tasks.", count(more)),
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
