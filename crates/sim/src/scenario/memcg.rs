//! `[[memcg]]`: a memory cgroup and the values written to its files before anything runs.

use super::Knobs;
use super::keys::{Accepts, memcg_keys};
use super::section::section;

/// Bytes of a cgroup's path below `/sys/fs/cgroup`: the kernel's `PATH_MAX` is 4096 for the whole path, its end included. So no
/// group is nested deeper than two thousand levels. Every charge climbs all of them.
pub(super) const PATH_MAX: usize = 4096 - 1 - "/sys/fs/cgroup".len();

/// Groups of a machine, the root included: the kernel numbers them with 16 bits.
pub(super) const GROUPS_MAX: usize = u16::MAX as usize;

section! {
    /// One memory cgroup. The keys except `path` and `policy` are the names of its files, as in `/sys/fs/cgroup`.
    pub struct Memcg {
        path: String, [required] in Accepts::Text => Same,
            "Path of the cgroup, from the root: \"/job/web\". Parents that are not listed exist, without limits.";
        policy: Option<String>, [absent "the kernel's profile"] in Accepts::Policy => Same,
            "The reclaim policy of this cgroup alone, exactly as the profile defines it: the kernel's single switches do not apply.";
        files: Knobs, [rest] knobs memcg_keys,
            "Values to write to its files.";
    }
}
