//! `getClusterParameter` and `setClusterParameter`: settings that hold for all members of a deployment.
//!
//! They are kept in `config.clusterParameters`, where MongoDB keeps them too. `defaultMaxTimeMS` bounds reads that give no
//! `maxTimeMS`. The others speak of what there is no use for here (migrations between shards, change collections of many
//! tenants) or of what goes with the log's own age (pre-images): they are kept and told.

use super::{Command, Context, Field, Later, Path, Run, kept};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::raw::RawBsonRef;
use bson::{RawDocumentBuf, rawdoc};
use engine::{Code, Engine, Error, Result};
use std::sync::atomic::Ordering;

/// `getClusterParameter`.
pub(crate) static GET: Command = Command {
    name: "getClusterParameter",
    help: "returns settings of the deployment",
    admin_only: true,
    ignores_unknown_fields: true,
    rights: Rights::Cluster(Action::GetClusterParameter),
    run: Run::Now(get),
    ..Command::DEFAULT
};

/// `setClusterParameter`.
pub(crate) static SET: Command = Command {
    name: "setClusterParameter",
    help: "changes a setting of the deployment",
    admin_only: true,
    ignores_unknown_fields: true,
    rights: Rights::Cluster(Action::SetClusterParameter),
    run: Run::Later(set),
    ..Command::DEFAULT
};

/// A setting: its name, its value where none was set, and the check of a new one, which gives it in its final form.
struct Parameter {
    name: &'static str,
    default: fn() -> RawDocumentBuf,
    check: fn(RawBsonRef<'_>) -> Result<RawDocumentBuf>,
}

/// Sorted by name.
const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "changeStreamOptions",
        default: || rawdoc! { "preAndPostImages": { "expireAfterSeconds": "off" } },
        check: check_stream_options,
    },
    Parameter {
        name: "changeStreams",
        default: || rawdoc! { "expireAfterSeconds": 3600_i64 },
        check: |value| check_number(value, "changeStreams", "expireAfterSeconds", 1, 3600),
    },
    Parameter {
        name: DEFAULT_MAX_TIME_MS,
        default: || rawdoc! { "readOperations": 0_i64 },
        check: |value| check_number(value, DEFAULT_MAX_TIME_MS, "readOperations", 0, 0),
    },
    Parameter {
        name: "pauseMigrationsDuringMultiUpdates",
        default: || rawdoc! { "enabled": false },
        check: check_pause,
    },
];

const DEFAULT_MAX_TIME_MS: &str = "defaultMaxTimeMS";

/// Where they are kept.
const COLLECTION: &str = "clusterParameters";

/// The milliseconds that reads may take where they don't say, as they were set; zero for any.
///
/// # Errors
/// A failing storage.
pub(crate) fn default_max_time_ms(engine: &Engine) -> Result<u64> {
    let kept = kept::read(engine, COLLECTION, DEFAULT_MAX_TIME_MS)?;
    Ok(kept.and_then(|kept| kept.get_i64("readOperations").ok()).map_or(0, i64::unsigned_abs))
}

fn find(name: &str) -> Result<&'static Parameter> {
    let found = PARAMETERS.iter().find(|parameter| parameter.name == name);
    found.ok_or_else(|| Error::new(Code::NO_SUCH_KEY, format!("Unknown server parameter: {name}")))
}

fn get(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let path = Path { parent: "getClusterParameter", field: "getClusterParameter" };
    let mut wanted = Vec::new();
    match ctx.value()? {
        RawBsonRef::String("*") => wanted.extend(PARAMETERS),
        RawBsonRef::String(name) => wanted.push(find(name)?),
        RawBsonRef::Array(names) => {
            for name in names {
                let name = name?;
                wanted.push(find(name.as_str().ok_or_else(|| path.wrong_type(name, &["string"]))?)?);
            }
            if wanted.is_empty() {
                return Err(Error::bad_value(
                    "Must supply at least one cluster server parameter name to getClusterParameter",
                ));
            }
        }
        other => return Err(path.wrong_type(other, &["string", "array"])),
    }
    reply.begin_array("clusterParameters");
    for parameter in wanted {
        match kept::read(&ctx.shared.engine, COLLECTION, parameter.name)? {
            Some(kept) => reply.push(&kept),
            None => {
                reply.begin_element();
                reply.put("_id", parameter.name);
                reply.put_all(&(parameter.default)());
                reply.end();
            }
        }
    }
    reply.end();
    Ok(())
}

fn set<'x>(ctx: &'x mut Context<'_>, _reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let path = Path { parent: "setClusterParameter", field: "setClusterParameter" };
        let value = ctx.value()?;
        if super::arguments::is_null(value) {
            return Err(path.missing());
        }
        let document = value.as_document().ok_or_else(|| path.wrong_type(value, &["object"]))?;
        let mut fields = document.iter();
        let Some(field) = fields.next() else {
            return Err(Error::new(Code::NO_SUCH_KEY, "setClusterParameter needs the name of a parameter"));
        };
        if fields.next().is_some() {
            return Err(Error::new(
                Code::INVALID_OPTIONS,
                "setClusterParameter only supports setting exactly one parameter",
            ));
        }
        let (name, value) = field?;
        let parameter = find(name.as_str())?;
        let checked = (parameter.check)(value)?;
        let mut new = Writer::new();
        new.put("_id", parameter.name);
        new.put("clusterParameterTime", ctx.shared.cluster_time());
        new.put_all(&checked);
        kept::replace(&ctx.shared.engine, COLLECTION, parameter.name, new.finish_document())?.durable().await?;
        if parameter.name == DEFAULT_MAX_TIME_MS {
            ctx.shared.default_max_time_ms.store(default_max_time_ms(&ctx.shared.engine)?, Ordering::Relaxed);
        }
        Ok(())
    })
}

/// The fields of a value, none of which is unknown or begins with a dollar.
fn fields_of<'a>(value: RawBsonRef<'a>, name: &str, known: &str) -> Result<Option<RawBsonRef<'a>>> {
    let path = Path { parent: "setClusterParameter", field: name };
    let document = value.as_document().ok_or_else(|| path.wrong_type(value, &["object"]))?;
    let mut found = None;
    for field in document {
        let (field, value) = field?;
        let field = field.as_str();
        if field.starts_with('$') {
            let message = format!("The dollar ($) prefixed field '{field}' in '{name}' is not allowed");
            return Err(Error::new(Code::DOLLAR_PREFIXED_FIELD_NAME, message));
        }
        if field != known {
            return Err(Path { parent: name, field }.unknown());
        }
        found = Some(value);
    }
    Ok(found)
}

/// The one number of a value, whole and not below `least`.
fn check_number(value: RawBsonRef<'_>, name: &str, field: &str, least: i64, default: i64) -> Result<RawDocumentBuf> {
    let path = Path { parent: name, field };
    let number = match fields_of(value, name, field)? {
        Some(value) => path.at_least(i64::from_value(path, value)?, least)?,
        None => default,
    };
    let mut checked = Writer::new();
    checked.put(field, number);
    Ok(checked.finish_document())
}

fn check_pause(value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
    let name = "pauseMigrationsDuringMultiUpdates";
    let enabled = match fields_of(value, name, "enabled")? {
        Some(value) => bool::from_value(Path { parent: name, field: "enabled" }, value)?,
        None => false,
    };
    Ok(rawdoc! { "enabled": enabled })
}

/// MongoDB answers whatever is wrong here with `BadValue`, but for a dollar.
fn check_stream_options(value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
    let unfit = |error: Error| match error.code {
        Code::DOLLAR_PREFIXED_FIELD_NAME => error,
        _ => Error::bad_value(error.message),
    };
    let images = fields_of(value, "changeStreamOptions", "preAndPostImages").map_err(unfit)?;
    let images = images.ok_or_else(|| Error::bad_value("changeStreamOptions needs the field preAndPostImages"))?;
    let expiry = fields_of(images, "preAndPostImages", "expireAfterSeconds").map_err(unfit)?;
    let mut inner = Writer::new();
    match expiry {
        Some(RawBsonRef::String("off")) => inner.put("expireAfterSeconds", "off"),
        Some(other) => match super::number(other).filter(|seconds| *seconds > 0) {
            Some(seconds) => inner.put("expireAfterSeconds", seconds),
            None => return Err(Error::bad_value("expireAfterSeconds must be 'off' or a number above zero")),
        },
        None => return Err(Error::bad_value("preAndPostImages needs the field expireAfterSeconds")),
    }
    let mut checked = Writer::new();
    checked.put("preAndPostImages", &inner.finish_document());
    Ok(checked.finish_document())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::RawDocument;

    #[test]
    fn a_value_is_checked_and_brought_into_its_final_form() {
        let check = |name: &str, value: &RawDocument| (find(name).expect("known").check)(RawBsonRef::Document(value));
        let made = check("defaultMaxTimeMS", &rawdoc! { "readOperations": 5.0 }).expect("fits");
        assert_eq!(made, rawdoc! { "readOperations": 5_i64 });
        let code = |name: &str, value: &RawDocument| check(name, value).err().map(|error| error.code);
        assert_eq!(code("changeStreams", &rawdoc! { "expireAfterSeconds": 0 }), Some(Code::BAD_VALUE));
        assert_eq!(code("changeStreams", &rawdoc! { "expireAfterSeconds": "1" }), Some(Code::TYPE_MISMATCH));
        assert_eq!(code("changeStreamOptions", &rawdoc! {}), Some(Code::BAD_VALUE));
        assert_eq!(code("changeStreamOptions", &rawdoc! { "$x": 1 }), Some(Code::DOLLAR_PREFIXED_FIELD_NAME));
        assert_eq!(find("nothing").err().map(|error| error.code), Some(Code::NO_SUCH_KEY));
    }
}
