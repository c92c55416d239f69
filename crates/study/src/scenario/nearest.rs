//! "Did you mean": the known name that is nearest to a misspelt one.

/// A policy family without its era means that of all defaults.
const ERA: &str = "@6.12";

/// The candidate most like `given`, if any is like it at all.
///
/// Two measures, because typing errors come in two kinds. A slip of the finger changes one or two characters (edit distance). A slip of
/// memory keeps the beginning (`memory.maximum` for `memory.max`: Jaro-Winkler). If only one candidate has the same beginning, it is the
/// match. Case and `_`, `-`, `.` are ignored.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.to_lowercase().replace(['_', '-', '.', '/', ' '], "");
    let wanted = plain(given);
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let of_the_era = candidates.iter().find(|name| name.strip_prefix(given) == Some(ERA));
    if let Some(of_the_era) = of_the_era {
        return Some(of_the_era);
    }
    let mut longer = candidates.iter().filter(|name| plain(name).starts_with(&wanted));
    if let (Some(longer), None, 4..) = (longer.next(), longer.next(), wanted.len()) {
        return Some(longer);
    }
    candidates
        .into_iter()
        .map(|candidate| {
            let name = plain(candidate);
            let edits = strsim::damerau_levenshtein(&name, &wanted);
            let likeness = strsim::jaro_winkler(&name, &wanted);
            (candidate, edits, likeness, name.len().max(wanted.len()))
        })
        .filter(|&(_, edits, likeness, length)| {
            edits <= length / 4 || edits <= 1 && length > 2 || likeness > 0.85
        })
        .min_by(|a, b| (a.1).cmp(&b.1).then(b.2.total_cmp(&a.2)))
        .map(|(candidate, ..)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_finger_and_memory_are_understood_and_strangers_are_not() {
        let keys =
            ["memory.max", "memory.high", "memory.low", "memory.soft_limit_in_bytes", "policy", "path"];
        for (given, meant) in [
            ("memory.mxa", Some("memory.max")),
            ("memory_max", Some("memory.max")),
            ("memory.maximum", Some("memory.max")),
            ("Memory.High", Some("memory.high")),
            ("polcy", Some("policy")),
            ("memory.soft_limit", Some("memory.soft_limit_in_bytes")),
            ("colour", None),
        ] {
            assert_eq!(nearest(given, keys), meant, "{given}");
        }
        assert_eq!(nearest("mglru", ["mglru@7.1", "mglru-fg", "mglru@6.12"]), Some("mglru@6.12"));
    }
}
