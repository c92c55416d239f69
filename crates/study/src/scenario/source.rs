//! A scenario file: read, changed by settings, checked, and every fault shown at its place.
//!
//! ```text
//!   text ──parse──▶ document ──set──▶ document ──serde──▶ Scenario ──validate()──▶ runnable
//!            │                   │              │                      │
//!            └───────────────────┴──────────────┴──── faults: key ──▶ place in the original text, or the setting at fault
//! ```

mod place;
mod set;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use std::sync::Arc;

use pageout_sim::scenario::keys::Key;
use pageout_sim::scenario::{Problem, Scenario};
use toml_edit::{Document, DocumentMut};

use super::diagnostic::{Diagnostic, Diagnostics, Excerpt, Origin};
use super::nearest::nearest;
use super::traces::Traces;
use crate::error::Error;
use crate::twin::{self, Recorded};
pub use set::{BadSetting, OVER, Setting, UNKNOWN, VARY, apply, scalar, written};

/// The maximum size of a scenario file: more than a person writes, or a script for one run.
const LENGTH_MAX: u64 = 64 << 20;

/// A scenario file in memory.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    document: Document<String>,
    traces: Traces,
    /// The recording that its tasks name, if that has been read already.
    recorded: Option<Arc<Recorded>>,
}

impl Source {
    /// Reads a file, or standard input for `-`. Errors: it cannot be read, or it is not TOML.
    pub fn read(path: &Path) -> Result<Source, Error> {
        if path.as_os_str().is_empty() {
            return Err(Error::asked("scenario: found no path, expected that of a scenario file"));
        }
        let cannot_read = |source| Error::Read { path: path.to_path_buf(), source };
        let mut bytes = Vec::new();
        let file: Box<dyn Read> = match path == Path::new("-") {
            true => Box::new(std::io::stdin()),
            false => Box::new(std::fs::File::open(path).map_err(cannot_read)?),
        };
        file.take(LENGTH_MAX + 1).read_to_end(&mut bytes).map_err(cannot_read)?;
        if bytes.len() as u64 > LENGTH_MAX {
            let path = path.display();
            let message = format!("{path}: too large for a scenario: found more than {LENGTH_MAX} bytes");
            return Err(Error::Asked(message));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Source::parse(path, text),
            Err(error) => Err(not_utf8(path, &error).into()),
        }
    }

    /// Parses a text. `path` is its name in messages, and the start of its relative paths. Errors: it is not TOML.
    pub fn parse(path: &Path, text: String) -> Result<Source, Error> {
        match Document::parse(text.clone()) {
            Ok(document) => {
                let (path, traces) = (path.to_path_buf(), Traces::default());
                Ok(Source { path, document, traces, recorded: None })
            }
            Err(error) => {
                let excerpt = Excerpt::new(&path.to_string_lossy(), &text, error.span().unwrap_or(0..0));
                let message = format!("invalid TOML: {}", error.message().replace('\n', ", "));
                let word = error.span().and_then(|span| unquoted_value(&text, span.start));
                let help = match word {
                    Some(value) => format!(
                        "write \"{value}\": sizes, times, percentages, paths and names need quotes, only numbers do not"
                    ),
                    None => "a scenario is a TOML file, such as scenarios/zipf-under-limit.toml; `pageout replay FILE` reads traces".to_string(),
                };
                Err(Diagnostics(vec![Diagnostic {
                    message,
                    origin: Origin::File(excerpt),
                    help: vec![help],
                }])
                .into())
            }
        }
    }

    /// The directory that relative paths in the scenario start from.
    pub fn directory(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }

    /// The same scenario, whose tasks take this recording in place of the one in the folder that they name.
    pub(crate) fn with_recorded(self, recorded: Arc<Recorded>) -> Source {
        Source { recorded: Some(recorded), ..self }
    }

    /// The file as it was written.
    pub fn text(&self) -> &str {
        self.document.raw()
    }

    /// The traces that its scenarios replay.
    pub(crate) fn traces(&self) -> &Traces {
        &self.traces
    }

    /// The scenario with the settings applied, checked as far as it can be without looking at other files: [`super::load::load`] does that as
    /// well. Errors: all that is wrong with it, each with its place.
    pub fn scenario(&self, settings: &[Setting]) -> Result<Scenario, Error> {
        let (document, changed) = self.edited(settings)?;
        if let Some((key, number)) = place::not_finite(document.as_item(), "") {
            let (_, name) = key.rsplit_once('.').unwrap_or(("", &key));
            let message = format!("`{name}`: found {number}, expected a finite number");
            let origin = self.origin(&key, &changed, Marked::Value);
            return Err(Diagnostics(vec![Diagnostic { message, origin, help: Vec::new() }]).into());
        }
        let mut scenario: Scenario = match toml_edit::de::from_document(document.clone()) {
            Ok(scenario) => scenario,
            Err(error) => return Err(self.serde_fault(&document, &changed, &error).into()),
        };
        match &self.recorded {
            Some(recorded) => recorded.give(&mut scenario),
            None => twin::expand(&mut scenario, self.directory())
                .map_err(|problem| Diagnostics(vec![self.locate_problem(&changed, problem)]))?,
        }
        self.place_libraries(&mut scenario, &changed);
        self.check(&scenario, &changed)?;
        Ok(scenario)
    }

    /// Policies that are shared libraries start where the file is, as all paths in it do. What an option says starts where the program does.
    fn place_libraries(&self, scenario: &mut Scenario, changed: &[Changed]) {
        if self.directory() == Path::new(".") {
            return;
        }
        let is_of_option = |key: &str| {
            let last = changed.iter().rev().find(|changed| is_at_or_below(key, &changed.key));
            last.is_some_and(|changed| changed.by.written_at.is_none())
        };
        let place = |key: &str, name: &mut String| {
            if pageout_policy::is_file(name) && !is_of_option(key) {
                // Whole, so that it is one and the same wherever it is looked for from.
                let path = std::path::absolute(self.directory().join(&*name));
                *name = path.map_or_else(|_| name.clone(), |path| path.to_string_lossy().into_owned());
            }
        };
        place("kernel.profile", &mut scenario.kernel.profile);
        for (at, memcg) in scenario.memcg.iter_mut().enumerate() {
            if let Some(policy) = &mut memcg.policy {
                place(&format!("memcg[{at}].policy"), policy);
            }
        }
    }

    /// A problem that building the scenario brought up, with its place.
    pub fn locate(&self, problem: Problem) -> Diagnostic {
        self.locate_problem(&[], problem)
    }

    /// Problems of the scenario with the settings applied, which may be what is at fault.
    pub fn locate_with(&self, settings: &[Setting], problems: Vec<Problem>) -> Error {
        match self.edited(settings) {
            Ok((_, changed)) => {
                let located = problems.into_iter().map(|problem| self.locate_problem(&changed, problem));
                Diagnostics(located.collect()).into()
            }
            Err(faults) => faults.into(),
        }
    }

    fn check(&self, scenario: &Scenario, changed: &[Changed]) -> Result<(), Diagnostics> {
        let problems: Vec<Diagnostic> =
            scenario.validate().into_iter().map(|problem| self.locate_problem(changed, problem)).collect();
        if problems.is_empty() { Ok(()) } else { Err(Diagnostics(problems)) }
    }

    /// Returns the document after the settings, parsed again so that everything in it has a place.
    fn edited(&self, settings: &[Setting]) -> Result<(Document<String>, Vec<Changed>), Diagnostics> {
        if settings.is_empty() {
            return Ok((self.document.clone(), Vec::new()));
        }
        let mut document: DocumentMut =
            self.document.raw().parse().expect("the text was parsed when the file was read");
        let mut changed = Vec::new();
        for setting in settings {
            match apply(document.as_table_mut(), setting) {
                Ok(keys) => {
                    let keys: Vec<Changed> =
                        keys.into_iter().map(|key| Changed { key, by: setting.clone() }).collect();
                    refuse_second_variation(&keys, &changed)?;
                    refuse_setting_without_effect(&keys, &changed)?;
                    changed.extend(keys);
                }
                Err(fault) => {
                    let origin = self.origin_of(setting, Marked::Key);
                    return Err(Diagnostics(vec![Diagnostic {
                        message: fault.message,
                        origin,
                        help: fault.help,
                    }]));
                }
            }
        }
        match Document::parse(document.to_string()) {
            Ok(document) => Ok((document, changed)),
            // A document that was built can still be nested too deep to be read.
            Err(error) => {
                let message = format!("this setting makes the scenario invalid TOML: {}", error.message());
                let last = settings.last().expect("without settings it is the text that was parsed before");
                let origin = self.origin_of(last, Marked::Value);
                Err(Diagnostics(vec![Diagnostic { message, origin, help: Vec::new() }]))
            }
        }
    }

    /// The place where to fix the error at `key`: in an option if one set it, otherwise in the file.
    fn origin(&self, key: &str, changed: &[Changed], what: Marked) -> Origin {
        // The last option wins, as it does when it is applied.
        if let Some(changed) = changed.iter().rev().find(|changed| is_at_or_below(key, &changed.key)) {
            return self.origin_of(&changed.by, what);
        }
        // A table that is not in the file is there because an option set something in it.
        let is_below = |changed: &&Changed| !key.is_empty() && is_at_or_below(&changed.key, key);
        match changed.iter().rev().find(is_below) {
            Some(changed) if !place::find(self.document.as_item(), key).is_exact => {
                self.origin_of(&changed.by, what)
            }
            _ => self.origin_in_file(key, what),
        }
    }

    /// Where a setting was made: on the command line, or in a `[[variant]]` of the file.
    fn origin_of(&self, setting: &Setting, what: Marked) -> Origin {
        match &setting.written_at {
            Some(key) => self.origin_in_file(key, what),
            None => Origin::Option(format!("{} {setting}", setting.option)),
        }
    }

    fn origin_in_file(&self, key: &str, what: Marked) -> Origin {
        let file = self.path.to_string_lossy();
        let place = place::find(self.document.as_item(), key);
        let span = match what {
            Marked::Key => place.key.or(place.value),
            Marked::Value => place.value.or(place.key),
        };
        match span {
            Some(span) if !key.is_empty() && !span.is_empty() => {
                Origin::File(Excerpt::new(&file, self.document.raw(), span))
            }
            _ => Origin::Whole(file.into_owned()),
        }
    }

    fn locate_problem(&self, changed: &[Changed], problem: Problem) -> Diagnostic {
        let mut help = Vec::new();
        if let Some(given) = &problem.given
            && let Some(nearest) = nearest(given, problem.candidates.iter().map(String::as_str))
        {
            help.push(format!("did you mean `{nearest}`?"));
        }
        help.extend(problem.help);
        let marked = if problem.message.starts_with("unknown key") { Marked::Key } else { Marked::Value };
        Diagnostic { message: problem.message, origin: self.origin(&problem.key, changed, marked), help }
    }

    /// serde's sentences, rewritten in pageout's style.
    fn serde_fault(
        &self,
        document: &Document<String>,
        changed: &[Changed],
        error: &toml_edit::de::Error,
    ) -> Diagnostics {
        let key = match missing_field(error.message()) {
            Some("task") => return self.nothing_to_run(),
            _ => place::path_at(document.as_item(), error.span().map_or(0, |span| span.start)),
        };
        let key = key.unwrap_or_default();
        let (message, marked, help) = reword(error.message(), &key);
        Diagnostics(vec![Diagnostic { message, origin: self.origin(&key, changed, marked), help }])
    }

    /// A scenario without tasks: of all its keys only they have no default.
    fn nothing_to_run(&self) -> Diagnostics {
        Diagnostics(vec![Diagnostic {
            message: "the scenario has no [[task]] to run".to_string(),
            origin: Origin::Whole(self.path.display().to_string()),
            help: vec![
                "add a [[task]] with a name, and a [[task.object]] with a channel, a size and a workload".to_string(),
                "start from scenarios/zipf-under-limit.toml, a small scenario; `pageout keys task` lists the keys of a task"
                    .to_string(),
            ],
        }])
    }
}

/// The value at byte `at` of a text, if it is one word that lacks its quotes, such as `1G`.
fn unquoted_value(text: &str, at: usize) -> Option<&str> {
    const ENDS: [char; 5] = ['\n', ',', '}', ']', '#'];
    let before = text.get(..at)?;
    let begin = before.rfind(['=', ',', '[', '\n']).filter(|&begin| !before[begin..].starts_with('\n'))? + 1;
    let rest = &text[begin..];
    let value = rest[..rest.find(ENDS).unwrap_or(rest.len())].trim();
    let is_word =
        !value.is_empty() && !value.contains(['"', '\'', '\\', '{', '=']) && value.split(' ').count() <= 2;
    (is_word && value.parse::<toml_edit::Value>().is_err()).then_some(value)
}

fn not_utf8(path: &Path, error: &FromUtf8Error) -> Diagnostics {
    let (text, bad) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
    let line = 1 + text.iter().filter(|&&byte| byte == b'\n').count();
    let bad = bad.first().copied().unwrap_or_default();
    Diagnostics(vec![Diagnostic {
        message: format!("invalid UTF-8: found the byte 0x{bad:02x}"),
        origin: Origin::Whole(format!("{}:{line}", path.display())),
        help: vec!["a scenario is a text file in UTF-8; `pageout replay FILE` reads traces".to_string()],
    }])
}

/// A key that a setting has changed.
#[derive(Debug)]
struct Changed {
    key: String,
    by: Setting,
}

/// One key has one column for each of its values. Varied twice, under whatever names, the last value would be all that counts.
fn refuse_second_variation(keys: &[Changed], before: &[Changed]) -> Result<(), Diagnostics> {
    let is_variation = |changed: &&Changed| changed.by.is_variation();
    for new in keys.iter().filter(is_variation) {
        let is_same =
            |old: &&Changed| is_at_or_below(&new.key, &old.key) || is_at_or_below(&old.key, &new.key);
        if let Some(old) = before.iter().filter(is_variation).find(is_same) {
            let message = format!("`{}` is varied twice", new.key);
            let option = new.by.option;
            let help = format!(
                "{option} {} changes it too; give all values to one {option}, separated by commas",
                old.by
            );
            let origin = Origin::Option(format!("{option} {}", new.by));
            return Err(Diagnostics(vec![Diagnostic { message, origin, help: vec![help] }]));
        }
    }
    Ok(())
}

/// A varied key has the values of the columns, so a setting of the same key would have no effect.
fn refuse_setting_without_effect(keys: &[Changed], before: &[Changed]) -> Result<(), Diagnostics> {
    let Some(new) = keys.first().filter(|new| new.by.is_variation()) else { return Ok(()) };
    let is_covered = |old: &Changed| keys.iter().any(|new| is_at_or_below(&old.key, &new.key));
    // If only some keys of a setting are varied, it still has its effect on the others.
    let is_lost = |old: &&Changed| {
        !old.by.is_variation() && before.iter().filter(|other| other.by == old.by).all(is_covered)
    };
    let Some(old) = before.iter().find(is_lost) else { return Ok(()) };
    let set = format!("{} {}", old.by.option, old.by);
    Err(Diagnostics(vec![Diagnostic {
        message: format!("`{}` is both set and varied", old.key),
        origin: Origin::Option(set),
        help: vec![format!("{} {} overrides it: remove one of them", new.by.option, new.by.key)],
    }]))
}

/// Which part of an entry a message is about.
#[derive(Clone, Copy)]
enum Marked {
    Key,
    Value,
}

fn is_at_or_below(key: &str, above: &str) -> bool {
    key.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The field that serde misses.
fn missing_field(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `")?.strip_suffix('`')
}

fn reword(message: &str, key: &str) -> (String, Marked, Vec<String>) {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (given, allowed) = (quoted.first().copied().unwrap_or_default(), quoted.get(1..).unwrap_or_default());
    let mut help = Vec::new();
    let suggest = |help: &mut Vec<String>, what: &str| {
        help.extend(
            nearest(given, allowed.iter().copied()).map(|nearest| format!("did you mean `{nearest}`?")),
        );
        if !allowed.is_empty() {
            help.push(format!("{what}: {}", allowed.join(", ")));
        }
    };
    if message.starts_with("unknown field") {
        let elsewhere = Key::elsewhere(given);
        if !elsewhere.is_empty() {
            help.push(format!("elsewhere there is `{}`", elsewhere.join("` and `")));
        }
        suggest(&mut help, "keys here");
        return (format!("unknown key `{given}`"), Marked::Key, help);
    }
    if let Some(field) = missing_field(message) {
        let what = if key.is_empty() { "the scenario".to_string() } else { format!("`{key}`") };
        let known = Key::find(&format!("{key}.{field}"));
        return (
            format!("{what}: missing key `{field}`"),
            Marked::Key,
            known.map(Key::advice).into_iter().collect(),
        );
    }
    let name = key.rsplit_once("].").map_or(key, |(_, name)| name);
    if message.starts_with("unknown variant") {
        suggest(&mut help, "allowed");
        return (format!("`{name}`: `{given}` is none of the allowed values"), Marked::Value, help);
    }
    help.extend(Key::find(key).map(|known| format!("allowed: {}", known.accepts)));
    (format!("`{name}`: {message}"), Marked::Value, help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str, settings: &[&str]) -> String {
        let source = match Source::parse(Path::new("a.toml"), text.to_string()) {
            Ok(source) => source,
            Err(error) => return error.to_string(),
        };
        let settings: Vec<Setting> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
        source.scenario(&settings).map_or_else(|error| error.to_string(), |_| String::new())
    }

    const GOOD: &str = r#"
[[memcg]]
path = "/web"
memory.max = "64MiB"

[[task]]
name = "reader"
memcg = "/web"
[[task.object]]
channel = "file"
size = "128MiB"
workload = { pattern = "zipf", ops = 1000 }
"#;

    #[test]
    fn a_good_scenario_has_no_faults() {
        assert_eq!(faults(GOOD, &[]), "");
        assert_eq!(faults(GOOD, &["memcg./web.memory.max=50%", "sysctl.vm.swappiness=10"]), "");
    }

    /// Replaces `from` by `to` in the good scenario and expects all of `parts` in the message.
    fn check(from: &str, to: &str, parts: &[&str]) {
        assert!(GOOD.contains(from), "{from}");
        let message = faults(&GOOD.replacen(from, to, 1), &[]);
        for part in parts {
            assert!(message.contains(part), "{to}: expected {part:?} in:\n{message}");
        }
    }

    #[test]
    fn a_misspelt_key_is_shown_at_its_line_with_the_nearest_match() {
        check(
            "memory.max",
            "memory.mxa",
            &["unknown key `memory.mxa`", "a.toml:4:", "did you mean `memory.max`?"],
        );
        check("channel", "chanel", &["unknown key `chanel`", "a.toml:10:1", "did you mean `channel`?"]);
        check("pattern = \"zipf\"", "patern = \"zipf\"", &["a.toml:12:", "key `pattern` is missing"]);
        check(
            "ops = 1000",
            "opps = 1000",
            &["unknown key `opps`", "a.toml:12:32", "did you mean `ops`?", "allowed here: pages, ops"],
        );
        check("[[task]]", "[[tsk]]\n[[task]]", &["unknown key `tsk`", "did you mean `task`?", "a.toml:6:"]);
        check(
            "[[memcg]]",
            "[sysctl]\nvm.swapiness = 3\n[[memcg]]",
            &["`vm.swapiness`", "did you mean `vm.swappiness`?"],
        );
        check(
            "[[memcg]]",
            "[kernel]\nfolio_bacth = 3\n[[memcg]]",
            &["a.toml:3:1", "did you mean `folio_batch`?"],
        );
    }

    #[test]
    fn a_misspelt_value_is_shown_with_what_is_allowed() {
        check("\"file\"", "\"fiel\"", &["a.toml:10:11", "did you mean `file`?", "allowed: file, mapped"]);
        check("\"zipf\"", "\"zpif\"", &["a.toml:12:", "did you mean `zipf`?"]);
        check(
            "memcg = \"/web\"",
            "memcg = \"/wbe\"",
            &["no memcg called `/wbe`", "did you mean `/web`?", "a.toml:8:9"],
        );
        check(
            "[[memcg]]",
            "[kernel]\nprofile = \"clasic@6.12\"\n[[memcg]]",
            &["did you mean `classic@6.12`?"],
        );
    }

    #[test]
    fn a_bad_size_or_duration_names_itself_and_its_units() {
        check("\"128MiB\"", "\"128MX\"", &["`128MX` is not a size: unknown unit `MX`", "a.toml:11:8"]);
        check("\"64MiB\"", "\"lots\"", &["`lots` is not a size", "a.toml:4:14"]);
        check(
            "[[memcg]]",
            "[machine]\nquantum = 5\n[[memcg]]",
            &["`5` is not a duration: the unit is missing"],
        );
    }

    #[test]
    fn impossible_sizes_are_refused() {
        check("\"64MiB\"", "\"4KiB\"", &["below what one fault needs", "from 128KiB", "a.toml:4:14"]);
        check("\"128MiB\"", "0", &["0B is too small", "a.toml:11:8"]);
        check(
            "[[memcg]]",
            "[machine]\ncpus = 0\n[[memcg]]",
            &["0 is too small: the minimum is 1", "a.toml:3:8"],
        );
        check(
            "[[memcg]]",
            "[machine]\ncpus = -4\n[[memcg]]",
            &["`machine.cpus`", "a.toml:3:8", "number from 1"],
        );
        check(
            "ops = 1000",
            "ops = 1000, pages = 99999",
            &["reaches page 99998, beyond the object's 32768 pages"],
        );
        check("ops = 1000", "ops = \"200k\"", &["`ops`: invalid type: string \"200k\"", "a.toml:12:38"]);
        for bad in ["nan", "inf", "-inf"] {
            let told = format!("`alpha`: found {bad}, expected a finite number").replace("nan", "NaN");
            check("ops = 1000", &format!("ops = 1000, alpha = {bad}"), &[&told, "a.toml:12:"]);
        }
        check("ops = 1000", "ops = 1000, alpha = -1", &["`alpha` must be a number in 0..=100", "a.toml:12:"]);
    }

    #[test]
    fn a_fault_of_a_setting_is_shown_at_the_setting() {
        let message = faults(GOOD, &["memcg./web.memory.max=1KiB"]);
        assert!(message.contains("--> --set memcg./web.memory.max=1KiB"), "{message}");
        let message = faults(GOOD, &["machine.cpuss=2"]);
        assert!(
            message.contains("--> --set machine.cpuss=2") && message.contains("did you mean `cpus`?"),
            "{message}"
        );
        let message = faults(GOOD, &["foo.bar=1"]);
        assert!(message.contains("unknown key `foo`\n --> --set foo.bar=1"), "{message}");
        let message = faults(GOOD, &["task.reader.object.0.workload.alpha=abc"]);
        let parts =
            ["`alpha`: invalid type: string \"abc\"", "--> --set task.reader.object.0.workload.alpha=abc"];
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        let message = faults(GOOD, &["machine.cpus=many"]);
        assert!(message.contains("--> --set machine.cpus=many"), "{message}");
    }

    #[test]
    fn all_problems_are_found_in_one_go() {
        let text = GOOD.replace("64MiB", "1KiB").replace("memcg = \"/web\"", "memcg = \"/x\"");
        let message = faults(&text, &[]);
        assert!(message.contains("2 problems; no run was started"), "{message}");
    }

    #[test]
    fn a_file_that_is_no_toml_is_shown_where_it_stops_being_it() {
        let message = faults("seed = 1\n[machine\n", &[]);
        assert!(message.contains("invalid TOML") && message.contains("a.toml:2:"), "{message}");
    }
}
