//! Reading the document of options that most stages take.

use crate::document::type_name;
use crate::error::{Code, Error, Result};
use bson::{RawArray, RawBsonRef, RawDocument};

/// The options of a stage, taken one by one; what is left at the end is refused.
pub(super) struct Options<'a> {
    stage: &'static str,
    fields: Vec<(&'a str, RawBsonRef<'a>)>,
}

impl<'a> Options<'a> {
    /// Reads the fields; a field given twice is refused.
    ///
    /// # Errors
    /// `Location40413`.
    pub(super) fn of(stage: &'static str, document: &'a RawDocument) -> Result<Options<'a>> {
        let mut fields: Vec<(&str, RawBsonRef<'_>)> = Vec::new();
        for field in document {
            let (name, value) = field?;
            let name = name.as_str();
            if fields.iter().any(|(known, _)| *known == name) {
                return Err(Error::location(40413, format!("BSON field '{stage}.{name}' is a duplicate field")));
            }
            fields.push((name, value));
        }
        Ok(Options { stage, fields })
    }

    /// An option; null counts as missing.
    pub(super) fn take(&mut self, name: &str) -> Option<RawBsonRef<'a>> {
        self.take_any(name).filter(|value| *value != RawBsonRef::Null)
    }

    /// An option, null included.
    pub(super) fn take_any(&mut self, name: &str) -> Option<RawBsonRef<'a>> {
        let at = self.fields.iter().position(|(known, _)| *known == name)?;
        Some(self.fields.remove(at).1)
    }

    /// Whether an option is there, not yet taken.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(known, _)| *known == name)
    }

    /// A string.
    pub(super) fn string(&mut self, name: &str) -> Result<Option<&'a str>> {
        self.take(name).map(|value| value.as_str().ok_or_else(|| self.wrong_type(name, value, "string"))).transpose()
    }

    /// A string that must be there.
    pub(super) fn required_string(&mut self, name: &str) -> Result<&'a str> {
        self.string(name)?.ok_or_else(|| self.missing(name))
    }

    /// A boolean.
    pub(super) fn boolean(&mut self, name: &str) -> Result<Option<bool>> {
        self.take(name).map(|value| value.as_bool().ok_or_else(|| self.wrong_type(name, value, "bool"))).transpose()
    }

    /// A document.
    pub(super) fn document(&mut self, name: &str) -> Result<Option<&'a RawDocument>> {
        self.take(name)
            .map(|value| value.as_document().ok_or_else(|| self.wrong_type(name, value, "object")))
            .transpose()
    }

    /// An array of documents; null is refused.
    pub(super) fn pipeline(&mut self, name: &str) -> Result<Option<&'a RawArray>> {
        let Some(value) = self.take_any(name) else { return Ok(None) };
        let array = value.as_array().ok_or_else(|| self.wrong_type(name, value, "array"))?;
        for element in array {
            let element = element?;
            if element.as_document().is_none() {
                return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
            }
        }
        Ok(Some(array))
    }

    /// Refuses what was not taken.
    ///
    /// # Errors
    /// `Location40415`.
    pub(super) fn finish(self) -> Result<()> {
        match self.fields.first() {
            Some((name, _)) => {
                Err(Error::location(40415, format!("BSON field '{}.{name}' is an unknown field.", self.stage)))
            }
            None => Ok(()),
        }
    }

    /// The refusal of a value of another type.
    pub(super) fn wrong_type(&self, name: &str, value: RawBsonRef<'_>, expected: &str) -> Error {
        Error::new(
            Code::TYPE_MISMATCH,
            format!(
                "BSON field '{}.{name}' is the wrong type '{}', expected type '{expected}'",
                self.stage,
                type_name(value)
            ),
        )
    }

    /// The refusal of an option that must be there.
    pub(super) fn missing(&self, name: &str) -> Error {
        Error::location(40414, format!("BSON field '{}.{name}' is missing but a required field", self.stage))
    }
}
