//! The commands of `pageout`, one file a command.

pub(crate) mod run; // one scenario
pub(crate) mod compare; // variants side by side
pub(crate) mod predict; // a page with what a kernel will do
pub(crate) mod expectations; // what a scenario expects of its variants
pub(crate) mod ablate; // each mechanism alone
pub(crate) mod coverletter; // what a change helps and hurts over all scenarios
pub(crate) mod bisect; // which rule changed the result between two versions
pub(crate) mod advise_tier; // how much of its memory may be slower
pub(crate) mod crossover; // the families' mechanisms exchanged
pub(crate) mod reproduce; // published tables beside ours
pub(crate) mod tour; // an experiment of each of several chapters
pub(crate) mod replay; // from a trace to an answer
pub(crate) mod bench; // the live page cache beside what else reads files
pub(crate) mod sweep; // very many answers, in a folder
pub(crate) mod new_policy; // a project for a policy of one's own
pub(crate) mod check_policy; // whether it keeps the contract
pub(crate) mod record; // what a real machine does, for its twin
pub(crate) mod import; // what other tools recorded, as a trace
pub(crate) mod twin; // a recorded machine, simulated
pub(crate) mod explain; // why a page is where it is
pub(crate) mod working_set; // lru_gen dumps of machines
pub mod vmscan_report; // reclaim in traces of a real kernel
pub(crate) mod diff; // what happened between two snapshots of a kernel's counters
pub(crate) mod trace; // `trace info` and `trace convert`
pub(crate) mod keys; // the reference of a scenario's keys
pub(crate) mod validate; // against a real kernel
pub(crate) mod completions; // `completions` and `man`
