//! As much of a shell as command lines in texts need: words, quotes, comments, and lists of commands.

/// One command of a line: its words, and what comes behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) words: Vec<String>,
    /// Its output goes into the next command.
    pub(crate) is_piped: bool,
}

/// The commands of a line, or why there are none. Redirections to files are left out of the words.
pub(crate) fn commands(line: &str) -> Result<Vec<Simple>, String> {
    let mut commands = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = line.chars().peekable();
    let mut end = |words: &mut Vec<String>, is_piped: bool| {
        let words = std::mem::take(words);
        if !words.is_empty() {
            commands.push(Simple { words: without_redirections(words), is_piped });
        }
    };
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(character),
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '\\') => match characters.next() {
                Some('\n') | None => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
            },
            (None, '#') if word.is_none() => while characters.next_if(|next| *next != '\n').is_some() {},
            (None, '|' | ';' | '&' | '\n') => {
                words.extend(word.take());
                let is_double = characters.next_if_eq(&character).is_some();
                end(&mut words, character == '|' && !is_double);
            }
            (None, blank) if blank.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(character),
        }
    }
    if let Some(open) = quote {
        return Err(format!("a quote {open} is not closed"));
    }
    words.extend(word.take());
    end(&mut words, false);
    Ok(commands)
}

fn without_redirections(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            ">" | "<" | ">>" | "2>" => _ = words.next(),
            _ => kept.push(word),
        }
    }
    kept
}

#[test]
fn lines_become_the_words_that_a_shell_makes_of_them() {
    let words = |line: &str| -> Vec<Vec<String>> {
        commands(line).unwrap().into_iter().map(|simple| simple.words).collect()
    };
    assert_eq!(
        words("a 'b c' --x=\"d e\" \\\n  f # g h"),
        [["a", "b c", "--x=d e", "f"].map(str::to_string).to_vec()]
    );
    assert_eq!(words("a > b; c && d | e '|'"), [vec!["a"], vec!["c"], vec!["d"], vec!["e", "|"]]);
    assert!(commands("a b | c").unwrap()[0].is_piped && !commands("a || c").unwrap()[0].is_piped);
    assert!(commands("a 'b").is_err());
}
