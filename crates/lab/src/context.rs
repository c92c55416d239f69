//! The inputs of a command besides its arguments. The program makes one `Context`, and so does each call from another program. Commands read no state of the
//! process.

use std::sync::Arc;

use crate::baselines::Open;
use crate::print::{Layout, Output};
use crate::program::Program;
use crate::user_policy::{UserPolicies, UserPolicyArgs};

/// The inputs of a command besides its arguments.
pub(crate) struct Context {
    /// Prints its result and remarks.
    pub(crate) output: Arc<Output>,
    /// Options and state of custom policies.
    pub(crate) user_policies: Arc<UserPolicies>,
    /// Starts the program again, for runs in separate processes.
    pub(crate) program: Program,
    /// Third-party caches of `bench`, by name.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) baselines: Vec<(&'static str, Open)>,
}

impl Context {
    /// Makes a context without third-party caches, and registers its custom policies.
    pub(crate) fn new(output: Arc<Output>, user_policies: UserPolicyArgs, program: Program) -> Context {
        Context { output, user_policies: UserPolicies::new(user_policies), program, baselines: Vec::new() }
    }

    /// The layout of its text.
    pub(crate) fn layout(&self) -> Layout {
        self.output.layout()
    }
}
