//! Memory of the process, as the system counts it.
#![allow(dead_code, reason = "each test uses a part of it")]

/// A line of a file in /proc/self, in bytes.
fn line_of(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// The resident set, in bytes.
pub(crate) fn resident() -> u64 {
    line_of("/proc/self/status", "VmRSS:")
}

/// The growth of the process from a point in time on.
pub(crate) struct Growth {
    resident: u64,
    parts: [u64; 3],
}

/// Anonymous memory, pages of files, code among them, and shared memory, in bytes.
fn parts() -> [u64; 3] {
    ["RssAnon:", "RssFile:", "RssShmem:"].map(|name| line_of("/proc/self/status", name))
}

impl Growth {
    /// Begins now: earlier peaks are forgotten.
    pub(crate) fn begin() -> Growth {
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        Growth { resident: resident(), parts: parts() }
    }

    /// Bytes that the resident set had in addition, at its peak.
    pub(crate) fn peak(&self) -> u64 {
        line_of("/proc/self/status", "VmHWM:").saturating_sub(self.resident)
    }

    /// What the resident set has in addition now, by its parts.
    pub(crate) fn describe_parts(&self) -> String {
        let mib = |at: usize| (parts()[at] as f64 - self.parts[at] as f64) / (1 << 20) as f64;
        format!("now {:.2} MiB anonymous, {:.2} of code, {:.2} shared", mib(0), mib(1), mib(2))
    }
}
