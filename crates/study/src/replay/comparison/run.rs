//! From traces to the cells of a comparison.

use std::path::Path;

use pageout_policy::Listed;
use pageout_sim::scenario::keys::Limit;

use super::{Cell, Comparison, OfTrace, TOO_SMALL};
use crate::bench::{NotSampled, Policy, Question, SampledFrom, Trace};
use crate::error::{Error, Failed};
use crate::figures;
use crate::replay::ask::Ask;
use crate::replay::estimate;
use crate::replay::point::Point;
use crate::replay::reading;
use crate::replay::setup::{Accesses, PAGES_MIN, Setup, check, pages};
use crate::result::variants::Plan;
use crate::watch::{Watcher, name_of};

/// A row for each textbook policy, and what estimates among them were made from.
type ByBook = (std::vec::IntoIter<Vec<Cell>>, Option<SampledFrom>);

/// Simulates all of it. Errors: options exclude each other, the only trace can't be read.
pub(in crate::replay) fn comparison(
    ask: &Ask,
    policies: Vec<Policy>,
    limits: &[Limit],
    watcher: &dyn Watcher,
) -> Result<Comparison, Error> {
    check_options(ask, &policies, watcher)?;
    watcher.heed_stop();
    let mut answer = Comparison {
        ask: ask.clone(),
        policies,
        traces: Vec::new(),
        interrupted: None,
        failures: Vec::new(),
    };
    for path in &ask.traces {
        let study = Study { ask, policies: &answer.policies, watcher };
        let mut failures = Vec::new();
        let of_trace = study.trace(path, limits, &mut failures);
        answer.failures.extend(failures);
        match of_trace {
            Ok(of_trace) => answer.traces.extend(of_trace),
            // The other traces have their figures.
            Err(error) if ask.traces.len() > 1 => {
                answer.failures.push(Failed { is_input: true, message: error.in_full() });
            }
            Err(error) => return Err(error),
        }
        if let Some(signal) = watcher.stop() {
            let whole = answer.cells().filter(|cell| cell.is_whole()).count();
            let all = ask.traces.len() * answer.policies.len() * limits.len();
            if whole < all {
                answer.interrupted = Some(format!("interrupted by {signal} after {whole} of {all} cells"));
            }
            break;
        }
    }
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

/// Refuses options that make no sense with these policies, and remarks on those that have no effect on them.
pub(in crate::replay) fn check_options(
    ask: &Ask,
    policies: &[Policy],
    watcher: &dyn Watcher,
) -> Result<(), Error> {
    let of_machine = policies.iter().find(|policy| policy.textbook().is_none());
    if ask.print_scenario {
        let name = policies
            .iter()
            .find(|policy| policy.textbook().is_some())
            .map_or("a policy".to_string(), Policy::name);
        return Err(Error::asked(format!(
            "--print-scenario: {name} runs without the full simulator, so it has no scenario\nhelp: give one \
             trace and one policy such as classic@6.12 or lru@machine"
        )));
    }
    if let Some(policy) = of_machine {
        let name = policy.name();
        if ask.sample.is_some() {
            return Err(Error::asked(format!(
                "--sample works with textbook policies, but {name} runs in the full simulator\nhelp: remove one of them"
            )));
        }
        if ask.warm_up.is_some() {
            return Err(Error::asked(format!(
                "--warm-up works with textbook policies, but {name} runs in the full simulator, which counts from its start\nhelp: remove one of them"
            )));
        }
        return Ok(());
    }
    let idle = ask.of_machine();
    if !idle.is_empty() {
        let also = policies.iter().map(Policy::name).find(|name| Listed::by_name(name).is_some());
        let before = also.map_or(String::new(), |name| {
            format!("; `{name}` of the full simulator, the earlier meaning of this name, is `{name}@machine`")
        });
        watcher.remark(&format!(
            "note: {} has no effect on textbook policies, which have no device and no time{before}",
            idle.join(", ")
        ));
    }
    Ok(())
}

/// How each trace is replayed.
#[derive(Clone, Copy)]
struct Study<'a> {
    ask: &'a Ask,
    policies: &'a [Policy],
    watcher: &'a dyn Watcher,
}

impl<'a> Study<'a> {
    /// All cells of a trace. Nothing if a signal came while it was read.
    fn trace(
        self,
        path: &'a Path,
        limits: &[Limit],
        failures: &mut Vec<Failed>,
    ) -> Result<Option<OfTrace>, Error> {
        let Study { ask, watcher, .. } = self;
        let has_neighbours = reading::has_neighbours(ask, path)?;
        let setup = |profile: &'a str| Setup { ask, trace: path, profile, has_neighbours };
        let options = setup("").read_options()?;
        let interpretation = reading::interpreted(path, &options, watcher)?;
        let has_machine = self.policies.iter().any(|policy| policy.textbook().is_none());
        let mut loaded = None;
        if has_machine {
            loaded = reading::accesses(ask, path, usize::MAX, &options, watcher)?;
            if loaded.is_none() {
                return Ok(None);
            }
        }
        let of_loaded = match &loaded {
            Some(of) => Trace::of(path, &options, &of.loaded, ask.trace_memory.0)?,
            None => None,
        };
        let trace = match of_loaded {
            Some(trace) => trace,
            None => match Trace::load(path, &options, ask.trace_memory.0, watcher)? {
                Some(trace) => trace,
                None => return Ok(None),
            },
        };
        if trace.accesses == 0 {
            return Err(Error::asked(format!("{}: the trace has no accesses", path.display())));
        }
        reading::remark_later(path, &interpretation, trace.requests.as_ref(), watcher);
        let warm_up = reading::warm_up(ask, path, trace.accesses)?;
        let least = if has_machine && self.policies.len() == 1 { PAGES_MIN } else { 1 };
        let pages_of = |limit: &Limit| Ok((*limit, pages(*limit, trace.distinct_pages.into(), least)?));
        let sizes = limits.iter().map(pages_of).collect::<Result<Vec<(Limit, u64)>, Error>>()?;
        let by_book = self.textbook(&trace, &sizes, warm_up, failures)?;
        let Some((mut by_book, sampled)) = by_book else {
            return Ok(None);
        };
        let mut cells = Vec::new();
        for policy in self.policies {
            cells.push(match policy {
                Policy::Textbook(_) => by_book.next().expect("each has a row"),
                Policy::Machine { profile, .. } => {
                    let loaded = loaded.as_ref().expect("it was loaded for the machine");
                    self.machine(policy, setup(profile), loaded, &sizes, failures)?
                }
            });
        }
        Ok(Some(OfTrace { interpretation, trace, warm_up, sizes, cells, sampled, has_neighbours }))
    }

    /// A row for each textbook policy, in their order.
    fn textbook(
        self,
        trace: &Trace,
        sizes: &[(Limit, u64)],
        warm_up: u64,
        failures: &mut Vec<Failed>,
    ) -> Result<Option<ByBook>, Error> {
        let Study { ask, watcher, .. } = self;
        let choices: Vec<_> = self.policies.iter().filter_map(Policy::textbook).cloned().collect();
        if choices.is_empty() {
            return Ok(Some((Vec::new().into_iter(), None)));
        }
        let rising = trace.rising(sizes.iter().map(|(_, pages)| *pages));
        let question = Question {
            name: name_of(&trace.path),
            policies: &choices,
            sizes: &rising,
            warm_up,
            seed: ask.seed,
            jobs: ask.jobs,
            watcher,
        };
        let (answer, sampled) = match ask.sample {
            Some(rate) => match question.sampled(trace, rate) {
                Ok((answer, sampled)) => (answer, Some(sampled)),
                Err(NotSampled::Refused(why)) => {
                    let path = trace.path.display();
                    return Err(Error::asked(format!("--sample {rate}: {path}: {why}")));
                }
                Err(NotSampled::Trace(error)) => return Err(error.into()),
                Err(NotSampled::Stopped) => return Ok(None),
            },
            None => {
                if !ask.exact {
                    estimate::first(trace, &question, ask.trace_memory.0)?;
                }
                let mut answer = question.exactly(trace)?;
                let sampled = question.sample_bounds(trace, ask.trace_memory.0, &mut answer)?;
                (answer, sampled)
            }
        };
        failures.extend(answer.broken.iter().map(|broken| {
            let memory = figures::counted(rising[broken.size].into(), "page");
            let (path, policy) = (trace.path.display(), &choices[broken.policy]);
            Failed {
                is_input: true,
                message: format!("{path}: policy {policy} in {memory}: {}", broken.fault),
            }
        }));
        let counted = trace.accesses - warm_up;
        let shown = |pages: u64, policy: usize| {
            let size = trace.place(pages, &rising);
            let of_cell = answer.figures.iter().filter(|of| of.policy == policy && of.size == size);
            let own = of_cell.map(|of| (of.name.clone(), of.value)).collect();
            Cell { own, ..Cell::of(answer.cells[policy][size], counted) }
        };
        let rows =
            (0..choices.len()).map(|policy| sizes.iter().map(|(_, pages)| shown(*pages, policy)).collect());
        Ok(Some((rows.collect::<Vec<_>>().into_iter(), sampled)))
    }

    /// The row of a policy of the machine. What is smaller than the machine can be has no figures.
    fn machine(
        self,
        policy: &Policy,
        setup: Setup,
        accesses: &Accesses,
        sizes: &[(Limit, u64)],
        failures: &mut Vec<Failed>,
    ) -> Result<Vec<Cell>, Error> {
        let mut runs = Vec::new();
        let possible: Vec<&(Limit, u64)> = sizes.iter().filter(|(_, pages)| *pages >= PAGES_MIN).collect();
        for (_, pages) in &possible {
            let run = setup.replaying(accesses, *pages)?;
            check(&run)?;
            runs.push(run);
        }
        let name = format!("{}, {}", name_of(setup.trace), policy.name());
        let plan = Plan { name, repeat: 1, jobs: self.ask.jobs, watcher: self.watcher };
        let made = if runs.is_empty() { Vec::new() } else { plan.run_in(&runs, self.ask.untimed)?.variants };
        let mut points = possible.into_iter().zip(made).map(|((limit, pages), runs)| Point {
            pages: *pages,
            limit: *limit,
            runs,
        });
        let shown = sizes.iter().map(|(_, pages)| {
            if *pages < PAGES_MIN {
                return Cell { missing: Some(TOO_SMALL.to_string()), ..Cell::default() };
            }
            let point = points.next().expect("each size that is possible has a point");
            let whose = format!("{}: {}", setup.trace.display(), policy.name());
            failures.extend(point.failures(self.ask).iter().map(|failure| failure.of(&whose)));
            match point.figures() {
                Some(of) => Cell {
                    miss_ratio: Some(of.miss_ratio),
                    misses: Some(of.misses),
                    own: of.own.clone(),
                    machine: Some(of),
                    ..Cell::default()
                },
                None => Cell { missing: Some(point.runs.missing()), ..Cell::default() },
            }
        });
        Ok(shown.collect())
    }
}
