//! Classes of Python as policies.
//!
//! One object of such a class is made per memory, with a seed. An exception ends the run and is raised to the caller of the study. Python's lock is held only
//! during calls of the object, so that hits without a call continue without it.

use std::any::Any;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use pageout_cache::POLICIES;
use pageout_engine::PROFILES;
use pageout_policy::{Arrival, Cause, End, Listed, PageId, Policy, Slot, Uses};
use pageout_study::sweep::content_hash;
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::shared::{Lock, UseBits, keep_thread_state};

/// What an object has raised first.
static RAISED: Mutex<Option<PyErr>> = Mutex::new(None);

/// The number of the last call.
static CALLS: AtomicU64 = AtomicU64::new(0);
/// Objects of calls up to this one are not called any more: Ctrl-C was pressed.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Threads that have called objects, as Python numbers them.
static THREADS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Returns true if this thread is in a call of an object: what it asks for is part of that call.
#[pyfunction]
pub(crate) fn is_in_policy() -> bool {
    pageout_policy::doing_here().is_some()
}

/// A call begins that may make objects. There is one at a time (`_ask.py`), except for calls within a call of an object.
pub(crate) fn begin() {
    // An exception of a command that was abandoned after Ctrl-C.
    drop(raised());
    THREADS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    CALLS.fetch_add(1, Relaxed);
}

/// Ends calls of all present objects, and interrupts running calls. A policy that does not answer ends its run.
pub(crate) fn end(py: Python<'_>) -> PyResult<()> {
    ENDED.store(CALLS.load(Relaxed), Relaxed);
    let threads: Vec<u64> = THREADS.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect();
    if threads.is_empty() {
        // While a library hangs in its load, no module can be imported.
        return Ok(());
    }
    let ctypes = py.import("ctypes")?;
    let interrupt = ctypes.getattr("pythonapi")?.getattr("PyThreadState_SetAsyncExc")?;
    let error = ctypes.call_method1("py_object", (py.get_type::<PyKeyboardInterrupt>(),))?;
    for thread in threads {
        interrupt.call1((ctypes.call_method1("c_ulong", (thread,))?, &error))?;
    }
    Ok(())
}

/// This thread calls objects from now on.
fn is_on_thread(py: Python<'_>) -> PyResult<()> {
    let thread = py.import("threading")?.call_method0("get_ident")?.extract()?;
    THREADS.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    Ok(())
}

/// Takes what an object has raised.
pub(crate) fn raised() -> Option<PyErr> {
    RAISED.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The caller of objects is the program, which handles no exceptions of theirs.
static IS_PROGRAM: AtomicBool = AtomicBool::new(false);

/// From now on what an object raises ends the program, with the call that it was in.
pub(crate) fn be_program() {
    IS_PROGRAM.store(true, Relaxed);
    // All of it is one call, and its objects are called.
    begin();
}

fn raise(error: PyErr) {
    if IS_PROGRAM.load(Relaxed) {
        pageout_lab::end_with_fault(error.to_string());
    }
    RAISED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
}

/// Makes a class known by a name, for commands that are called later. `file`: where its code is, for rows that have its hash.
#[pyfunction]
#[pyo3(signature = (name, class, bulk, file=None))]
pub(crate) fn bring(name: &str, class: Py<PyAny>, bulk: u32, file: Option<PathBuf>) -> PyResult<()> {
    let is_textbook = POLICIES.iter().any(|row| row.name == name);
    if is_textbook || PROFILES.iter().any(|profile| profile.name == name) {
        return Err(PyValueError::new_err(format!("`{name}` is the name of a policy that is there already")));
    }
    let hash = file.and_then(|file| content_hash(&file));
    Listed::bring(name, hash, make(class, bulk)).map(drop).map_err(PyValueError::new_err)
}

/// `bulk`: the number of victims per call; 0 for an object that chooses each victim separately.
fn make(class: Py<PyAny>, bulk: u32) -> impl Fn(u64) -> Box<dyn Policy> + Send + Sync {
    move |seed| {
        let made = Python::attach(|py| -> PyResult<Box<dyn Policy>> {
            is_on_thread(py)?;
            let object = class.bind(py).call1((seed,))?;
            Ok(if bulk > 0 { Box::new(Bulk::of(&object, bulk)?) } else { Box::new(Object::of(&object)?) })
        });
        made.unwrap_or_else(|error| {
            raise(error);
            Box::new(Dead)
        })
    }
}

/// In the place of an object that could not be made.
struct Dead;

impl Policy for Dead {
    fn resized(&mut self, _capacity: u32) {}
    fn added(&mut self, _arrival: &Arrival) {}
    fn used(&mut self, _slots: &[Slot]) {}
    fn nominate(&mut self, _want: u32, _victims: &mut Vec<Slot>) {}
    fn ended(&mut self, _slot: Slot, _page: PageId, _end: End) {}
}

/// An object with its methods; those that are not its own are not called.
struct Object {
    uses: Uses,
    added: Option<Py<PyAny>>,
    nominate: Py<PyAny>,
    /// Takes a page out and names it: in place of `nominate`, and of `ended` where the page leaves.
    evict: Option<Py<PyAny>>,
    /// Evicted pages whose end is not reported yet.
    out: Vec<Slot>,
    /// Pages in memory.
    there: u32,
    resized: Option<Py<PyAny>>,
    used: Option<Py<PyAny>>,
    ended: Option<Py<PyAny>>,
    cold: Option<Py<PyAny>>,
    figures: Option<Py<PyAny>>,
    why: Option<Py<PyAny>>,
    check: Option<Py<PyAny>>,
    /// The number of the call that it was made in.
    of_call: u64,
    is_dead: bool,
    /// Python keeps a state of the thread that calls it.
    is_on_thread: bool,
}

/// The method of an object, unless it is the one of the package that does nothing.
fn method(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Py<PyAny>>> {
    let own = object.getattr(name)?;
    let is_default =
        own.getattr("__func__").is_ok_and(|function| function.hasattr("_does_nothing").unwrap_or(false));
    Ok((!is_default).then(|| own.unbind()))
}

impl Object {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Object> {
        let used = method(object, "used")?;
        Ok(Object {
            uses: if used.is_some() { Uses::Each } else { Uses::Never },
            added: method(object, "added")?,
            nominate: object.getattr("nominate")?.unbind(),
            evict: method(object, "evict")?,
            out: Vec::new(),
            there: 0,
            resized: method(object, "resized")?,
            used,
            ended: method(object, "ended")?,
            cold: method(object, "cold")?,
            figures: method(object, "figures")?,
            why: method(object, "why")?,
            check: method(object, "check")?,
            of_call: CALLS.load(Relaxed),
            is_dead: false,
            is_on_thread: false,
        })
    }

    /// What a call comes to; nothing once the object has raised something.
    fn does<T>(&mut self, call: impl FnOnce(Python<'_>, &Object) -> PyResult<T>) -> Option<T> {
        if self.is_dead || self.of_call <= ENDED.load(Relaxed) {
            return None;
        }
        if !self.is_on_thread {
            keep_thread_state();
            self.is_on_thread = true;
            if let Err(error) = Python::attach(is_on_thread) {
                raise(error);
            }
        }
        match Python::attach(|py| call(py, self)) {
            Ok(done) => Some(done),
            Err(error) => {
                raise(error);
                self.is_dead = true;
                None
            }
        }
    }
}

impl Object {
    /// It has done something that no call of it raised.
    fn fails(&mut self, why: &str) {
        self.does(|_, _| -> PyResult<()> { Err(PyValueError::new_err(why.to_string())) });
    }

    fn tell_end(&mut self, slot: Slot, page: PageId, end: End) {
        if self.ended.is_some() {
            self.does(|py, of| {
                let end = word(py, end);
                of.ended.as_ref().map(|call| call.call1(py, (slot.0, page.0, end))).transpose()
            });
        }
    }
}

impl Policy for Object {
    fn uses(&self) -> Uses {
        self.uses
    }

    fn resized(&mut self, capacity: u32) {
        if self.resized.is_some() {
            self.does(|py, of| of.resized.as_ref().map(|call| call.call1(py, (capacity,))).transpose());
        }
    }

    fn added(&mut self, arrival: &Arrival) {
        let Arrival { slot, page, cause, write, at_ns } = *arrival;
        self.there += 1;
        if self.added.is_none() {
            return;
        }
        self.does(|py, of| {
            let Some(added) = &of.added else { return Ok(()) };
            match cause {
                Cause::Demand => added.call1(py, (slot.0, page.0, intern!(py, "demand"), write, at_ns)),
                Cause::Readahead => added.call1(py, (slot.0, page.0, intern!(py, "readahead"), write, at_ns)),
                Cause::Refault { distance } => added.call1(py, (slot.0, page.0, distance, write, at_ns)),
            }
            .map(drop)
        });
    }

    fn used(&mut self, slots: &[Slot]) {
        if self.used.is_some() {
            self.does(|py, of| {
                let slots = PyList::new(py, slots.iter().map(|slot| slot.0))?;
                of.used.as_ref().map(|call| call.call1(py, (slots,))).transpose()
            });
        }
    }

    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        let want = want.min(self.there);
        self.does(|py, of| {
            let Some(evict) = &of.evict else {
                return slots(of.nominate.bind(py).call1((want,))?, want, victims);
            };
            (0..want).try_for_each(|_| {
                let taken = evict.bind(py).call0()?;
                let slot = taken.extract().map_err(|_| wrong("evict: a slot", &taken))?;
                victims.push(Slot(slot));
                Ok(())
            })
        });
        if self.evict.is_some() {
            self.out.clone_from(victims);
        }
    }

    fn ended(&mut self, slot: Slot, page: PageId, end: End) {
        self.there -= u32::from(end != End::Spared);
        if self.evict.is_none() {
            return self.tell_end(slot, page, end);
        }
        match self.out.iter().position(|out| *out == slot) {
            Some(at) => drop(self.out.swap_remove(at)),
            // It was in the host's hands without having been evicted.
            None => self.tell_end(slot, page, End::Gone),
        }
        if end == End::Spared {
            self.tell_end(slot, page, end);
        }
    }

    fn cold(&mut self, slot: Slot) {
        if self.cold.is_some() {
            self.does(|py, of| of.cold.as_ref().map(|call| call.call1(py, (slot.0,))).transpose());
        }
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, f64)) {
        let Some(figures) = &self.figures else { return };
        let told = Python::attach(|py| -> PyResult<Vec<(String, f64)>> {
            figures.bind(py).call0()?.call_method0("items")?.try_iter()?.map(|item| item?.extract()).collect()
        });
        match told {
            Ok(told) => told.iter().for_each(|(name, value)| tell(name, *value)),
            Err(error) => raise(error),
        }
    }

    fn why(&self, slot: Slot) -> Option<String> {
        let why = self.why.as_ref()?;
        Python::attach(|py| why.bind(py).call1((slot.0,))?.extract()).unwrap_or_else(|error| {
            raise(error);
            None
        })
    }

    fn held(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(Lock::take()))
    }

    fn check(&self) -> Result<(), String> {
        let Some(check) = &self.check else { return Ok(()) };
        Python::attach(|py| check.bind(py).call0().map(drop).map_err(|error| error.value(py).to_string()))
    }
}

fn word(py: Python<'_>, end: End) -> &Bound<'_, PyString> {
    match end {
        End::Evicted => intern!(py, "evicted"),
        End::Gone => intern!(py, "gone"),
        End::Spared => intern!(py, "spared"),
    }
}

fn wrong(wanted: &str, named: &Bound<'_, PyAny>) -> PyErr {
    let given = named.repr().map_or_else(|_| String::new(), |given| given.to_string());
    PyTypeError::new_err(format!("{wanted}, and not {given:.100}"))
}

/// Slots that an object has named: one, a list, an array, or anything that is iterated over. An iterator may be endless, so at most one slot
/// more than `want` is read; the slot table reports it.
fn slots(named: Bound<'_, PyAny>, want: u32, victims: &mut Vec<Slot>) -> PyResult<()> {
    let wrong = |_: PyErr| wrong("nominate: a slot, or a list or an array of slots", &named);
    if let Ok(list) = named.cast::<PyList>() {
        for slot in list.iter() {
            victims.push(Slot(slot.extract().map_err(wrong)?));
        }
    } else if let Ok(slot) = named.extract::<u32>() {
        victims.push(Slot(slot));
    } else if let Ok(array) = named.extract::<PyReadonlyArray1<'_, i64>>() {
        for &slot in array.as_array() {
            victims.push(Slot(u32::try_from(slot).map_err(|_| wrong(PyTypeError::new_err(())))?));
        }
    } else if let Ok(array) = named.extract::<PyReadonlyArray1<'_, u32>>() {
        victims.reserve(array.len());
        victims.extend(array.as_array().iter().map(|&slot| Slot(slot)));
    } else {
        for slot in named.try_iter().map_err(wrong)?.take(want as usize + 1) {
            victims.push(Slot(slot?.extract().map_err(wrong)?));
        }
    }
    Ok(())
}

/// An object that chooses many victims per call, and reads used slots from an array.
///
/// Its victims wait here for their turn. Those that were used or have left by then are skipped.
struct Bulk {
    object: Object,
    at_once: u32,
    bits: UseBits,
    /// For each slot, true if it has a page.
    is_there: Vec<bool>,
    /// What was named and not yet asked for, the first one last.
    waiting: Vec<Slot>,
    there: u32,
}

impl Bulk {
    fn of(object: &Bound<'_, PyAny>, at_once: u32) -> PyResult<Bulk> {
        let bits = UseBits::new(object.py(), 0);
        object.setattr("bits", bits.array(object.py()))?;
        Ok(Bulk {
            object: Object { used: None, ..Object::of(object)? },
            at_once,
            bits,
            is_there: Vec::new(),
            waiting: Vec::new(),
            there: 0,
        })
    }
}

/// Answers of which all slots are skipped, after which the object is wrong.
const ROUNDS: u32 = 3;

/// The error of answers whose slots are all skipped.
fn all_used(used: u32) -> String {
    format!(
        "nominate: found {used} slots with `self.bits` 1 and no other in {ROUNDS} answers, expected a slot with 0: used pages are \
         skipped\nhelp: set the bits of the pages that you pass over to 0, as in `self.bits[slots] = 0`, or name other slots"
    )
}

impl Policy for Bulk {
    fn resized(&mut self, capacity: u32) {
        let room = self.is_there.len().max(capacity as usize);
        self.is_there.resize(room, false);
        let bits = &mut self.bits;
        self.object.does(|py, of| {
            bits.grow(py, room);
            of.nominate.bind(py).getattr("__self__")?.setattr("bits", bits.array(py))
        });
        self.object.resized(capacity);
    }

    fn added(&mut self, arrival: &Arrival) {
        self.is_there[arrival.slot.index()] = true;
        self.there += 1;
        self.bits.set(arrival.slot.index(), false);
        self.object.added(arrival);
    }

    fn used(&mut self, slots: &[Slot]) {
        slots.iter().for_each(|slot| self.bits.set(slot.index(), true));
    }

    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        let (mut rounds, mut used) = (0, 0);
        while victims.len() < want as usize {
            let Some(slot) = self.waiting.pop() else {
                // The object chooses again, as long as that returns victims.
                rounds += 1;
                if !victims.is_empty() {
                    return;
                }
                if rounds > ROUNDS {
                    return self.object.fails(&all_used(used));
                }
                let at_once = self.at_once.min(self.there).max(1);
                self.object.nominate(at_once, &mut self.waiting);
                self.waiting.reverse();
                if self.waiting.is_empty() {
                    return;
                }
                continue;
            };
            match self.is_there.get(slot.index()) {
                Some(true) if self.bits.get(slot.index()) => used += 1,
                // Has gone since, or was never there: the host says so, if it is asked for.
                Some(false) => {}
                _ => victims.push(slot),
            }
        }
    }

    fn ended(&mut self, slot: Slot, page: PageId, end: End) {
        if end != End::Spared {
            self.is_there[slot.index()] = false;
            self.there -= 1;
        }
        self.object.ended(slot, page, end);
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, f64)) {
        self.object.figures(tell);
    }

    fn why(&self, slot: Slot) -> Option<String> {
        self.object.why(slot)
    }

    fn check(&self) -> Result<(), String> {
        self.object.check()
    }
}
