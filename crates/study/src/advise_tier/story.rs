//! The advice of `pageout advise-tier` in sentences: which ratio loses little enough, by which source, and what its reader has to know.

use crate::result::caveats;

use crate::basis::{Evidence, verdict_of};

use super::{Advice, Cell, KNOBS_TOLD, Ratio, SOURCES, is_any, longer, signed, why_not};
use crate::figures;

impl Advice {
    /// Sentences: what to do.
    pub fn story(&self) -> Vec<String> {
        let mut story: Vec<String> =
            caveats::nothing_accessed(self.all_fast.results.iter()).into_iter().collect();
        story.push(self.left_out());
        if self.is_slow_memory_unused() {
            story.push(
                "Fast memory served every access at each ratio. The workload never filled it, so these runs \
                 do not cover slower memory. Use a machine with less memory or a larger workload."
                    .to_string(),
            );
        }
        if !self.put_aside.is_empty() {
            let keys: Vec<&str> = self.put_aside.iter().copied().collect();
            story.push(format!(
                "Keys of the scenario's own nodes are ignored: {}. Allocations use the fast node first.",
                keys.join(", ")
            ));
        }
        for device in &self.asked.devices {
            story.push(match self.advised(device) {
                Some((at, loss)) => {
                    let cell = &self.cells[at];
                    let (fast, slow) = cell.ratio.of(self.memory);
                    format!(
                        "{device}: with {fast} of fast and {slow} of slow memory ({}) it {} with fast memory \
                         only{}, and saves {} of fast memory{}; {}{}{}",
                        cell.ratio,
                        longer(loss),
                        self.interval(&cell.runs).and_then(|loss| loss.half_width).map_or(
                            String::new(),
                            |width| {
                                format!(
                                    " (± {width:.1}, {})",
                                    figures::counted(self.extent.repeat.into(), "seed")
                                )
                            }
                        ),
                        figures::bytes(self.saved(cell.ratio)),
                        match self.scenario.machine.page_stands_for {
                            1 => String::new(),
                            each => format!(", scale factor {}", figures::count(each.into())),
                        },
                        match cell.source {
                            0 => self.without(cell, "no page migration is needed"),
                            1 => self.without(cell, "demotion is enough, no source of hot pages is needed"),
                            source => format!("hot pages come from {}.", SOURCES[source].name),
                        },
                        self.hits(cell).map_or(String::new(), |hits| format!(" {hits}")),
                        match self.tried(device).iter().any(|ratio| ratio.share() < cell.ratio.share()) {
                            true => "",
                            false => " No ratio with less fast memory was run.",
                        }
                    )
                }
                None => self.too_slow(device),
            });
            story.extend(
                self.advised(device).and_then(|(at, _)| self.cost_story(self.cells[at].ratio, device)),
            );
            story.extend(self.advised(device).and_then(|(at, _)| self.unsettled(&self.cells[at])));
            story.extend(self.gaps(device));
            story.extend(self.untried(device));
            story.extend(self.gains(device));
        }
        story.extend(self.scale_story());
        if !self.asked.every_source {
            story.push(self.knobs_story());
        }
        story.extend(self.not_run());
        story
    }

    /// Sentences that belong to the table of all sources.
    pub fn sources_story(&self) -> Vec<String> {
        let mut story: Vec<String> =
            caveats::nothing_accessed(self.all_fast.results.iter()).into_iter().collect();
        story.push(self.left_out());
        if !self.put_aside.is_empty() {
            let keys: Vec<&str> = self.put_aside.iter().copied().collect();
            story.push(format!("Keys of the scenario are ignored: {}.", keys.join(", ")));
        }
        story.extend(self.asked.devices.iter().filter_map(|device| self.gaps(device)));
        let mut blind: Vec<&str> = Vec::new();
        for cell in self.cells.iter().filter(|cell| cell.runs.is_whole() && self.not_tried(cell).is_some()) {
            if !blind.contains(&SOURCES[cell.source].name) {
                blind.push(SOURCES[cell.source].name);
            }
        }
        if !blind.is_empty() {
            story.push(format!(
                "Sources that saw nothing, because they do not see these accesses or the run is shorter than \
                 their period: {}.",
                blind.join(", ")
            ));
        }
        story.extend(self.not_run());
        if self.scenario.machine.tlb_entries == 0 {
            story.push(
                "Each access sets the accessed bit, as if no translation stayed in a TLB (machine.tlb_entries \
                 = 0). Page-table scans and DAMON then miss no page that the TLB would hide."
                    .to_string(),
            );
        }
        story
    }

    /// The knobs that change the time most.
    fn knobs_story(&self) -> String {
        let knobs: Vec<String> = self
            .knobs()
            .iter()
            .take(KNOBS_TOLD)
            .filter(|(_, change)| is_any(*change))
            .map(|(turned, change)| {
                format!("{} = {}: {}", turned.knob.key(), turned.knob.value, signed(*change))
            })
            .collect();
        let at = self.cells[self.at].name();
        let (ran, all) = (self.knobs().len(), self.turned.len());
        let of =
            if ran == all { String::new() } else { format!(" among {ran} of {all} knobs that were run") };
        match knobs.is_empty() {
            true if !self.turned.iter().any(|turned| turned.runs.was_made()) => {
                format!("The effect of knobs is unknown: no knob was run ({at}).")
            }
            true if ran == 0 => format!("The effect of knobs is unknown: no run has figures ({at})."),
            true => format!("No knob{of} changes the time ({at})."),
            false => format!("Knobs{of} that change the time most ({at}): {}.", knobs.join("; ")),
        }
    }

    /// The sources that were not run, and why.
    pub(super) fn not_run(&self) -> Vec<String> {
        let left_out = (0..SOURCES.len()).filter_map(|source| {
            let why = why_not(&self.scenario, source)?;
            Some(format!("{}: not run because {why}.", SOURCES[source].name))
        });
        left_out.collect()
    }

    /// That no ratio of a device is good enough, as far as it was run.
    fn too_slow(&self, device: &str) -> String {
        match self.tried(device).len() {
            0 if self.cells.iter().any(|cell| cell.device == device && self.is_in_warm_up(cell)) => format!(
                "{device}: unknown because no complete run is longer than the warm-up. Use a shorter warm-up (--warm-up) or a longer workload."
            ),
            0 => format!("{device}: unknown because no run completed."),
            tried if tried == self.ratios().len() => {
                format!("{device}: each ratio takes at least {} % longer.", self.asked.loss)
            }
            tried => format!(
                "{device}: each of the {tried} ratios of {} that were run takes at least {} % longer.",
                self.ratios().len(),
                self.asked.loss
            ),
        }
    }

    /// The ratios at which some source has figures.
    pub(super) fn tried(&self, device: &str) -> Vec<Ratio> {
        self.ratios().into_iter().filter(|&ratio| self.best(ratio, device).is_some()).collect()
    }

    /// How many runs with a device have no figures, which might lose less than those that do.
    fn gaps(&self, device: &str) -> Option<String> {
        let of_device = self.cells.iter().filter(|cell| cell.device == device);
        let (all, whole) =
            (of_device.clone().count(), of_device.filter(|cell| self.rates(&cell.runs).is_some()).count());
        (0 < whole && whole < all)
            .then(|| format!("{device}: based on {whole} of {all} runs; the others have no figures."))
    }

    /// That a source is not needed at a ratio, if every source that finds hot pages acted there.
    fn without(&self, cell: &Cell, says: &str) -> String {
        let finds: Vec<usize> = self
            .here(cell.ratio, &cell.device)
            .filter(|cell| SOURCES[cell.source].promotes())
            .map(|cell| cell.source)
            .collect();
        let here = Here { advice: self, cell };
        verdict_of(&here, &finds, |_| format!("{says}."))
            .unwrap_or_else(|unknown| format!("whether finding hot pages would save more is {unknown}."))
    }

    /// The sources that did not act in any run with a device, and how to give them time.
    fn untried(&self, device: &str) -> Vec<String> {
        let mut told = Vec::new();
        for (source, noticing) in SOURCES.iter().enumerate() {
            let mut of_source = self
                .cells
                .iter()
                .filter(|cell| cell.device == device && cell.source == source && cell.runs.is_whole());
            let Some(first) = of_source.clone().next() else { continue };
            if of_source.all(|cell| self.not_tried(cell).is_some())
                && let Some(why) = self.not_tried(first)
            {
                told.push(format!(
                    "{device}, {}: not tested: {why}. Use a workload that runs longer than the scan period.",
                    noticing.name
                ));
            }
        }
        told
    }

    /// Returns true if no access went to slower memory, where nothing moved pages there.
    fn is_slow_memory_unused(&self) -> bool {
        let mut still = self.cells.iter().filter(|cell| cell.source == 0).peekable();
        let fast_hits = |cell: &Cell| cell.result()?.tiers.as_ref()?.fast_hit_ratio;
        still.peek().is_some() && still.all(|cell| fast_hits(cell) == Some(1.0))
    }

    /// How many accesses fast memory served, and how many it could have.
    fn hits(&self, cell: &Cell) -> Option<String> {
        let tiers = cell.result()?.tiers.as_ref()?;
        let (hits, best) = (tiers.fast_hit_ratio?, tiers.offline_fast_hit_ratio?);
        Some(format!(
            "Fast memory serves {} of accesses; with the same number of promotions the optimum is {}.",
            figures::percent(hits),
            figures::percent(best)
        ))
    }
}

/// All sources at the ratio and on the device of a cell.
struct Here<'a> {
    advice: &'a Advice,
    cell: &'a Cell,
}

impl Evidence for Here<'_> {
    type Need = usize;
    type Seen = f64;

    fn seen(&self, source: &usize) -> Result<f64, String> {
        let mut here = self.advice.here(self.cell.ratio, &self.cell.device);
        let cell = here.find(|cell| cell.source == *source);
        let loss = cell.and_then(|cell| self.advice.cell_loss(cell));
        loss.ok_or_else(|| format!("{} was not tried", SOURCES[*source].name))
    }
}
