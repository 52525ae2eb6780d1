//! The report for a person.

use super::{Report, Severity};
use std::fmt::Write;

impl Report {
    /// The report as text.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            let _ = writeln!(text, "{}: {} [{}]", finding.severity.name(), finding.place, finding.rule);
            let _ = writeln!(text, "    measured: {} (limit: {})", finding.measured, finding.limit);
            let _ = writeln!(text, "    why:      {}", finding.why);
            for (number, line) in finding.action.lines().enumerate() {
                let _ = writeln!(text, "    {}  {line}", if number == 0 { "to do:  " } else { "        " });
            }
            text.push('\n');
        }
        let count = |severity| self.findings.iter().filter(|finding| finding.severity == severity).count();
        let looked = &self.looked_at;
        let _ = writeln!(
            text,
            "{} errors, {} warnings, {} notices in {} collections of {} databases ({} of {} documents read, {} shapes of \
             operations profiled)",
            count(Severity::Error),
            count(Severity::Warning),
            count(Severity::Notice),
            looked.collections,
            looked.databases,
            looked.sampled,
            looked.documents,
            looked.operations
        );
        text
    }
}
