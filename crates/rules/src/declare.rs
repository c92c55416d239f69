//! Declares rules: a struct, and one row per rule.
//!
//! A row has the rule's name, its field, its default, the eras in which each value held, the shipped scenario that shows it, and its description. A
//! rule without an era, or with an invalid one, does not compile. [`switch`](crate::switch) uses the rows.

/// Declares a struct of rules, where it is in a [`Policy`](crate::policy::Policy), and its rows for [`SWITCHES`](crate::switch::SWITCHES).
macro_rules! rules {
    (
        $(#[$doc:meta])*
        $name:ident at $($path:ident).+ as $rows:ident {
            $($(#[$part_doc:meta])* $part:ident: $part_type:ident,)*
        }
        $($key:literal: $field:ident: $type:tt $(in ($values:expr))? = $default:expr,
            $eras:tt,
            $shown_by:expr,
            $rule_doc:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name {
            $($(#[$part_doc])* pub $part: $part_type,)*
            $(#[doc = $rule_doc] #[doc = $crate::declare::rules!(@versions $type $eras)] pub $field: $type,)*
        }

        impl $name {
            /// Every rule's default.
            pub(crate) const BASE: $name =
                $name { $($part: $part_type::BASE,)* $($field: $default,)* };
        }

        impl $crate::switch::Part for $name {
            fn of(policy: &$crate::policy::Policy) -> &$name {
                &policy.$($path).+
            }

            fn of_mut(policy: &mut $crate::policy::Policy) -> &mut $name {
                &mut policy.$($path).+
            }
        }

        /// The rows of its rules.
        pub(crate) const $rows: &[$crate::switch::Switch] = &[$($crate::switch::Switch {
            name: $key,
            values: $crate::declare::rules!(@values $type $($values)?),
            eras: $crate::declare::rules!(@eras $type $eras),
            doc: $rule_doc,
            shown_by: $shown_by,
            get: |policy| $crate::declare::rules!(@word <$name as $crate::switch::Part>::of(policy).$field, $type (get)).to_string(),
            set: |policy, value| {
                <$name as $crate::switch::Part>::of_mut(policy).$field = $crate::declare::rules!(@read value, $type);
                Some(())
            },
        }),*];
    };
    (@eras $type:tt [$($value:expr => $span:literal $marks:literal),+ $(,)?]) => {
        &[$($crate::era::Era::new($crate::declare::rules!(@word $value, $type), $span, $marks)),+]
    };
    (@eras $type:tt ($eras:expr)) => { &$eras };
    // The eras in rustdoc. Values that are not words of the language are links. A colon after one makes it the definition of a link, unless it is
    // escaped.
    (@versions $type:tt ($eras:expr)) => { "\n\nThe eras are those of the lists and of guests." };
    (@versions bool $eras:tt) => { $crate::declare::rules!(@spans "`" "`" $eras) };
    (@versions u8 $eras:tt) => { $crate::declare::rules!(@spans "`" "`" $eras) };
    (@versions $choice:tt $eras:tt) => { $crate::declare::rules!(@spans "[`" "`]" $eras) };
    (@spans $before:literal $after:literal [$($value:expr => $span:literal $marks:literal),+ $(,)?]) => {
        concat!("\n\nVersions:\n", $("\n- ", $before, stringify!($value), $after, "\\: ", $span),+)
    };
    (@values bool) => { $crate::choice::Values::Bool };
    (@values u8 $values:expr) => { $values };
    (@values $choice:tt) => { $crate::choice::Values::Choice(<$choice>::NAMES) };
    (@word $value:expr, bool) => { if $value { "true" } else { "false" } };
    (@word $value:expr, u8) => { stringify!($value) };
    (@word $value:expr, $choice:tt) => { $value.name() };
    (@word $value:expr, bool (get)) => { $value };
    (@word $value:expr, u8 (get)) => { $value };
    (@word $value:expr, $choice:tt (get)) => { $value.name() };
    (@read $value:expr, bool) => { $value.parse().ok()? };
    (@read $value:expr, u8) => { $value.parse().ok()? };
    (@read $value:expr, $choice:tt) => { <$choice>::by_name($value)? };
}
pub(crate) use rules;
