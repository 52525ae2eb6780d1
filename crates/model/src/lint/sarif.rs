//! The report as SARIF 2.1.0 (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>).

use super::{Finding, Report, Severity, TABLE};
use serde_json::{Value, json};

impl Report {
    /// The report as SARIF.
    pub fn to_sarif(&self) -> String {
        let rules: Vec<Value> = TABLE
            .iter()
            .map(|rule| {
                json!({
                    "id": rule.name,
                    "shortDescription": { "text": rule.finds },
                    "fullDescription": { "text": rule.why },
                    "helpUri": format!("https://github.com/sheafdb/sheaf/blob/main/docs/lint.md#{}", rule.name),
                })
            })
            .collect();
        let log = json!({
            "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "sheaf lint",
                    "version": env!("CARGO_PKG_VERSION"),
                    "informationUri": "https://github.com/sheafdb/sheaf",
                    "rules": rules,
                } },
                "results": self.findings.iter().map(result).collect::<Vec<_>>(),
            }],
        });
        let mut text = serde_json::to_string_pretty(&log).expect("texts and numbers are JSON");
        text.push('\n');
        text
    }
}

fn result(finding: &Finding) -> Value {
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Notice => "note",
    };
    let index = TABLE.iter().position(|rule| rule.name == finding.rule);
    json!({
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": level,
        "message": { "text": format!(
            "{}: measured {} (limit {}). {} {}",
            finding.place, finding.measured, finding.limit, finding.why, finding.action
        ) },
        "locations": [{ "logicalLocations": [{ "fullyQualifiedName": finding.place, "kind": "resource" }] }],
        "partialFingerprints": { "place/v1": format!("{} {}", finding.rule, finding.place) },
    })
}
