//! Patterns: access streams described as plain data, one kind a file.
//!
//! A [`Pattern`] is what a scenario file says (`pattern = "zipf"`, `pages = 16384`, ...). [`Pattern::stream`] checks it
//! and makes the stream. The same pattern, object and seed give the same accesses on every machine. Patterns of the published
//! ground truth give its very sequences.
//!
//! ```text
//!   leaves     sequential  looping  uniform  zipf  hot_set  zipf_scan  phase_shift  fill  runs  index
//!                 │  each is a PageGenerator: page after page, without end
//!                 ▼
//!   Paged      counts `ops`, adds the object, turns `write_ratio` of the accesses into writes
//!                 │
//!   wrappers   mix (interleave by weight)  chain (one after the other)  repeat  limit
//! ```

mod pattern; // the enum that scenario files map onto; checking, sizes, streams

mod error; // what is wrong with a pattern, by pattern and key

mod paged; // from pages to accesses: count, object, writes
mod writes; // which accesses write

mod fill; // each page once, written
mod hot_set; // a fraction of the pages gets a fraction of the accesses, and may move
mod looping; // round and round
mod phase_shift; // phases of different sizes
mod sequential; // one pass
mod uniform; // every page alike
mod zipf; // rank k with probability proportional to k^-alpha
mod zipf_scan; // Zipf with a periodic scan of cold pages
mod runs; // whole files of a tree, by popularity
mod index; // lookups in a search tree, root to leaf

mod session; // which of several programs a user looks at, and when

mod chain; // one part after the other
mod limit; // the first so many accesses
mod mix; // parts interleaved by weight
mod repeat; // the same again

pub use chain::{Chain, ChainPart};
pub use error::PatternError;
pub use fill::Fill;
pub use hot_set::HotSet;
pub use index::Index;
pub use limit::{Limit, Limited};
pub use looping::Looping;
pub use mix::{Mix, MixEnd, MixPart};
pub use pattern::Pattern;
pub use phase_shift::{Phase, PhaseOrder, PhaseShift};
pub use repeat::Repeat;
pub use runs::Runs;
pub use sequential::Sequential;
pub use session::{SESSION_MEMBERS_MAX, Session, Visit};
pub use uniform::Uniform;
pub use zipf::{RejectionInversion, Zipf, ZipfTable, ZipfTables};
pub use zipf_scan::ZipfScan;
