//! `[[event]]`: the file has to exist, and to take what is written to it.

use super::{Check, Problem};
use crate::scenario::keys::Key;
use crate::scenario::{Event, KernelFile, Scalar, Size};

impl Check<'_> {
    pub(super) fn event(&mut self, prefix: &str, event: &Event) {
        if let Some(every) = event.every {
            self.time(&format!("{prefix}.every"), every);
        }
        match (&event.write, &event.read) {
            (Some(_), Some(_)) => {
                self.report(Problem::new(prefix, "an event either writes or reads a file, not both"));
            }
            (None, None) => {
                let problem = Problem::new(prefix, "an event needs a file to `write` or to `read`");
                self.report(problem.help("for example: read = \"/proc/vmstat\""));
            }
            (Some(path), None) => self.event_write(prefix, path, event.value.as_ref()),
            (None, Some(path)) => {
                if event.value.is_some() {
                    self.report(Problem::new(
                        format!("{prefix}.value"),
                        "`value` is for writes; this event reads",
                    ));
                }
                self.event_read(prefix, path);
            }
        }
    }

    fn event_write(&mut self, prefix: &str, path: &str, value: Option<&Scalar>) {
        let key = format!("{prefix}.write");
        let Some(value) = value else {
            return self.report(Problem::new(prefix, format!("there is no `value` to write to {path}")));
        };
        let accepts = match self.kernel_file(&key, path) {
            Some(KernelFile::Sysctl(name)) => Key::find(&format!("sysctl.{name}")).map(|key| key.accepts),
            Some(KernelFile::Memcg { file, .. }) if file == "memory.reclaim" => {
                return self.reclaim_value(prefix, value);
            }
            Some(KernelFile::Memcg { file, .. }) => match Key::find(&format!("memcg[].{file}")) {
                Some(key) => Some(key.accepts),
                None => return self.report(Problem::new(key, format!("{path} can't be written"))),
            },
            Some(KernelFile::Proc(_)) => {
                return self.report(Problem::new(key, format!("{path} can't be written")));
            }
            None => None,
        };
        if let Some(Err(message)) = accepts.map(|accepts| accepts.check(value)) {
            self.report(Problem::new(format!("{prefix}.value"), format!("`value`: {message}")));
        }
    }

    /// A size, and options behind it.
    fn reclaim_value(&mut self, prefix: &str, value: &Scalar) {
        let text = value.to_string();
        let (size, options) = text.split_at(text.find(" swappiness=").unwrap_or(text.len()));
        let swappiness =
            options.trim().strip_prefix("swappiness=").map_or(Some(0), |number| number.parse::<u8>().ok());
        let message = match (size.parse::<Size>(), swappiness) {
            (Err(error), _) => error.to_string(),
            (Ok(size), _) if size.pages_floor() == 0 => format!("{size} is less than a page"),
            (Ok(_), Some(0..=200)) => return,
            (Ok(_), _) => format!("`{}` is not `swappiness=` and a number from 0 to 200", options.trim()),
        };
        let problem = Problem::new(format!("{prefix}.value"), format!("`value`: {message}"));
        self.report(problem.help("write it as the kernel takes it: \"64MiB\" or \"64MiB swappiness=60\""));
    }

    fn event_read(&mut self, prefix: &str, path: &str) {
        let key = format!("{prefix}.read");
        if let Some(KernelFile::Memcg { file, .. }) = self.kernel_file(&key, path)
            && file == "memory.reclaim"
        {
            self.report(Problem::new(key, format!("{path} can only be written")));
        }
    }

    /// What a path names, if it names something there is.
    fn kernel_file(&mut self, key: &str, path: &str) -> Option<KernelFile> {
        let file = KernelFile::parse(path);
        let (given, what, known) = match &file {
            None => {
                let problem = Problem::new(key, format!("`{path}` is no file of the simulated kernel"));
                let help = "files are /proc/vmstat, /proc/sys/..., and /sys/fs/cgroup/<cgroup>/memory.<...>";
                self.report(problem.help(help));
                return None;
            }
            Some(KernelFile::Proc(name)) => (name, "file in /proc", vec!["vmstat".to_string()]),
            Some(KernelFile::Sysctl(name)) => (name, "sysctl", Key::names_under("sysctl.")),
            Some(KernelFile::Memcg { path: memcg, file }) => {
                let paths = self.scenario.memcg_paths();
                if !paths.contains(memcg) {
                    let problem = Problem::new(key, format!("`{path}`: there is no cgroup `{memcg}`"));
                    self.report(problem.help(format!("known: {}", paths.join(", "))).nearest(memcg, paths));
                    return None;
                }
                (file, "file of a cgroup", MEMCG_FILES.iter().map(|file| (*file).to_string()).collect())
            }
        };
        if known.contains(given) {
            return file;
        }
        let problem = Problem::new(key, format!("`{path}`: there is no {what} called `{given}`"));
        self.report(problem.help(format!("known: {}", known.join(", "))).nearest(given, known));
        None
    }
}

/// Files of a cgroup that an event may name.
const MEMCG_FILES: &[&str] = &[
    "memory.current",
    "memory.max",
    "memory.high",
    "memory.low",
    "memory.min",
    "memory.stat",
    "memory.events",
    "memory.reclaim",
    "memory.swap.max",
    "memory.swap.current",
];
