//! `pageout play`: a page that simulates machines and draws their pages (`crates/play`).
//!
//! ```text
//!   crates/play ──ci/play.sh──▶ module.b64 ─┐
//!   scenarios, the user's first ────────────┼──▶ FILE.html, which needs nothing else
//!   assets/: markup, styles, scripts, tours ┘
//! ```
//! The module is WebAssembly, which a build of the program cannot make along the way. A release has it inside (feature `play`); a checkout has it
//! when `ci/play.sh` has made it.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, anyhow, ensure};
use clap::{Args, ValueHint};
use pageout_policy::Listed;
use pageout_study::scenario::load::{Changes, load};
use pageout_study::scenario::source::Source;
use pageout_study::shipped::shipped;
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::unfinished::Unfinished;
use crate::report::{UPLOT_CSS, UPLOT_JS, UPLOT_LICENCE, escape, page_css};

const FRAME: &str = include_str!("play/assets/frame.html");
const BODY: &str = include_str!("play/assets/play.html");
const CSS: &str = include_str!("play/assets/play.css");
/// The scripts share one scope; the last one starts the page.
const JS: &str = concat!(
    include_str!("play/assets/page.js"),
    include_str!("play/assets/link.js"),
    include_str!("play/assets/charts.js"),
    include_str!("play/assets/squares.js"),
    include_str!("play/assets/story.js"),
    include_str!("play/assets/tables.js"),
    include_str!("play/assets/files.js"),
    include_str!("play/assets/tours.js"),
    include_str!("play/assets/start.js"),
);
const WORKER: &str = include_str!("play/assets/worker.js");
const TOURS: &str = include_str!("play/assets/tours.json");

/// The bundled scenarios that a page offers: each shows another mechanism, and runs in seconds.
const SCENARIOS: [&str; 12] = [
    "scan-and-hot-set.toml",
    "zipf-under-limit.toml",
    "shifting-hot-set.toml",
    "zswap.toml",
    "swap-disk-or-zram.toml",
    "hot-set-on-slow-memory.toml",
    "demotion.toml",
    "high-or-max.toml",
    "protection-low.toml",
    "writeback-from-reclaim.toml",
    "whole-machine.toml",
    "regressions/premature-oom.toml",
];

const EXAMPLES: &str = "\
Examples:
  # a scan next to a hot set, and eleven other scenarios
  pageout play
  # your scenario, in a file to share
  pageout play web.toml --out web.html --no-open";

/// Write a page to watch a machine in the browser
///
/// The page simulates the machine: it has the simulator as WebAssembly, needs no network, and has the same counters as `pageout run`. You can run,
/// pause, step by batches of reclaim and go back, look at each page of each list, write kernel files, and fork the run. Six guided tours begin
/// with the classic LRU.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct PlayArgs {
    /// Scenario to show first; by default scan-and-hot-set.toml
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath)]
    scenario: Option<PathBuf>,

    /// Name of the page; an existing file is replaced
    #[arg(long = "out", id = "page", value_name = "FILE.html", default_value = "play.html", value_hint = ValueHint::FilePath)]
    page: PathBuf,

    /// Do not open the page in a browser
    #[arg(long)]
    no_open: bool,
}

/// Writes the page, and opens it where there is a browser.
pub(crate) fn run(args: &PlayArgs, cx: &Context) -> Outcome {
    let is_html = args.page.extension().is_some_and(|suffix| suffix == "html" || suffix == "htm");
    if !is_html {
        return Err(Failure::Input(anyhow!(
            "--out: unknown suffix: found `{}`, expected .html\nhelp: for example --out play.html",
            args.page.display()
        )));
    }
    let own = args.scenario.as_deref().map(own).transpose()?;
    let text = page(own, &module()?)?;
    let named = |error: std::io::Error| {
        std::io::Error::new(error.kind(), format!("--out {}: {error}", args.page.display()))
    };
    let folder = args.page.parent().filter(|parent| !parent.as_os_str().is_empty());
    let written = Unfinished::new_in(folder.unwrap_or(Path::new("."))).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.finish(&args.page)
    });
    written.map_err(named).map_err(Failure::Output)?;
    cx.output.remark(&format!("page written to {}", args.page.display()));
    if !args.no_open && !cx.output.is_of_a_call() {
        open(&args.page);
    }
    Ok(())
}

/// The user's scenario, checked as `pageout run` does: its name, and its text.
fn own(path: &Path) -> Result<(String, String), Failure> {
    let source = Source::read(path)?;
    let scenario = load(&source, &Changes::default(), &[], &())?;
    let mut objects = scenario.task.iter().flat_map(|task| &task.object);
    if objects.any(|object| object.trace.is_some()) {
        return Err(Failure::Input(anyhow!(
            "{}: the scenario replays a trace: found a `trace`, expected workloads only\nhelp: a page cannot read other files; use `pageout run FILE --report report.html`",
            path.display()
        )));
    }
    let mut policies =
        scenario.memcg.iter().filter_map(|memcg| memcg.policy.as_ref()).chain([&scenario.kernel.profile]);
    let brought = Listed::brought();
    if let Some(custom) = policies.find(|name| brought.iter().any(|listed| listed.name == **name)) {
        return Err(Failure::Input(anyhow!(
            "{}: the scenario has a custom policy: found `{custom}`, expected a bundled policy\nhelp: a page cannot run a custom policy; use `pageout run FILE --report report.html`",
            path.display()
        )));
    }
    let name =
        path.file_name().map_or_else(|| "stdin".to_string(), |name| name.to_string_lossy().into_owned());
    Ok((name, source.text().to_string()))
}

/// The page.
fn page(own: Option<(String, String)>, module: &str) -> anyhow::Result<String> {
    let mut scenarios: Vec<Value> = Vec::new();
    let own_name = own.as_ref().map(|(name, _)| name.clone());
    scenarios.extend(own.map(|(name, text)| json!({ "name": name, "text": text })));
    for name in SCENARIOS.into_iter().filter(|name| own_name.as_deref() != Some(*name)) {
        let text = shipped(name).ok_or_else(|| anyhow!("{name}: no such bundled scenario"))?;
        scenarios.push(json!({ "name": name, "text": text }));
    }
    let chosen = own_name.unwrap_or_else(|| SCENARIOS[0].to_string());
    let tours: Value = serde_json::from_str(TOURS).context("tours.json")?;
    let data = escape::json(&json!({ "scenarios": scenarios, "chosen": chosen, "tours": tours }));
    let css = format!("{UPLOT_CSS}\n{}\n{CSS}", page_css());
    let parts = [
        ("css", css.as_str()),
        ("body", BODY),
        ("version", env!("CARGO_PKG_VERSION")),
        ("data", &data),
        ("worker", WORKER),
        ("wasm", module),
        ("licence", UPLOT_LICENCE),
        ("uplot", UPLOT_JS),
        ("js", JS),
    ];
    let mut text =
        String::with_capacity(FRAME.len() + parts.iter().map(|(_, part)| part.len()).sum::<usize>());
    let mut rest = FRAME;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, behind) = after.split_once("}}").expect("each place ends");
        let (_, part) = parts.iter().find(|(known, _)| *known == name).expect("each place has a part");
        text.push_str(before);
        text.push_str(part);
        rest = behind;
    }
    text.push_str(rest);
    Ok(text)
}

/// The module, as base64 of gzip.
#[cfg(feature = "play")]
fn module() -> anyhow::Result<Cow<'static, str>> {
    checked(Cow::Borrowed(include_str!(env!("PAGEOUT_PLAY_MODULE"))))
}

/// The module, as base64 of gzip, that `ci/play.sh` has made: next to the program's own folder, or in the checkout that it was built from.
#[cfg(not(feature = "play"))]
fn module() -> anyhow::Result<Cow<'static, str>> {
    let beside = std::env::current_exe().ok();
    let beside = beside.as_deref().and_then(Path::parent).and_then(Path::parent);
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let places = [beside.map(Path::to_path_buf), Some(checkout)];
    let file =
        places.into_iter().flatten().map(|target| target.join("play/module.b64")).find(|file| file.is_file());
    let file = file.ok_or_else(|| {
        anyhow!(
            "play: this build has no WebAssembly module for the page: found no play/module.b64 in the folder target\nhelp: in the checkout, run `rustup target add wasm32-unknown-unknown` and `ci/play.sh module`; a released program has the module inside"
        )
    })?;
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    checked(Cow::Owned(text))
}

/// A module that may stand in a page.
fn checked(text: Cow<'static, str>) -> anyhow::Result<Cow<'static, str>> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=\n".contains(&byte);
    ensure!(
        !text.is_empty() && text.bytes().all(is_base64),
        "play/module.b64: damaged: found something other than base64\nhelp: run ci/play.sh again"
    );
    Ok(text)
}

/// Opens the page by the desktop's program, if there is one. It is not waited for: a browser may run for days.
fn open(page: &Path) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let quiet = |mut command: Command| {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn()
    };
    let mut command = Command::new(opener);
    command.arg(page);
    // Without such a program the user has the name, which was printed.
    let _ = quiet(command);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_every_part_and_the_own_scenario_first() {
        let own = ("web.toml".to_string(), "# </script>".to_string());
        let text = page(Some(own), "QUJD").unwrap();
        assert!(!text.contains("{{"), "a place is left");
        assert!(text.contains("<script type=\"text/plain\" id=\"wasm\">QUJD</script>"));
        assert!(text.contains("\"name\":\"web.toml\"") && text.contains("\"chosen\":\"web.toml\""));
        assert_eq!(text.matches("</script>").count(), 5, "no scenario ends its element");
    }

    #[test]
    fn tours_name_scenarios_of_the_page_and_their_variants() {
        let tours: Value = serde_json::from_str(TOURS).unwrap();
        let tours = tours.as_array().unwrap();
        assert_eq!(tours.len(), 6);
        let actions = tours.iter().flat_map(|tour| tour["steps"].as_array().unwrap());
        let actions = actions.flat_map(|step| step["do"].as_array().unwrap());
        let opened: Vec<&Value> = actions.filter(|action| action.get("open").is_some()).collect();
        assert!(opened.len() >= 6);
        for action in opened {
            let name = action["open"].as_str().unwrap();
            assert!(SCENARIOS.contains(&name), "{name}");
            if let Some(variant) = action.get("variant") {
                let line = format!("[[variant]]\nname = {variant}\n");
                assert!(shipped(name).unwrap().contains(&line), "{name} has no variant {variant}");
            }
        }
    }

    #[test]
    fn module_that_is_not_base64_is_rejected() {
        assert!(checked("QUJD\n".into()).is_ok());
        for damaged in ["", "</script>"] {
            let error = checked(damaged.into()).unwrap_err().to_string();
            assert!(error.starts_with("play/module.b64: damaged"), "{error}");
        }
    }
}
