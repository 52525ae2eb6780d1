//! `getMore`: a cursor's next batch. With `exhaustAllowed` the batches follow each other without requests.

use super::arguments::{Field, Path};
use super::documents::write_batch;
use super::{Command, Context, Counter, Later, Run, arguments};
use crate::bson::Writer;
use bson::raw::RawBsonRef;
use engine::operation::DEFAULT_AWAIT;
use engine::{Batch, Error, Namespace, Result, Tailing};
use std::time::{Duration, Instant};

/// How often a waiting `getMore` looks whether it was interrupted.
const INTERRUPT_CHECK: Duration = Duration::from_millis(500);

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "getMore",
    help: "returns the next documents of a cursor",
    stable_api: true,
    in_transaction: true,
    reads: true,
    own_time_limit: true,
    counter: Counter::GetMore,
    run: Run::Later(run),
    ..Command::DEFAULT
};

/// An integer that has to be of type `long`.
#[derive(Clone, Copy)]
pub(crate) struct Long(i64);

impl<'a> Field<'a> for Long {
    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self> {
        value.as_i64().map(Long).ok_or_else(|| path.wrong_type(value, &["long"]))
    }
}

arguments! {
    struct Arguments<'a> {
        collection: &'a str = "collection",
        batch_size: Option<i64> = "batchSize",
        term: Option<Long> = "term",
        last_known: Option<RawBsonRef<'a>> = "lastKnownCommittedOpTime",
        metrics: Option<RawBsonRef<'a>> = "includeQueryStatsMetrics",
    }
}

fn run<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let path = Path { parent: "getMore", field: "getMore" };
        let value = ctx.value()?;
        if super::arguments::is_null(value) {
            return Err(path.missing());
        }
        let Long(id) = Long::from_value(path, value)?;
        let arguments = Arguments::parse(ctx)?;
        let batch_size =
            arguments.batch_size.map(|size| Path { parent: "getMore", field: "batchSize" }.at_least(size, 0));
        let batch_size = batch_size.transpose()?.map(|size| size as usize);
        if arguments.collection.is_empty() {
            return Err(Error::new(engine::Code::INVALID_NAMESPACE, "Collection names cannot be empty"));
        }
        // Cursors over lists of collections and indexes have names that no collection can have.
        let namespace = Namespace { database: ctx.database().to_owned(), collection: arguments.collection.to_owned() };
        if ctx.generic.max_time_ms.is_some()
            && ctx.shared.engine.cursor_tailing(id).is_some_and(|t| t != Tailing::Await)
        {
            let message = "cannot set maxTimeMS on getMore command for a non-awaitData cursor";
            return Err(Error::bad_value(message));
        }
        let batch = next_batch(ctx, id, &namespace, batch_size).await?;
        ctx.more_to_come = batch.cursor != 0;
        write_batch(reply, "nextBatch", &batch)
    })
}

/// The next batch; waits for one where the cursor awaits data.
async fn next_batch(ctx: &Context<'_>, id: i64, namespace: &Namespace, size: Option<usize>) -> Result<Batch> {
    let wait_ms = ctx.generic.max_time_ms.filter(|ms| *ms > 0);
    let until = Instant::now() + wait_ms.map_or(DEFAULT_AWAIT, Duration::from_millis);
    let context = ctx.engine_context();
    loop {
        let (batch, ticket) = ctx.shared.engine.try_get_more(&context, id, namespace, size)?;
        let left = until.saturating_duration_since(Instant::now());
        let Some(ticket) = ticket.filter(|_| !left.is_zero()) else { return Ok(batch) };
        context.check()?;
        if ctx.shared.stopping.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(Error::new(engine::Code::INTERRUPTED_AT_SHUTDOWN, "interrupted at shutdown"));
        }
        let since = Instant::now();
        let waited = tokio::time::timeout(left.min(INTERRUPT_CHECK), ticket).await;
        ctx.operation.note_await(since);
        if let Ok(done) = waited {
            done?;
        }
    }
}
