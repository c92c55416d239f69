//! Caches that have everything: the cost of a copy.

use std::sync::Arc;

use pageout::{Memory, RegionOptions};

use crate::contents::{check, page};
use crate::measured::{MIB, PAGE, cpu, draws};
use crate::{ROUNDS, row};

const BYTES: usize = 128 * MIB;

pub(crate) fn run(accesses: usize) {
    let memory = Memory::builder().budget((BYTES + BYTES / 8 + 8 * MIB) as u64).build().unwrap();
    let region = memory.region(BYTES as u64, RegionOptions::new()).unwrap();
    let mut plain = vec![0; BYTES];
    let moka: moka::sync::Cache<u64, Arc<[u8]>> = moka::sync::Cache::new(2 * (BYTES / PAGE) as u64);
    let quick: quick_cache::sync::Cache<u64, Arc<[u8]>> = quick_cache::sync::Cache::new(2 * BYTES / PAGE);
    for (number, bytes) in (0..).zip(plain.chunks_mut(PAGE)) {
        bytes.copy_from_slice(&page(number));
        region.write_at(bytes, number * PAGE as u64).unwrap();
        moka.insert(number, Arc::from(&*bytes));
        quick.insert(number, Arc::from(&*bytes));
    }
    moka.run_pending_tasks();
    let pages = draws(BYTES / PAGE, Some(0.8), accesses);
    let each = |act: &dyn Fn(u64, &mut [u8])| {
        let mut buf = vec![0; PAGE];
        let time = cpu(|| {
            for &page in &pages {
                act(page, &mut buf);
                check(&buf, page);
            }
        });
        time / pages.len() as f64
    };
    let mut rounds = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        rounds[0].push(each(&|page, buf| buf.copy_from_slice(&plain[page as usize * PAGE..][..PAGE])));
        rounds[1].push(each(&|page, buf| region.read_at(buf, page * PAGE as u64).unwrap()));
        rounds[2].push(each(&|page, buf| buf.copy_from_slice(&moka.get(&page).unwrap())));
        rounds[3].push(each(&|page, buf| buf.copy_from_slice(&quick.get(&page).unwrap())));
    }
    println!("resident, {} MiB, Zipf 0.8, get and copy:", BYTES / MIB);
    for (name, figures) in ["memcpy", "region", "moka", "quick_cache"].iter().zip(&rounds) {
        row(name, "ns per page", figures, None);
    }
    let over =
        |rival: usize| -> Vec<f64> { rounds[1].iter().zip(&rounds[rival]).map(|(of, to)| of / to).collect() };
    row("region / memcpy", "", &over(0), Some((1.25, false)));
    row("region / moka", "", &over(2), Some((1.3, false)));
    row("region / quick_cache", "", &over(3), Some((1.3, false)));
}
