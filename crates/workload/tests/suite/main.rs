//! Patterns and trace formats from outside, as one program: linking it once is most of what building tests takes.

mod parquet; // traces as Parquet
mod patterns; // what scenarios may say of a workload
mod ground_truth; // published sequences, bit for bit
mod readers; // trace formats, read
mod pgt; // the project's own format
mod hostile; // arbitrary bytes
