//! Events of a recording: which the kernel has, and behind which filters.

use super::*;

/// Files that a filter can name: the kernel takes a page of text.
const FILTER_BYTES: usize = 4000;

impl Recorder<'_> {
    /// Makes the instance, with its events behind their filters.
    pub(super) fn set_up(&mut self) -> Result<(), Error> {
        let options = self.options;
        let (files, _) = self.files()?;
        need_host_pids(&options.root)?;
        let mut instance = Instance::new(&options.root)?;
        let (mut readers, mut any) = (Vec::new(), String::new());
        for known in KNOWN.iter().filter(|known| known.kind.is_in(options.kinds)) {
            let name = known.name.replace('/', ":");
            let Some(format) = instance.format(known.name)? else {
                if known.kind != Kind::Writes {
                    self.source.missing.push(name);
                }
                continue;
            };
            readers.push(known.reader(&format)?);
            if known.kind == Kind::Reads
                && let Some(probe) = Probe::new()
            {
                // Without the filter: it would drop these reads.
                instance.enable(known.name, "")?;
                self.event_ns = probe.event_ns(&mut instance)?.unwrap_or(0);
            }
            instance.enable(known.name, &filter(&format, &files, options.sample)?)?;
            self.source.events.push(name);
            any = format;
        }
        let reads = self.source.events.iter().any(|name| name == "filemap:mm_filemap_get_pages");
        let has = |what: &str| self.source.events.iter().any(|name| name.starts_with(what));
        if options.kinds.writes && !has("ext4:") && !has("xfs:") && !has("f2fs:") {
            self.source.missing.push("writes: no file system of this kernel has events of them".to_string());
        }
        if readers.is_empty() {
            return Err(Error::Asked(
                "this kernel has none of the requested events\nhelp: `pageout record --check` lists what is available"
                    .to_string(),
            ));
        }
        self.source.accesses = match (reads, options.kinds.insertions && options.kinds.reads) {
            (true, _) => "reads",
            (false, true) => "insertions",
            (false, false) if options.kinds.insertions && !options.kinds.faults && !options.kinds.writes => {
                "insertions"
            }
            _ => "faults and writes",
        }
        .to_string();
        let page_size = rustix::param::page_size() as u64;
        self.decoder = Some(Decoder::new(&any, readers, page_size)?);
        if options.target == Target::Machine {
            instance.set("set_event_notrace_pid", &std::process::id().to_string())?;
        }
        self.instance = Some(instance);
        Ok(())
    }

    /// The files that patterns name, with their paths.
    pub(super) fn files(&mut self) -> Result<(Vec<FileKey>, Vec<PathBuf>), Error> {
        let (mut files, mut all) = (Vec::new(), Vec::new());
        for pattern in &self.options.files {
            let paths =
                glob::glob(pattern).map_err(|error| Error::Asked(format!("--file {pattern}: {error}")))?;
            let before = files.len();
            for path in paths.flatten() {
                if let Ok(stat) = std::fs::metadata(&path)
                    && stat.is_file()
                {
                    files.push(FileKey::of_stat(stat.dev(), stat.ino()));
                    self.source.only_files.push(if self.options.anonymize {
                        String::new()
                    } else {
                        path.display().to_string()
                    });
                    self.near.extend(path.parent().map(Path::to_path_buf));
                    all.push(path);
                }
            }
            if files.len() == before {
                return Err(Error::Asked(format!(
                    "--file {pattern}: found no such file, expected at least one\nhelp: quote a pattern, or the shell replaces it; a relative path starts at the current folder"
                )));
            }
        }
        Ok((files, all))
    }
}

/// The filter of an event: of these files, of one page of so many.
fn filter(format: &str, files: &[FileKey], sample: u64) -> Result<String, Error> {
    let has = |name: &str| format.contains(&format!(" {name};"));
    let mut parts = Vec::new();
    if !files.is_empty() && (has("i_ino") || has("ino")) {
        let (dev, inode) = if has("i_ino") { ("s_dev", "i_ino") } else { ("dev", "ino") };
        let each: Vec<String> = files
            .iter()
            .map(|file| format!("({inode} == {} && {dev} == {})", file.inode, file.dev))
            .collect();
        parts.push(format!("({})", each.join(" || ")));
    }
    if sample > 1 && has("index") {
        parts.push(format!("!(index & {})", sample - 1));
    }
    let filter = parts.join(" && ");
    if filter.len() > FILTER_BYTES {
        return Err(Error::Asked(format!(
            "--file matches {} files, but a kernel filter has a limit of about 70\nhelp: match fewer files, or record all files and select later",
            files.len()
        )));
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET_PAGES: &str =
        "\tfield:unsigned long i_ino;\n\tfield:dev_t s_dev;\n\tfield:unsigned long index;\n";

    #[test]
    fn filters_name_the_fields_that_the_event_has() {
        let file = FileKey { dev: 5, inode: 7 };
        assert_eq!(filter(GET_PAGES, &[file], 8).unwrap(), "((i_ino == 7 && s_dev == 5)) && !(index & 7)");
        assert_eq!(
            filter("\tfield:dev_t dev;\n\tfield:ino_t ino;\n", &[file], 8).unwrap(),
            "((ino == 7 && dev == 5))"
        );
        assert_eq!(filter(GET_PAGES, &[], 1).unwrap(), "");
        assert!(filter(GET_PAGES, &[file; 200], 1).unwrap_err().to_string().contains("200 files"));
    }
}
