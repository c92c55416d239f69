//! scratch
#![allow(warnings, clippy::all)]
use pageout::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

struct R(u64);
impl R {
    fn n(&mut self, m: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut w = self.0;
        w = (w ^ (w >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        w = (w ^ (w >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (w ^ (w >> 31)) % m.max(1)
    }
}

struct Model {
    len: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}
impl Model {
    fn read(&self, buf: &mut [u8], off: u64) {
        for (i, b) in buf.iter_mut().enumerate() {
            let at = off + i as u64;
            *b = self.pages.get(&(at / PAGE)).map_or(0, |p| p[(at % PAGE) as usize]);
        }
    }
    fn write(&mut self, buf: &[u8], off: u64) {
        for (i, b) in buf.iter().enumerate() {
            let at = off + i as u64;
            self.pages.entry(at / PAGE).or_insert_with(|| vec![0; 4096])[(at % PAGE) as usize] = *b;
        }
        self.len = self.len.max(off + buf.len() as u64);
    }
    fn cut(&mut self, len: u64) {
        if len < self.len {
            self.pages.retain(|&p, _| p * PAGE < len);
            if len % PAGE != 0 {
                if let Some(p) = self.pages.get_mut(&(len / PAGE)) {
                    p[(len % PAGE) as usize..].fill(0);
                }
            }
        }
        self.len = len;
    }
}

fn rss() -> u64 {
    let s = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let l = s.lines().find(|l| l.starts_with("Rss:")).unwrap();
    l.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn place(r: &mut R, len: u64) -> u64 {
    // clustered, at powers of two, anywhere
    match r.n(4) {
        0 => r.n(256 * PAGE).min(len.saturating_sub(1)),
        1 => {
            let p = r.n(40);
            ((1u64 << p) + r.n(8192)).saturating_sub(4096).min(len.saturating_sub(1))
        }
        2 => len.saturating_sub(1 + r.n(64 * PAGE)),
        _ => r.n(len),
    }
}

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let dir = PathBuf::from(&a[1]);
    let seed: u64 = a[2].parse().unwrap();
    let secs: u64 = a[3].parse().unwrap();
    let full = a.get(4).map_or(false, |x| x == "full"); // the folder is small
    let began = Instant::now();
    let mut seedn = seed;
    let mut ops_all = 0;
    while began.elapsed() < Duration::from_secs(secs) {
        let ops = run(&dir, seedn, full);
        ops_all += ops;
        seedn += 1;
    }
    println!("seeds {seed}..{seedn}: {ops_all} ops");
}

fn run(dir: &Path, seed: u64, full: bool) -> u64 {
    let mut r = R(seed);
    let policy = ["classic@6.12", "mglru@6.12", "s3-fifo", "mglru@7.3", "sieve"][r.n(5) as usize];
    let budget = [12, 16, 64][r.n(3) as usize] * MIB;
    let threads = [0, 2, 8][r.n(3) as usize];
    let backend = if r.n(2) == 0 { Backend::Any } else { Backend::Threads };
    let memory = Memory::builder()
        .budget(budget)
        .budget_max(96 * MIB)
        .policy(policy)
        .io_threads(threads)
        .backend(backend)
        .guard_wait(Duration::from_millis(50))
        .build()
        .unwrap();
    let nthreads = 1 + r.n(3);
    let what =
        format!("seed {seed} {policy} {} MiB io {threads} {backend:?} threads {nthreads}", budget / MIB);
    eprintln!("{what}");
    let ops = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let base = rss();
    std::thread::scope(|s| {
        let hs: Vec<_> = (0..nthreads)
            .map(|t| {
                let (m, w, d, o) = (&memory, &what, dir, &ops);
                s.spawn(move || one(m, d, seed, t, w, full, o))
            })
            .collect();
        let (m, st, w) = (&memory, &stop, &what);
        let b = s.spawn(move || {
            let mut r = R(seed ^ 77);
            let mut errs = BTreeMap::new();
            while !st.load(SeqCst) {
                let n = r.n(96);
                let bytes = (3 + n) * MIB;
                match m.set_budget(bytes) {
                    Ok(()) => {}
                    Err(e) => {
                        let k = format!("{e:?}");
                        *errs.entry(k.split_whitespace().next().unwrap().to_owned()).or_insert(0) += 1;
                    }
                }
                std::thread::sleep(Duration::from_millis(r.n(60)));
                m.stats().unwrap();
            }
            let _ = m.set_budget(64 * MIB);
            errs
        });
        for h in hs {
            if h.join().is_err() {
                eprintln!("FAILED: {what}");
                std::process::exit(1);
            }
        }
        stop.store(true, SeqCst);
        let errs = b.join().unwrap();
        eprintln!("   set_budget errors {errs:?}");
    });
    memory.look_at_engine(|e| e.check_invariants()).unwrap();
    let st = memory.stats().unwrap();
    assert_eq!(st.pinned, 0, "{what}");
    drop(memory);
    ops.load(SeqCst)
}

fn one(m: &Memory, dir: &Path, seed: u64, t: u64, what: &str, full: bool, ops: &AtomicU64) {
    let mut r = R(seed << 8 | t);
    let nf = [1, 2, 30][r.n(3) as usize];
    let most = if full { 16 * MIB } else { TIB / [1, nf][r.n(2) as usize] };
    let mut files: Vec<(PathBuf, Option<File>, Model)> = (0..nf)
        .map(|i| {
            let p = dir.join(format!("f-{}-{seed}-{t}-{i}", std::process::id()));
            let f = std::fs::File::create(&p).unwrap();
            f.set_len(most).unwrap();
            (p, None, Model { len: most, pages: BTreeMap::new() })
        })
        .collect();
    let mut buf = vec![0u8; 300_000];
    let mut want = vec![0u8; 300_000];
    let n = 400 + r.n(1500);
    let began = Instant::now();
    for op in 0..n {
        if began.elapsed() > Duration::from_secs(20) {
            break;
        }
        ops.fetch_add(1, SeqCst);
        let i = r.n(nf) as usize;
        let (p, f, model) = &mut files[i];
        if f.is_none() {
            let how = Open::read_write().buffered(full || r.n(2) == 0);
            let how = if r.n(2) == 0 { how.random() } else { how };
            match m.open(&*p, how) {
                Ok(x) => {
                    if x.len() != model.len {
                        panic!("{what}: length {} expected {}", x.len(), model.len)
                    }
                    *f = Some(x);
                }
                Err(Error::DirectRefused { .. }) => continue,
                Err(Error::NoRoomForTables { .. }) => continue,
                Err(e) => panic!("{what} op {op}: open {e:?}"),
            }
        }
        let file = f.as_ref().unwrap();
        let off = place(&mut r, model.len.max(1));
        let size = match r.n(6) {
            0 => 1 + r.n(200_000),
            1 => 4096,
            2 => 1 + r.n(10_000),
            _ => 1 + r.n(600),
        };
        let kind = r.n(40);
        let soft = |e: &Error| {
            matches!(
                e,
                Error::OutOfMemory(_)
                    | Error::NoRoomForTables { .. }
                    | Error::Pinned { .. }
                    | Error::CutMeanwhile { .. }
            )
        };
        let is_space = |e: &Error| full && matches!(e, Error::Io { .. } | Error::Sync { .. });
        match kind {
            0..=13 => {
                let size = size.min(model.len.saturating_sub(off)) as usize;
                if size == 0 {
                    continue;
                }
                match file.read_at(&mut buf[..size], off) {
                    Ok(()) => {
                        model.read(&mut want[..size], off);
                        if buf[..size] != want[..size] {
                            let at = (0..size).find(|&i| buf[i] != want[i]).unwrap();
                            panic!(
                                "{what} op {op}: read of file {i} at {off}+{at} has {} expected {}",
                                buf[at], want[at]
                            );
                        }
                    }
                    Err(e) if soft(&e) => {}
                    Err(e) => panic!("{what} op {op}: read {off}+{size} of {}: {e:?}", model.len),
                }
            }
            14..=25 => {
                let size = if full { size.min(20_000) } else { size } as usize;
                let off = if off + size as u64 > most { most - size as u64 } else { off };
                let v = 1 + r.n(255) as u8;
                for (k, b) in buf[..size].iter_mut().enumerate() {
                    *b = v.wrapping_add((k / 512) as u8) | 1;
                }
                match file.write_at(&buf[..size], off) {
                    Ok(()) => {
                        let c = buf[..size].to_vec();
                        model.write(&c, off)
                    }
                    Err(e) if soft(&e) || is_space(&e) => {
                        // a part may be written: learn
                        relearn(file, model, off, size as u64, &buf[..size].to_vec(), what);
                    }
                    Err(e) => panic!("{what} op {op}: write {off}+{size}: {e:?}"),
                }
            }
            26 | 27 => match file.sync_data() {
                Ok(()) => {}
                Err(e) if is_space(&e) => {
                    let _ = file.acknowledge();
                }
                Err(e) => panic!("{what} op {op}: sync {e:?}"),
            },
            28 => {
                let len = match r.n(3) {
                    0 => model.len / 2 + r.n(5000),
                    1 => model.len.saturating_sub(r.n(100_000)),
                    _ => (model.len + r.n(most)).min(most),
                };
                match file.set_len(len) {
                    Ok(()) => {
                        model.cut(len);
                    }
                    Err(e) if soft(&e) || is_space(&e) => {
                        if file.len() != model.len {
                            panic!(
                                "{what} op {op}: set_len {len} failed {e:?}, length {} of {}",
                                file.len(),
                                model.len
                            );
                        }
                    }
                    Err(e) => panic!("{what} op {op}: set_len {len} of {}: {e:?}", model.len),
                }
            }
            29 => {
                // many guards
                let pages = model.len / PAGE;
                if pages == 0 {
                    continue;
                }
                let mut g = Vec::new();
                for _ in 0..r.n(300) {
                    let p = place(&mut r, pages * PAGE) / PAGE;
                    match file.page(p) {
                        Ok(x) => {
                            let mut w = vec![0; x.len()];
                            model.read(&mut w, p * PAGE);
                            if *x != w[..] {
                                panic!("{what} op {op}: guard of {p} differs");
                            }
                            g.push(x)
                        }
                        Err(e) if soft(&e) => break,
                        Err(e) => panic!("{what} op {op}: page {e:?}"),
                    }
                }
            }
            30 | 31 => {
                let pages = model.len / PAGE;
                if pages == 0 {
                    continue;
                }
                let p = place(&mut r, pages * PAGE) / PAGE;
                match file.page_mut(p) {
                    Ok(mut x) => {
                        let mut w = vec![0; x.len()];
                        model.read(&mut w, p * PAGE);
                        if *x != w[..] {
                            panic!("{what} op {op}: guard of {p} differs");
                        }
                        let v = 1 + r.n(255) as u8;
                        let n = x.len();
                        let at = r.n(n as u64) as usize;
                        x[at] = v;
                        drop(x);
                        model.write(&[v], p * PAGE + at as u64);
                    }
                    Err(e) if soft(&e) => {}
                    Err(e) => panic!("{what} op {op}: page_mut {e:?}"),
                }
            }
            32 => {
                let e = (off + size * 3).min(model.len);
                if off < e {
                    let r2 =
                        file.advise(if r.n(2) == 0 { Advice::DontNeed } else { Advice::WillNeed }, off..e);
                    if let Err(e) = r2 {
                        if !soft(&e) {
                            panic!("{what} op {op}: advise {e:?}");
                        }
                    }
                }
            }
            33 => {
                let e = (off + size * 3).min(model.len);
                if off < e {
                    if let Err(e) = file.prefetch(off..e) {
                        if !soft(&e) {
                            panic!("{what} op {op}: prefetch {e:?}");
                        }
                    }
                }
            }
            34 => {
                *f = None;
            }
            35 => {
                if full {
                    continue;
                }
                let file = f.take().unwrap();
                match file.forget() {
                    Ok(()) => {}
                    Err(e) if soft(&e) => {}
                    Err(e) => panic!("{what} op {op}: forget {e:?}"),
                }
            }
            36 => {
                let nb = 1 + r.n(20) as usize;
                let sz = 700usize;
                let offs: Vec<u64> = (0..nb)
                    .map(|_| place(&mut r, model.len.max(1)).min(model.len.saturating_sub(sz as u64)))
                    .collect();
                if model.len < sz as u64 {
                    continue;
                }
                let mut bufs = vec![vec![0u8; sz]; nb];
                let mut reads: Vec<ReadAt> =
                    bufs.iter_mut().zip(&offs).map(|(b, &o)| ReadAt { buf: b, offset: o }).collect();
                let res = if r.n(2) == 0 {
                    file.read_batch(&mut reads)
                } else {
                    file.submit(reads).and_then(|p| p.wait())
                };
                match res {
                    Ok(()) => {
                        for (b, &o) in bufs.iter().zip(&offs) {
                            let mut w = vec![0; sz];
                            model.read(&mut w, o);
                            if *b != w {
                                panic!("{what} op {op}: batch at {o} differs");
                            }
                        }
                    }
                    Err(e) if soft(&e) => {}
                    Err(e) => panic!("{what} op {op}: batch {e:?}"),
                }
            }
            37 => {
                if file.sync_all().is_err() {
                    let _ = file.acknowledge();
                    continue;
                }
                match file.reload() {
                    Ok(()) => {}
                    Err(e) if soft(&e) || is_space(&e) => {}
                    Err(Error::ChangedOutside { .. }) => {}
                    Err(e) => panic!("{what} op {op}: reload {e:?}"),
                }
                if file.len() != model.len && !full {
                    panic!("{what} op {op}: length {} after reload, expected {}", file.len(), model.len);
                }
            }
            38 => {
                // stats
                let _ = m.stats().unwrap();
                let _ = file.stats().unwrap();
            }
            _ => match file.write_back() {
                Ok(()) => {}
                Err(e) if is_space(&e) => {}
                Err(e) => panic!("{what} op {op}: write_back {e:?}"),
            },
        }
    }
    // at the end all is on the device
    for (p, f, model) in &mut files {
        let since = Instant::now();
        while f.is_none() {
            match m.open(&*p, Open::read_write().buffered(true)) {
                Ok(x) => *f = Some(x),
                Err(Error::NoRoomForTables { .. }) if since.elapsed().as_secs() < 20 => {
                    std::thread::sleep(Duration::from_millis(10))
                }
                Err(e) => panic!("{what}: last open {e:?}"),
            }
        }
        let file = f.take().unwrap();
        if !full {
            if let Err(e) = file.sync_all() {
                panic!("{what}: last sync {e:?}");
            }
        } else {
            for other in std::fs::read_dir(dir).unwrap().flatten() {
                if other.file_name().to_string_lossy().starts_with("fill") {
                    let _ = std::fs::remove_file(other.path());
                }
            }
            let mut tries = 0;
            while let Err(e) = file.sync_all() {
                let _ = file.acknowledge();
                tries += 1;
                if tries > 3000 {
                    eprintln!("{what}: never synced: {e:?}");
                    std::fs::remove_file(&*p).unwrap();
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        use std::os::unix::fs::FileExt;
        let d = std::fs::File::open(&*p).unwrap();
        if d.metadata().unwrap().len() != model.len {
            panic!("{what}: {p:?} has {} bytes, expected {}", d.metadata().unwrap().len(), model.len);
        }
        for (&page, bytes) in &model.pages {
            let mut b = vec![0; 4096];
            let n = (model.len - page * PAGE).min(PAGE) as usize;
            d.read_exact_at(&mut b[..n], page * PAGE).unwrap();
            if b[..n] != bytes[..n] {
                panic!("{what}: page {page} of {p:?} differs on the device");
            }
        }
    }
    for (p, ..) in &files {
        std::fs::remove_file(p).unwrap();
    }
}

fn relearn(file: &File, model: &mut Model, off: u64, size: u64, new: &[u8], what: &str) {
    let len = file.len();
    if len < model.len || len > model.len.max(off + size) {
        panic!("{what}: length {len} after a write that failed, {} before", model.len);
    }
    model.len = len;
    let end = (off + size).min(len);
    let mut at = off;
    while at < end {
        let n = (PAGE - at % PAGE).min(end - at);
        let mut b = vec![0; n as usize];
        let mut tries = 0;
        loop {
            match file.read_at(&mut b, at) {
                Ok(()) => break,
                Err(
                    Error::OutOfMemory(_)
                    | Error::NoRoomForTables { .. }
                    | Error::Pinned { .. }
                    | Error::CutMeanwhile { .. },
                ) => {
                    tries += 1;
                    if tries > 200 {
                        panic!("{what}: can't read after a failed write");
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(e) => panic!("{what}: read after a write that failed: {e:?}"),
            }
        }
        let mut old = vec![0; n as usize];
        model.read(&mut old, at);
        let nw = &new[(at - off) as usize..(at - off + n) as usize];
        if b != old && b != nw {
            panic!("{what}: after a failed write at {at} there is neither the old nor the new");
        }
        model.write(&b.clone(), at);
        at += n;
    }
    model.len = len;
}
