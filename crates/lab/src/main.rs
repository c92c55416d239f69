//! The command `pageout`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    pageout_lab::main()
}
