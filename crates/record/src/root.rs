//! The folder that `/proc` and `/sys` are below: the machine's own, or the copy of another machine.
//!
//! Tests record machines that they don't run on: a kernel with MGLRU, a container without tracefs, a hierarchy of cgroup v2.

use std::path::{Path, PathBuf};

/// Where `/proc` and `/sys` are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// The machine that the program runs on.
    pub fn machine() -> Root {
        Root(PathBuf::from("/"))
    }

    /// A folder with `proc` and `sys` of another machine. Its processes don't run, so no command can be recorded there.
    pub fn below(folder: &Path) -> Root {
        Root(std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf()))
    }

    /// A file by its absolute path on that machine.
    pub(crate) fn path(&self, absolute: impl AsRef<str>) -> PathBuf {
        self.0.join(absolute.as_ref().trim_start_matches('/'))
    }

    /// Returns true if a file exists.
    pub(crate) fn has(&self, absolute: &str) -> bool {
        self.path(absolute).exists()
    }

    /// The text of a file without blanks around it, if it can be read.
    pub(crate) fn text(&self, absolute: impl AsRef<str>) -> Option<String> {
        crate::error::read_if_there(self.path(absolute))
    }
}
