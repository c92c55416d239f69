//! A policy is named by text, and a text that names none says what to write instead.

use pageout_cache::{Choice, Make, POLICIES};

fn wrong(text: &str) -> String {
    text.parse::<Choice>().expect_err("it is wrong").to_string()
}

#[test]
fn policies_have_own_names_sources_and_defaults_in_range() {
    for (at, row) in POLICIES.iter().enumerate() {
        assert!(POLICIES[..at].iter().all(|other| other.name != row.name), "{}", row.name);
        assert!(row.source.contains("https://"), "{}", row.name);
        for parameter in row.parameters {
            let value = parameter.default;
            assert!((parameter.min..=parameter.max).contains(&value), "{}:{}", row.name, parameter.name);
            assert!(!parameter.is_whole || value.fract() == 0.0, "{}:{}", row.name, parameter.name);
            assert!(!parameter.doc.is_empty() && !parameter.reason.is_empty());
        }
        assert_eq!(matches!(row.make, Make::Bound), row.name == "opt");
    }
}

#[test]
fn policy_is_named_as_it_was_asked_for() {
    let texts = ["lru", "s3-fifo:small=0.1", "s3-fifo:promote=1,small=0.050", "clock:bits=2"];
    for text in texts {
        let choice: Choice = text.parse().expect("it is one");
        assert_eq!(choice.to_string(), text);
        assert_eq!(choice.to_string().parse::<Choice>(), Ok(choice));
    }
}

#[test]
fn default_that_was_given_makes_no_other_policy() {
    let of = |text: &str| text.parse::<Choice>().expect("it is one");
    assert_eq!(of("s3-fifo:small=0.1,ghost=0.9,promote=2"), of("s3-fifo"));
    assert_ne!(of("s3-fifo:small=0.2"), of("s3-fifo"));
}

#[test]
fn a_misspelt_policy_is_answered_by_the_nearest_and_all() {
    let told = wrong("s3fifo");
    assert!(
        told.starts_with("no policy is called `s3fifo`; do you mean `s3-fifo`? There are fifo, lru,"),
        "{told}"
    );
    assert!(wrong("LRU").contains("do you mean `lru`?"));
    assert!(wrong("tinylfu").contains("do you mean `w-tinylfu`?"));
    let told = wrong("belady-size");
    assert!(told.starts_with("no policy is called `belady-size`; there are fifo, lru,"), "{told}");
    assert!(told.ends_with("random, opt"), "{told}");
    assert!(wrong("").starts_with("no policy is called ``; there are"));
    assert!(wrong("żółw").starts_with("no policy is called `żółw`; there are"));
}

#[test]
fn a_wrong_parameter_names_what_there_is_and_its_range() {
    for (text, told) in [
        ("2q:inn=0.2", "2q has no parameter `inn`; do you mean `in`? There are in, out"),
        ("arc:p=1", "arc has no parameter `p`; it has none"),
        ("2q:in", "2q:in: found `in`, expected NAME=VALUE, as in `s3-fifo:small=0.1,promote=2`"),
        ("2q:", "2q:: found ``, expected NAME=VALUE, as in `s3-fifo:small=0.1,promote=2`"),
        ("2q:in=0.1,in=0.2", "2q:in=0.1,in=0.2: `in` is given twice"),
        ("2q:in=25%", "2q:in=25%: in must be a number from 0 to 1 (default 0.25)"),
        ("2q:in=1.5", "2q:in=1.5: in must be a number from 0 to 1 (default 0.25)"),
        ("2q:in=NaN", "2q:in=NaN: in must be a number from 0 to 1 (default 0.25)"),
        (
            "s3-fifo:promote=1.5",
            "s3-fifo:promote=1.5: promote must be a whole number from 1 to 3 (default 2)",
        ),
        ("clock:bits=8", "clock:bits=8: bits must be a whole number from 1 to 7 (default 1)"),
    ] {
        assert_eq!(wrong(text), told);
    }
}
