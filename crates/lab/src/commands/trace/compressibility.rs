//! `pageout trace compressibility`: what pages compress to ([`pageout_study::compressibility`]), as a table, JSON, and keys of a scenario.

use std::path::PathBuf;

use pageout_study::compressibility::{self, Ask, Compressor, Measured};

use super::args;
use crate::context::Context;
use crate::failure::Outcome;
use crate::print::{Layout, Terminal, figures};

/// Reads the pages, compresses them and prints what they came to. Nothing is printed if one of the files or processes can't be read.
pub(super) fn compressibility(
    what: &[PathBuf],
    compressor: args::Compressor,
    sample: u64,
    cx: &Context,
) -> Outcome {
    let compressor = match compressor {
        args::Compressor::Lz4 => Compressor::Lz4,
        args::Compressor::Zstd => Compressor::Zstd,
    };
    let answer = compressibility::ask(&Ask { what: what.to_vec(), sample }, &Terminal::new(&cx.output))?;
    match cx.output.is_data() {
        true => cx.output.print_json(&answer),
        false => cx.output.print_text(&to_text(&answer.regions, compressor, cx.layout())),
    }
}

/// The keys of a scenario that say the same.
fn keys(of: &Measured, compressor: Compressor) -> String {
    let mut text = format!("# {}, {} pages, {}\n", of.name, figures::count(of.compressed), compressor.name());
    let lengths = of.lengths.iter().find(|lengths| lengths.compressor == compressor);
    let shares = [("zero_filled", of.zero_filled), ("same_filled", of.same_filled)];
    for (key, share) in shares.into_iter().filter(|(_, share)| share.0 > 0.0) {
        text += &format!("{key} = {}\n", share.0);
    }
    if let Some(deciles) = lengths.and_then(|lengths| lengths.deciles) {
        text += &format!("compressed_deciles = \"{deciles}\"\n");
    }
    text
}

fn to_text(all: &[Measured], compressor: Compressor, layout: Layout) -> String {
    let heading = [
        "region",
        "by",
        "pages",
        "zeroes",
        "one word",
        "mean",
        "least",
        "10%",
        "50%",
        "90%",
        "most",
        "do not shrink",
    ];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    for measured in all {
        for (index, lengths) in measured.lengths.iter().enumerate() {
            let once = |text: String| if index == 0 { text } else { String::new() };
            let length = |tenths: usize| {
                lengths.deciles.map_or("-".to_string(), |deciles| deciles.0[tenths].to_string())
            };
            rows.push(vec![
                once(measured.name.clone()),
                lengths.compressor.name().to_string(),
                once(figures::count(measured.pages)),
                once(figures::percent(measured.zero_filled.0)),
                once(figures::percent(measured.same_filled.0)),
                if lengths.deciles.is_some() { format!("{:.0}", lengths.mean) } else { "-".to_string() },
                length(0),
                length(1),
                length(5),
                length(9),
                length(10),
                figures::percent(lengths.incompressible),
            ]);
        }
    }
    let mut text = layout.table(&rows, 2);
    text += "Bytes of a page of 4096, of the pages that are neither zeroes nor one word.\n";
    for measured in all {
        text += &format!("\n{}", keys(measured, compressor));
    }
    text
}
