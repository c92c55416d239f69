//! Custom policies: registered by name like the listed ones, and watched while they run.
//!
//! ```text
//!   Listed::bring("mine", make) ──► known by name: textbook `mine`, `mine@machine`, `kernel.profile`, a group's `policy`
//!   make(seed) ──► [ Watched [ theirs ] ]      what each is doing now: for whoever has to say why the program ends
//!            └──► [ Fallback [ Watched [ theirs ] ] ]      after `fall_back(true)`; `fallbacks()` has how often each was helped out
//! ```
//! *Why watched.* The code of such a policy is unknown here. It may panic, never return, or end the process. Other code than the caller notices that:
//! a panic hook, a watchdog, a signal handler. So each call is recorded before it is made, where any thread can read it; that costs two stores.
//!
//! A custom policy stays for the life of the process, as a name in a scenario may be read at any time. A name that is registered again means the new
//! policy from then on.

use crate::{Arrival, Call, End, Fallback, Listed, Make, POLICIES, PageId, Policy, Slot, Uses};
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Registered policies, in order.
static BROUGHT: RwLock<Vec<&'static Listed>> = RwLock::new(Vec::new());
/// Looks up an unknown name.
type Finder = dyn Fn(&str) -> Option<&'static Listed> + Send + Sync;
/// The function that looks up unknown names.
static FINDER: RwLock<Option<Arc<Finder>>> = RwLock::new(None);
/// True if policies that are made from now on are helped out.
static FALLS_BACK: AtomicBool = AtomicBool::new(false);
/// By name, how often the fallback of a custom policy was used.
static FALLBACKS: Mutex<Vec<(&'static str, &'static AtomicU64)>> = Mutex::new(Vec::new());
/// One for each policy that is alive, and the free ones.
static RUNNING: Mutex<Vec<&'static Running>> = Mutex::new(Vec::new());

thread_local! {
    /// The policy that this thread is in a call of.
    static HERE: Cell<Option<&'static Running>> = const { Cell::new(None) };
}

/// Sets whether policies that are made from now on have a fallback for wrong answers ([`Fallback`]). [`fallbacks`] counts from here.
pub fn fall_back(does: bool) {
    FALLS_BACK.store(does, Relaxed);
    FALLBACKS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
        .for_each(|(_, times)| times.store(0, Relaxed));
}

/// Policies whose fallback was used since [`fall_back`], by name, and how often: in all memories that each managed.
pub fn fallbacks() -> Vec<(&'static str, u64)> {
    let all = FALLBACKS.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().map(|(name, times)| (*name, times.load(Relaxed))).filter(|(_, times)| *times > 0).collect()
}

/// Returns whether a name is that of a file, such as a shared library.
pub fn is_file(name: &str) -> bool {
    let is_library = [".so", ".dylib", ".dll"].iter().any(|suffix| name.ends_with(suffix));
    is_library || name.contains('/') && !name.contains('@')
}

/// Loads the file with a policy's code, a part of which may already run by that.
pub fn loading<T>(name: &str, load: impl FnOnce() -> T) -> T {
    let running = Running::of(Box::leak(name.to_owned().into_boxed_str()));
    let _under = running.look(Call::Load);
    load()
}

/// Unloads files whose code may run when the program ends. This is the last action of this thread.
pub fn unloading(names: &str) {
    let running = Running::of(Box::leak(names.to_owned().into_boxed_str()));
    std::mem::forget(running.look(Call::Unload));
}

/// Looks up unknown names, such as those of files, with `finder` from now on. It replaces the finder before it.
pub fn find_with(finder: impl Fn(&str) -> Option<&'static Listed> + Send + Sync + 'static) {
    *FINDER.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(finder));
}

impl Listed {
    /// Registers a policy by a name. `hash` is that of the file with its code. Errors: the name is that of another policy, or invalid.
    pub fn bring(
        name: &str,
        hash: Option<String>,
        make: impl Fn(u64) -> Box<dyn Policy> + Send + Sync + 'static,
    ) -> Result<&'static Listed, String> {
        if name.is_empty()
            || name.contains(|c: char| c.is_whitespace() || c.is_control() || ",:@=".contains(c))
        {
            return Err(format!(
                "`{name}` is not a valid policy name: it must not be empty, or contain blanks, control characters or any of , : @ ="
            ));
        }
        if POLICIES.iter().any(|listed| listed.name == name) {
            return Err(format!("`{name}` is the name of an existing policy"));
        }
        let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
        let times: &'static AtomicU64 = Box::leak(Box::default());
        FALLBACKS.lock().unwrap_or_else(PoisonError::into_inner).push((name, times));
        let make = move |seed| -> Box<dyn Policy> {
            let watched = Box::new(Watched::of(Running::of(name), || make(seed)));
            match FALLS_BACK.load(Relaxed) {
                true => Box::new(Fallback::counted(watched, times)),
                false => watched,
            }
        };
        let make: &'static Make = Box::leak(Box::new(make));
        let hash = hash.map(|hash| &*Box::leak(hash.into_boxed_str()));
        let listed = Listed { name, doc: "A custom policy.", source: "", make, hash };
        let listed: &'static Listed = Box::leak(Box::new(listed));
        BROUGHT.write().unwrap_or_else(PoisonError::into_inner).push(listed);
        Ok(listed)
    }

    /// Returns the registered policy of this name.
    pub fn own(name: &str) -> Option<&'static Listed> {
        let found = Listed::brought().into_iter().rev().find(|listed| listed.name == name);
        // The lock is released before the call: loading a file may hang.
        let finder = || FINDER.read().unwrap_or_else(PoisonError::into_inner).clone();
        found.or_else(|| finder().and_then(|find| find(name)))
    }

    /// Returns all registered policies, in order.
    pub fn brought() -> Vec<&'static Listed> {
        BROUGHT.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The current call of a custom policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Doing {
    /// Its name.
    pub policy: &'static str,
    /// The number of the call, from 1.
    pub number: u64,
    /// The call.
    pub call: Call,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy {}: call {}, {}", self.policy, self.number, self.call)
    }
}

/// Returns the call that this thread is in, if any.
pub fn doing_here() -> Option<Doing> {
    HERE.get().and_then(Running::doing)
}

/// Returns the current calls of all threads.
pub fn doing() -> Vec<Doing> {
    let all = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().filter_map(|running| running.doing()).collect()
}

/// The state of one policy. It outlives the policy, and the next one of that name reuses it.
struct Running {
    policy: &'static str,
    is_taken: AtomicBool,
    number: AtomicU64,
    /// [`packed`]; 0 between two calls.
    call: AtomicU64,
}

impl Running {
    fn of(policy: &'static str) -> &'static Running {
        let mut all = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free =
            |running: &&&Running| std::ptr::eq(running.policy, policy) && !running.is_taken.load(Relaxed);
        let running = all.iter().find(is_free).copied().unwrap_or_else(|| {
            let new = Running {
                policy,
                is_taken: AtomicBool::new(true),
                number: AtomicU64::new(0),
                call: AtomicU64::new(0),
            };
            let new: &'static Running = Box::leak(Box::new(new));
            all.push(new);
            new
        });
        running.is_taken.store(true, Relaxed);
        running.number.store(0, Relaxed);
        running
    }

    fn doing(&self) -> Option<Doing> {
        let call = unpacked(self.call.load(Relaxed))?;
        Some(Doing { policy: self.policy, number: self.number.load(Relaxed), call })
    }
}

/// A call as a number, which is never 0.
const fn packed(call: Call) -> u64 {
    let (kind, argument) = match call {
        Call::Resized(capacity) => (1, capacity),
        Call::Added(slot) => (2, slot.0),
        Call::Used(slot) => (3, slot.0),
        Call::Nominate(want) => (4, want),
        Call::Ended(slot, End::Evicted) => (5, slot.0),
        Call::Ended(slot, End::Gone) => (6, slot.0),
        Call::Ended(slot, End::Spared) => (7, slot.0),
        Call::Cold(slot) => (8, slot.0),
        Call::Check => (9, 0),
        Call::Figures => (10, 0),
        Call::Why(slot) => (11, slot.0),
        Call::Make => (12, 0),
        Call::Uses => (13, 0),
        Call::Drop => (14, 0),
        Call::Load => (15, 0),
        Call::Unload => (16, 0),
    };
    kind << 32 | argument as u64
}

const fn unpacked(packed: u64) -> Option<Call> {
    let (argument, slot) = (packed as u32, Slot(packed as u32));
    Some(match packed >> 32 {
        1 => Call::Resized(argument),
        2 => Call::Added(slot),
        3 => Call::Used(slot),
        4 => Call::Nominate(argument),
        5 => Call::Ended(slot, End::Evicted),
        6 => Call::Ended(slot, End::Gone),
        7 => Call::Ended(slot, End::Spared),
        8 => Call::Cold(slot),
        9 => Call::Check,
        10 => Call::Figures,
        11 => Call::Why(slot),
        12 => Call::Make,
        13 => Call::Uses,
        14 => Call::Drop,
        15 => Call::Load,
        16 => Call::Unload,
        _ => return None,
    })
}

/// A policy whose calls are recorded.
struct Watched {
    running: &'static Running,
    policy: Box<dyn Policy>,
    /// After the policy: the drop is over then.
    _leaves: Leaves,
}

/// The end of the drop.
struct Leaves(&'static Running);

impl Drop for Leaves {
    fn drop(&mut self) {
        drop(Under(self.0));
        self.0.is_taken.store(false, Relaxed);
    }
}

/// A call is in progress as long as this exists.
struct Under(&'static Running);

impl Drop for Under {
    fn drop(&mut self) {
        self.0.call.store(0, Relaxed);
        HERE.set(None);
    }
}

impl Running {
    /// A call begins.
    fn begin(&'static self, call: Call) -> Under {
        self.number.store(self.number.load(Relaxed) + 1, Relaxed);
        self.look(call)
    }

    /// A call that only reads has the number of the call before.
    fn look(&'static self, call: Call) -> Under {
        self.call.store(packed(call), Relaxed);
        HERE.set(Some(self));
        Under(self)
    }
}

impl Watched {
    fn of(running: &'static Running, make: impl FnOnce() -> Box<dyn Policy>) -> Watched {
        let under = running.look(Call::Make);
        let policy = make();
        drop(under);
        Watched { running, policy, _leaves: Leaves(running) }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Its policy is dropped after this, and then it leaves.
        std::mem::forget(self.running.look(Call::Drop));
    }
}

impl Policy for Watched {
    fn uses(&self) -> Uses {
        let _under = self.running.look(Call::Uses);
        self.policy.uses()
    }

    fn resized(&mut self, capacity: u32) {
        let _under = self.running.begin(Call::Resized(capacity));
        self.policy.resized(capacity);
    }

    fn added(&mut self, arrival: &Arrival) {
        let _under = self.running.begin(Call::Added(arrival.slot));
        self.policy.added(arrival);
    }

    fn used(&mut self, slots: &[Slot]) {
        let _under = self.running.begin(Call::Used(slots.first().copied().unwrap_or(Slot(0))));
        self.policy.used(slots);
    }

    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        let _under = self.running.begin(Call::Nominate(want));
        self.policy.nominate(want, victims);
    }

    fn ended(&mut self, slot: Slot, page: PageId, end: End) {
        let _under = self.running.begin(Call::Ended(slot, end));
        self.policy.ended(slot, page, end);
    }

    fn cold(&mut self, slot: Slot) {
        let _under = self.running.begin(Call::Cold(slot));
        self.policy.cold(slot);
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, f64)) {
        let _under = self.running.look(Call::Figures);
        self.policy.figures(tell);
    }

    fn why(&self, slot: Slot) -> Option<String> {
        let _under = self.running.look(Call::Why(slot));
        self.policy.why(slot)
    }

    fn held(&self) -> Option<Box<dyn Any>> {
        self.policy.held()
    }

    fn check(&self) -> Result<(), String> {
        let _under = self.running.look(Call::Check);
        self.policy.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cache, Fifo, Telling, check::check};

    #[test]
    fn what_is_brought_is_known_by_its_name_and_keeps_the_contract() {
        let listed =
            Listed::bring("brought", Some("hash".to_owned()), |_| Box::new(Fifo::default())).unwrap();
        assert_eq!(Listed::by_name("brought"), Some(listed));
        assert_eq!((listed.hash, Listed::own("fifo")), (Some("hash"), None));
        assert_eq!(check(listed.make), Ok(()));
        assert_eq!(doing_here(), None, "no call is under way");
    }

    #[test]
    fn a_name_is_refused_that_means_another_policy_or_that_no_list_could_have() {
        for (name, why) in
            [("sieve", "an existing policy"), ("a,b", "blanks"), ("", "blanks"), ("a@b", "blanks")]
        {
            let refused = Listed::bring(name, None, |_| Box::new(Fifo::default())).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn later_finder_takes_the_place_of_the_one_before() {
        let listed = Listed::bring("found", None, |_| Box::new(Fifo::default())).unwrap();
        find_with(|_| None);
        assert_eq!(Listed::own("sought"), None);
        find_with(move |name| (name == "sought").then_some(listed));
        assert_eq!(Listed::own("sought"), Some(listed));
        find_with(|_| None);
    }

    /// Writes down what it is doing.
    #[derive(Default)]
    struct Asking(Fifo);

    static ASKED: Mutex<Vec<String>> = Mutex::new(Vec::new());

    impl Policy for Asking {
        fn resized(&mut self, _capacity: u32) {}
        fn used(&mut self, _slots: &[Slot]) {}
        fn added(&mut self, arrival: &Arrival) {
            self.0.added(arrival);
        }
        fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
            let doing = doing_here().unwrap();
            assert!(super::doing().contains(&doing));
            ASKED.lock().unwrap().push(doing.to_string());
            self.0.nominate(want, victims);
        }
        fn ended(&mut self, slot: Slot, page: PageId, end: End) {
            ASKED.lock().unwrap().push(doing_here().unwrap().to_string());
            self.0.ended(slot, page, end);
        }
    }

    #[test]
    fn a_call_is_told_by_its_number_while_it_is_under_way() {
        let listed = Listed::bring("asking", None, |_| Box::new(Asking::default())).unwrap();
        let mut cache = Cache::new((listed.make)(0), 1, Telling::Batches(1));
        for page in [0, 0, 1] {
            cache.access(page, false, 1).unwrap();
        }
        let asked = std::mem::take(&mut *ASKED.lock().unwrap());
        assert_eq!(
            asked,
            ["policy asking: call 4, nominate(1)", "policy asking: call 5, ended(slot 0, Evicted)"]
        );
        assert_eq!(doing_here(), None);
    }

    #[test]
    fn each_call_is_its_own_number() {
        for call in [
            Call::Resized(7),
            Call::Added(Slot(u32::MAX)),
            Call::Used(Slot(0)),
            Call::Nominate(1),
            Call::Ended(Slot(2), End::Evicted),
            Call::Ended(Slot(2), End::Gone),
            Call::Ended(Slot(2), End::Spared),
            Call::Cold(Slot(3)),
            Call::Check,
            Call::Figures,
            Call::Why(Slot(4)),
            Call::Make,
            Call::Uses,
            Call::Drop,
            Call::Load,
            Call::Unload,
        ] {
            assert_eq!(unpacked(packed(call)), Some(call));
        }
        assert_eq!(unpacked(0), None);
    }
}
