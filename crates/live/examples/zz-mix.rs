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
    let began = Instant::now();
    let mut n = seed;
    let mut all = 0;
    while began.elapsed() < Duration::from_secs(secs) {
        all += run(&dir, n);
        n += 1;
    }
    println!("seeds {seed}..{n}: {all} ops");
}

fn run(dir: &Path, seed: u64) -> u64 {
    let mut r = R(seed);
    let policy = ["classic@6.12", "mglru@6.12", "s3-fifo", "mglru@7.3", "sieve", "classic@2010"]
        [r.n(if seed % 5 == 0 { 6 } else { 5 }) as usize];
    let budget = [16, 24, 48][r.n(3) as usize] * MIB;
    let threads = [0, 2, 8][r.n(3) as usize];
    let backend = if r.n(2) == 0 { Backend::Any } else { Backend::Threads };
    let b = Memory::builder()
        .budget(budget)
        .budget_max(64 * MIB)
        .policy(policy)
        .io_threads(threads)
        .backend(backend)
        .guard_wait(Duration::from_millis(50))
        .swap_file(dir, 96 * MIB)
        .swap_buffered(r.n(2) == 0);
    let z = r.n(3);
    let b = match z {
        0 => b,
        1 => b.zswap(Zswap::lz4()),
        _ => b.zswap(Zswap::zstd(1)),
    };
    let b = if r.n(2) == 0 { b.files(1 << 30) } else { b };
    let memory = match b.clone().build() {
        Ok(m) => m,
        Err(Error::DirectRefused { .. }) => b.swap_buffered(true).build().unwrap(),
        Err(e) => panic!("{e:?}"),
    };
    let nthreads = 2 + r.n(3);
    let what = format!(
        "seed {seed} {policy} {} MiB io {threads} {backend:?} zswap {z} threads {nthreads}",
        budget / MIB
    );
    eprintln!("{what}");
    let ops = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let hs: Vec<_> = (0..nthreads)
            .map(|t| {
                let (m, w, d, o) = (&memory, &what, dir, &ops);
                s.spawn(move || one(m, d, seed, t, w, o))
            })
            .collect();
        let (m, st) = (&memory, &stop);
        let b = s.spawn(move || {
            let mut r = R(seed ^ 77);
            let mut errs = BTreeMap::new();
            while !st.load(SeqCst) {
                match m.set_budget((8 + r.n(60)) * MIB) {
                    Ok(()) => {
                        *errs.entry("ok".to_owned()).or_insert(0) += 1;
                    }
                    Err(e) => {
                        let k = format!("{e:?}");
                        *errs.entry(k.split_whitespace().next().unwrap().to_owned()).or_insert(0) += 1;
                    }
                }
                std::thread::sleep(Duration::from_millis(r.n(80)));
                m.stats().unwrap();
            }
            errs
        });
        for h in hs {
            if h.join().is_err() {
                eprintln!("FAILED: {what}");
                std::process::exit(1);
            }
        }
        stop.store(true, SeqCst);
        eprintln!("   set_budget {:?}", b.join().unwrap());
    });
    memory.look_at_engine(|e| e.check_invariants()).unwrap();
    let since = Instant::now();
    loop {
        memory.write("/proc/sys/vm/drop_caches", "1").unwrap();
        let st = memory.stats().unwrap();
        assert_eq!(st.pinned, 0, "{what}");
        if (st.anon, st.swapped) == (0, 0) {
            break;
        }
        if since.elapsed().as_secs() > 20 {
            eprintln!("FAILED {what}: left {st:?}");
            std::process::exit(1);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    ops.load(SeqCst)
}

enum Space {
    E(Region),
    M(MappedRegion),
}

fn one(m: &Memory, dir: &Path, seed: u64, t: u64, what: &str, ops: &AtomicU64) {
    let mut r = R(seed << 8 | t);
    let soft = |e: &Error| {
        matches!(
            e,
            Error::OutOfMemory(_)
                | Error::Pinned { .. }
                | Error::CutMeanwhile { .. }
                | Error::NoRoomForTables { .. }
        )
    };
    let began = Instant::now();
    let rounds = 1 + r.n(4);
    for round in 0..rounds {
        let name = format!("g{t}-{round}");
        let max = [None, Some(60 * PAGE), Some(400 * PAGE), Some(3 * MIB)][r.n(4) as usize];
        let group = m.group(&name, Limits { max, ..Limits::NONE }).unwrap();
        let pages = [50, 700, 3000][r.n(3) as usize];
        let mapped = r.n(4) == 0;
        let mut model = Model { len: pages * PAGE, pages: BTreeMap::new() };
        let space = if mapped {
            match m.map_region(pages * PAGE, MapOptions::new().group(&group).handlers(1 + r.n(3) as usize)) {
                Ok(x) => Space::M(x),
                Err(e) if soft(&e) => continue,
                Err(e) => panic!("{what}: map {e:?}"),
            }
        } else {
            match m.region(pages * PAGE, RegionOptions::new().group(&group)) {
                Ok(x) => Space::E(x),
                Err(e) if soft(&e) => continue,
                Err(e) => panic!("{what}: region {e:?}"),
            }
        };
        let p = dir.join(format!("m-{}-{seed}-{t}-{round}", std::process::id()));
        let mut fm = Model { len: 0, pages: BTreeMap::new() };
        let file = match m.open(&p, Open::read_write().create(true).buffered(true).group(&group)) {
            Ok(f) => f,
            Err(e) if soft(&e) => continue,
            Err(e) => panic!("{what}: open {e:?}"),
        };
        let mut group = Some(group);
        let mut buf = vec![0u8; 60_000];
        let mut want = vec![0u8; 60_000];
        let n = 300 + r.n(4000);
        let sigbus_safe = true;
        for op in 0..n {
            if began.elapsed() > Duration::from_secs(15) {
                break;
            }
            ops.fetch_add(1, SeqCst);
            let v = 1 + r.n(250) as u8;
            let fill = |b: &mut [u8], r: &mut R| {
                let k = r.n(3);
                let mut x = r.n(1 << 40);
                for (i, b) in b.iter_mut().enumerate() {
                    *b = match k {
                        0 => v,
                        1 => v.wrapping_add((i / 64) as u8),
                        _ => {
                            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                            (x >> 33) as u8
                        }
                    }
                }
            };
            if r.n(4) == 0 {
                // the file
                let off = r.n(600 * PAGE);
                let size = 1 + r.n(9000) as usize;
                if r.n(2) == 0 {
                    fill(&mut buf[..size], &mut r);
                    match file.write_at(&buf[..size], off) {
                        Ok(()) => {
                            let c = buf[..size].to_vec();
                            fm.write(&c, off);
                        }
                        Err(e) if soft(&e) => {
                            relearn(&file, &mut fm, off, size as u64, &buf[..size].to_vec(), what)
                        }
                        Err(e) => panic!("{what} op {op}: file write {e:?}"),
                    }
                } else if off < fm.len {
                    let size = size.min((fm.len - off) as usize);
                    match file.read_at(&mut buf[..size], off) {
                        Ok(()) => {
                            fm.read(&mut want[..size], off);
                            if buf[..size] != want[..size] {
                                panic!("{what} op {op}: file differs at {off}");
                            }
                        }
                        Err(e) if soft(&e) => {}
                        Err(e) => panic!("{what} op {op}: file read {e:?}"),
                    }
                }
                continue;
            }
            match &space {
                Space::M(map) => {
                    let hot = if r.n(2) == 0 { pages / 8 + 1 } else { pages };
                    let page = r.n(hot).min(pages - 1);
                    let at = map.as_mut_ptr().wrapping_add((page * PAGE) as usize);
                    match r.n(12) {
                        0..=4 => {
                            let w = r.n(4096) as usize;
                            unsafe { at.add(w).write_volatile(v) };
                            model.write(&[v], page * PAGE + w as u64);
                        }
                        5..=9 => {
                            let w = r.n(4096) as usize;
                            let g = unsafe { at.add(w).read_volatile() };
                            let mut e = [0];
                            model.read(&mut e, page * PAGE + w as u64);
                            if g != e[0] {
                                panic!("{what} op {op}: map page {page} byte {w} is {g} expected {}", e[0]);
                            }
                        }
                        10 => {
                            let end = (page + 1 + r.n(40)).min(pages);
                            match map.discard(page * PAGE..end * PAGE) {
                                Ok(()) => model.pages.retain(|&p, _| p < page || p >= end),
                                Err(e) if soft(&e) => {}
                                Err(e) => panic!("{what}: discard {e:?}"),
                            }
                        }
                        _ => {
                            let end = (page + 1 + r.n(200)).min(pages);
                            let _ = map.advise(
                                if r.n(2) == 0 { RegionAdvice::PageOut } else { RegionAdvice::Cold },
                                page * PAGE..end * PAGE,
                            );
                        }
                    }
                    if let Some(e) = map.take_error() {
                        panic!("{what} op {op}: {e}");
                    }
                }
                Space::E(region) => {
                    let len = model.len;
                    let off = if r.n(2) == 0 { r.n(len / 8 + 1) } else { r.n(len.max(1)) };
                    let size = (match r.n(4) {
                        0 => 1 + r.n(40_000),
                        1 => 4096,
                        _ => 1 + r.n(700),
                    })
                    .min(len.saturating_sub(off)) as usize;
                    match r.n(22) {
                        0..=6 if size > 0 => {
                            fill(&mut buf[..size], &mut r);
                            match region.write_at(&buf[..size], off) {
                                Ok(()) => {
                                    let c = buf[..size].to_vec();
                                    model.write(&c, off);
                                }
                                Err(e) if soft(&e) => {
                                    // some pages new, some old
                                    let mut at = off;
                                    while at < off + size as u64 {
                                        let k = (PAGE - at % PAGE).min(off + size as u64 - at) as usize;
                                        let mut b = vec![0; k];
                                        let mut tries = 0;
                                        loop {
                                            match region.read_at(&mut b, at) {
                                                Ok(()) => break,
                                                Err(e) if soft(&e) && tries < 300 => {
                                                    tries += 1;
                                                    std::thread::sleep(Duration::from_millis(10))
                                                }
                                                Err(e) => {
                                                    panic!("{what} op {op}: read after a failed write: {e:?}")
                                                }
                                            }
                                        }
                                        let mut old = vec![0; k];
                                        model.read(&mut old, at);
                                        let nw = &buf[(at - off) as usize..(at - off) as usize + k];
                                        if b != old && b != nw {
                                            panic!(
                                                "{what} op {op}: after a failed write neither old nor new"
                                            );
                                        }
                                        model.write(&b.clone(), at);
                                        at += k as u64;
                                    }
                                }
                                Err(e) => panic!("{what} op {op}: write {off}+{size} of {len}: {e:?}"),
                            }
                        }
                        7..=12 if size > 0 => match region.read_at(&mut buf[..size], off) {
                            Ok(()) => {
                                model.read(&mut want[..size], off);
                                if buf[..size] != want[..size] {
                                    panic!("{what} op {op}: region differs at {off}+{size}");
                                }
                            }
                            Err(e) if soft(&e) => {}
                            Err(e) => panic!("{what} op {op}: read {e:?}"),
                        },
                        13 => {
                            let mut g = Vec::new();
                            let mut seen = std::collections::BTreeSet::new();
                            for _ in 0..1 + r.n(60) {
                                let p = r.n(len.div_ceil(PAGE).max(1));
                                if p * PAGE >= len {
                                    break;
                                }
                                if !seen.insert(p) {
                                    continue;
                                }
                                match region.page(p) {
                                    Ok(x) => {
                                        let mut w = vec![0; x.len()];
                                        model.read(&mut w, p * PAGE);
                                        if *x != w[..] {
                                            panic!("{what} op {op}: guard of {p} differs");
                                        }
                                        g.push(x);
                                    }
                                    Err(e) if soft(&e) => break,
                                    Err(e) => panic!("{what} op {op}: page {e:?}"),
                                }
                            }
                        }
                        14 | 15 => {
                            let mut g = Vec::new();
                            let mut seen = std::collections::BTreeSet::new();
                            for _ in 0..1 + r.n(12) {
                                let p = r.n(len / PAGE + 1);
                                if p * PAGE >= len {
                                    break;
                                }
                                if !seen.insert(p) {
                                    continue;
                                }
                                match region.page_mut(p) {
                                    Ok(mut x) => {
                                        let mut w = vec![0; x.len()];
                                        model.read(&mut w, p * PAGE);
                                        if *x != w[..] {
                                            panic!("{what} op {op}: guard of {p} differs");
                                        }
                                        let k = r.n(x.len() as u64) as usize;
                                        x[k] = v;
                                        model.write(&[v], p * PAGE + k as u64);
                                        g.push(x);
                                    }
                                    Err(e) if soft(&e) => break,
                                    Err(e) => panic!("{what} op {op}: page_mut {e:?}"),
                                }
                            }
                        }
                        16 => {
                            let a = off / PAGE * PAGE;
                            let e = (a + PAGE * (1 + r.n(100))).min(len);
                            if a < e {
                                let adv = [RegionAdvice::PageOut, RegionAdvice::Cold][r.n(2) as usize];
                                match region.advise(adv, a..e) {
                                    Ok(()) => {}
                                    Err(e) if soft(&e) => {}
                                    Err(e) => panic!("{what} op {op}: advise {e:?}"),
                                }
                            }
                        }
                        17 => {
                            let (a, e) = (off / PAGE, (off / PAGE + 1 + r.n(60)).min(len / PAGE));
                            if a < e {
                                match region.advise(RegionAdvice::DontNeed, a * PAGE..e * PAGE) {
                                    Ok(()) => model.pages.retain(|&p, _| p < a || p >= e),
                                    Err(x) if soft(&x) => {
                                        /* part */
                                        for p in a..e {
                                            let mut b = vec![0; 4096];
                                            if region.read_at(&mut b, p * PAGE).is_ok() {
                                                let mut o = vec![0; 4096];
                                                model.read(&mut o, p * PAGE);
                                                if b != o && b.iter().any(|&x| x != 0) {
                                                    panic!("{what} op {op}: discard");
                                                }
                                                model.write(&b.clone(), p * PAGE);
                                            } else {
                                                panic!("{what}: cannot learn");
                                            }
                                        }
                                    }
                                    Err(e) => panic!("{what} op {op}: discard {e:?}"),
                                }
                            }
                        }
                        18 => {
                            let new = match r.n(3) {
                                0 => len / 2 + r.n(5000),
                                1 => len.saturating_sub(r.n(9000)),
                                _ => (len + r.n(400 * PAGE)).min(pages * PAGE),
                            };
                            match region.set_len(new) {
                                Ok(()) => {
                                    let l = model.len;
                                    model.cut(new);
                                }
                                Err(e) if soft(&e) => {
                                    assert_eq!(region.len(), len, "{what}");
                                }
                                Err(e) => panic!("{what} op {op}: set_len {e:?}"),
                            }
                        }
                        19 => {
                            let e = (off + 50 * PAGE).min(len);
                            if off < e {
                                if let Err(e) = region.prefetch(off..e) {
                                    if !soft(&e) {
                                        panic!("{what} op {op}: prefetch {e:?}")
                                    }
                                }
                            }
                        }
                        20 => {
                            if let Some(g) = &group {
                                let _ = g.write("memory.max", &((40 + r.n(900)) * PAGE).to_string());
                            }
                        }
                        _ => {
                            if r.n(30) == 0 {
                                if group.as_ref().is_some_and(|g| g.remove().is_ok()) {
                                    panic!("{what}: a busy group was removed");
                                }
                            }
                        }
                    }
                }
            }
        }
        match file.sync_all() {
            Ok(()) => {}
            Err(e) => panic!("{what}: sync {e:?}"),
        }
        drop(file);
        use std::os::unix::fs::FileExt;
        let d = std::fs::File::open(&p).unwrap();
        assert_eq!(d.metadata().unwrap().len(), fm.len, "{what}");
        for (&page, bytes) in &fm.pages {
            let mut b = vec![0; 4096];
            let n = (fm.len - page * PAGE).min(PAGE) as usize;
            d.read_exact_at(&mut b[..n], page * PAGE).unwrap();
            if b[..n] != bytes[..n] {
                panic!("{what}: page {page} differs on the device");
            }
        }
        std::fs::remove_file(&p).unwrap();
        if r.n(2) == 0 {
            drop(space);
            if let Some(g) = group {
                let _ = g.remove();
            }
        } else {
            if let Some(g) = group {
                let _ = g.remove();
            }
            drop(space);
        }
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
