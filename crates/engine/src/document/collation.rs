//! Collation: comparing strings by the rules of a language, by ICU.
//!
//! A collation is given as a document: `{locale: "fr", strength: 2, …}`. `{locale: "simple"}` is no collation at all:
//! strings compare by their bytes. Stored collations are complete documents, so that later defaults change nothing.
//!
//! Differences: `normalization` is accepted and always on; `backwards: true` is honoured for locales without rules of
//! their own (and `fr_CA`, whose default it is), and refused for others.

use crate::error::{Code, Error, Result};
use bson::{RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;
use std::cmp::Ordering;
use std::sync::Arc;

/// The version that stored collations name; another one is refused.
const VERSION: &str = "57.1";

/// A prepared collation. Two are equal when their complete documents are.
#[derive(Debug)]
pub struct Collator {
    icu: CollatorBorrowed<'static>,
    spec: RawDocumentBuf,
}

impl PartialEq for Collator {
    fn eq(&self, other: &Collator) -> bool {
        self.spec == other.spec
    }
}

impl Collator {
    /// Prepares a collation from its document; `None` for `{locale: "simple"}`.
    ///
    /// # Errors
    /// `Location40414` without a locale, `Location40415` for unknown fields, `TypeMismatch` (14) and `BadValue` (2) for wrong
    /// options, `IncompatibleCollationVersion` (161) for a version that isn't ours.
    pub fn parse(document: &RawDocument) -> Result<Option<Arc<Collator>>> {
        let options = Options::parse(document)?;
        if options.locale == "simple" {
            return Ok(None);
        }
        Ok(Some(Arc::new(options.collator(document)?)))
    }

    /// Compares two strings by the collation's rules.
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        self.icu.compare(a, b)
    }

    /// Bytes that order as the strings do; equal strings have equal bytes.
    pub fn sort_key(&self, text: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(text.len() + 8);
        let Ok(()) = self.icu.write_sort_key_to(text, &mut bytes);
        bytes
    }

    /// The complete document, as `listIndexes` and `listCollections` show it.
    pub fn spec(&self) -> &RawDocument {
        &self.spec
    }
}

/// Whether two collations, either of which may be none, are the same.
pub fn same(a: Option<&Collator>, b: Option<&Collator>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

/// The document as given, checked but without the locale's defaults.
#[derive(Default)]
struct Options<'a> {
    locale: &'a str,
    strength: Option<i32>,
    case_level: Option<bool>,
    case_first: Option<&'a str>,
    numeric_ordering: Option<bool>,
    alternate: Option<&'a str>,
    max_variable: Option<&'a str>,
    normalization: Option<bool>,
    backwards: Option<bool>,
}

impl<'a> Options<'a> {
    fn parse(document: &'a RawDocument) -> Result<Options<'a>> {
        let mut options = Options::default();
        let mut has_locale = false;
        for field in document {
            let (name, value) = field?;
            let name = name.as_str();
            if value == RawBsonRef::Null && !matches!(name, "locale" | "backwards" | "version") {
                known(name)?;
                continue;
            }
            match name {
                "locale" => {
                    options.locale = text(name, value)?;
                    has_locale = true;
                }
                "strength" => options.strength = Some(strength(value)?),
                "caseLevel" => options.case_level = Some(boolean(name, value)?),
                "caseFirst" => options.case_first = Some(one_of(name, value, &["upper", "lower", "off"])?),
                "numericOrdering" => options.numeric_ordering = Some(boolean(name, value)?),
                "alternate" => options.alternate = Some(one_of(name, value, &["non-ignorable", "shifted"])?),
                "maxVariable" => options.max_variable = Some(one_of(name, value, &["punct", "space"])?),
                "normalization" => options.normalization = Some(boolean(name, value)?),
                "backwards" => options.backwards = Some(boolean(name, value)?),
                "version" => version(text(name, value)?)?,
                other => known(other)?,
            }
        }
        if !has_locale {
            return Err(Error::location(40414, "BSON field 'collation.locale' is missing but a required field"));
        }
        Ok(options)
    }

    fn collator(&self, document: &RawDocument) -> Result<Collator> {
        let invalid = |why: &str| Error::bad_value(format!("{why}: {document:?}"));
        let locale = parse_locale(self.locale).ok_or_else(|| invalid("Field 'locale' is invalid in collation"))?;
        let is_canadian = self.locale.starts_with("fr_CA");
        let backwards = self.backwards.unwrap_or(is_canadian);
        let locale = match (backwards, is_canadian) {
            (false, true) => "fr".parse().expect("French is a locale"),
            (true, false) if has_own_rules(self.locale) => {
                return Err(invalid("'backwards' is not supported for this locale by Sheaf, leave it out"));
            }
            (true, false) => "fr-CA".parse().expect("Canadian French is a locale"),
            _ => locale,
        };
        let strength = self.strength.unwrap_or(3);
        let case_level = self.case_level.unwrap_or(false);
        if self.case_first.is_some_and(|first| first != "off") && !case_level && strength < 3 {
            return Err(invalid("'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2"));
        }
        if backwards && strength == 1 && self.backwards == Some(true) {
            return Err(invalid("'backwards' is invalid with 'strength' of 1"));
        }
        let mut preferences = CollatorPreferences::from(&locale);
        preferences.case_first = self.case_first.map(|first| match first {
            "upper" => CollationCaseFirst::Upper,
            "lower" => CollationCaseFirst::Lower,
            _ => CollationCaseFirst::False,
        });
        preferences.numeric_ordering = self.numeric_ordering.map(|on| match on {
            true => CollationNumericOrdering::True,
            false => CollationNumericOrdering::False,
        });
        let icu = CollatorBorrowed::try_new(preferences, self.icu_options(strength, case_level))
            .map_err(|_| invalid("Field 'locale' is invalid in collation"))?;
        let spec = self.spec(&icu, strength, case_level, backwards);
        Ok(Collator { icu, spec })
    }

    fn icu_options(&self, strength: i32, case_level: bool) -> CollatorOptions {
        let mut options = CollatorOptions::default();
        options.strength = Some(match strength {
            1 => Strength::Primary,
            2 => Strength::Secondary,
            4 => Strength::Quaternary,
            5 => Strength::Identical,
            _ => Strength::Tertiary,
        });
        options.case_level = Some(if case_level { CaseLevel::On } else { CaseLevel::Off });
        options.alternate_handling = self.alternate.map(|alternate| match alternate {
            "shifted" => AlternateHandling::Shifted,
            _ => AlternateHandling::NonIgnorable,
        });
        options.max_variable = Some(match self.max_variable {
            Some("space") => MaxVariable::Space,
            _ => MaxVariable::Punctuation,
        });
        options
    }

    fn spec(&self, icu: &CollatorBorrowed<'_>, strength: i32, case_level: bool, backwards: bool) -> RawDocumentBuf {
        let resolved = icu.resolved_options();
        let case_first = match resolved.case_first {
            CollationCaseFirst::Upper => "upper",
            CollationCaseFirst::Lower => "lower",
            _ => "off",
        };
        let shifted = resolved.alternate_handling == AlternateHandling::Shifted;
        rawdoc! {
            "locale": self.locale,
            "caseLevel": case_level,
            "caseFirst": case_first,
            "strength": strength,
            "numericOrdering": self.numeric_ordering.unwrap_or(false),
            "alternate": if shifted { "shifted" } else { "non-ignorable" },
            "maxVariable": self.max_variable.unwrap_or("punct"),
            "normalization": self.normalization.unwrap_or(false),
            "backwards": backwards,
            "version": VERSION,
        }
    }
}

const FIELDS: &[&str] = &[
    "locale",
    "strength",
    "caseLevel",
    "caseFirst",
    "numericOrdering",
    "alternate",
    "maxVariable",
    "normalization",
    "backwards",
    "version",
];

fn known(name: &str) -> Result<()> {
    if FIELDS.contains(&name) {
        return Ok(());
    }
    Err(Error::location(40415, format!("BSON field 'collation.{name}' is an unknown field.")))
}

fn wrong_type(name: &str, value: RawBsonRef<'_>, expected: &str) -> Error {
    let found = crate::document::type_name(value);
    Error::type_mismatch(format!("BSON field 'collation.{name}' is the wrong type '{found}', expected type {expected}"))
}

fn text<'a>(name: &str, value: RawBsonRef<'a>) -> Result<&'a str> {
    value.as_str().ok_or_else(|| wrong_type(name, value, "'string'"))
}

fn boolean(name: &str, value: RawBsonRef<'_>) -> Result<bool> {
    value.as_bool().ok_or_else(|| wrong_type(name, value, "'bool'"))
}

fn one_of<'a>(name: &str, value: RawBsonRef<'a>, allowed: &[&str]) -> Result<&'a str> {
    let text = text(name, value)?;
    if allowed.contains(&text) {
        return Ok(text);
    }
    Err(Error::bad_value(format!("Enumeration value '{text}' for field 'collation.{name}' is not a valid value.")))
}

fn strength(value: RawBsonRef<'_>) -> Result<i32> {
    let number = match value {
        RawBsonRef::Int32(number) => f64::from(number),
        RawBsonRef::Int64(number) => number as f64,
        RawBsonRef::Double(number) => number.trunc(),
        RawBsonRef::Decimal128(number) => number.to_string().parse::<f64>().unwrap_or(f64::NAN).round_ties_even(),
        _ => return Err(wrong_type("strength", value, "'[int, long, decimal, double]'")),
    };
    if (1.0..=5.0).contains(&number) {
        return Ok(number as i32);
    }
    Err(Error::bad_value("Enumeration value for field 'collation.strength' is not valid: use 1 to 5."))
}

fn version(version: &str) -> Result<()> {
    if version == VERSION {
        return Ok(());
    }
    Err(Error::new(
        Code::INCOMPATIBLE_COLLATION_VERSION,
        format!("Requested collation version '{version}', but the only available collator version was '{VERSION}'"),
    ))
}

/// Languages with a collation.
const LANGUAGES: &[&str] = &[
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "bo", "br", "bs", "ca", "ceb", "chr", "cs", "cy", "da", "de",
    "dsb", "dz", "ee", "el", "en", "eo", "es", "et", "fa", "fi", "fil", "fo", "fr", "ga", "gl", "gu", "ha", "haw",
    "he", "hi", "hr", "hsb", "hu", "hy", "id", "ig", "is", "it", "ja", "ka", "kk", "kl", "km", "kn", "ko", "kok", "ku",
    "ky", "lb", "lkt", "ln", "lo", "lt", "lv", "mk", "ml", "mn", "mr", "ms", "mt", "my", "nb", "ne", "nl", "nn", "no",
    "om", "or", "pa", "pl", "ps", "pt", "ro", "root", "ru", "se", "si", "sk", "sl", "smn", "sq", "sr", "sv", "sw",
    "ta", "te", "th", "tk", "to", "tr", "ug", "uk", "ur", "uz", "vi", "wae", "wo", "xh", "yi", "yo", "zh", "zu",
];

/// Languages whose strings compare as everywhere else.
const WITHOUT_OWN_RULES: &[&str] =
    &["de", "en", "fr", "ga", "id", "it", "lb", "ms", "nl", "pt", "root", "sw", "xh", "zu"];

fn has_own_rules(locale: &str) -> bool {
    let language = locale.split(['_', '@']).next().unwrap_or_default();
    !WITHOUT_OWN_RULES.contains(&language) || locale.contains('@') || locale.contains("POSIX")
}

/// `lang[_Script][_REGION][_VARIANT][@collation=type]` as a locale; `None` when it is none that has a collation.
fn parse_locale(text: &str) -> Option<Locale> {
    let (name, keyword) = text.split_once('@').map_or((text, None), |(name, keyword)| (name, Some(keyword)));
    let mut parts = name.split('_');
    let language = parts.next()?;
    if !LANGUAGES.contains(&language) {
        return None;
    }
    let mut tag = if language == "root" { "und".to_owned() } else { language.to_owned() };
    for part in parts {
        let letters = part.bytes().all(|byte| byte.is_ascii_alphabetic());
        let is_script = part.len() == 4 && letters && part.as_bytes()[0].is_ascii_uppercase();
        let is_region = (part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_uppercase()))
            || (part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit()));
        if !(is_script || is_region || part == "POSIX") {
            return None;
        }
        tag.push('-');
        tag.push_str(part);
    }
    if let Some(keyword) = keyword {
        tag.push_str("-u-co-");
        tag.push_str(match keyword.strip_prefix("collation=")? {
            "phonebook" => "phonebk",
            "traditional" => "trad",
            "dictionary" => "dict",
            "gb2312han" => "gb2312",
            other => other,
        });
    }
    tag.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collator(document: RawDocumentBuf) -> Arc<Collator> {
        Collator::parse(&document).unwrap().unwrap()
    }

    fn code(document: RawDocumentBuf) -> i32 {
        Collator::parse(&document).unwrap_err().code.0
    }

    #[test]
    fn strengths_tell_more_and_more_apart() {
        use Ordering::{Equal, Greater, Less};
        let cases = [(1, Equal, Equal), (2, Equal, Less), (3, Less, Less)];
        for (strength, case, accent) in cases {
            let collator = collator(rawdoc! { "locale": "en", "strength": strength });
            assert_eq!(collator.compare("a", "A"), case, "{strength}");
            assert_eq!(collator.compare("e", "é"), accent, "{strength}");
        }
        assert_eq!(collator(rawdoc! { "locale": "en", "numericOrdering": true }).compare("a10", "a2"), Greater);
        assert_eq!(collator(rawdoc! { "locale": "en", "strength": 5 }).compare("ab", "a\u{200b}b"), Less);
    }

    #[test]
    fn sort_keys_order_as_the_strings() {
        let words = [
            "", "a", "A", "á", "b", "Bob", "bob", "cote", "coté", "côte", "côté", "10", "9", "a\u{0}b", "中文", "ß",
            "ss", "-", " ",
        ];
        for strength in 1..=5 {
            for locale in ["en", "fr_CA", "de@collation=phonebook", "zh", "tr"] {
                let collator = collator(rawdoc! { "locale": locale, "strength": strength });
                for a in words {
                    for b in words {
                        assert_eq!(
                            collator.sort_key(a).cmp(&collator.sort_key(b)),
                            collator.compare(a, b),
                            "{locale} {strength} {a} {b}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn canadian_french_compares_accents_from_the_end() {
        let backwards = ["cote", "côte", "coté", "côté"];
        let forwards = ["cote", "coté", "côte", "côté"];
        for (document, expected) in [
            (rawdoc! { "locale": "fr_CA" }, backwards),
            (rawdoc! { "locale": "fr", "strength": 2, "backwards": true }, backwards),
            (rawdoc! { "locale": "fr_CA", "backwards": false }, forwards),
            (rawdoc! { "locale": "fr" }, forwards),
        ] {
            let collator = collator(document);
            let mut words = forwards;
            words.sort_by(|a, b| collator.compare(a, b));
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn the_document_is_completed_with_the_locales_defaults() {
        let spec = collator(rawdoc! { "locale": "en", "strength": 2 });
        assert_eq!(
            spec.spec(),
            &*rawdoc! { "locale": "en", "caseLevel": false, "caseFirst": "off", "strength": 2, "numericOrdering": false,
            "alternate": "non-ignorable", "maxVariable": "punct", "normalization": false, "backwards": false, "version": "57.1" }
        );
        assert_eq!(collator(rawdoc! { "locale": "th" }).spec().get_str("alternate").unwrap(), "shifted");
        assert_eq!(collator(rawdoc! { "locale": "da" }).spec().get_str("caseFirst").unwrap(), "upper");
        assert_eq!(*spec, *collator(spec.spec().to_owned()));
        assert!(
            Collator::parse(&rawdoc! { "locale": "simple", "strength": 1, "caseFirst": "upper" }).unwrap().is_none()
        );
    }

    #[test]
    fn wrong_documents_are_refused() {
        assert_eq!(code(rawdoc! { "strength": 2 }), 40414);
        assert_eq!(code(rawdoc! { "locale": 1 }), 14);
        assert_eq!(code(rawdoc! { "locale": "" }), 2);
        assert_eq!(code(rawdoc! { "locale": "zzz" }), 2);
        assert_eq!(code(rawdoc! { "locale": "en", "strength": 6 }), 2);
        assert_eq!(code(rawdoc! { "locale": "en", "strength": "2" }), 14);
        assert_eq!(code(rawdoc! { "locale": "en", "caseFirst": "upper", "strength": 2 }), 2);
        assert_eq!(code(rawdoc! { "locale": "en", "unknownField": "x" }), 40415);
        assert_eq!(code(rawdoc! { "locale": "en", "backwards": RawBsonRef::Null }), 14);
        assert_eq!(code(rawdoc! { "locale": "en", "version": "58" }), 161);
    }
}
