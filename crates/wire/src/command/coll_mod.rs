//! `collMod`: changes a collection's validator and other options, a view's definition, or an index's.

use super::{Command, Context, Flag, Later, Path, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::raw::RawBsonRef;
use bson::{RawArray, RawDocument, RawDocumentBuf};
use engine::{Code, Error, Namespace, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "collMod",
    help: "changes a collection's, a view's or an index's options",
    stable_api: true,
    writes: true,
    rights: Rights::Collection(Action::CollMod),
    run: Run::Later(run),
    ..Command::DEFAULT
};

/// The options of a collection that may be replaced.
const OPTIONS: &[&str] = &[
    "changeStreamPreAndPostImages",
    "expireAfterSeconds",
    "pipeline",
    "validationAction",
    "validationLevel",
    "validator",
    "viewOn",
];

arguments! {
    struct Arguments<'a> {
        index: Option<&'a RawDocument> = "index",
        validator: Option<&'a RawDocument> = "validator",
        validation_level: Option<&'a str> = "validationLevel",
        validation_action: Option<&'a str> = "validationAction",
        view_on: Option<&'a str> = "viewOn",
        pipeline: Option<&'a RawArray> = "pipeline",
        images: Option<&'a RawDocument> = "changeStreamPreAndPostImages",
        expire_after_seconds: Option<RawBsonRef<'a>> = "expireAfterSeconds",
        timeseries: Option<&'a RawDocument> = "timeseries",
        capped_size: Option<i64> = "cappedSize",
        capped_max: Option<i64> = "cappedMax",
        dry_run: Flag = "dryRun",
    }
}

arguments! {
    struct IndexArguments<'a> {
        name: Option<&'a str> = "name",
        pattern: Option<&'a RawDocument> = "keyPattern",
        expire_after_seconds: Option<i64> = "expireAfterSeconds",
        hidden: Option<Flag> = "hidden",
        unique: Option<Flag> = "unique",
        prepare_unique: Option<Flag> = "prepareUnique",
    }
}

fn run<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let namespace = ctx.collection()?;
        let arguments = Arguments::parse(ctx)?;
        let context = ctx.engine_context();
        let info = ctx.shared.engine.collection(&context, &namespace)?;
        check(&arguments, info.collection.is_view(), &namespace)?;
        if let Some(index) = arguments.index {
            let arguments = IndexArguments::parse_nested("collMod.index", index)?;
            modify_index(ctx, &namespace, &arguments, reply).await?;
        }
        let body = ctx.body();
        let changes = body.iter().filter_map(|field| field.ok()).any(|(key, _)| OPTIONS.contains(&key.as_str()));
        if changes || arguments.capped_size.is_some() || arguments.capped_max.is_some() {
            let change = |old: &RawDocument| changed(old, body, &arguments);
            ctx.shared.engine.modify_options(&context, &namespace, change)?.durable().await?;
        }
        Ok(())
    })
}

fn check(arguments: &Arguments<'_>, is_view: bool, namespace: &Namespace) -> Result<()> {
    let invalid = |message: String| Err(Error::new(Code::INVALID_OPTIONS, message));
    let choices: [(&str, Option<&str>, &[&str]); 2] = [
        ("validationLevel", arguments.validation_level, &["off", "strict", "moderate"]),
        ("validationAction", arguments.validation_action, &["error", "warn", "errorAndLog"]),
    ];
    for (field, value, known) in choices {
        if let Some(value) = value.filter(|value| !known.contains(value)) {
            let path = Path { parent: "collMod", field };
            return Err(Error::bad_value(format!(
                "Enumeration value '{value}' for field '{path}' is not a valid value."
            )));
        }
    }
    let of_view = arguments.view_on.is_some() || arguments.pipeline.is_some();
    if is_view {
        let others = arguments.validator.is_some() || arguments.index.is_some() || arguments.validation_level.is_some();
        if others {
            return invalid(format!("option not supported on a view: {namespace}"));
        }
        if of_view && (arguments.view_on.is_none() || arguments.pipeline.is_none()) {
            return invalid("Must specify both 'viewOn' and 'pipeline' when modifying a view".to_owned());
        }
    } else if of_view {
        return invalid(format!("'viewOn' and 'pipeline' are for views; {namespace} is a collection"));
    }
    Ok(())
}

/// The options with those of the command in place of the old ones.
fn changed(old: &RawDocument, body: &RawDocument, arguments: &Arguments<'_>) -> Result<RawDocumentBuf> {
    let given = |key: &str| -> Result<Option<RawBsonRef<'_>>> {
        if !OPTIONS.contains(&key) {
            return Ok(None);
        }
        Ok(body.get(key)?.filter(|value| !super::arguments::is_null(*value)))
    };
    let mut options = Writer::new();
    for element in old {
        let (key, value) = element?;
        match (key.as_str(), given(key.as_str())?) {
            ("size", _) if arguments.capped_size.is_some() => options.put_some("size", arguments.capped_size),
            ("max", _) if arguments.capped_max.is_some() => options.put_some("max", arguments.capped_max),
            ("expireAfterSeconds", Some(RawBsonRef::String("off"))) => {}
            ("validator", Some(RawBsonRef::Document(validator))) if validator.is_empty() => {}
            (key, Some(new)) => options.put(key, new),
            (key, None) => options.put(key, value),
        }
    }
    for key in OPTIONS {
        if let (Some(new), None) = (given(key)?, old.get(key)?) {
            let removes = *key == "expireAfterSeconds" && new.as_str() == Some("off")
                || *key == "validator" && new.as_document().is_some_and(RawDocument::is_empty);
            if !removes {
                options.put(key, new);
            }
        }
    }
    Ok(options.finish_document())
}

async fn modify_index(
    ctx: &Context<'_>,
    namespace: &Namespace,
    arguments: &IndexArguments<'_>,
    reply: &mut Writer,
) -> Result<()> {
    let invalid = |message: &str| Err(Error::new(Code::INVALID_OPTIONS, message));
    let context = ctx.engine_context();
    let collection = ctx.shared.engine.collection(&context, namespace)?.collection;
    let found = match (arguments.name, arguments.pattern) {
        (Some(_), Some(_)) => return invalid("Cannot specify both key pattern and name."),
        (None, None) => return invalid("Must specify either index name or key pattern."),
        (Some(name), None) => collection.indexes.iter().find(|index| index.spec.name() == name),
        (None, Some(pattern)) => {
            collection.indexes.iter().find(|index| engine::index::same_pattern(index.spec.pattern(), pattern))
        }
    };
    if arguments.name == Some("_id_") {
        return invalid("can't modify the _id index");
    }
    let changes = arguments.expire_after_seconds.is_some()
        || arguments.hidden.is_some()
        || arguments.unique.is_some()
        || arguments.prepare_unique.is_some();
    if !changes {
        return invalid("no expireAfterSeconds, hidden, unique, or prepareUnique field");
    }
    let Some(index) = found else {
        let which = arguments.name.map_or_else(|| "with this key pattern".to_owned(), str::to_owned);
        return Err(Error::new(Code::INDEX_NOT_FOUND, format!("cannot find index {which} for ns {namespace}")));
    };
    let old = index.spec.document();
    if let Some(seconds) = arguments.expire_after_seconds {
        reply.put_some("expireAfterSeconds_old", old.get("expireAfterSeconds")?);
        reply.put("expireAfterSeconds_new", seconds);
    }
    if let Some(hidden) = arguments.hidden {
        reply.put("hidden_old", index.spec.hidden());
        reply.put("hidden_new", hidden.0);
    }
    if let Some(unique) = arguments.unique {
        reply.put("unique_new", unique.0);
    }
    let change = |old: &RawDocument| changed_index(old, arguments);
    ctx.shared.engine.modify_index(&context, namespace, index.spec.name(), change)?.durable().await
}

fn changed_index(old: &RawDocument, arguments: &IndexArguments<'_>) -> Result<RawDocumentBuf> {
    let mut index = Writer::new();
    for element in old {
        let (key, value) = element?;
        match key.as_str() {
            "expireAfterSeconds" if arguments.expire_after_seconds.is_some() => {}
            "hidden" if arguments.hidden.is_some() => {}
            "unique" if arguments.unique.is_some() => {}
            "prepareUnique" if arguments.prepare_unique.is_some() || arguments.unique.is_some() => {}
            key => index.put(key, value),
        }
    }
    index.put_some("expireAfterSeconds", arguments.expire_after_seconds);
    for (key, flag) in [("hidden", arguments.hidden), ("unique", arguments.unique)] {
        if flag == Some(Flag(true)) {
            index.put(key, true);
        }
    }
    Ok(index.finish_document())
}
