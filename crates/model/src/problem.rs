//! What is wrong with a model, and where: spans, problems and the report that shows them.
//!
//! A run collects every problem it can find before it gives up. A problem names the entity, points at the span that
//! caused it and says what to write instead. This module knows nothing about the language.

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, Severity, SourceCode};
use std::fmt;
use std::sync::Arc;

/// Where a declaration stands: the source's number and a range of bytes in it.
///
/// Two spans always compare equal, so that two models compare by what they say and not by where they say it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// Which of the sources.
    pub source: u32,
    /// Where it starts, in bytes.
    pub offset: u32,
    /// How long it is, in bytes.
    pub len: u32,
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

/// The texts a model was read from.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<Arc<NamedSource<String>>>);

impl Sources {
    /// One text with the name to show for it.
    pub fn single(name: impl Into<String>, text: impl Into<String>) -> Sources {
        let mut sources = Sources::default();
        sources.push(name, text);
        sources
    }

    /// Adds a text.
    pub fn push(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.0.push(Arc::new(NamedSource::new(name.into(), text.into())));
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no text at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The texts, each with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|source| (source.name(), source.inner().as_str()))
    }
}

/// One thing that is wrong (or, as a warning, doubtful) in a model.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The rule's stable name, e.g. `unknown-declaration`.
    pub rule: &'static str,
    /// Whether the model can be used in spite of it.
    pub warning: bool,
    /// What is wrong, naming the entity.
    pub message: String,
    /// The place, and a few words to write under it.
    pub span: Span,
    /// What stands under the place.
    pub label: String,
    /// What to write instead.
    pub help: Option<String>,
    source: Option<Arc<NamedSource<String>>>,
}

impl Problem {
    /// A problem that makes the model unusable.
    pub fn new(rule: &'static str, span: Span, message: impl Into<String>) -> Problem {
        let label = String::from("here");
        Problem { rule, warning: false, message: message.into(), span, label, help: None, source: None }
    }

    /// The same as a warning.
    pub fn warning(rule: &'static str, span: Span, message: impl Into<String>) -> Problem {
        Problem { warning: true, ..Problem::new(rule, span, message) }
    }

    /// What to write under the place.
    pub fn label(mut self, label: impl Into<String>) -> Problem {
        self.label = label.into();
        self
    }

    /// What to write instead.
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.rule))
    }

    fn severity(&self) -> Option<Severity> {
        Some(if self.warning { Severity::Warning } else { Severity::Error })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source.as_ref() as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.source.as_ref()?;
        let range = self.span.offset as usize..(self.span.offset + self.span.len) as usize;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(Some(self.label.clone()), range))))
    }
}

/// All the problems of one run, in the order of the sources.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    list: Vec<Problem>,
    sources: Sources,
}

impl Problems {
    /// No problem yet, in these sources.
    pub fn new(sources: Sources) -> Problems {
        Problems { list: Vec::new(), sources }
    }

    /// Adds one.
    pub fn push(&mut self, mut problem: Problem) {
        problem.source = self.sources.0.get(problem.span.source as usize).cloned();
        self.list.push(problem);
    }

    /// The problems, in the order of the sources.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter()
    }

    /// Whether one of them makes the model unusable.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|problem| !problem.warning)
    }

    /// What each error says, without its place.
    pub fn messages(&self) -> Vec<String> {
        self.list.iter().filter(|problem| !problem.warning).map(ToString::to_string).collect()
    }

    /// Whether there is none, not even a warning.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many errors and how many warnings there are.
    pub fn counts(&self) -> (usize, usize) {
        let warnings = self.list.iter().filter(|problem| problem.warning).count();
        (self.list.len() - warnings, warnings)
    }

    /// Puts the problems in the order in which a reader of the sources meets them.
    pub fn sort(&mut self) {
        self.list.sort_by_key(|problem| (problem.span.source, problem.span.offset));
    }

    /// The report for a person: every problem with its lines, and the totals.
    ///
    /// `width` is the terminal's in columns; `color` asks for ANSI colours.
    pub fn render(&self, width: usize, color: bool) -> String {
        let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(width).with_links(false);
        let mut text = String::new();
        for problem in &self.list {
            handler.render_report(&mut text, problem).expect("writing to a string does not fail");
            text.push('\n');
        }
        let (errors, warnings) = self.counts();
        text.push_str(&format!("{errors} error{}, {warnings} warning{}\n", plural(errors), plural(warnings)));
        text
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(100, false))
    }
}

/// The ending of a counted noun.
pub(crate) fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The name among `known` that a misspelt `name` most likely means.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len().max(name.len()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A help text: "did you mean …?" if a name is near, otherwise the names there are.
pub(crate) fn suggest<'a>(name: &str, what: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(near) = nearest(name, known.clone()) {
        return format!("did you mean `{near}`?");
    }
    let mut names: Vec<&str> = known.into_iter().collect();
    names.sort_unstable();
    names.dedup();
    match names.len() {
        0 => format!("there are no {what} here"),
        _ => format!("the {what} here: {}", names.join(", ")),
    }
}
