//! Enumerations whose values have names, and what a setting accepts.

/// An enumeration whose values have names, as switches are set by text.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[$value_doc])* $variant,)*
        }

        impl $name {
            /// The words of all values, in order.
            pub const NAMES: &[&str] = &[$($text),*];

            /// The word of the value.
            #[inline]
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// The value of a word.
            pub fn by_name(name: &str) -> Option<$name> {
                match name {
                    $($text => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use choice;

/// Words that were others before.
const RENAMED: &[(&str, &str)] = &[("single_list", "lru")];

/// Accepted values of a switch or a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// `true` or `false`.
    Bool,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number from the first to the second.
    Number(u32, u32),
}

impl Values {
    /// Returns whether a number is in the range. Words are checked by their own reader.
    pub fn holds(self, value: &str) -> bool {
        match self {
            Values::Bool | Values::Choice(_) => true,
            Values::Number(least, most) => {
                value.parse().is_ok_and(|value: u32| (least..=most).contains(&value))
            }
        }
    }

    /// Returns the current name of a former word.
    pub fn renamed(self, value: &str) -> Option<&'static str> {
        let now = RENAMED.iter().find(|(before, _)| *before == value).map(|(_, now)| *now)?;
        matches!(self, Values::Choice(words) if words.contains(&now)).then_some(now)
    }

    /// All words, or the ends of the range.
    #[cfg(test)]
    pub fn ends(self) -> Vec<String> {
        match self {
            Values::Bool => vec!["true".into(), "false".into()],
            Values::Choice(words) => words.iter().map(|word| (*word).to_owned()).collect(),
            Values::Number(least, most) => vec![least.to_string(), most.to_string()],
        }
    }
}
