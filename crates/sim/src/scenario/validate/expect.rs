//! Checks of `[[variant]]` and `[[expect]]`: names that can be distinguished, from each other and from numbers.

use super::{Check, Problem};

impl Check<'_> {
    pub(super) fn variants(&mut self) {
        let variants = &self.scenario.variant;
        self.names("variant", variants.iter().map(|variant| variant.name.as_str()));
        for (index, variant) in variants.iter().enumerate() {
            let name = variant.name.as_str();
            if name.parse::<f64>().is_ok() || name.contains(char::is_whitespace) || name == "*" {
                let message = format!("`{name}` can't be distinguished from the rest of a relation");
                let problem = Problem::new(format!("variant[{index}].name"), message);
                self.report(problem.help("use a name without spaces that is not a number, such as \"old\""));
            }
        }
    }

    pub(super) fn expectations(&mut self) {
        for (index, expect) in self.scenario.expect.iter().enumerate() {
            for variant in expect.holds.variants() {
                self.reference(&format!("expect[{index}].holds"), &self.known.variants, variant);
            }
        }
    }
}
