//! Recorded inputs that can be left out, by the names of their fields.

/// Declares the inputs: what each is and what is in its place where it is left out, and the name of its field.
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

            /// What it is, and what is in its place where it is left out.
            pub fn told(self) -> &'static str {
                match self {
                    $(Input::$input => concat!($($told),+).trim_ascii_start(),)+
                }
            }
        }
    };
}

inputs! {
    /// What the group held before the first access; `base_pages` are in its place
    GroupAtStart = "group_at_start",
    /// The same as far as kinds of pages say it; what such runs mostly hold is in its place
    BasePages = "base_pages",
    /// When statistics were flushed; every two seconds in their place
    Flushes = "flushes",
    /// Which pages each fault mapped; all that are cached around it, and in no transfer, in their place
    MappedFile = "mapped_file",
    /// Which agings walked the address space; nothing else ran within a call of reclaim in their place
    Agings = "agings",
    /// When each access began; the ends of windows, evenly divided, in their place
    AccessTimes = "access_times",
    /// What of a whole machine was free, and what was on its lists; kernel memory that lies dense, and memory of others by its amount alone, in
    /// its place
    StartState = "start_state",
    /// Part of `start_state`: the places of free memory and the pages held by CPUs. Substitute: compact kernel memory, and the same amount
    /// of free memory
    FreeMemory = "free_memory",
    /// Part of `start_state`: the free memory that each CPU holds, and its limit. Substitute: nothing, and the initial limit
    PerCpuLists = "per_cpu_lists",
    /// Part of `start_state`: the lists or generations of pages, with `costs` and `tiers`. Substitute: the places of a first touch
    LruLists = "lru_lists",
    /// Part of `start_state`: the add batches of CPUs. Substitute: their pages are on their list, or in the youngest generation
    AddBatches = "add_batches",
    /// Part of `start_state`: the refault statistics of each MGLRU tier. Substitute: none
    Tiers = "tiers",
    /// Part of `start_state`: the recent cost of reclaiming each type. Substitute: none
    Costs = "costs",
    /// Part of `start_state`: list lengths in the statistics, and whether refaults have activated pages of files since the last reclaim
    /// call. Substitute: the real lengths, and no activation
    Statistics = "statistics",
    /// Part of `start_state`: the next run of the statistics worker. Substitute: another time in each simulation
    StatisticsDue = "statistics_due",
    /// How long kswapd took to run each time that it was woken, by the trace of a whole machine; the same each time in its place
    KswapdWakes = "kswapd_wakes",
    /// Allocations and frees of the kernel itself, by the trace of a complete machine whose `start_state` is simulated. Substitute: those
    /// that the engine models, which are nodes of indexes, page tables and buffers of readers
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
        assert!(Input::Costs.told().starts_with("Of `start_state`, what reclaiming"));
    }
}
