//! The HTML page of the tour: a summary of all claims, then each with its chart and its table.

use pageout_study::reproduce::change;
use pageout_study::reproduce::judge::CRITERIA;
use pageout_study::result::metrics;
use pageout_study::tour::lines::Figures;
use pageout_study::tour::{Answer, COMPARED, Done, Tally, Told, UNDECIDED};

use crate::report::{Axis, Badge, Bar, Bars, Chart, Colour, Letter, Line, Page, Part, Shape, Table, Unit};

pub(super) fn page(answer: &Answer) -> Page {
    let letters: Vec<Letter> = answer.stops.iter().map(letter).collect();
    let mut page = Page {
        title: "Claimed of page reclaim and memory tiers, and what holds here".to_string(),
        of: "pageout tour".to_string(),
        story: answer.warning.iter().cloned().chain([format!("{}.", answer.tally().says())]).collect(),
        parts: vec![Part::Letters {
            title: "The claims".to_string(),
            says: "Rows of each published table that hold in a simulation of the kernel's rules on such a machine.".to_string(),
            letters: letters.clone(),
        }],
    };
    for (of, letter) in answer.stops.iter().zip(letters) {
        page.parts.push(Part::Letter(letter));
        page.parts.extend(picture(of));
        let heading = ["", "", "published", "ours"].map(str::to_string).to_vec();
        page.parts.push(Part::Table(Table {
            title: format!("{}: row by row", of.stop.name),
            says: String::new(),
            rows: std::iter::once(heading).chain(of.told.iter().map(cells)).collect(),
            words: 2,
            last_words: 0,
        }));
        let mut text: String = of.reasons().iter().map(|says| format!("{says}\n")).collect();
        text += &format!("More: {}\n", of.stop.more);
        let title = format!("{}: what is known of it, and more", of.stop.name);
        page.parts.push(Part::Prose { title, text });
    }
    page.parts.push(Part::Prose {
        title: "How to read it".to_string(),
        text: format!("{CRITERIA}\n{UNDECIDED}\n{COMPARED}"),
    });
    page
}

/// A row with its verdict next to its name, so that a narrow screen shows it.
fn cells(line: &Told) -> Vec<String> {
    let [name, published, ours, verdict] = line.cells();
    vec![name, verdict, published, ours]
}

fn letter(of: &Done) -> Letter {
    let stop = &of.stop;
    let Tally { held, not_held, not_decided } = of.tally();
    let badges = [
        ("held", held, "held"),
        ("not-held", not_held, "not held"),
        ("not-decided", not_decided, "not decided"),
    ];
    let badges = badges.into_iter().filter(|&(class, count, _)| count > 0 || class == "held");
    Letter {
        id: stop.name.clone(),
        title: stop.title.clone(),
        author: stop.author.clone(),
        address: of.address.clone(),
        claim: stop.claim.clone(),
        says: vec![
            ("Published on".to_string(), stop.published_on.clone()),
            ("Ours".to_string(), of.ours_on()),
        ],
        badges: badges.map(|(class, count, word)| Badge { class, text: format!("{count} {word}") }).collect(),
    }
}

/// Published and simulated figures: a curve if the stop has one, or bars of the changes.
fn picture(of: &Done) -> Option<Part> {
    if let Some(picture) = &of.stop.picture {
        let levels = picture.rows.iter().map(|row| {
            let line = of.told.iter().find(|line| line.name == *row);
            match line.and_then(|line| line.figures) {
                Some(Figures::Levels(published, ours)) => (Some(published), Some(ours)),
                _ => (None, None),
            }
        });
        let (published, ours): (Vec<Option<f64>>, Vec<Option<f64>>) = levels.unzip();
        let unit = of.told.iter().find(|line| picture.rows.contains(&line.name)).map(|line| line.unit);
        let unit = match unit {
            Some(metrics::Unit::Nanoseconds) => Unit::Nanoseconds,
            Some(metrics::Unit::Bytes) => Unit::Bytes,
            _ => Unit::Number,
        };
        let line = |name: &str, at: usize, ys| Line { name: name.to_string(), colour: Colour::nth(at), ys };
        return Some(Part::Chart(Chart {
            title: picture.title.clone(),
            says: "Published and simulated figures.".to_string(),
            x: Axis::linear(&picture.x, Unit::Number),
            y: Axis::linear("", unit),
            xs: (1..=picture.rows.len()).map(|at| at as f64).collect(),
            lines: vec![line("published", 0, published), line("simulated", 1, ours)],
            shape: Shape::Points,
        }));
    }
    let bars: Vec<Bar> = of.told.iter().flat_map(bars).collect();
    (!bars.is_empty()).then(|| {
        Part::Bars(Bars {
            title: format!("{}: published and simulated changes", of.stop.name),
            says: "Lines are 95 % intervals, hollow bars may be noise.".to_string(),
            bars,
        })
    })
}

/// The published change of a line, and the simulated one below it.
fn bars(line: &Told) -> Vec<Bar> {
    let Some(Figures::Changes(published, ours)) = line.figures else { return Vec::new() };
    let Some(percent) = ours.percent(ours.difference) else { return Vec::new() };
    let first = Bar {
        name: format!("{}: published", line.name),
        percent: published * 100.0,
        half_width: None,
        is_noise: false,
        verdict: line.better.verdict(published),
        text: line.published.clone(),
    };
    let second = Bar {
        name: "ours".to_string(),
        percent: percent.clamp(-1000.0, 1000.0),
        half_width: ours.half_width.and_then(|half| ours.percent(half)),
        is_noise: ours.is_within_noise(),
        verdict: line.better.verdict(percent),
        text: change(&ours),
    };
    vec![first, second]
}
