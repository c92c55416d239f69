//! Sizes of memory, from text: `64MiB`, `30%`, `1%..100%/100` in equal steps, `1%..100%/50log` by equal factors.

use pageout_sim::scenario::Size;
use pageout_sim::scenario::keys::Limit;

use crate::Error;

/// The maximum number of sizes of a range: a curve with more has steps that are too small for a chart.
const SIZES_MAX: usize = 10_000;

/// The sizes that these texts name, in their order. Texts that name one twice are refused; a range leaves out what was named before.
pub fn parse_sizes(texts: &[String]) -> Result<Vec<Limit>, Error> {
    let mut limits: Vec<Limit> = Vec::new();
    for text in texts {
        match text.split_once("..") {
            Some((from, rest)) => {
                let before = limits.len();
                for limit in range(text, from, rest)? {
                    // A range rises.
                    let is_new =
                        limits[before..].last() != Some(&limit) && !limits[..before].contains(&limit);
                    limits.extend(is_new.then_some(limit));
                }
            }
            None => {
                let limit = one(text)?;
                if limits.contains(&limit) {
                    return Err(Error::asked(format!(
                        "--memory: found {text} twice, expected different sizes"
                    )));
                }
                limits.push(limit);
            }
        }
    }
    Ok(limits)
}

fn one(text: &str) -> Result<Limit, Error> {
    let wrong = match text.parse() {
        Ok(Limit::Max) => {
            "--memory max: expected a size or a percentage\nhelp: for example --memory 64MiB,30%".to_string()
        }
        Ok(limit) => return Ok(limit),
        Err(_) if text.trim().is_empty() => "--memory: empty size\nhelp: remove the extra comma".to_string(),
        Err(message) if text.trim().ends_with('%') => format!("--memory {text}: {message}"),
        Err(message) => format!("--memory {text}: {message}, or a percentage such as 30%"),
    };
    Err(Error::asked(wrong))
}

fn range(text: &str, from: &str, rest: &str) -> Result<Vec<Limit>, Error> {
    let wrong = |why: &str| {
        Error::asked(format!(
            "--memory {text}: {why}\nhelp: a range is FROM..TO/COUNT in equal steps or FROM..TO/COUNTlog by equal factors, for example 1%..100%/50log"
        ))
    };
    let Some((to, count)) = rest.split_once('/') else {
        return Err(wrong("found no number of sizes, expected for example 1%..80%/12log"));
    };
    let (count, by_factors) = match count.strip_suffix("log") {
        Some(count) => (count, true),
        None => (count, false),
    };
    let count = count.parse::<usize>().ok().filter(|count| (2..=SIZES_MAX).contains(count));
    let Some(count) = count else {
        return Err(wrong(&format!("invalid count: expected a whole number from 2 to {SIZES_MAX}")));
    };
    let (least, most, is_percent) = match (one(from)?, one(to)?) {
        (Limit::Percent(least), Limit::Percent(most)) => (least, most, true),
        (Limit::Size(least), Limit::Size(most)) => {
            (least.pages_floor() as f64, most.pages_floor() as f64, false)
        }
        _ => return Err(wrong("found a percentage and a size, expected both ends of one kind")),
    };
    if least >= most {
        return Err(wrong("the end is not larger than the start"));
    }
    if by_factors && least <= 0.0 {
        return Err(wrong("a range by factors must start at one page or more"));
    }
    let sizes = (0..count).map(|at| {
        let part = at as f64 / (count - 1) as f64;
        let size = match at {
            _ if at == count - 1 => most,
            _ if by_factors => least * (most / least).powf(part),
            _ => least + (most - least) * part,
        };
        match is_percent {
            true => Limit::Percent(rounded(size)),
            false => Limit::Size(Size::from_pages(size.round() as u64)),
        }
    });
    Ok(sizes.collect())
}

/// To four digits: what is printed is what was simulated.
fn rounded(percent: f64) -> f64 {
    format!("{percent:.3e}").parse().expect("a number that was printed is one")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percents(text: &str) -> Vec<f64> {
        let limits = parse_sizes(&[text.to_string()]).unwrap();
        limits.iter().map(|limit| if let Limit::Percent(percent) = limit { *percent } else { 0.0 }).collect()
    }

    #[test]
    fn a_range_has_equal_steps_or_equal_factors() {
        assert_eq!(percents("10%..50%/5"), [10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(percents("1%..100%/3log"), [1.0, 10.0, 100.0]);
        assert_eq!(percents("1%..100%/4log"), [1.0, 4.642, 21.54, 100.0]);
        let sizes = parse_sizes(&["1MiB..3MiB/3".to_string()]).unwrap();
        assert_eq!(sizes, [1 << 20, 2 << 20, 3 << 20].map(|bytes| Limit::Size(Size(bytes))));
    }

    #[test]
    fn a_range_that_is_none_says_how_one_is_written() {
        for (text, why) in [
            ("1%..100%", "found no number of sizes, expected for example 1%..80%/12log"),
            ("1%..100%/1", "from 2 to"),
            ("1%..100%/x", "from 2 to"),
            ("5%..1%/3", "the end is not larger than the start"),
            ("1%..1GiB/3", "found a percentage and a size, expected both ends of one kind"),
            ("0..64MiB/3log", "must start at one page or more"),
        ] {
            let told = parse_sizes(&[text.to_string()]).unwrap_err().to_string();
            assert!(told.contains(why) && told.contains(text), "{told}");
        }
        let told = parse_sizes(&["1%..x/3".to_string()]).unwrap_err().to_string();
        assert!(told.contains("--memory x: "), "{told}");
    }
}
