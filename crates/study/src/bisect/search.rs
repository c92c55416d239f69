//! The smallest set of rules that does it: delta debugging (Zeller and Hildebrandt, 2002).
//!
//! A set that does it is cut into parts. A part that does it, or all but a part that does, is the next set; where none does, the parts become
//! smaller. It ends with a set that needs each of its rules.

/// A subset of `all` that causes the change and needs each of its rules. `None` if even all of them do not cause it, or if `does_it` has no
/// answer because of a signal.
pub(super) fn smallest<E>(
    all: &[usize],
    mut does_it: impl FnMut(&[usize]) -> Result<Option<bool>, E>,
) -> Result<Option<Vec<usize>>, E> {
    if all.is_empty() || does_it(all)? != Some(true) {
        return Ok(None);
    }
    let mut set = all.to_vec();
    let mut parts = 2;
    while set.len() > 1 {
        let size = set.len().div_ceil(parts);
        let chunks: Vec<Vec<usize>> = set.chunks(size).map(<[usize]>::to_vec).collect();
        let rest = |chunk: &Vec<usize>| -> Vec<usize> {
            set.iter().copied().filter(|rule| !chunk.contains(rule)).collect()
        };
        // With two parts, each part is the complement of the other.
        let without = chunks.iter().filter(|_| chunks.len() > 2).map(|chunk| (rest(chunk), true));
        let tries: Vec<(Vec<usize>, bool)> =
            chunks.iter().cloned().map(|chunk| (chunk, false)).chain(without).collect();
        let mut next = None;
        for (smaller, is_rest) in tries {
            match does_it(&smaller)? {
                None => return Ok(None),
                Some(true) => {
                    next = Some((smaller, is_rest));
                    break;
                }
                Some(false) => {}
            }
        }
        match next {
            Some((smaller, is_rest)) => {
                set = smaller;
                parts = if is_rest { (parts - 1).max(2) } else { 2 };
            }
            None if parts >= set.len() => break,
            None => parts = (2 * parts).min(set.len()),
        }
    }
    Ok(Some(set))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(count: usize, does_it: impl Fn(&[usize]) -> bool) -> Option<Vec<usize>> {
        let all: Vec<usize> = (0..count).collect();
        smallest(&all, |set| Ok::<_, ()>(Some(does_it(set)))).unwrap()
    }

    #[test]
    fn the_pair_that_does_it_is_found_wherever_it_is() {
        for (one, other) in [(0, 1), (0, 11), (3, 7), (10, 11)] {
            let pair = found(12, |set| set.contains(&one) && set.contains(&other));
            assert_eq!(pair, Some(vec![one, other]));
        }
    }

    #[test]
    fn one_rule_three_rules_and_none() {
        assert_eq!(found(9, |set| set.contains(&4)), Some(vec![4]));
        let three = |set: &[usize]| [1, 5, 8].iter().all(|rule| set.contains(rule));
        assert_eq!(found(9, three), Some(vec![1, 5, 8]));
        assert_eq!(found(9, |_| false), None);
        assert_eq!(found(0, |_| true), None);
    }

    #[test]
    fn a_signal_ends_the_search_without_a_set() {
        let mut left = 3;
        let set = smallest(&[0, 1, 2, 3], |_| {
            left -= 1;
            Ok::<_, ()>((left > 0).then_some(true))
        });
        assert_eq!(set, Ok(None));
    }
}
