//! Regular expressions with PCRE semantics: what `$regex`, regex literals and the `$regex…` expressions are made of.
//!
//! Patterns and subjects are UTF-8. Options are MongoDB's `i`, `m`, `s`, `x` and `u` (the last says what holds anyway).
//! `\w`, `\d` and the like mean ASCII unless a pattern begins with `(*UCP)`. A match does a bounded amount of work and
//! then fails, so that a catastrophic pattern can't hold a thread. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/query/regex/>.

use crate::error::{Error, Result};
use parking_lot::Mutex;
use pcre2::bytes::{Regex as Pcre, RegexBuilder};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

/// The longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 16_384;

/// How many backtracking steps one match may take.
pub const MATCH_LIMIT: u32 = 10_000_000;

/// How many compiled patterns [`Regex::cached`] keeps.
pub const CACHED_PATTERNS: usize = 256;

/// PCRE2's code for "the compiled code's stack is exhausted"; the interpreter has no such limit.
const JIT_STACK_LIMIT: i32 = -46;

/// Compiled patterns by pattern and options.
type Compiled = HashMap<(Box<str>, Box<str>), Arc<Regex>>;

/// A compiled regular expression.
#[derive(Debug)]
pub struct Regex {
    pattern: Box<str>,
    options: Options,
    compiled: Pcre,
    interpreted: OnceLock<Option<Pcre>>,
}

/// The byte ranges of a match: the whole at 0, then the groups, `None` where a group took no part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captures {
    /// See the type's documentation; never empty.
    pub groups: Vec<Option<Range<usize>>>,
}

impl Captures {
    /// The whole match.
    pub fn whole(&self) -> Range<usize> {
        self.groups[0].clone().expect("the whole match always takes part")
    }
}

/// The literal text that every matching string begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The text, never empty.
    pub text: String,
    /// Whether every string that begins with the text matches.
    pub exact: bool,
}

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// `Location51108` for an invalid option, `Location51091` for an invalid or too long pattern, `BadValue` (2) for a null
    /// byte in the pattern. Aggregation expressions have other codes: check before, or turn 51091 into 51111.
    pub fn new(pattern: &str, options: &str) -> Result<Regex> {
        let options = Options::parse(options)?;
        if pattern.contains('\0') {
            return Err(Error::bad_value("Regular expression cannot contain an embedded null byte"));
        }
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(invalid(format!("pattern is longer than {MAX_PATTERN_BYTES} bytes")));
        }
        let compiled = options.compile(pattern, "").map_err(|error| invalid(reason(&error)))?;
        Ok(Regex { pattern: pattern.into(), options, compiled, interpreted: OnceLock::new() })
    }

    /// The same as [`Regex::new`] through a bounded cache that all threads share: for patterns that come from documents.
    ///
    /// # Errors
    /// As [`Regex::new`].
    pub fn cached(pattern: &str, options: &str) -> Result<Arc<Regex>> {
        static CACHE: LazyLock<Mutex<Compiled>> = LazyLock::new(Mutex::default);
        let key = (Box::from(pattern), Box::from(options));
        if let Some(found) = CACHE.lock().get(&key) {
            return Ok(Arc::clone(found));
        }
        let regex = Arc::new(Regex::new(pattern, options)?);
        let mut cache = CACHE.lock();
        if cache.len() >= CACHED_PATTERNS {
            cache.clear();
        }
        cache.insert(key, Arc::clone(&regex));
        Ok(regex)
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The options, sorted and without repetition.
    pub fn options(&self) -> String {
        self.options.to_string()
    }

    /// How many groups the pattern has, the whole match not counted.
    pub fn group_count(&self) -> usize {
        self.compiled.captures_len() - 1
    }

    /// Whether the pattern matches somewhere in the text.
    ///
    /// # Errors
    /// `Location51156` when the match takes more than [`MATCH_LIMIT`] steps.
    pub fn is_match(&self, text: &str) -> Result<bool> {
        self.run(|pcre| pcre.is_match(text.as_bytes()))
    }

    /// The first match that begins at or after the byte `start`; what lies before it can be looked behind at.
    ///
    /// # Errors
    /// As [`Regex::is_match`].
    ///
    /// # Panics
    /// When `start` is beyond the text's end.
    pub fn captures_at(&self, text: &str, start: usize) -> Result<Option<Captures>> {
        let mut locations = self.compiled.capture_locations();
        let found = self.run(|pcre| {
            locations = pcre.capture_locations();
            Ok(pcre.captures_read_at(&mut locations, text.as_bytes(), start)?.is_some())
        })?;
        if !found {
            return Ok(None);
        }
        let group = |index| locations.get(index).map(|(start, end)| start.min(end)..end);
        Ok(Some(Captures { groups: (0..self.compiled.captures_len()).map(group).collect() }))
    }

    /// The literal text that every matching string begins with, for index bounds; `None` when there is no such text.
    pub fn literal_prefix(&self) -> Option<Prefix> {
        if self.options.caseless || self.pattern.contains('|') {
            return None;
        }
        let rest = match self.pattern.strip_prefix("\\A") {
            Some(rest) => rest,
            None if self.options.multi_line => return None,
            None => self.pattern.strip_prefix('^')?,
        };
        let (text, exact) = scan_prefix(rest, self.options.extended);
        (!text.is_empty()).then_some(Prefix { text, exact })
    }

    /// Runs a match on the compiled code, and once more on the interpreter when the compiled code lacks stack.
    fn run(&self, mut body: impl FnMut(&Pcre) -> Result<bool, pcre2::Error>) -> Result<bool> {
        let result = match body(&self.compiled) {
            Err(error) if error.code() == JIT_STACK_LIMIT => {
                let interpreted =
                    self.interpreted.get_or_init(|| self.options.compile(&self.pattern, "(*NO_JIT)").ok());
                interpreted.as_ref().map_or(Err(error), body)
            }
            result => result,
        };
        result.map_err(|error| {
            let message = format!("Error occurred while executing the regular expression. Reason: {}", reason(&error));
            Error::location(51156, message)
        })
    }
}

/// The options of a regular expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Options {
    caseless: bool,
    multi_line: bool,
    dot_all: bool,
    unicode: bool,
    extended: bool,
}

impl Options {
    fn parse(text: &str) -> Result<Options> {
        let mut options = Options::default();
        for option in text.chars() {
            let field = match option {
                'i' => &mut options.caseless,
                'm' => &mut options.multi_line,
                's' => &mut options.dot_all,
                'u' => &mut options.unicode,
                'x' => &mut options.extended,
                other => {
                    let message = format!(
                        "invalid flag in regex options: {} (valid ones are i, m, s, u and x)",
                        other.escape_default()
                    );
                    return Err(Error::location(51108, message));
                }
            };
            *field = true;
        }
        Ok(options)
    }

    fn compile(self, pattern: &str, start: &str) -> Result<Pcre, pcre2::Error> {
        RegexBuilder::new()
            .utf(true)
            .caseless(self.caseless)
            .multi_line(self.multi_line)
            .dotall(self.dot_all)
            .extended(self.extended)
            .jit_if_available(true)
            .build(&format!("(*LIMIT_MATCH={MATCH_LIMIT}){start}{pattern}"))
    }
}

impl std::fmt::Display for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let flags = [
            (self.caseless, "i"),
            (self.multi_line, "m"),
            (self.dot_all, "s"),
            (self.unicode, "u"),
            (self.extended, "x"),
        ];
        flags.iter().filter(|(set, _)| *set).try_for_each(|(_, name)| f.write_str(name))
    }
}

fn invalid(reason: impl std::fmt::Display) -> Error {
    Error::location(51091, format!("Regular expression is invalid: {reason}"))
}

/// PCRE2's message without the crate's own words before it.
fn reason(error: &pcre2::Error) -> String {
    let text = error.to_string();
    text.split_once(": ").and_then(|(_, rest)| rest.split_once(": ")).map_or(text.clone(), |(_, rest)| rest.to_owned())
}

/// Reads literal characters up to the first one with a meaning; says whether the pattern ends there.
fn scan_prefix(pattern: &str, extended: bool) -> (String, bool) {
    let mut text = String::new();
    let mut rest = pattern.chars().peekable();
    let mut quoted = false;
    while let Some(next) = rest.next() {
        match next {
            '\\' if quoted => {
                if rest.next_if_eq(&'E').is_some() {
                    quoted = false;
                } else {
                    text.push('\\');
                }
            }
            literal if quoted => text.push(literal),
            '\\' => match rest.next() {
                Some('Q') => quoted = true,
                Some('E') => {}
                Some(escaped) if !escaped.is_ascii_alphanumeric() => text.push(escaped),
                _ => return (text, false),
            },
            '*' | '?' | '{' => {
                text.pop();
                return (text, false);
            }
            '^' | '$' | '.' | '[' | '(' | ')' | '+' | '|' => return (text, false),
            '#' if extended => drop(rest.by_ref().find(|c| *c == '\n')),
            space if extended && space.is_ascii_whitespace() => {}
            literal => text.push(literal),
        }
    }
    (text, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, options: &str, text: &str) -> bool {
        Regex::new(pattern, options).unwrap().is_match(text).unwrap()
    }

    #[test]
    fn options_change_the_meaning() {
        assert!(matches("^abc", "", "abcd") && !matches("^ABC", "", "abcd") && matches("^ABC", "i", "abcd"));
        assert!(matches("^S", "m", "First\nSecond") && !matches("^S", "", "First\nSecond"));
        assert!(matches("a.b", "s", "a\nb") && !matches("a.b", "", "a\nb"));
        assert!(matches("a b #c", "x", "ab") && matches("é", "iu", "É"));
        assert!(!matches("^\\w$", "", "é") && matches("(*UCP)^\\w$", "", "é") && matches("^.$", "", "é"));
    }

    #[test]
    fn bad_options_and_patterns_are_refused() {
        for (pattern, options, code) in
            [("a", "g", 51108), ("a", "i\0", 51108), ("[a", "", 51091), ("(", "i", 51091), ("a\0", "", 2)]
        {
            assert_eq!(Regex::new(pattern, options).unwrap_err().code.0, code, "{pattern:?} {options:?}");
        }
        assert_eq!(Regex::new(&"a".repeat(16_385), "").unwrap_err().code.0, 51091);
        assert!(Regex::new(&"a".repeat(16_384), "").is_ok());
        let message = Regex::new("[a", "").unwrap_err().message;
        assert_eq!(message, "Regular expression is invalid: missing terminating ] for character class");
    }

    #[test]
    fn a_catastrophic_pattern_ends_with_an_error() {
        let text = format!("{}!", "a".repeat(200));
        let regex = Regex::new("^(a|aa|b*)+$", "").unwrap();
        assert_eq!(regex.is_match(&text).unwrap_err().code.0, 51156);
    }

    #[test]
    fn a_long_subject_does_not_exhaust_the_compiled_code_s_stack() {
        assert!(matches("^(?:a|b(c))*$", "", &"ab".repeat(200_000).replace('b', "bc")));
    }

    #[test]
    fn captures_are_byte_ranges() {
        let regex = Regex::new("é(b)?(c)", "").unwrap();
        let captures = regex.captures_at("xéc éc", 1).unwrap().unwrap();
        assert_eq!(captures.whole(), 1..4);
        assert_eq!(captures.groups, [Some(1..4), None, Some(3..4)]);
        assert_eq!(regex.captures_at("xéc éc", 4).unwrap().unwrap().whole(), 5..8);
        assert_eq!(regex.captures_at("xéc", 4).unwrap(), None);
        assert_eq!(regex.group_count(), 2);
    }

    #[test]
    fn prefixes_of_anchored_literals() {
        let prefix = |pattern, options| {
            Regex::new(pattern, options).unwrap().literal_prefix().map(|prefix| (prefix.text, prefix.exact))
        };
        let some = |text: &str, exact| Some((text.to_owned(), exact));
        assert_eq!(prefix("^abc", ""), some("abc", true));
        assert_eq!(prefix("\\Aabc", "m"), some("abc", true));
        assert_eq!(prefix("^abc$", ""), some("abc", false));
        assert_eq!(prefix("^ab*", ""), some("a", false));
        assert_eq!(prefix("^ab+", ""), some("ab", false));
        assert_eq!(prefix("^ab{0,2}", ""), some("a", false));
        assert_eq!(prefix("^a\\.b", ""), some("a.b", true));
        assert_eq!(prefix("^a\\d", ""), some("a", false));
        assert_eq!(prefix("^\\Qa.b\\E", ""), some("a.b", true));
        assert_eq!(prefix("^a b #c", "x"), some("ab", true));
        for (pattern, options) in
            [("abc", ""), ("^abc", "i"), ("^abc", "m"), ("^a|b", ""), ("^", ""), ("^(a)", ""), ("(?i)^a", "")]
        {
            assert_eq!(prefix(pattern, options), None, "{pattern}");
        }
    }

    #[test]
    fn the_cache_gives_the_same_regex_and_stays_bounded() {
        let first = Regex::cached("^cached", "i").unwrap();
        assert!(Arc::ptr_eq(&first, &Regex::cached("^cached", "i").unwrap()));
        for number in 0..CACHED_PATTERNS {
            Regex::cached(&format!("^{number}$"), "").unwrap();
        }
        assert!(first.is_match("CACHED").unwrap());
        assert!(Regex::cached("(", "").is_err());
    }
}
