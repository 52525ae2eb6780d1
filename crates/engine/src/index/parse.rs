//! Parsing and checking an index specification.

use super::partial::Partial;
use super::wildcard::WildcardScope;
use super::{FieldKind, ID_INDEX_NAME, IndexSpec, KeyField, MAX_KEY_FIELDS};
use crate::document::collation::Collator;
use crate::document::{Number, append, type_name};
use crate::error::{Code, Error, Result};
use bson::{RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use std::sync::Arc;

/// The options of an index on `_id`.
const ID_OPTIONS: &[&str] = &["key", "name", "ns", "v", "collation", "clustered", "unique"];

/// Options of index types that Sheaf does not have: the index type, and the option's.
const OPTIONS_OF_OTHERS: &[(&str, &str, &str)] = &[
    ("weights", "text", "object"),
    ("default_language", "text", "string"),
    ("language_override", "text", "string"),
    ("textIndexVersion", "text", "number"),
    ("2dsphereIndexVersion", "2dsphere", "number"),
    ("bits", "2d", "number"),
    ("min", "2d", "number"),
    ("max", "2d", "number"),
    ("bucketSize", "geoHaystack", "number"),
    ("columnstoreProjection", "columnstore", "object"),
];

/// Index types that Sheaf does not have.
const OTHER_TYPES: &[&str] =
    &["text", "2d", "2dsphere", "geoHaystack", "columnstore", "2dsphere_bucket", "queryable_encrypted_range"];

/// The options as they are found, before they are held against each other.
#[derive(Default)]
struct Options<'a> {
    key: Option<&'a RawDocument>,
    name: Option<&'a str>,
    version: Option<i32>,
    unique: bool,
    prepare_unique: bool,
    sparse: bool,
    hidden: bool,
    background: Option<bool>,
    expire_after_seconds: Option<i64>,
    partial: Option<&'a RawDocument>,
    collation: Option<&'a RawDocument>,
    projection: Option<&'a RawDocument>,
    storage_engine: Option<&'a RawDocument>,
    foreign: Option<(&'static str, &'static str)>,
    names: Vec<&'a str>,
}

impl IndexSpec {
    /// Parses and checks one specification of `createIndexes`. Without a collation of its own the index takes `default`, the
    /// collection's.
    ///
    /// # Errors
    /// `CannotCreateIndex` (67) for most of what is wrong, `FailedToParse` (9) without key or name, `TypeMismatch` (14),
    /// `BadValue` (2), `InvalidIndexSpecificationOption` (197) for unknown options and for options that `_id` can't have,
    /// and the numbered codes of hashed and wildcard indexes.
    pub fn parse(document: &RawDocument, default: Option<&Arc<Collator>>) -> Result<IndexSpec> {
        let options = Options::parse(document)?;
        let key = options.key.ok_or_else(|| missing("key"))?;
        let name = options.name.ok_or_else(|| missing("name"))?;
        let fields = parse_key(key)?;
        check_name(name, &fields)?;
        options.check_foreign(&fields)?;
        let collator = match options.collation {
            Some(collation) if collation.is_empty() => {
                return Err(Error::bad_value("The field 'collation' cannot be an empty object."));
            }
            Some(collation) => Collator::parse(collation)?,
            None => default.cloned(),
        };
        let wildcard = options.wildcard(&fields)?;
        let mut spec = IndexSpec {
            document: RawDocumentBuf::new(),
            pattern: key.to_owned(),
            name: name.to_owned(),
            fields,
            unique: options.unique,
            prepare_unique: options.prepare_unique && !options.unique,
            sparse: options.sparse,
            hidden: options.hidden,
            expire_after_seconds: options.expire_after_seconds,
            partial: options.partial.map(|filter| Partial::parse(filter, collator.clone())).transpose()?,
            collator,
            wildcard,
        };
        spec.check(&options)?;
        if spec.is_id() {
            ID_INDEX_NAME.clone_into(&mut spec.name);
        }
        spec.document = spec.to_document(&options, default)?;
        Ok(spec)
    }

    /// The index on `_id`, which every collection but a clustered one has.
    pub fn id(collator: Option<&Arc<Collator>>) -> IndexSpec {
        let document = rawdoc! { "v": 2, "key": { "_id": 1 }, "name": ID_INDEX_NAME };
        IndexSpec::parse(&document, collator).expect("the specification is valid")
    }

    fn check(&self, options: &Options<'_>) -> Result<()> {
        if self.fields[0].path == "_id" && self.fields.len() == 1 {
            self.check_id(options)?;
        }
        if options.names.contains(&"clustered") && !self.is_id() {
            return Err(cannot("only the index on _id can be clustered, and only when its collection is created"));
        }
        if self.sparse && self.partial.is_some() {
            return Err(cannot("cannot mix \"partialFilterExpression\" and \"sparse\" options"));
        }
        if self.expire_after_seconds.is_some() && self.wildcard.is_none() && self.fields.len() > 1 {
            return Err(cannot("TTL indexes are single-field indexes, compound indexes do not support TTL"));
        }
        if self.is_hashed() && self.unique {
            return Err(Error::location(
                16764,
                "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.",
            ));
        }
        if self.wildcard.is_some() {
            let refused = [
                (self.unique, "unique"),
                (self.sparse, "sparse"),
                (self.expire_after_seconds.is_some(), "expireAfterSeconds"),
                (options.version == Some(1), "v: 1"),
                (self.is_hashed(), "hashed"),
            ];
            if let Some((_, what)) = refused.iter().find(|(refused, _)| *refused) {
                return Err(cannot(format!("Index type 'wildcard' does not support the '{what}' option")));
            }
        }
        Ok(())
    }

    fn check_id(&self, options: &Options<'_>) -> Result<()> {
        match self.fields[0].kind {
            FieldKind::Ascending => {}
            FieldKind::Hashed => return Ok(()),
            _ => return Err(Error::bad_value("The field 'key' for an _id index must be {_id: 1}")),
        }
        let refused = options
            .names
            .iter()
            .find(|name| !ID_OPTIONS.contains(name) || **name == "unique" && options.unique_given());
        match refused {
            None => Ok(()),
            Some(name) => Err(Error::new(
                Code::INVALID_INDEX_SPECIFICATION_OPTION,
                format!(
                    "The field '{name}' is not valid for an _id index specification. Specification: {:?}",
                    self.pattern
                ),
            )),
        }
    }

    /// The complete document: version, key and name first, then what was asked for, in its final form.
    fn to_document(&self, options: &Options<'_>, default: Option<&Arc<Collator>>) -> Result<RawDocumentBuf> {
        let mut document = rawdoc! { "v": options.version.unwrap_or(2) };
        append(&mut document, "key", RawBsonRef::Document(&self.pattern))?;
        append(&mut document, "name", RawBsonRef::String(&self.name))?;
        for name in &options.names {
            match *name {
                "unique" if self.unique && !self.is_id() => append(&mut document, name, RawBsonRef::Boolean(true))?,
                "prepareUnique" if self.prepare_unique => append(&mut document, name, RawBsonRef::Boolean(true))?,
                "sparse" if self.sparse => append(&mut document, name, RawBsonRef::Boolean(true))?,
                "hidden" if self.hidden => append(&mut document, name, RawBsonRef::Boolean(true))?,
                "background" => {
                    if let Some(background) = options.background {
                        append(&mut document, name, RawBsonRef::Boolean(background))?;
                    }
                }
                "expireAfterSeconds" => {
                    if let Some(seconds) = self.expire_after_seconds {
                        append(&mut document, name, RawBsonRef::Int32(seconds as i32))?;
                    }
                }
                "partialFilterExpression" => append_document(&mut document, name, options.partial)?,
                "wildcardProjection" => append_document(&mut document, name, options.projection)?,
                "storageEngine" => append_document(&mut document, name, options.storage_engine)?,
                _ => {}
            }
        }
        match (&self.collator, default) {
            (Some(collator), _) => append(&mut document, "collation", RawBsonRef::Document(collator.spec()))?,
            // Otherwise it would take the collection's when it is read back.
            (None, Some(_)) => {
                append(&mut document, "collation", RawBsonRef::Document(&rawdoc! { "locale": "simple" }))?
            }
            (None, None) => {}
        }
        Ok(document)
    }
}

fn append_document(document: &mut RawDocumentBuf, name: &str, value: Option<&RawDocument>) -> Result<()> {
    value.map_or(Ok(()), |value| append(document, name, RawBsonRef::Document(value)))
}

impl<'a> Options<'a> {
    fn parse(document: &'a RawDocument) -> Result<Options<'a>> {
        let mut options = Options::default();
        for field in document {
            let (name, value) = field?;
            options.take(name.as_str(), value)?;
        }
        Ok(options)
    }

    fn take(&mut self, name: &'a str, value: RawBsonRef<'a>) -> Result<()> {
        match name {
            "key" => self.key = Some(object(name, value)?),
            "name" => self.name = Some(text(name, value)?),
            "ns" => drop(text(name, value)?),
            "v" => self.version = Some(version(value)?),
            "unique" => self.unique = truth(name, value)?,
            "sparse" => self.sparse = truth(name, value)?,
            "background" => self.background = Some(truth(name, value)?),
            "hidden" => self.hidden = value.as_bool().ok_or_else(|| wrong_type(name, value, "bool"))?,
            "clustered" => drop(truth(name, value)?),
            "prepareUnique" => self.prepare_unique = truth(name, value)?,
            "expireAfterSeconds" => self.expire_after_seconds = Some(seconds(value)?),
            "partialFilterExpression" => self.partial = Some(object(name, value)?),
            "collation" => self.collation = Some(object(name, value)?),
            "wildcardProjection" => self.projection = Some(object(name, value)?),
            "storageEngine" => self.storage_engine = Some(object(name, value)?),
            _ => match OPTIONS_OF_OTHERS.iter().find(|(option, ..)| *option == name) {
                Some((option, kind, expected)) => {
                    let fits = match *expected {
                        "string" => value.as_str().is_some(),
                        "number" => Number::of(value).is_some(),
                        // MongoDB reads a text index's weights from a string or an array too, and finds them unfit.
                        _ => matches!(value, RawBsonRef::Document(_) | RawBsonRef::String(_) | RawBsonRef::Array(_)),
                    };
                    if !fits {
                        return Err(wrong_type(name, value, expected));
                    }
                    self.foreign = Some((*option, *kind));
                }
                None => {
                    return Err(Error::new(
                        Code::INVALID_INDEX_SPECIFICATION_OPTION,
                        format!("The field '{name}' is not valid for an index specification."),
                    ));
                }
            },
        }
        self.names.push(name);
        Ok(())
    }

    /// `unique` on `_id` is only accepted where the clustered key is described.
    fn unique_given(&self) -> bool {
        self.names.contains(&"unique") && !self.names.contains(&"clustered")
    }

    fn check_foreign(&self, fields: &[KeyField]) -> Result<()> {
        match self.foreign {
            None => Ok(()),
            Some((option, kind)) => Err(cannot(format!(
                "the option '{option}' belongs to {kind} indexes; the index on '{}' is none",
                fields[0].path
            ))),
        }
    }

    fn wildcard(&self, fields: &[KeyField]) -> Result<Option<WildcardScope>> {
        let mut wildcards = fields.iter().filter(|field| field.kind.is_wildcard());
        let Some(field) = wildcards.next() else {
            return match self.projection {
                None => Ok(None),
                Some(_) => {
                    Err(Error::bad_value("The field 'wildcardProjection' is only allowed in an 'wildcard' index"))
                }
            };
        };
        let root = field.path.strip_suffix(".$**");
        if self.projection.is_some() && root.is_some() {
            return Err(Error::failed_to_parse(
                "The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": ±1}",
            ));
        }
        let others: Vec<&str> =
            fields.iter().filter(|field| !field.kind.is_wildcard()).map(|field| &*field.path).collect();
        if !others.is_empty() && root.is_none() && self.projection.is_none() {
            return Err(cannot(
                "A compound wildcard index on all fields needs a 'wildcardProjection' that excludes its other fields",
            ));
        }
        let scope = WildcardScope::parse(root, self.projection)?;
        if let Some(other) = others.iter().find(|other| scope.reaches(other)) {
            return Err(Error::location(
                7246209,
                format!("wildcardProjection must exclude the index's other fields, but it reaches '{other}'"),
            ));
        }
        Ok(Some(scope))
    }
}

fn check_name(name: &str, fields: &[KeyField]) -> Result<()> {
    if name.is_empty() {
        return Err(cannot("index names cannot be empty"));
    }
    if name.contains('\0') {
        return Err(cannot("index names cannot contain NUL bytes"));
    }
    if name == "*" {
        return Err(Error::bad_value("The index name '*' is not valid."));
    }
    let is_id = matches!(fields, [field] if field.path == "_id" && field.kind == FieldKind::Ascending);
    if name == ID_INDEX_NAME && !is_id {
        return Err(Error::bad_value(
            "The index name '_id_' is reserved for the _id index, which must have key pattern {_id: 1}",
        ));
    }
    Ok(())
}

fn parse_key(key: &RawDocument) -> Result<Vec<KeyField>> {
    let mut fields: Vec<KeyField> = Vec::new();
    for field in key {
        let (path, value) = field?;
        let path = path.as_str();
        let kind = parse_kind(path, value)?;
        check_path(path, kind)?;
        if fields.iter().any(|other| other.path == path) {
            return Err(Error::bad_value(format!(
                "The field '{path}' appears multiple times in the index key pattern"
            )));
        }
        fields.push(KeyField { path: path.to_owned(), kind });
    }
    if fields.is_empty() {
        return Err(cannot("Index keys cannot be empty."));
    }
    if fields.len() > MAX_KEY_FIELDS {
        return Err(Error::location(13103, format!("too many compound keys: at most {MAX_KEY_FIELDS} are allowed")));
    }
    if fields.iter().filter(|field| field.kind == FieldKind::Hashed).count() > 1 {
        return Err(Error::location(31303, "A maximum of one index field is allowed to be hashed"));
    }
    if fields.iter().filter(|field| field.kind.is_wildcard()).count() > 1 {
        return Err(Error::location(7246201, "wildcard indexes do not support more than one wildcard field"));
    }
    Ok(fields)
}

fn parse_kind(path: &str, value: RawBsonRef<'_>) -> Result<FieldKind> {
    let wildcard = path == "$**" || path.ends_with(".$**");
    if let Some(number) = Number::of(value) {
        let number = number.to_f64();
        if number == 0.0 || number.is_nan() {
            return Err(cannot("Values in the index key pattern cannot be 0."));
        }
        return Ok(match (wildcard, number > 0.0) {
            (false, true) => FieldKind::Ascending,
            (false, false) => FieldKind::Descending,
            (true, true) => FieldKind::WildcardAscending,
            (true, false) => FieldKind::WildcardDescending,
        });
    }
    let RawBsonRef::String(kind) = value else {
        return Err(cannot(format!(
            "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings are allowed.",
            type_name(value)
        )));
    };
    match kind {
        "hashed" if !wildcard => Ok(FieldKind::Hashed),
        "wildcard" if !wildcard => {
            Err(Error::location(7246202, "Index type 'wildcard' is chosen by the path '$**', not by a string"))
        }
        other if OTHER_TYPES.contains(&other) => {
            Err(cannot(format!("{other} indexes are not supported by Sheaf: see COMPAT.md")))
        }
        other => Err(cannot(format!("Unknown index plugin '{other}'"))),
    }
}

fn check_path(path: &str, kind: FieldKind) -> Result<()> {
    if path.is_empty() {
        return Err(cannot("Index keys cannot be an empty field."));
    }
    let named = if kind.is_wildcard() { path.strip_suffix("$**").unwrap_or(path).trim_end_matches('.') } else { path };
    if kind.is_wildcard() && named.is_empty() {
        return Ok(());
    }
    for part in named.split('.') {
        if part.is_empty() {
            return Err(cannot("Index keys cannot contain an empty field."));
        }
        if part.starts_with('$') && !matches!(part, "$id" | "$ref" | "$db") {
            return Err(cannot(format!(
                "Index key contains an illegal field name: field name starts with '$': {part}"
            )));
        }
    }
    Ok(())
}

fn missing(name: &str) -> Error {
    Error::failed_to_parse(format!("The '{name}' field is a required property of an index specification"))
}

pub(super) fn cannot(message: impl Into<String>) -> Error {
    Error::new(Code::CANNOT_CREATE_INDEX, message)
}

fn wrong_type(name: &str, value: RawBsonRef<'_>, expected: &str) -> Error {
    Error::type_mismatch(format!(
        "The field '{name}' has value of unexpected type {}; expected {expected}",
        type_name(value)
    ))
}

fn object<'a>(name: &str, value: RawBsonRef<'a>) -> Result<&'a RawDocument> {
    value.as_document().ok_or_else(|| wrong_type(name, value, "object"))
}

fn text<'a>(name: &str, value: RawBsonRef<'a>) -> Result<&'a str> {
    value.as_str().ok_or_else(|| wrong_type(name, value, "string"))
}

fn truth(name: &str, value: RawBsonRef<'_>) -> Result<bool> {
    match value {
        RawBsonRef::Boolean(value) => Ok(value),
        value => match Number::of(value) {
            Some(number) => Ok(!number.is_zero()),
            None => Err(wrong_type(name, value, "bool")),
        },
    }
}

fn version(value: RawBsonRef<'_>) -> Result<i32> {
    let number = Number::of(value).ok_or_else(|| wrong_type("v", value, "number"))?;
    let version =
        number.to_i64_exact().ok_or_else(|| Error::bad_value("Index version must be a whole number: use 2"))?;
    match version {
        1 | 2 => Ok(version as i32),
        other => {
            Err(cannot(format!("Invalid index specification: cannot create an index with version v: {other}; use 2")))
        }
    }
}

fn seconds(value: RawBsonRef<'_>) -> Result<i64> {
    let range = || cannot("TTL index 'expireAfterSeconds' option must be within an acceptable range: 0 to 2147483647");
    let number = Number::of(value).ok_or_else(|| {
        cannot(format!(
            "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{}'",
            type_name(value)
        ))
    })?;
    if number.is_nan() {
        return Err(range());
    }
    let seconds = number.to_i64_truncated();
    if number.to_f64() < 0.0 || !(0..=i64::from(i32::MAX)).contains(&seconds) {
        return Err(range());
    }
    Ok(seconds)
}
