//! Recorded inputs that can be left out, by the names of their fields.

/// Declares the inputs: the description and substitute of each, and the name of its field.
macro_rules! inputs {
    ($($(#[doc = $told:literal])+ $input:ident = $field:literal,)+) => {
        /// An input of a recorded run that can be left out, by the name of its field. Accesses, limits and settings can't be.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Input {
            $($(#[doc = $told])+ $input,)+
        }

        impl Input {
            /// All of them.
            pub const ALL: &[Input] = &[$(Input::$input),+];

            /// The name of its field.
            pub fn field(self) -> &'static str {
                match self {
                    $(Input::$input => $field,)+
                }
            }

            /// Returns a description of the input, and of its substitute if it is left out.
            pub fn told(self) -> &'static str {
                match self {
                    $(Input::$input => concat!($($told),+).trim_ascii_start(),)+
                }
            }
        }
    };
}

inputs! {
    /// Pages of the group before the first access; substitute: `base_pages`
    GroupAtStart = "group_at_start",
    /// Kinds of the group's pages before the first access; substitute: the usual pages of such runs
    BasePages = "base_pages",
    /// Flushes of statistics; substitute: one every two seconds
    Flushes = "flushes",
    /// Pages that each fault mapped; substitute: all cached pages around it without a transfer
    MappedFile = "mapped_file",
    /// Agings that walked the address space; substitute: no other thread ran within a reclaim call
    Agings = "agings",
    /// Start times of accesses; substitute: an even division of the windows
    AccessTimes = "access_times",
    /// Free memory and lists of a complete machine; substitute: compact kernel memory, and other memory by its amount only
    StartState = "start_state",
    /// Places of free memory and pages held by CPUs, a part of `start_state`; substitute: compact kernel memory and the same amount of free memory
    FreeMemory = "free_memory",
    /// Free memory that each CPU holds, and its limit, a part of `start_state`; substitute: nothing, and the initial limit
    PerCpuLists = "per_cpu_lists",
    /// Lists or generations of pages, with `costs` and `tiers`, a part of `start_state`; substitute: the places of a first touch
    LruLists = "lru_lists",
    /// Add batches of CPUs, a part of `start_state`; substitute: their pages are on their list, or in the youngest generation
    AddBatches = "add_batches",
    /// Refault statistics of each MGLRU tier, a part of `start_state`; substitute: none
    Tiers = "tiers",
    /// Recent cost of reclaiming each type, a part of `start_state`; substitute: none
    Costs = "costs",
    /// List lengths in the statistics, and whether refaults have activated file pages since the last reclaim call, a part of `start_state`;
    /// substitute: the real lengths, and no activation
    Statistics = "statistics",
    /// Next run of the statistics worker, a part of `start_state`; substitute: another time in each simulation
    StatisticsDue = "statistics_due",
    /// Duration of each run of kswapd, by the trace of a complete machine; substitute: the same for all runs
    KswapdWakes = "kswapd_wakes",
    /// Allocations and frees of the kernel itself, by the trace of a complete machine with a `start_state`; substitute: those that the engine
    /// models (nodes of indexes, page tables and buffers of readers)
    KernelAllocations = "kernel_allocations",
}

impl Input {
    /// Parts of `start_state`.
    pub const PARTS: &[Input] = &[
        Input::FreeMemory,
        Input::PerCpuLists,
        Input::LruLists,
        Input::AddBatches,
        Input::Tiers,
        Input::Costs,
        Input::Statistics,
        Input::StatisticsDue,
    ];

    /// The input of this name.
    pub fn by_name(name: &str) -> Option<Input> {
        Input::ALL.iter().copied().find(|input| input.field() == name)
    }
}

impl serde::Serialize for Input {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.field())
    }
}

impl<'de> serde::Deserialize<'de> for Input {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Input, D::Error> {
        let given = String::deserialize(deserializer)?;
        let found = Input::ALL.iter().find(|input| input.field() == given);
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = Input::ALL.iter().map(|input| input.field()).collect();
            serde::de::Error::custom(format!("unknown input `{given}`; known: {}", known.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_by_its_field_is_found_and_told_in_one_line() {
        for &input in Input::ALL {
            assert_eq!(Input::by_name(input.field()), Some(input));
            let told = input.told();
            assert!(!told.starts_with(' ') && !told.contains("  ") && !told.contains('\n'), "{told}");
        }
        assert_eq!(Input::by_name("accesses"), None);
        assert!(Input::Costs.told().starts_with("Recent cost of reclaiming each type"));
    }
}
