//! Split of a memory between tenants: the one with the fewest misses, by the curve that each of them has alone.
//!
//! ```text
//!   parts of memory    0   1   2   3       fewest misses of the first t tenants with g parts:
//!   tenant a           9   9   1   1         best[t][g] = min over k <= g of best[t - 1][g - k] + curve[t][k]
//!   tenant b           8   5   4   4       here with 3 parts: a has 2 and b 1, which is 6
//! ```
//! *Why not the steepest curve first.* That finds the best split where each part earns less than the one before it. Curves with cliffs, such as
//! loops, are not so: `a` above earns nothing with its first part.
//!
//! *What it costs.* Tenants times the square of the parts.
//!
//! *When not to use it:* as a promise, where curves are estimates, or where tenants share pages: each has a copy in its own part then.
//!
//! Source: H. S. Stone, J. Turek and J. L. Wolf, *Optimal Partitioning of Cache Memory*, IEEE Transactions on Computers 41(9), 1992,
//! <https://doi.org/10.1109/12.165388>, for curves that are convex; that any can be split so: J. Brock and others, *Optimal Cache
//! Partition-Sharing*, ICPP 2015, <https://doi.org/10.1109/ICPP.2015.84>.

/// A split of memory, in parts of equal size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Split {
    /// By tenant: its number of parts. Parts that no tenant can use belong to none.
    pub parts: Vec<usize>,
    /// Misses of all of them together.
    pub misses: u64,
}

/// Returns the split with the fewest misses. A curve is a tenant's misses with no part of memory, with one, and so on: all are equally long. Among
/// several optimal splits, it returns one in which the last tenants have as little as possible.
pub fn best_split(curves: &[Vec<u64>]) -> Split {
    let lengths = curves.first().map_or(1, Vec::len);
    assert!(
        lengths > 0 && curves.iter().all(|curve| curve.len() == lengths),
        "curves are of the same memory"
    );
    let mut best = vec![0; lengths];
    // By tenant, by parts of memory: how many of them are its own.
    let mut own: Vec<Vec<usize>> = Vec::new();
    for curve in curves {
        let choose = |all: usize| {
            let misses = |own: usize| best[all - own] + curve[own];
            (0..=all).map(|own| (misses(own), own)).min().expect("a tenant may have nothing")
        };
        let chosen: Vec<(u64, usize)> = (0..lengths).map(choose).collect();
        best = chosen.iter().map(|(misses, _)| *misses).collect();
        own.push(chosen.into_iter().map(|(_, own)| own).collect());
    }
    let (misses, mut left) = (best[lengths - 1], lengths - 1);
    let mut parts: Vec<usize> = Vec::new();
    for own in own.iter().rev() {
        parts.push(own[left]);
        left -= own[left];
    }
    parts.reverse();
    Split { parts, misses }
}
