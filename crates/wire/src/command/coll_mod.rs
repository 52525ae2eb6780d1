//! `collMod`: changes a collection's validator and other options, a view's definition, or an index's.

use super::create_options::{MAX_BUCKET_SECONDS, check_images, choice, span_of};
use super::{Command, Context, Flag, Later, Path, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::raw::RawBsonRef;
use bson::{RawArray, RawDocument, RawDocumentBuf};
use engine::catalog::Collection;
use engine::index::IndexSpec;
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
    struct SeriesArguments<'a> {
        granularity: Option<&'a str> = "granularity",
        max_span: Option<i64> = "bucketMaxSpanSeconds",
        rounding: Option<i64> = "bucketRoundingSeconds",
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
        check(&arguments, &info.collection)?;
        if let Some(index) = arguments.index {
            let index_arguments = IndexArguments::parse_nested("collMod.index", index)?;
            let dry_run = arguments.dry_run.0;
            modify_index(ctx, &namespace, &index_arguments, dry_run, reply).await?;
        }
        let body = ctx.body();
        let changes = body.iter().filter_map(|field| field.ok()).any(|(key, _)| OPTIONS.contains(&key.as_str()));
        // A call that changes nothing is an event all the same.
        if changes
            || arguments.index.is_none()
            || arguments.timeseries.is_some()
            || arguments.capped_size.is_some()
            || arguments.capped_max.is_some()
        {
            let change = |old: &RawDocument| changed(old, body, &arguments);
            ctx.shared.engine.modify_options(&context, &namespace, change)?.durable().await?;
        }
        Ok(())
    })
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::INVALID_OPTIONS, message)
}

fn check(arguments: &Arguments<'_>, collection: &Collection) -> Result<()> {
    let parent = "collMod";
    let levels = ["off", "strict", "moderate"];
    choice(Path { parent, field: "validationLevel" }, arguments.validation_level, &levels)?;
    let actions = ["error", "warn", "errorAndLog"];
    choice(Path { parent, field: "validationAction" }, arguments.validation_action, &actions)?;
    if let Some(images) = arguments.images {
        check_images(images)?;
    }
    if arguments.dry_run.0 && arguments.index.is_none() {
        return Err(invalid("dryRun is for turning an index into a unique one"));
    }
    let namespace = &collection.namespace;
    let of_view = arguments.view_on.is_some() || arguments.pipeline.is_some();
    let validates =
        arguments.validator.is_some() || arguments.validation_level.is_some() || arguments.validation_action.is_some();
    let is_series = collection.settings.time_series.is_some();
    if collection.is_view() || is_series {
        if validates || arguments.images.is_some() {
            return Err(invalid(format!("option not supported on a view or time-series collection: {namespace}")));
        }
        if collection.is_view() && arguments.index.is_some() {
            return Err(invalid(format!("a view has no indexes: {namespace}")));
        }
    }
    if arguments.view_on == Some("") {
        return Err(Error::bad_value("'viewOn' cannot be empty"));
    }
    if of_view && (!collection.is_view() || is_series) {
        return Err(invalid(format!("'viewOn' and 'pipeline' are for views; {namespace} is a collection")));
    }
    for (index, stage) in arguments.pipeline.into_iter().flatten().enumerate() {
        let stage = stage?;
        if stage.as_document().is_none() && !super::arguments::is_null(stage) {
            let field = format!("pipeline.{index}");
            return Err(Path { parent, field: &field }.wrong_type(stage, &["object"]));
        }
    }
    let system = matches!(namespace.database.as_str(), "admin" | "local" | "config") || namespace.is_system();
    if arguments.validator.is_some() && system {
        return Err(invalid(format!("Document validators are not allowed on the system collection {namespace}")));
    }
    if let Some(series) = arguments.timeseries {
        check_series(series, collection)?;
    }
    check_capped(arguments, collection)?;
    check_expiry(arguments, collection)
}

/// Checks how a time-series collection's buckets shall change: only to larger ones.
fn check_series(document: &RawDocument, collection: &Collection) -> Result<()> {
    let parent = "collMod.timeseries";
    let new = SeriesArguments::parse_nested(parent, document)?;
    choice(Path { parent, field: "granularity" }, new.granularity, &["seconds", "minutes", "hours"])?;
    for (field, seconds) in [("bucketMaxSpanSeconds", new.max_span), ("bucketRoundingSeconds", new.rounding)] {
        let Some(seconds) = seconds else { continue };
        Path { parent, field }.at_least(seconds, 1)?;
        if seconds > MAX_BUCKET_SECONDS {
            let message =
                format!("BSON field '{field}' value must be <= {MAX_BUCKET_SECONDS}, actual value '{seconds}'");
            return Err(Error::bad_value(message));
        }
    }
    let Some(old) = &collection.settings.time_series else {
        return Err(invalid(format!("{} is no time-series collection", collection.namespace)));
    };
    let span = match (new.granularity, new.max_span, new.rounding) {
        (Some(granularity), None, None) => i64::from(span_of(granularity)),
        (Some(granularity), Some(span), None) if i64::from(span_of(granularity)) == span => span,
        (None, Some(span), Some(rounding)) if span == rounding => span,
        (None, None, None) => return Ok(()),
        _ => {
            return Err(invalid(
                "give granularity, or bucketMaxSpanSeconds and bucketRoundingSeconds with equal values",
            ));
        }
    };
    if span < old.get("bucketMaxSpanSeconds")?.and_then(super::number).unwrap_or(0) {
        return Err(invalid("a time-series collection's buckets can only be made larger"));
    }
    Ok(())
}

fn check_capped(arguments: &Arguments<'_>, collection: &Collection) -> Result<()> {
    if arguments.capped_size.is_none() && arguments.capped_max.is_none() {
        return Ok(());
    }
    if let Some(size) = arguments.capped_size {
        Path { parent: "collMod", field: "cappedSize" }.at_least(size, 1)?;
        if size > 1 << 50 {
            let message = format!("BSON field 'cappedSize' value must be <= {}, actual value '{size}'", 1_i64 << 50);
            return Err(Error::bad_value(message));
        }
    }
    if let Some(max) = arguments.capped_max.filter(|max| *max > i64::from(i32::MAX)) {
        return Err(Error::bad_value(format!(
            "BSON field 'cappedMax' value must be < 2147483648, actual value '{max}'"
        )));
    }
    match collection.settings.capped {
        Some(_) => Ok(()),
        None => Err(invalid(format!("{} is not capped", collection.namespace))),
    }
}

fn check_expiry(arguments: &Arguments<'_>, collection: &Collection) -> Result<()> {
    let Some(value) = arguments.expire_after_seconds.filter(|value| !super::arguments::is_null(*value)) else {
        return Ok(());
    };
    let path = Path { parent: "collMod", field: "expireAfterSeconds" };
    match (value, super::number(value)) {
        (RawBsonRef::String("off"), _) => {}
        (RawBsonRef::String(_), _) => return Err(invalid("expireAfterSeconds is a number of seconds or 'off'")),
        (other, None) => return Err(path.wrong_type(other, &["string", "int", "long", "double", "decimal"])),
        (_, Some(seconds)) => {
            let now_seconds = bson::DateTime::now().timestamp_millis() / 1000;
            if !(0..=now_seconds).contains(&seconds) {
                return Err(invalid("expireAfterSeconds must be within the range from 0 to the time since 1970"));
            }
        }
    }
    let expires = collection.settings.clustered || collection.settings.time_series.is_some();
    match expires {
        true => Ok(()),
        false => Err(invalid("expireAfterSeconds is for clustered and time-series collections; use a TTL index")),
    }
}

/// The granularities, from fine to coarse, with the seconds that a bucket spans.
const GRANULARITIES: &[(&str, i32)] = &[("seconds", 3_600), ("minutes", 86_400), ("hours", 2_592_000)];

/// The options of a time series with a granularity that is at least as coarse.
fn changed_series(old: RawBsonRef<'_>, new: Option<&RawDocument>) -> Result<RawDocumentBuf> {
    let (RawBsonRef::Document(old), Some(new)) = (old, new) else {
        return Err(Error::internal("a time series has no options"));
    };
    let Some(wanted) = new.get("granularity")? else { return Ok(old.to_owned()) };
    let wanted = wanted.as_str().unwrap_or_default();
    let rank = |name: &str| GRANULARITIES.iter().position(|known| known.0 == name);
    let Some(coarser) = rank(wanted) else {
        return Err(Error::bad_value(format!(
            "Enumeration value '{wanted}' for field 'collMod.timeseries.granularity' is not a valid value."
        )));
    };
    if rank(old.get_str("granularity").unwrap_or("seconds")).is_some_and(|rank| coarser < rank) {
        return Err(invalid(
            "Invalid transition for timeseries.granularity. Can only transition from 'seconds' to 'minutes' or 'minutes' to 'hours'.",
        ));
    }
    let mut series = RawDocumentBuf::new();
    for element in old {
        let (key, value) = element?;
        match key.as_str() {
            "granularity" => series.append(key, wanted),
            "bucketMaxSpanSeconds" => series.append(key, GRANULARITIES[coarser].1),
            _ => series.append(key, value),
        }
    }
    Ok(series)
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
            ("timeseries", _) if arguments.timeseries.is_some() => {
                let series = changed_series(value, arguments.timeseries)?;
                options.put("timeseries", RawBsonRef::Document(&series));
            }
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
    dry_run: bool,
    reply: &mut Writer,
) -> Result<()> {
    let refuse = |message: &str| Err(invalid(message));
    let context = ctx.engine_context();
    let collection = ctx.shared.engine.collection(&context, namespace)?.collection;
    let found = match (arguments.name, arguments.pattern) {
        (Some(_), Some(_)) => return refuse("Cannot specify both key pattern and name."),
        (None, None) => return refuse("Must specify either index name or key pattern."),
        (Some(name), None) => collection.indexes.iter().find(|index| index.spec.name() == name),
        (None, Some(pattern)) => {
            collection.indexes.iter().find(|index| engine::index::same_pattern(index.spec.pattern(), pattern))
        }
    };
    let is_id = arguments.name == Some("_id_")
        || arguments.pattern.is_some_and(|pattern| *pattern == *bson::rawdoc! { "_id": 1 });
    let changes = arguments.expire_after_seconds.is_some()
        || arguments.hidden.is_some()
        || arguments.unique.is_some()
        || arguments.prepare_unique.is_some();
    if !changes {
        return refuse("no expireAfterSeconds, hidden, unique, or prepareUnique field");
    }
    if is_id {
        return match arguments.hidden {
            Some(_) if collection.settings.clustered => {
                Err(Error::location(6_011_800, "The clusteredIndex can't be hidden or shown again"))
            }
            Some(_) => Err(Error::bad_value("can't hide _id index")),
            None if collection.settings.clustered => {
                Err(Error::new(Code::INDEX_NOT_FOUND, format!("cannot find an index on _id for ns {namespace}")))
            }
            None => refuse("the _id index can't be changed"),
        };
    }
    let Some(index) = found else {
        let which = arguments.name.map_or_else(|| "with this key pattern".to_owned(), str::to_owned);
        return Err(Error::new(Code::INDEX_NOT_FOUND, format!("cannot find index {which} for ns {namespace}")));
    };
    let changes = Changes::of(arguments, &index.spec)?;
    if dry_run && !changes.unique && arguments.unique.is_none() {
        return refuse("dryRun is for turning an index into a unique one");
    }
    if changes.unique {
        let violations = ctx.shared.engine.unique_violations(&context, namespace, index.spec.name())?;
        refuse_duplicates(violations)?;
    }
    if dry_run {
        return Ok(());
    }
    changes.report(&index.spec, reply)?;
    let change = |old: &RawDocument| changes.apply(old);
    ctx.shared.engine.modify_index(&context, namespace, index.spec.name(), change)?.durable().await
}

/// The refusal of an index with duplicates to become unique.
fn refuse_duplicates(violations: Vec<RawDocumentBuf>) -> Result<()> {
    if violations.is_empty() {
        return Ok(());
    }
    let mut extra = Writer::new();
    extra.begin_array("violations");
    violations.iter().for_each(|violation| extra.push(violation));
    extra.end();
    let message =
        "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.";
    Err(Error::new(Code::CANNOT_CONVERT_INDEX_TO_UNIQUE, message).with_extra(extra.finish_document()))
}

/// What really changes of an index.
struct Changes {
    expire_after_seconds: Option<i64>,
    hidden: Option<bool>,
    prepare_unique: Option<bool>,
    /// Whether it becomes unique.
    unique: bool,
}

impl Changes {
    fn of(arguments: &IndexArguments<'_>, spec: &IndexSpec) -> Result<Changes> {
        let prepare_unique = arguments
            .prepare_unique
            .map(|flag| flag.0)
            .filter(|prepare| *prepare != spec.prepare_unique() && !spec.unique());
        let others = arguments.hidden.is_some() || arguments.expire_after_seconds.is_some();
        if prepare_unique.is_some() && (others || arguments.unique.is_some()) {
            return Err(invalid("prepareUnique can't be changed together with other options"));
        }
        let unique = match arguments.unique {
            Some(Flag(false)) => return Err(Error::bad_value("a unique index can't be turned back")),
            Some(Flag(true)) if spec.unique() => false,
            Some(Flag(true)) if !spec.prepare_unique() => {
                return Err(invalid("an index becomes unique only after prepareUnique: set it first"));
            }
            Some(Flag(true)) => true,
            None => false,
        };
        if let Some(seconds) = arguments.expire_after_seconds {
            if seconds < 0 {
                return Err(invalid("expireAfterSeconds can't be negative"));
            }
            if spec.fields().len() != 1 || spec.wildcard().is_some() {
                return Err(invalid(
                    "TTL indexes are single-field indexes, compound and wildcard indexes can't expire documents",
                ));
            }
        }
        let expire_after_seconds = arguments.expire_after_seconds.map(|seconds| seconds.min(i64::from(i32::MAX)));
        let hidden = arguments.hidden.map(|flag| flag.0);
        Ok(Changes { expire_after_seconds, hidden, prepare_unique, unique })
    }

    /// Says what was and will be.
    fn report(&self, spec: &IndexSpec, reply: &mut Writer) -> Result<()> {
        if let Some(seconds) = self.expire_after_seconds {
            let was = spec.document().get("expireAfterSeconds")?.and_then(super::number);
            reply.put_some("expireAfterSeconds_old", was);
            reply.put("expireAfterSeconds_new", seconds);
        }
        if let Some(hidden) = self.hidden.filter(|hidden| *hidden != spec.hidden()) {
            reply.put("hidden_old", spec.hidden());
            reply.put("hidden_new", hidden);
        }
        if let Some(prepare_unique) = self.prepare_unique {
            reply.put("prepareUnique_old", spec.prepare_unique());
            reply.put("prepareUnique_new", prepare_unique);
        }
        if self.unique {
            reply.put("unique_new", true);
        }
        Ok(())
    }

    /// The changed specification.
    fn apply(&self, old: &RawDocument) -> Result<RawDocumentBuf> {
        if self.unique && !old.get_bool("prepareUnique").unwrap_or(false) {
            return Err(invalid("prepareUnique was taken back meanwhile: set it again"));
        }
        let mut index = Writer::new();
        for element in old {
            let (key, value) = element?;
            match key.as_str() {
                "expireAfterSeconds" if self.expire_after_seconds.is_some() => {}
                "hidden" if self.hidden.is_some() => {}
                "prepareUnique" if self.prepare_unique.is_some() || self.unique => {}
                key => index.put(key, value),
            }
        }
        index.put_some("expireAfterSeconds", self.expire_after_seconds.map(|seconds| seconds as i32));
        let flags = [("hidden", self.hidden), ("prepareUnique", self.prepare_unique), ("unique", Some(self.unique))];
        for (key, _) in flags.into_iter().filter(|(_, flag)| *flag == Some(true)) {
            index.put(key, true);
        }
        Ok(index.finish_document())
    }
}
