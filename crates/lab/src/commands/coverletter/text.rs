//! The cover letter as text of 72 columns for mailing lists, or as Markdown.

use std::fmt::Write;

use pageout_study::cover_letter::gather::{GROUPS, Why};
use pageout_study::cover_letter::judge::{self, GeometricMean, Judged, Row, Says};
use pageout_study::cover_letter::{Answer, NARROW_PERCENT, Repeat, groups};
use pageout_study::result::effect::capitalised;
use pageout_study::result::metrics::Unit;

use crate::commands::coverletter::args::CoverletterArgs;
use crate::print::form::Form;
use crate::print::{Layout, figures, layout};

/// Characters of a line: with those that replies put before it, it still fits a terminal.
const WIDTH: usize = 72;

/// Characters of what a row is about.
const TITLE: usize = 22;

pub(super) fn text(letter: &Answer, args: &CoverletterArgs, layout: Layout) -> String {
    let cases = &letter.found.cases;
    let mut text = head(letter, args);
    text += &summary(letter);
    for (group, cases) in groups(cases) {
        text += &section(group, &cases, args.all, layout);
    }
    text += &wide(letter);
    text += &left(letter);
    text.push('\n');
    text + &wrap(&last_line(letter), "")
}

fn wrap(text: &str, indent: &str) -> String {
    layout::wrap(text, WIDTH, indent)
}

/// A word and its text, in aligned lines.
fn field(word: &str, says: &str) -> String {
    let lines = wrap(says, "          ");
    format!("{word:<10}{}", lines.trim_start())
}

/// What was changed, and what was run.
fn head(letter: &Answer, args: &CoverletterArgs) -> String {
    let found = &letter.found;
    let change: Vec<String> = args.switches.iter().map(ToString::to_string).collect();
    let change = change.join(", ");
    let own = format!("pageout {}", env!("CARGO_PKG_VERSION"));
    let settings: Vec<String> = args.options.all_settings().map(ToString::to_string).collect();
    let base = match &letter.base_build {
        Some(version) => format!("each scenario by another build, {version}"),
        None => format!("each scenario unchanged, by {own}"),
    };
    let base = match settings.is_empty() {
        true => base,
        false => format!("{base}, with {}", settings.join(", ")),
    };
    let patched = match (change.is_empty(), &letter.base_build) {
        (true, _) => format!("the same by this build, {own}"),
        (false, Some(_)) => format!("the same by this build, {own}, with {change}"),
        (false, None) => format!("the same with {change}"),
    };
    let seeds = match args.repeat() {
        Repeat::Fixed(seeds) => format!("{seeds} of each"),
        Repeat::Auto(most) => {
            format!(
                "as many of each as bring the interval of each of its rows under {NARROW_PERCENT} %, {most} at most"
            )
        }
    };
    let firsts: Vec<u64> = found.cases.iter().map(|case| case.first_seed).collect();
    let from = match (firsts.iter().min(), firsts.iter().max()) {
        (Some(first), Some(last)) if first == last => format!("seeds from {first} on"),
        _ => "seeds from each scenario's own on".to_string(),
    };
    let runs =
        format!("{seeds}, {from}, in pairs of the same seed; {} runs", figures::count(found.made as u64));
    let title = match (change.is_empty(), &letter.base_build) {
        (true, _) => format!("Two builds of pageout, over {}", scenarios(found.cases.len())),
        (false, _) => format!("{change}, over {}", scenarios(found.cases.len())),
    };
    let mut text = wrap(&title, "");
    if let Some(told) = letter.interrupted() {
        text += &wrap(&format!("PARTIAL: {told}; rows are of the seeds that there are."), "");
    }
    text.push('\n');
    text += &field("base", &base);
    text += &field("patched", &patched);
    text += &field("runs", &runs);
    text += &field(
        "figures",
        "mean of base, mean of patched, and in parentheses the change in percent with half of its 95 % interval",
    );
    if let Some(accesses) = letter.accesses {
        let says = format!(
            "only what runs within some five minutes on two CPUs: {} accesses, the shortest scenarios first; the others are named below",
            figures::count(accesses)
        );
        text += &field("fast", &says);
    }
    text
}

fn scenarios(count: usize) -> String {
    figures::counted(count as u64, "scenario")
}

/// The judgement of noise and its results.
fn summary(letter: &Answer) -> String {
    let cases = &letter.found.cases;
    let drawn = judge::drawn(cases);
    let count = |says: Says| {
        let rows: usize = cases.iter().map(|case| case.count(says)).sum();
        (rows, cases.iter().filter(|case| case.count(says) > 0).count())
    };
    let ((helps, helped), (hurts, hurt)) = (count(Says::Helps), count(Says::Hurts));
    let rows = |count: usize| figures::counted(count as u64, "row");
    let same = cases.iter().filter(|case| case.is_same()).count();
    let mut says = format!(
        "A row helps or hurts if its interval leaves out 0 (Student's t over the pairs) and the change is {} % or more.",
        judge::LEAST_PERCENT
    );
    if drawn > 0 {
        let by_chance = match judge::by_chance(drawn) {
            rows if rows < 10.0 => format!("{rows:.1}"),
            rows => format!("{rows:.0}"),
        };
        let vary = if drawn == 1 { "1 row varies".to_string() } else { format!("{} vary", rows(drawn)) };
        let _ = write!(
            says,
            " {vary} by the seeds; without any change, about {by_chance} of them would exclude 0 by chance. * marks rows that remain after \
             correction (Holm's method, 5 % for all rows together), and rows that no seed changes (± 0.0)."
        );
    }
    let mut text = format!("\n{}\n", wrap(&says, ""));
    text += &field("Helps", &format!("{} of {}", rows(helps), scenarios(helped)));
    text += &field("Hurts", &format!("{} of {}", rows(hurts), scenarios(hurt)));
    let (noise, little) = (count(Says::Noise).0, count(Says::Little).0);
    text += &field("Noise", &format!("{}, and {} beyond noise but under 1 %", rows(noise), rows(little)));
    text + &field("Same", &format!("{}, in every run", scenarios(same)))
}

/// Scenarios of a group.
fn section(group: &str, cases: &[&Judged], all: bool, layout: Layout) -> String {
    let title = GROUPS.iter().find(|(name, _)| *name == group).map(|(_, title)| format!("{title} ({group})"));
    let title =
        format!("{}: {}", title.unwrap_or_else(|| format!("Scenarios in {group}")), scenarios(cases.len()));
    let mut text = format!("\n\n{}", wrap(&title, ""));
    let is_shown = |row: &&Row| all || matches!(row.says(), Says::Helps | Says::Hurts);
    let mut lines = Lines::default();
    for case in cases {
        let rows: Vec<&Row> = case.rows.iter().filter(is_shown).collect();
        if !rows.is_empty() || (case.seeds > 0 && !case.is_compared()) {
            lines.scenario(&case.name);
        }
        rows.into_iter().for_each(|row| lines.row(row));
        lines.end(case);
    }
    let means = judge::geometric_means(cases);
    if !lines.rows.is_empty() && !means.is_empty() {
        lines.scenario("geometric mean");
        means.iter().for_each(|mean| lines.mean(mean));
    }
    text += &lines.told(layout);
    let names = |is_in: &dyn Fn(&Judged) -> bool| {
        let names: Vec<&str> =
            cases.iter().filter(|case| is_in(case)).map(|case| case.name.as_str()).collect();
        names.join(", ")
    };
    let is_quiet = |case: &Judged| case.is_compared() && case.rows.iter().all(|row| !is_shown(&row));
    let lists = [
        ("noise or under 1 %", names(&|case| is_quiet(case) && !case.is_same() && case.seeds > 1)),
        (
            "one seed, so nothing is known of noise",
            names(&|case| is_quiet(case) && !case.is_same() && case.seeds == 1),
        ),
        ("the same in every run", names(&|case| is_quiet(case) && case.is_same())),
        ("not run before the interruption", names(&|case| case.seeds == 0)),
    ];
    for (what, names) in lists.iter().filter(|(_, names)| !names.is_empty()) {
        let _ = write!(text, "\n{}", wrap(&format!("{what}: {names}"), ""));
    }
    text
}

/// Rows below names of scenarios.
#[derive(Default)]
struct Lines {
    /// A row: scenario, figure, base, patched, change, mark and verdict; or one text.
    rows: Vec<Vec<String>>,
    scenario: String,
}

impl Lines {
    fn scenario(&mut self, name: &str) {
        self.scenario = name.to_string();
    }

    fn push(&mut self, figure: &str, base: String, patched: String, change: String, mark: &str, says: &str) {
        let row = [&self.scenario, figure, &base, &patched, &change, mark, says];
        self.rows.push(row.map(str::to_string).to_vec());
    }

    fn row(&mut self, row: &Row) {
        let (unit, [base, patched]) = (row.figure.unit, row.means());
        let per = if row.is_per_thousand { " /1k" } else { "" };
        let title = format!("{}{per}", row.figure.title);
        let change = match row.percent() {
            None => "(from nothing)".to_string(),
            Some((percent, _)) if percent >= 1000.0 => format!("(x{:.0})", percent / 100.0 + 1.0),
            Some((percent, None)) => format!("({percent:+.1}%)"),
            Some((percent, Some(width))) => format!("({percent:+.1}% ± {width:.1})"),
        };
        let says = match row.says() {
            Says::Helps => "helps",
            Says::Hurts => "hurts",
            Says::Little => "< 1 %",
            Says::Noise => "noise",
            Says::Same => "same",
            Says::OneSeed => "",
        };
        // Whole numbers would hide what there is of a figure for each thousand.
        let show = |value: f64| match row.is_per_thousand && row.figure.unit == Unit::Count {
            true => format!("{value:.2}"),
            false => unit.show(value),
        };
        let mark = if row.holds && says.ends_with('s') { "*" } else { "" };
        self.push(&title, show(base), show(patched), change, mark, says);
    }

    fn mean(&mut self, mean: &GeometricMean) {
        let GeometricMean { figure, cases, percent, half_width } = mean;
        let width = half_width.map(|width| format!(" ± {width:.1}")).unwrap_or_default();
        let change = format!("({percent:+.1}%{width})");
        self.push(&figure.title, String::new(), format!("of {cases}"), change, "", "");
    }

    /// How runs ended that have no figures.
    fn end(&mut self, case: &Judged) {
        let [fail, kill] = case.ends().map(|says| says.map_or("", Says::word));
        let [base, patched] = [case.failed[0].len(), case.failed[1].len()];
        if base + patched > 0 {
            let of = |failed: usize| format!("{failed} of {}", case.seeds);
            self.push("runs that fail", of(base), of(patched), String::new(), "", fail);
            // If the same number fails with the change, the reason is the same.
            let sides = if base == patched { 1 } else { 2 };
            for (side, failed) in ["base", "patched"].iter().zip(&case.failed).take(sides) {
                if let Some(failed) = failed.first() {
                    // The rest helps to debug that run.
                    let why = failed.to_string();
                    let why = why.split([';', '\n']).next().unwrap_or_default();
                    self.rows.push(vec![self.scenario.clone(), format!("{side}: {why}")]);
                }
            }
        }
        let [base, patched] = case.killed;
        if base + patched > 0 {
            let (base_told, patched_told) = (base.to_string(), patched.to_string());
            self.push("processes killed", base_told, patched_told, String::new(), "", kill);
            let why = "a killed process does less work, so its other figures are not compared";
            self.rows.push(vec![self.scenario.clone(), why.to_string()]);
        }
    }

    fn told(&self, layout: Layout) -> String {
        const HEADING: [&str; 7] = ["scenario", "", "base", "patched", "change", "", ""];
        if self.rows.is_empty() {
            return String::new();
        }
        if layout.form == Form::Markdown {
            let heading = HEADING.map(str::to_string).to_vec();
            let rows: Vec<Vec<String>> = std::iter::once(heading).chain(self.rows.iter().cloned()).collect();
            return format!("\n{}", layout.table_by(&rows, |column| (2..5).contains(&column)));
        }
        let mut text = format!("\n{:TITLE$}  {:>11}{:>11}\n", "", "base", "patched");
        let mut scenario = "";
        for row in &self.rows {
            if row[0] != scenario {
                scenario = &row[0];
                let _ = writeln!(text, "{scenario}");
            }
            match &row[1..] {
                [figure, base, patched, change, mark, says] => {
                    let figure = shortened(figure);
                    let line =
                        format!("  {figure:<TITLE$}{base:>11}{patched:>11}  {change:<16}{mark:<2}{says}");
                    let _ = writeln!(text, "{}", line.trim_end());
                }
                told => text += &wrap(&told.join(" "), "  "),
            }
        }
        text
    }
}

/// What a row is about, with the middle of a long name left out.
fn shortened(title: &str) -> String {
    let count = title.chars().count();
    if count <= TITLE {
        return title.to_string();
    }
    let end = TITLE * 2 / 3;
    let begin: String = title.chars().take(TITLE - end - 1).collect();
    format!("{begin}~{}", title.chars().skip(count - end).collect::<String>())
}

/// Rows whose interval is not as narrow as was asked for.
fn wide(letter: &Answer) -> String {
    let Repeat::Auto(most) = letter.ask.repeat else { return String::new() };
    let wide = letter.found.cases.iter().filter_map(|case| {
        let rows = case.rows.iter().filter(|row| !row.is_narrow());
        let rows: Vec<String> = rows
            .filter_map(|row| Some(format!("{} (± {:.1})", row.figure.title, row.percent()?.1?)))
            .collect();
        (!rows.is_empty()).then(|| format!("{}, {} seeds: {}", case.name, case.seeds, rows.join(", ")))
    });
    let wide: String = wide.map(|told| wrap(&told, "  ")).collect();
    match wide.is_empty() {
        true => format!("\n\nEach interval is under {NARROW_PERCENT} %.\n"),
        false => format!(
            "\n\n{}{wide}",
            wrap(&format!("Not under {NARROW_PERCENT} % with {most} seeds at most:"), "")
        ),
    }
}

/// Scenarios that were not run.
fn left(letter: &Answer) -> String {
    let mut whys: Vec<(String, Vec<&str>)> = Vec::new();
    for left in &letter.left {
        let why = left.why.told();
        match whys.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(&left.name),
            None => whys.push((why, vec![&left.name])),
        }
    }
    if whys.is_empty() {
        return String::new();
    }
    let told =
        whys.iter().map(|(why, names)| wrap(&format!("{}: {}", capitalised(why), names.join(", ")), "  "));
    format!("\n\nNot run: {}\n{}", scenarios(letter.left.len()), told.collect::<String>())
}

/// How complete it is.
fn last_line(letter: &Answer) -> String {
    let cases = &letter.found.cases;
    let compared = cases.iter().filter(|case| case.is_compared()).count();
    let not_run = letter.left.iter().filter(|left| left.why != Why::Already).count();
    let mut parts = Vec::new();
    let mut add = |count: usize, what: &str| {
        if count > 0 {
            parts.push(format!("{} {what}", figures::count(count as u64)));
        }
    };
    add(cases.iter().filter(|case| case.failed.iter().any(|failed| !failed.is_empty())).count(), "failed");
    add(cases.iter().filter(|case| case.killed != [0, 0]).count(), "with processes killed");
    add(cases.iter().filter(|case| case.seeds == 0).count(), "interrupted");
    add(not_run, "not run");
    let begin = match letter.interrupted() {
        Some(told) => format!("PARTIAL, {told}: "),
        None => String::new(),
    };
    match parts.is_empty() {
        true => format!("{begin}{} compared, none left out.", scenarios(compared)),
        false => format!("{begin}{} compared; {}.", scenarios(compared), parts.join(", ")),
    }
}
