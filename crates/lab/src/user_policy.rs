//! Custom policies in this process: registration by name, checks while they run, and errors that name the policy that ends the program.
//!
//! ```text
//!   main_with(&[("mine", make)]) ─▶ known as `mine`            --allow-plugins ─▶ `./mine.so` is looked for as a file when it is named
//!   a wrong answer ─▶ a fault of that run (`pageout_policy::SlotTable`)
//!   a panic ─▶ the hook       a call that does not return ─▶ the watchdog       abort, a bad access ─▶ the handler     each ends the program
//! ```
//! The last line's message names policy, call and slot, and the exit code is that of bad input. `sweep` runs own policies in processes of their own, so
//! that such an end is a row.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use pageout_cache::POLICIES;
use pageout_engine::PROFILES;
use pageout_plugin::Library;
use pageout_policy::{Call, Doing, Listed, Policy};
use pageout_sim::scenario::TimeSpan;
use pageout_study::sweep::content_hash;
use serde_json::json;

use crate::cli::options::POLICY_HEADING;
use crate::print::{Output, figures};
use crate::signals;

/// Makes a policy from a seed.
pub type MakePolicy = fn(u64) -> Box<dyn Policy>;

/// The exit code of an error in a custom policy: invalid input.
pub(crate) const EXIT_CODE: u8 = 2;

/// The default time limit of a call.
pub(crate) const CALL_LIMIT: TimeSpan = TimeSpan(10_000_000_000);

/// The interval between two checks of running calls.
const LOOK: Duration = Duration::from_millis(50);

/// Options of custom policies, which all commands accept. `pageout help output` describes them.
#[derive(Debug, Clone, Args)]
pub(crate) struct UserPolicyArgs {
    /// Allow policies from shared libraries (`--policy ./mine.so`), which run with your rights
    ///
    /// A name that contains a slash, or ends in .so, .dylib or .dll, is a library. It is a textbook policy; with @machine it runs in the
    /// simulated machine. Scenarios use the name in `kernel.profile` and in a cgroup's `policy`. `pageout new-policy NAME --c` writes a library.
    #[arg(long, global = true, hide_short_help = true, hide_long_help = true, help_heading = POLICY_HEADING)]
    pub(crate) allow_plugins: bool,

    /// Evict the oldest page if a custom policy returns no victim, a duplicate, or an empty slot
    ///
    /// These evictions are counted. Without this option the run ends, and the error names the call and the slot.
    #[arg(long, global = true, hide_short_help = true, hide_long_help = true, help_heading = POLICY_HEADING)]
    pub(crate) fallback: bool,

    /// Maximum time of one call of a custom policy; a longer call ends the run
    #[arg(
        long,
        value_name = "DURATION",
        default_value_t = CALL_LIMIT,
        global = true,
        hide_short_help = true,
        hide_long_help = true,
        help_heading = POLICY_HEADING
    )]
    pub(crate) call_limit: TimeSpan,
}

/// Registers policies that are compiled into the program. Errors: a name is in use or invalid.
pub(crate) fn register(policies: &[(&str, MakePolicy)]) -> Result<(), String> {
    if policies.is_empty() {
        return Ok(());
    }
    let hash = std::env::current_exe().ok().and_then(|program| content_hash(&program));
    for &(name, make) in policies {
        let is_taken = POLICIES.iter().any(|row| row.name == name)
            || PROFILES.iter().any(|profile| profile.name == name)
            || Listed::brought().iter().any(|listed| listed.name == name);
        if is_taken {
            return Err(format!("policy name is in use: found `{name}`, expected another name"));
        }
        Listed::bring(name, hash.clone(), make)?;
    }
    Ok(())
}

/// Options and state of custom policies in one command.
#[derive(Debug)]
pub(crate) struct UserPolicies {
    options: UserPolicyArgs,
    /// The folder of the plan that libraries' names start from.
    folder: Mutex<Option<PathBuf>>,
    /// The reasons why named files are not policies, for the error about an unknown name.
    refused: Mutex<BTreeMap<String, String>>,
    /// Libraries that were loaded.
    loaded: Mutex<Vec<String>>,
    /// [`UserPolicies::guard`] acts once.
    guarded: Once,
}

impl UserPolicies {
    /// Applies the options to policies that are made from now on, and looks for unknown names as files.
    pub(crate) fn new(options: UserPolicyArgs) -> Arc<UserPolicies> {
        pageout_policy::fall_back(options.fallback);
        let policies = Arc::new(UserPolicies {
            options,
            folder: Mutex::default(),
            refused: Mutex::default(),
            loaded: Mutex::default(),
            guarded: Once::new(),
        });
        let finder = Arc::clone(&policies);
        pageout_policy::find_with(move |name| finder.find(name));
        policies
    }

    /// Returns true if custom policies may be in use.
    pub(crate) fn are_there(&self) -> bool {
        self.options.allow_plugins || !Listed::brought().is_empty()
    }

    /// The options of these policies, for another process of this program.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let UserPolicyArgs { allow_plugins, fallback, call_limit } = self.options;
        let mut arguments = vec!["--call-limit".to_string(), call_limit.to_string()];
        arguments.extend(allow_plugins.then(|| "--allow-plugins".to_string()));
        arguments.extend(fallback.then(|| "--fallback".to_string()));
        arguments
    }

    /// Reports a custom policy that ends the program or never returns, and prints to `output` that the result is not complete.
    pub(crate) fn guard(&self, output: &Arc<Output>) {
        self.guarded.call_once(|| {
            hook_panics(Arc::clone(output));
            #[cfg(unix)]
            pageout_plugin::name_who_ends_the_program(EXIT_CODE.into());
            let mut watchdog = Watchdog::new(self.options.call_limit);
            let output = Arc::clone(output);
            let (awake, is_awake) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                watchdog.late();
                stay_awake();
                let _ = awake.send(());
                watch(watchdog, &output);
            });
            // A library that hangs while it is loaded has the loader's lock, and a thread that begins asks for it.
            let _ = is_awake.recv();
        });
    }

    /// Sets the folder that names of libraries are relative to, as those of a plan are. A library is loaded when its first policy is made, so an
    /// error belongs to that cell.
    pub(crate) fn start_from(&self, folder: &Path) {
        *lock(&self.folder) = Some(folder.to_path_buf());
    }

    fn note_refused(&self, name: &str, why: String) {
        lock(&self.refused).entry(name.to_string()).or_insert(why);
    }

    /// A policy that is a file, where it may run.
    fn find(self: &Arc<Self>, name: &str) -> Option<&'static Listed> {
        if !pageout_policy::is_file(name) || lock(&self.refused).contains_key(name) {
            return None;
        }
        let folder = lock(&self.folder).clone();
        let brought = match folder {
            _ if !self.options.allow_plugins => Err(not_allowed(name)),
            Some(folder) => self.bring_library_later(name, &folder.join(name)),
            None => self.bring_library(name, Path::new(name)),
        };
        brought.map_err(|why| self.note_refused(name, why)).ok()
    }

    /// Returns the policy of a file whose name is not that of a library. Errors: libraries are not allowed, or the file is not a policy.
    pub(crate) fn named_library(&self, name: &str) -> Result<&'static Listed, String> {
        let refused = lock(&self.refused).get(name).cloned();
        match (self.options.allow_plugins, refused) {
            (_, Some(why)) => Err(why),
            (false, None) => Err(not_allowed(name)),
            (true, None) => self.bring_library(name, Path::new(name)),
        }
    }

    /// Makes the policy of a library known by a name.
    fn bring_library(&self, name: &str, path: &Path) -> Result<&'static Listed, String> {
        let library = self.load(name, path)?;
        let hash = content_hash(path);
        Listed::bring(name, hash, move |seed| library.make(seed))
    }

    /// The same, but the library is loaded when the first policy of it is made.
    fn bring_library_later(self: &Arc<Self>, name: &str, path: &Path) -> Result<&'static Listed, String> {
        let hash =
            content_hash(path).ok_or_else(|| format!("{}: cannot read the library", path.display()))?;
        let policies = Arc::clone(self);
        let (named, path, library) = (name.to_string(), path.to_path_buf(), OnceLock::new());
        Listed::bring(name, Some(hash), move |seed| {
            let load = || policies.load(&named, &path).unwrap_or_else(|why| panic!("{why}"));
            library.get_or_init(load).make(seed)
        })
    }

    fn load(&self, name: &str, path: &Path) -> Result<Library, String> {
        lock(&self.loaded).push(name.to_string());
        // Within a call that makes a policy, the error names that call.
        match pageout_policy::doing_here() {
            Some(_) => Library::load(path),
            None => pageout_policy::loading(name, || Library::load(path)),
        }
        .map_err(|error| error.to_string())
    }

    /// Marks the end of the program. Unloading a library is observed like a call, because it may fail or never return.
    pub(crate) fn before_the_end(&self) {
        let loaded = lock(&self.loaded);
        if !loaded.is_empty() {
            pageout_policy::unloading(&loaded.join(", "));
        }
    }

    /// The reasons why named files are not policies, except those that `failure` contains.
    pub(crate) fn unsaid(&self, failure: &str) -> Vec<String> {
        lock(&self.refused).values().filter(|why| !failure.contains(*why)).cloned().collect()
    }

    /// Returns the policies of a list. If a named file is not a policy, the error has only that reason.
    pub(crate) fn policies<T>(&self, parsed: Result<T, pageout_study::Error>) -> anyhow::Result<T> {
        let refused = || lock(&self.refused).values().cloned().collect::<Vec<_>>();
        parsed.map_err(|error| match refused() {
            refused if refused.is_empty() => error.into(),
            refused => anyhow::anyhow!("{}", refused.join("\n  ")),
        })
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a policy that is a file is refused.
fn not_allowed(name: &str) -> String {
    match Path::new(name).exists() {
        true => format!(
            "{name}: a policy from a library runs with your rights\nhelp: allow it with --allow-plugins"
        ),
        false => format!(
            "{name}: no such file\nhelp: check the path; `pageout keys policy` lists the built-in policies"
        ),
    }
}

/// Touches the variables of this thread that the end of the program reads. A shared library, such as the Python module, allocates them under the loader's lock.
pub(crate) fn stay_awake() {
    let _ = pageout_policy::doing_here();
}

/// Ends the program with an error.
fn end(output: &Output, why: &str) -> ! {
    signals::remove_unfinished();
    let is_told = pageout_policy::doing_here().or(pageout_policy::doing().first().copied());
    // A result is written before libraries are unloaded.
    if output.layout().form.is_data() && is_told.is_none_or(|doing| doing.call != Call::Unload) {
        let _ = output.print_json(&json!({ "complete": false, "error": why, "so_far": null }));
        let _ = output.finish();
    }
    output.remark(&format!("error: {why}"));
    // All output is written. Exit handlers of the process would be attributed to the policy.
    pageout_plugin::end_at_once(EXIT_CODE.into())
}

/// The payload of a panic by which a policy ends the program.
struct Fault(String);

/// Panics with the error of a custom policy. The panic hook of [`crate::run`] prints the policy, its call and `why`, and ends the program.
pub fn end_with_fault(why: String) -> ! {
    std::panic::panic_any(Fault(why))
}

fn hook_panics(output: Arc<Output>) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let why = match (payload.downcast_ref(), pageout_policy::doing_here()) {
            (None, None) => return before(panic),
            (Some(Fault(why)), None) => why.clone(),
            (Some(Fault(why)), Some(doing)) => format!("{doing}: {why}"),
            (None, Some(doing)) => {
                let message = payload.downcast_ref::<String>().map(String::as_str);
                let message =
                    message.or(payload.downcast_ref::<&str>().copied()).unwrap_or("without a message");
                let place = panic.location().map(|at| format!(" ({}:{})", at.file(), at.line()));
                format!("{doing}: panicked: {message}{}", place.unwrap_or_default())
            }
        };
        end(&output, &why);
    }));
}

/// Ends the program if a call takes too long.
fn watch(mut watchdog: Watchdog, output: &Output) {
    loop {
        std::thread::sleep(LOOK);
        watchdog.late().inspect(|why| end(output, why));
    }
}

/// Looks for calls that do not return.
pub struct Watchdog {
    /// The longest time of a call.
    limit: TimeSpan,
    /// The running calls, and the time of each.
    seen: Vec<(Doing, Duration)>,
    looked: Instant,
    /// Calls of a previous command, which are ignored.
    left: Vec<Doing>,
}

impl Watchdog {
    /// Observes calls that begin later: create it before the threads that make them.
    pub(crate) fn new(limit: TimeSpan) -> Watchdog {
        Watchdog { limit, seen: Vec::new(), looked: Instant::now(), left: pageout_policy::doing() }
    }

    /// Returns the error of a call that has run for longer than `--call-limit`.
    pub fn late(&mut self) -> Option<String> {
        let doing = pageout_policy::doing();
        // While the program is stopped, or the machine sleeps, no call can return.
        let passed = self.looked.elapsed().min(4 * LOOK);
        self.looked = Instant::now();
        self.seen.retain(|(before, _)| doing.contains(before));
        self.left.retain(|left| doing.contains(left));
        for call in doing.into_iter().filter(|call| !self.left.contains(call)) {
            match self.seen.iter_mut().find(|(before, _)| *before == call) {
                Some((_, time)) => *time += passed,
                None => self.seen.push((call, Duration::ZERO)),
            }
        }
        let is_late = |(_, time): &&(Doing, Duration)| *time > Duration::from_nanos(self.limit.0);
        let late = self.seen.iter().find(is_late);
        late.map(|(call, _)| format!("{call}: has not returned for {} (--call-limit)", self.limit))
    }
}

/// Returns a warning per policy whose answers were replaced.
pub(crate) fn fallbacks() -> Vec<String> {
    let told = pageout_policy::fallbacks().into_iter().map(|(name, times)| {
        format!(
            "warning: policy {name}: {}, each replaced by the oldest page (--fallback); the figures are in part those of fifo",
            figures::counted(times, "invalid answer")
        )
    });
    told.collect()
}

/// The exit code of bad input, after its message.
pub(crate) fn bad_input(why: &str) -> u8 {
    Output::default().remark(&format!("error: {why}"));
    EXIT_CODE
}
