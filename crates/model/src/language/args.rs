//! Reading one node: its words, its properties and its children, with every mistake reported at its place.

use super::Reader;
use crate::problem::{Problem, Span, suggest};
use crate::value::{Duration, Literal, Rate, SortKey};
use kdl::{KdlEntry, KdlNode, KdlValue};

/// The arguments of one node, taken one by one; [`Args::finish`] reports what nobody asked for.
pub(crate) struct Args<'r, 'n> {
    pub(crate) reader: &'r mut Reader,
    pub(crate) node: &'n KdlNode,
    syntax: &'static str,
    used: Vec<bool>,
    asked: Vec<&'static str>,
}

impl<'r, 'n> Args<'r, 'n> {
    /// The arguments of `node`, whose syntax is shown in the help of every mistake.
    pub(crate) fn new(reader: &'r mut Reader, node: &'n KdlNode, syntax: &'static str) -> Args<'r, 'n> {
        let used = vec![false; node.entries().len()];
        Args { reader, node, syntax, used, asked: Vec::new() }
    }

    /// The place of the whole node's head.
    pub(crate) fn span(&self) -> Span {
        self.reader.head_span(self.node)
    }

    /// The place of a property or, if it is absent, of the node.
    pub(crate) fn span_of(&self, key: &str) -> Span {
        match self.entry(key) {
            Some(index) => self.reader.span(self.node.entries()[index].span()),
            None => self.span(),
        }
    }

    /// Reports a mistake in this node.
    pub(crate) fn wrong(&mut self, rule: &'static str, span: Span, message: String) {
        let problem = Problem::new(rule, span, format!("{}: {message}", self.reader.here(self.node)));
        self.reader.problems.push(problem.help(format!("write `{}`", self.syntax)));
    }

    fn entry(&self, key: &str) -> Option<usize> {
        self.node.entries().iter().position(|entry| entry.name().is_some_and(|name| name.value() == key))
    }

    fn take(&mut self, key: &'static str) -> Option<&'n KdlEntry> {
        self.asked.push(key);
        let index = self.entry(key)?;
        self.used[index] = true;
        Some(&self.node.entries()[index])
    }

    /// The next unused word, if it is a text.
    pub(crate) fn word(&mut self) -> Option<String> {
        let entries = self.node.entries();
        let index = (0..entries.len()).find(|&index| {
            !self.used[index] && entries[index].name().is_none() && entries[index].value().is_string()
        })?;
        self.used[index] = true;
        entries[index].value().as_string().map(str::to_owned)
    }

    /// The next unused word; its absence is a mistake.
    pub(crate) fn name(&mut self, what: &str) -> String {
        if let Some(name) = self.word() {
            if name.is_empty() || name.starts_with('$') || name.contains('\0') {
                let span = self.span();
                self.wrong("bad-name", span, format!("`{name}` cannot be the name of {what}"));
            }
            return name;
        }
        let span = self.span();
        self.wrong("missing", span, format!("{what} is missing"));
        String::new()
    }

    /// All remaining words.
    pub(crate) fn words(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.word()).collect()
    }

    /// All remaining values without a name, as constants.
    pub(crate) fn literals(&mut self) -> Vec<Literal> {
        let mut values = Vec::new();
        for (index, entry) in self.node.entries().iter().enumerate() {
            if !self.used[index] && entry.name().is_none() {
                self.used[index] = true;
                values.push(literal(entry.value()));
            }
        }
        values
    }

    /// A property with any constant.
    pub(crate) fn literal(&mut self, key: &'static str) -> Option<Literal> {
        self.take(key).map(|entry| literal(entry.value()))
    }

    /// The next unused number without a name.
    pub(crate) fn number(&mut self) -> Option<u64> {
        let entries = self.node.entries();
        let index = (0..entries.len()).find(|&index| {
            !self.used[index] && entries[index].name().is_none() && entries[index].value().is_integer()
        })?;
        self.used[index] = true;
        self.positive(&entries[index], "a whole number of at least 0")
    }

    /// Whether the word `key` is among the arguments, or the property `key=#true`.
    pub(crate) fn flag(&mut self, key: &'static str) -> bool {
        let entries = self.node.entries();
        let word = (0..entries.len()).find(|&index| {
            !self.used[index] && entries[index].name().is_none() && entries[index].value().as_string() == Some(key)
        });
        if let Some(index) = word {
            self.used[index] = true;
            self.asked.push(key);
            return true;
        }
        let Some(entry) = self.take(key) else { return false };
        entry.value().as_bool().unwrap_or_else(|| {
            let span = self.reader.span(entry.span());
            self.wrong("bad-value", span, format!("`{key}` takes #true or #false"));
            false
        })
    }

    /// A property with a text.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<String> {
        let entry = self.take(key)?;
        match entry.value().as_string() {
            Some(text) if !text.is_empty() => Some(text.to_owned()),
            _ => {
                let span = self.reader.span(entry.span());
                self.wrong("bad-value", span, format!("`{key}` takes a text that is not empty"));
                None
            }
        }
    }

    /// All texts given to a property that may stand more than once.
    pub(crate) fn texts(&mut self, key: &'static str) -> Vec<String> {
        self.asked.push(key);
        let mut texts = Vec::new();
        for (index, entry) in self.node.entries().iter().enumerate() {
            if entry.name().is_some_and(|name| name.value() == key) {
                self.used[index] = true;
                texts.extend(entry.value().as_string().map(str::to_owned));
            }
        }
        texts
    }

    /// A property with a text that must be there.
    pub(crate) fn required(&mut self, key: &'static str) -> String {
        if self.entry(key).is_none() {
            self.asked.push(key);
            let span = self.span();
            self.wrong("missing", span, format!("`{key}=` is missing"));
            return String::new();
        }
        self.text(key).unwrap_or_default()
    }

    /// A property with a whole number of at least 0.
    pub(crate) fn integer(&mut self, key: &'static str) -> Option<u64> {
        let entry = self.take(key)?;
        self.positive(entry, &format!("`{key}` takes a whole number of at least 0"))
    }

    /// A property with a whole number of at least 1.
    pub(crate) fn positive_integer(&mut self, key: &'static str) -> Option<u64> {
        let span = self.span_of(key);
        let value = self.integer(key)?;
        if value == 0 {
            self.wrong("bad-value", span, format!("`{key}` must be at least 1"));
            return None;
        }
        Some(value)
    }

    fn positive(&mut self, entry: &KdlEntry, message: &str) -> Option<u64> {
        let value = entry.value().as_integer().and_then(|value| u64::try_from(value).ok());
        if value.is_none() {
            let span = self.reader.span(entry.span());
            self.wrong("bad-value", span, message.to_owned());
        }
        value
    }

    /// A property with a number, or a percentage as a text, as a share between 0 and 1.
    pub(crate) fn share(&mut self, key: &'static str) -> Option<f64> {
        let entry = self.take(key)?;
        let share = match entry.value() {
            KdlValue::Float(value) => Some(*value),
            KdlValue::Integer(value) => Some(*value as f64),
            KdlValue::String(text) => {
                text.strip_suffix('%').and_then(|text| text.trim().parse::<f64>().ok()).map(|percent| percent / 100.0)
            }
            _ => None,
        };
        let share = share.filter(|share| (0.0..=1.0).contains(share));
        if share.is_none() {
            let span = self.reader.span(entry.span());
            self.wrong("bad-value", span, format!("`{key}` takes a share such as 0.2 or \"20%\""));
        }
        share
    }

    fn parsed<T>(&mut self, key: &'static str, parse: fn(&str) -> Option<T>, example: &str) -> Option<T> {
        let entry = self.take(key)?;
        let value = entry.value().as_string().and_then(parse);
        if value.is_none() {
            let span = self.reader.span(entry.span());
            self.wrong("bad-value", span, format!("`{key}` takes {example}"));
        }
        value
    }

    /// A property with a rate.
    pub(crate) fn rate(&mut self, key: &'static str) -> Option<Rate> {
        self.parsed(key, Rate::parse, "a rate such as \"2000/s\" or \"20_000/day\"")
    }

    /// A property with a duration.
    pub(crate) fn duration(&mut self, key: &'static str) -> Option<Duration> {
        self.parsed(key, Duration::parse, "a duration such as \"5s\", \"15m\" or \"30d\"")
    }

    /// A property with a sort key.
    pub(crate) fn sort_key(&mut self, key: &'static str) -> Option<SortKey> {
        self.parsed(key, SortKey::parse, "a field's path, with - before it for descending")
    }

    /// A property with one of a few words.
    pub(crate) fn choice<T: Copy>(&mut self, key: &'static str, options: &[(&'static str, T)]) -> Option<T> {
        let entry = self.take(key)?;
        let text = entry.value().as_string().unwrap_or("");
        let found = options.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        if found.is_none() {
            let span = self.reader.span(entry.span());
            let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
            let problem = Problem::new(
                "bad-value",
                span,
                format!("{}: `{key}` is one of {}, not `{text}`", self.reader.here(self.node), names.join(", ")),
            );
            self.reader.problems.push(problem.help(suggest(text, "values", names.iter().copied())));
        }
        found
    }

    /// Reports the arguments that nobody asked for.
    pub(crate) fn finish(self) {
        for (index, entry) in self.node.entries().iter().enumerate() {
            if self.used[index] {
                continue;
            }
            let span = self.reader.span(entry.span());
            let here = self.reader.here(self.node);
            let problem = match entry.name() {
                Some(name) => {
                    Problem::new("unknown-property", span, format!("{here}: there is no property `{}`", name.value()))
                        .help(format!(
                            "{}; write `{}`",
                            suggest(name.value(), "properties", self.asked.iter().copied()),
                            self.syntax
                        ))
                }
                None => Problem::new("unknown-word", span, format!("{here}: `{}` is one word too many", entry.value()))
                    .help(format!("write `{}`", self.syntax)),
            };
            self.reader.problems.push(problem);
        }
    }
}

/// A KDL value as a constant.
pub(crate) fn literal(value: &KdlValue) -> Literal {
    match value {
        KdlValue::String(text) => Literal::Text(text.clone()),
        KdlValue::Integer(value) => i64::try_from(*value).map_or(Literal::Double(*value as f64), Literal::Int),
        KdlValue::Float(value) => Literal::Double(*value),
        KdlValue::Bool(value) => Literal::Bool(*value),
        KdlValue::Null => Literal::Null,
    }
}
