//! scratch
#![allow(warnings, clippy::all)]
use pageout::*;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::Duration;
const PAGES: u64 = 1 << 28;
fn page(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b1) % PAGES
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    if a[1] == "child" {
        let first: u64 = a[3].parse().unwrap();
        let memory = Memory::builder()
            .budget(12 << 20)
            .budget_max(32 << 20)
            .io_threads(3)
            .backend(if first % 2 == 0 { Backend::Any } else { Backend::Threads })
            .build()
            .unwrap();
        memory.write("/proc/sys/vm/dirty_writeback_centisecs", "1").unwrap();
        memory.write("/proc/sys/vm/dirty_expire_centisecs", "5").unwrap();
        let files: Vec<File> =
            (0..3).map(|i| memory.open(format!("{}/k{i}", a[2]), Open::read_write()).unwrap()).collect();
        println!("ready");
        std::thread::scope(|s| {
            for (i, f) in files.iter().enumerate() {
                s.spawn(move || {
                    for n in first.. {
                        loop {
                            match f.write_at(&n.to_le_bytes(), page(n) * 4096 + (n % 500) * 8) {
                                Ok(()) => break,
                                Err(Error::NoRoomForTables { .. } | Error::OutOfMemory(_)) => {
                                    std::thread::sleep(Duration::from_millis(2));
                                }
                                Err(e) => panic!("{e:?}"),
                            }
                        }
                        if n % 17 == 0 {
                            f.sync_data().unwrap();
                            println!("{i} {n}");
                        }
                    }
                });
            }
            s.spawn(|| {
                for n in 9.. {
                    let _ = memory.set_budget((3 + n * 7 % 26) << 20);
                    std::thread::sleep(Duration::from_millis(3));
                }
            });
        });
        return;
    }
    let dir = &a[1];
    let kills: u64 = a[2].parse().unwrap();
    for i in 0..3 {
        let f = std::fs::File::create(format!("{dir}/k{i}")).unwrap();
        f.set_len(PAGES * 4096).unwrap();
    }
    let mut first = 1;
    let mut syncs = 0;
    let mut checked = 0;
    let mut all = [(0u64, 0u64); 3].map(|_| Vec::<(u64, u64)>::new());
    for k in 0..kills {
        let mut c = Command::new(std::env::current_exe().unwrap())
            .args(["child", dir, &first.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut l = BufReader::new(c.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(l.any(|x| x == "ready"));
        std::thread::sleep(Duration::from_millis(20 + k * 37 % 400));
        c.kill().unwrap();
        assert_eq!(c.wait().unwrap().code(), None);
        let mut last = first;
        let mut upto = [0; 3];
        for x in l {
            if let Some((i, n)) = x.split_once(' ') {
                let (i, n): (usize, u64) = (i.parse().unwrap(), n.parse().unwrap());
                upto[i] = n;
                syncs += 1;
                last = last.max(n);
            }
        }
        for i in 0..3 {
            if upto[i] >= first {
                all[i].push((first, upto[i]));
            }
        }
        for i in 0..3 {
            let f = std::fs::File::open(format!("{dir}/k{i}")).unwrap();
            assert_eq!(f.metadata().unwrap().len(), PAGES * 4096);
            for &(a, b) in &all[i] {
                for n in a..=b {
                    let mut w = [0; 8];
                    f.read_exact_at(&mut w, page(n) * 4096 + (n % 500) * 8).unwrap();
                    checked += 1;
                    assert_eq!(u64::from_le_bytes(w), n, "file {i}: write {n}, kill {k}");
                }
            }
        }
        first = last + 100_000;
    }
    println!("{kills} kills, {syncs} syncs, {checked} checks");
    for i in 0..3 {
        std::fs::remove_file(format!("{dir}/k{i}")).unwrap();
    }
}
