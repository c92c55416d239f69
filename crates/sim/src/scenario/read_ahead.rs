//! Which files are read ahead, and how far.
//!
//! A window of readahead is a device's. Below it, an object has a say: `read_ahead = false`, or a trace of opaque ids, which have no neighbours, and its
//! file is read page by page.

use std::collections::{BTreeMap, BTreeSet};

use super::{Channel, DEFAULT_DEVICE, Device, Object, Scenario, Task};

/// The objects whose files are read ahead, if their devices are.
pub struct ReadAhead<'a> {
    /// By task and object: what the object says.
    objects: Vec<Vec<bool>>,
    /// Names of files with an object that says no.
    page_by_page: BTreeSet<&'a str>,
}

impl ReadAhead<'_> {
    /// Returns true if a file with a name is read ahead: unless an object that names it is not.
    pub(super) fn file(&self, name: &str) -> bool {
        !self.page_by_page.contains(name)
    }

    /// Returns true if an object is read ahead by what it says itself, whatever others say of its file.
    pub fn object(&self, task: usize, object: usize) -> bool {
        self.objects[task][object]
    }

    /// Returns true if the file of an object is read ahead.
    fn file_of(&self, task: usize, at: usize, object: &Object) -> bool {
        object.file.as_ref().map_or_else(|| self.object(task, at), |name| self.file(name))
    }
}

impl Task {
    /// For each object, whether its own settings enable readahead. An object without accesses of its own has those of the trace before it.
    fn read_ahead(&self) -> Vec<bool> {
        let mut has_ids = false;
        let says = |object: &Object| {
            if object.trace.is_some() || object.workload.is_some() {
                has_ids = object.trace.as_ref().is_some_and(|of| {
                    of.is_of_ids || of.loaded.as_ref().is_some_and(|loaded| !loaded.has_neighbours)
                });
            }
            object.read_ahead.unwrap_or(!has_ids)
        };
        self.object.iter().map(says).collect()
    }
}

impl Scenario {
    /// Returns the files that are read ahead. It examines all objects, so call it once for all.
    pub fn files_read_ahead(&self) -> ReadAhead<'_> {
        let objects: Vec<Vec<bool>> = self.task.iter().map(Task::read_ahead).collect();
        let said = self.task.iter().zip(&objects).flat_map(|(task, says)| task.object.iter().zip(says));
        let page_by_page = said.filter(|(_, is_read_ahead)| !**is_read_ahead);
        let page_by_page = page_by_page.filter_map(|(object, _)| object.file.as_deref()).collect();
        ReadAhead { objects, page_by_page }
    }

    /// Returns the maximum readahead of files on each device, in KiB, with the device's name.
    ///
    /// A device whose files are all read page by page (`read_ahead = false`) has none.
    pub fn readahead(&self) -> Vec<(&str, u32)> {
        let windows = match &self.device[..] {
            [] => vec![(DEFAULT_DEVICE, Device::READ_AHEAD_KB)],
            devices => devices.iter().map(|device| (device.name.as_str(), device.window_kb())).collect(),
        };
        // For each device that has files: whether any is read ahead.
        let mut any: BTreeMap<usize, bool> = BTreeMap::new();
        let (read_ahead, devices) = (self.files_read_ahead(), self.devices_of_files());
        for (index, task) in self.task.iter().enumerate() {
            for (at, object) in task.object.iter().enumerate() {
                if let Some(device) = self.device_of(object, &devices) {
                    *any.entry(device).or_default() |= read_ahead.file_of(index, at, object);
                }
            }
        }
        let of_device = |at: usize| any.get(&at).copied().unwrap_or(true);
        let windows = windows.into_iter().enumerate();
        windows.map(|(at, (name, kib))| (name, if of_device(at) { kib } else { 0 })).collect()
    }

    /// Objects whose files are not read ahead because their traces are of opaque ids, as `task, object N`.
    pub fn objects_of_ids(&self) -> Vec<String> {
        let (read_ahead, mut names) = (self.files_read_ahead(), Vec::new());
        for (index, task) in self.task.iter().enumerate() {
            for (at, object) in task.object.iter().enumerate() {
                let is_file = matches!(object.channel, Channel::File | Channel::Mapped);
                if is_file && object.read_ahead.is_none() && !read_ahead.file_of(index, at, object) {
                    names.push(format!("{}, object {at}", task.name));
                }
            }
        }
        names
    }

    /// The device that each file with a name is on, by name.
    fn devices_of_files(&self) -> BTreeMap<&str, Option<&str>> {
        self.file.iter().map(|file| (file.name.as_str(), file.device.as_deref())).collect()
    }

    /// The number of the device that an object's file is on; nothing of memory.
    fn device_of(&self, object: &Object, devices: &BTreeMap<&str, Option<&str>>) -> Option<usize> {
        if !matches!(object.channel, Channel::File | Channel::Mapped) {
            return None;
        }
        let device = match &object.file {
            Some(name) => *devices.get(name.as_str())?,
            None => object.device.as_deref(),
        };
        device.map_or(Some(0), |name| self.device.iter().position(|device| device.name == name))
    }
}
