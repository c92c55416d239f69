//! Publications on a page: what each claims, and how many of its rows hold. The first screen has all of them, and each chapter its head.

use std::fmt::Write;

use super::escape::html;

/// One publication.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    /// What a link within the page goes to.
    pub(crate) id: String,
    pub(crate) title: String,
    /// Author and date.
    pub(crate) author: String,
    /// The public address of the publication.
    pub(crate) address: String,
    pub(crate) claim: String,
    /// The machines (published and simulated) and other facts, each with its heading.
    pub(crate) says: Vec<(String, String)>,
    pub(crate) badges: Vec<Badge>,
}

/// How many rows came out so.
#[derive(Clone, Debug)]
pub(crate) struct Badge {
    /// The class in page.css, which has the colour.
    pub(crate) class: &'static str,
    pub(crate) text: String,
}

/// All of them, each with a link to its head.
pub(super) fn list(letters: &[Letter]) -> String {
    let mut text = "<ol class=\"letters\">".to_string();
    for letter in letters {
        _ = write!(
            text,
            "<li><a href=\"#{}\">{}</a> <span class=\"of\">{}</span>{}<p>{}</p></li>",
            html(&letter.id),
            html(&letter.title),
            html(&letter.author),
            badges(&letter.badges),
            html(&letter.claim)
        );
    }
    text + "</ol>"
}

/// The head of one.
pub(super) fn head(letter: &Letter) -> String {
    let address = html(&letter.address);
    let mut text = format!(
        "<p class=\"of\">{}, <a href=\"{address}\" rel=\"noreferrer\">{address}</a></p>{}<dl class=\"letter\">",
        html(&letter.author),
        badges(&letter.badges)
    );
    for (word, says) in std::iter::once(&("Claimed".to_string(), letter.claim.clone())).chain(&letter.says) {
        _ = write!(text, "<dt>{}</dt><dd>{}</dd>", html(word), html(says));
    }
    text + "</dl>"
}

fn badges(badges: &[Badge]) -> String {
    let each =
        badges.iter().map(|Badge { class, text }| format!("<span class=\"{class}\">{}</span>", html(text)));
    format!("<span class=\"badges\">{}</span>", each.collect::<String>())
}
