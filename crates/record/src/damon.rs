//! DAMON of one process by sysfs: how often its address ranges are used, mapped files and anonymous memory included.
//!
//! ```text
//!   kdamonds/0 ─ contexts/0 ─┬─ operations = vaddr, targets/0/pid_target     whose addresses
//!                            ├─ monitoring_attrs                             how often they are sampled
//!                            └─ schemes/0: action = stat                     every range, without an effect
//!   state <- update_schemes_tried_regions; tried_regions/N: start, end, nr_accesses, age
//! ```
//! A kernel has one set of these files. If anyone else has a thread there, nothing is touched. Dropping the value removes the thread. The files are
//! described by the kernel's [documentation](https://docs.kernel.org/admin-guide/mm/damon/usage.html).

use std::fmt::Write;
use std::path::PathBuf;

use crate::error::{Error, read_if_there};
use crate::root::Root;

/// The files of DAMON.
const ADMIN: &str = "/sys/kernel/mm/damon/admin/kdamonds";

/// The columns of `regions.csv`. `nr_accesses` counts samples of an aggregation interval, `age` these intervals.
pub(crate) const COLUMNS: &str = "time_ns,start,end,nr_accesses,age";

/// Checks that it can be used. Errors: why not, and what would help.
pub(crate) fn usable(root: &Root) -> Result<(), String> {
    let Some(count) = root.text(format!("{ADMIN}/nr_kdamonds")) else {
        return Err(match root.has("/sys/kernel/mm/damon") {
            true => "this user has no access to DAMON's files: run as root".to_string(),
            false => "CONFIG_DAMON_SYSFS is off".to_string(),
        });
    };
    match count.parse::<u64>() {
        Ok(0) => Ok(()),
        Ok(_) => Err("DAMON is in use by another program, and a kernel has one set of its files".to_string()),
        Err(_) => Err(format!("{ADMIN}/nr_kdamonds: found `{count}`, expected a number")),
    }
}

/// A thread of DAMON that watches a process.
#[derive(Debug)]
pub(crate) struct Damon {
    folder: PathBuf,
}

impl Damon {
    /// Watches `pid`. Errors: DAMON is missing or in use, or rejects the process.
    pub(crate) fn new(root: &Root, pid: u32) -> Result<Damon, Error> {
        usable(root).map_err(|why| {
            Error::Asked(format!(
                "--events regions: {why}\nhelp: record counters only: `pageout record --into DIR --events none`"
            ))
        })?;
        let damon = Damon { folder: root.path(ADMIN) };
        damon.set("nr_kdamonds", "1")?;
        damon.set("0/contexts/nr_contexts", "1")?;
        let operations = damon.folder.join("0/contexts/0/avail_operations");
        let known = read_if_there(operations).unwrap_or_default();
        if !known.split_whitespace().any(|one| one == "vaddr") {
            return Err(Error::Asked(format!(
                "--events regions: DAMON watches no processes here (CONFIG_DAMON_VADDR): found operations `{}`, expected vaddr\nhelp: record counters only: `pageout record --into DIR --events none`",
                known.split_whitespace().collect::<Vec<_>>().join(" ")
            )));
        }
        for (file, value) in [
            ("operations", "vaddr"),
            ("monitoring_attrs/intervals/sample_us", "5000"),
            ("monitoring_attrs/intervals/aggr_us", "100000"),
            ("monitoring_attrs/intervals/update_us", "1000000"),
            ("monitoring_attrs/nr_regions/min", "10"),
            ("monitoring_attrs/nr_regions/max", "1000"),
            ("targets/nr_targets", "1"),
            ("targets/0/pid_target", &pid.to_string()),
            ("schemes/nr_schemes", "1"),
            ("schemes/0/action", "stat"),
            ("schemes/0/access_pattern/sz/max", "18446744073709551615"),
            ("schemes/0/access_pattern/nr_accesses/max", "4294967295"),
            ("schemes/0/access_pattern/age/max", "4294967295"),
        ] {
            damon.set(&format!("0/contexts/0/{file}"), value)?;
        }
        damon.set("0/state", "on")?;
        Ok(damon)
    }

    fn set(&self, file: &str, value: &str) -> Result<(), Error> {
        let path = self.folder.join(file);
        std::fs::write(&path, value).map_err(|source| Error::setting(&path, source))
    }

    /// Lines of `regions.csv` of now, in the order of addresses. Empty: the process has ended.
    pub(crate) fn lines(&self, time_ns: u64) -> String {
        let mut regions: Vec<[u64; 4]> = Vec::new();
        if self.set("0/state", "update_schemes_tried_regions").is_ok() {
            let tried = self.folder.join("0/contexts/0/schemes/0/tried_regions");
            for entry in std::fs::read_dir(tried).into_iter().flatten().flatten() {
                let number = |name: &str| read_if_there(entry.path().join(name))?.parse::<u64>().ok();
                let region =
                    || Some([number("start")?, number("end")?, number("nr_accesses")?, number("age")?]);
                regions.extend(region());
            }
        }
        regions.sort_unstable();
        let mut lines = String::new();
        for [start, end, accesses, age] in regions {
            let _ = writeln!(lines, "{time_ns},{start:#x},{end:#x},{accesses},{age}");
        }
        lines
    }
}

impl Drop for Damon {
    fn drop(&mut self) {
        let _ = self.set("0/state", "off");
        let _ = self.set("nr_kdamonds", "0");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files as the kernel has them once one thread was asked for.
    fn fake(operations: &str) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let admin = folder.path().join("sys/kernel/mm/damon/admin/kdamonds");
        let context = admin.join("0/contexts/0");
        for below in [
            "monitoring_attrs/intervals",
            "monitoring_attrs/nr_regions",
            "targets/0",
            "schemes/0/access_pattern/sz",
            "schemes/0/access_pattern/nr_accesses",
            "schemes/0/access_pattern/age",
            "schemes/0/tried_regions/1",
            "schemes/0/tried_regions/0",
        ] {
            std::fs::create_dir_all(context.join(below)).unwrap();
        }
        std::fs::write(admin.join("nr_kdamonds"), "0\n").unwrap();
        std::fs::write(context.join("avail_operations"), operations).unwrap();
        for (region, numbers) in [("1", ["8192", "12288", "0", "40"]), ("0", ["4096", "8192", "19", "3"])] {
            for (name, number) in ["start", "end", "nr_accesses", "age"].iter().zip(numbers) {
                let path = context.join("schemes/0/tried_regions").join(region).join(name);
                std::fs::write(path, format!("{number}\n")).unwrap();
            }
        }
        let root = Root::below(folder.path());
        (folder, root)
    }

    #[test]
    fn damon_watches_one_process_and_is_switched_off() {
        let (_folder, root) = fake("vaddr\nfvaddr\npaddr\n");
        let damon = Damon::new(&root, 812).unwrap();
        let file = |name: &str| root.text(format!("{ADMIN}/{name}")).unwrap();
        assert_eq!((file("0/state"), file("nr_kdamonds")), ("on".to_string(), "1".to_string()));
        assert_eq!(file("0/contexts/0/targets/0/pid_target"), "812");
        assert_eq!(file("0/contexts/0/schemes/0/action"), "stat");
        assert_eq!(damon.lines(5), "5,0x1000,0x2000,19,3\n5,0x2000,0x3000,0,40\n");
        drop(damon);
        assert_eq!((file("0/state"), file("nr_kdamonds")), ("off".to_string(), "0".to_string()));
    }

    #[test]
    fn damon_of_another_program_is_left_alone() {
        let (folder, root) = fake("vaddr\n");
        let count = folder.path().join("sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds");
        std::fs::write(&count, "1\n").unwrap();
        let error = Damon::new(&root, 812).unwrap_err().to_string();
        assert!(error.contains("in use by another program") && error.contains("--events none"), "{error}");
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "1\n");
    }

    #[test]
    fn damon_without_processes_is_refused_and_switched_off() {
        let (_folder, root) = fake("paddr\n");
        let error = Damon::new(&root, 812).unwrap_err().to_string();
        assert!(error.contains("found operations `paddr`, expected vaddr\nhelp: record counters"), "{error}");
        assert_eq!(root.text(format!("{ADMIN}/nr_kdamonds")).unwrap(), "0");
        let none = tempfile::tempdir().unwrap();
        assert!(usable(&Root::below(none.path())).unwrap_err().contains("CONFIG_DAMON_SYSFS"));
    }
}
