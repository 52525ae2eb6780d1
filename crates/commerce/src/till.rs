//! The till: everything that changes the shop goes through it in the order of arrival, many jobs to a transaction.
//!
//! ```text
//!   buyers ──> queue (bounded) ──> batch ──> one transaction: read, decide, write once, commit ──> answers
//! ```
//!
//! Two transactions that want the same SKU would conflict, and with thousands of buyers of one SKU nearly all work would
//! be thrown away. Here they stand in line, and the whole line is served by one transaction: each job is decided on what
//! the jobs before it left, a refused one leaves no trace, and everybody gets an answer when the batch is durable. On the
//! embedded store the next batch is decided on what the one before it left while that is still being flushed. A lone
//! job waits for nobody. What jobs say beforehand that they will read is read together. Other processes on the same deployment may still conflict with a batch; it then runs again.

use crate::error::{Error, Result};
use crate::note::Note;
use crate::shop::Shop;
use crate::unit::{Place, Unit};
use parking_lot::Mutex;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use store::{BoxFuture, Executed};
use tokio::sync::{Semaphore, oneshot};

/// The most jobs in one transaction, where it may conflict with those of other processes.
pub const MAX_BATCH: usize = 256;

/// The most jobs in one transaction of a store that is all this process's: there the flush is what a batch waits for.
pub const MAX_OWN_BATCH: usize = 1_024;

/// The most jobs that may wait.
pub const MAX_QUEUE: usize = 20_000;

/// The most batches that are decided and not flushed.
const MAX_AHEAD: usize = 4;

/// How often a job that met a duplicate key is run again.
const MAX_ATTEMPTS: usize = 3;

type Value = Box<dyn Any + Send>;
/// A job's work with what it reads; it may run more than once.
type Shared = Arc<(Work, Vec<Place>)>;
type Work = Box<dyn for<'u, 's> Fn(&'u mut Unit<'s>) -> BoxFuture<'u, Result<Value>> + Send + Sync>;

struct Job {
    work: Work,
    /// What it will read, as far as it is known beforehand.
    reads: Vec<Place>,
    /// Whether it has a transaction to itself, so that it may query what is stored.
    alone: bool,
    reply: oneshot::Sender<Result<Value>>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Till {
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    waiting: VecDeque<Job>,
    served: bool,
}

/// Serves the line; when it is torn away, the next job finds nobody serving.
struct Server {
    shop: Shop,
    done: bool,
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.done {
            let mut line = self.shop.till().line.lock();
            line.served = false;
            line.waiting.clear(); // who waits is told by the closed channel
        }
    }
}

impl Shop {
    /// Has a job done. It may run more than once, so it must do nothing but read and change documents of the unit.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'u, 's> Fn(&'u mut Unit<'s>) -> BoxFuture<'u, Result<T>> + Send + Sync + 'static,
    {
        self.submit(work, Vec::new(), false).await
    }

    /// The same, for a job that knows what it will read; other reads are made one by one.
    pub(crate) async fn run_reading<T, F>(&self, reads: Vec<Place>, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'u, 's> Fn(&'u mut Unit<'s>) -> BoxFuture<'u, Result<T>> + Send + Sync + 'static,
    {
        self.submit(work, reads, false).await
    }

    /// The same, with a note of what became of it in the same transaction.
    pub(crate) async fn run_noted<T, F>(&self, reads: Vec<Place>, work: F, note: Option<Note<T>>) -> Result<T>
    where
        T: Send + Sync + 'static,
        F: for<'u, 's> Fn(&'u mut Unit<'s>) -> BoxFuture<'u, Result<T>> + Send + Sync + 'static,
    {
        let Some(note) = note else { return self.run_reading(reads, work).await };
        let (work, making) = (Arc::new(work), note.clone());
        let noted = self.run_reading(reads, move |unit| {
            let (work, note) = (work.clone(), making.clone());
            Box::pin(async move {
                let mark = unit.mark();
                let outcome = work(&mut *unit).await;
                if let Err(Error::Store(error)) = outcome {
                    return Err(Error::Store(error));
                }
                if outcome.is_err() {
                    unit.back_to(mark);
                }
                if let Some(write) = note.make(&outcome) {
                    unit.note(&note.database, &note.collection, write);
                }
                Ok(outcome)
            })
        });
        let outcome = noted.await.flatten();
        note.settle(&outcome);
        outcome
    }

    /// The same in a transaction of its own, in which [`Unit::aggregate`] sees all that is stored.
    pub(crate) async fn run_alone<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'u, 's> Fn(&'u mut Unit<'s>) -> BoxFuture<'u, Result<T>> + Send + Sync + 'static,
    {
        self.submit(work, Vec::new(), true).await
    }

    async fn submit<T, F>(&self, work: F, reads: Vec<Place>, alone: bool) -> Result<T>
    where
        T: Send + 'static,
        F: for<'u, 's> Fn(&'u mut Unit<'s>) -> BoxFuture<'u, Result<T>> + Send + Sync + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let work: Work = Box::new(move |unit| {
            let running = work(unit);
            Box::pin(async move { running.await.map(|value| Box::new(value) as Value) })
        });
        self.stand_in_line(Job { work, reads, alone, reply })?;
        let value = answer.await.map_err(|_| Error::Busy)??;
        Ok(*value.downcast::<T>().expect("the job's own type"))
    }

    fn stand_in_line(&self, job: Job) -> Result<()> {
        let mut line = self.till().line.lock();
        if line.waiting.len() >= MAX_QUEUE {
            return Err(Error::Busy);
        }
        line.waiting.push_back(job);
        if !line.served {
            line.served = true;
            let server = Server { shop: self.clone(), done: false };
            tokio::spawn(serve(server));
        }
        Ok(())
    }
}

async fn serve(mut server: Server) {
    let ahead = Arc::new(Semaphore::new(MAX_AHEAD));
    loop {
        let permit = ahead.clone().acquire_owned().await.expect("it is never closed");
        let batch: Vec<Job> = {
            let mut line = server.shop.till().line.lock();
            if line.waiting.is_empty() {
                line.served = false;
                server.done = true;
                break;
            }
            let most = if server.shop.store().engine().is_some() { MAX_OWN_BATCH } else { MAX_BATCH };
            let together = line.waiting.iter().take(most).take_while(|job| !job.alone).count();
            let count = together.max(1);
            line.waiting.drain(..count).collect()
        };
        let (work, replies): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|job| (Arc::new((job.work, job.reads)), job.reply)).unzip();
        match transact(&server.shop, &work).await {
            // The next batch is decided while this one is being flushed; nobody is told before.
            Ok(executed) => {
                let shop = server.shop.clone();
                tokio::spawn(async move {
                    let answers = told(&shop, executed).await;
                    answer(replies, answers.unwrap_or_else(|error| failed(work.len(), &error)));
                    drop(permit);
                });
            }
            Err(error) => answer(replies, again(&server.shop, work, error).await),
        }
    }
}

fn answer(replies: Vec<oneshot::Sender<Result<Value>>>, answers: Vec<Result<Value>>) {
    for (reply, answer) in replies.into_iter().zip(answers) {
        let _ = reply.send(answer); // who asked may have gone
    }
}

fn failed(count: usize, error: &store::Error) -> Vec<Result<Value>> {
    (0..count).map(|_| Err(Error::Store(error.clone()))).collect()
}

/// What becomes of a batch that the store refused: its jobs one by one; of one job, the same again where that may help.
async fn again(shop: &Shop, work: Vec<Shared>, error: store::Error) -> Vec<Result<Value>> {
    let mut answers = Vec::with_capacity(work.len());
    if work.len() > 1 && !error.has_label("UnknownTransactionCommitResult") {
        for job in work {
            let alone = vec![job];
            match durably(shop, &alone).await {
                Ok(answer) => answers.extend(answer),
                Err(error) => answers.extend(Box::pin(again(shop, alone, error)).await),
            }
        }
        return answers;
    }
    let mut outcome = Err(error);
    for _ in 1..MAX_ATTEMPTS {
        match &outcome {
            Err(error) if error.is_duplicate_key() => outcome = durably(shop, &work).await,
            _ => break,
        }
    }
    outcome.unwrap_or_else(|error| failed(work.len(), &error))
}

async fn durably(shop: &Shop, work: &[Shared]) -> store::Result<Vec<Result<Value>>> {
    told(shop, transact(shop, work).await?).await
}

/// The answers of a batch, once it is durable.
async fn told(shop: &Shop, executed: Executed<Done>) -> store::Result<Vec<Result<Value>>> {
    let (answers, (changed, buyers)) = executed.durable().await?;
    shop.forget(&changed, &buyers);
    Ok(answers)
}

/// The answers, what was changed, and whose orders are among it.
type Done = (Vec<Result<Value>>, (Vec<Place>, Vec<String>));

async fn transact(shop: &Shop, work: &[Shared]) -> store::Result<Executed<Done>> {
    let (mine, work) = (shop.clone(), work.to_vec());
    shop.store()
        .execute_transaction(move |session| {
            let (shop, work) = (mine.clone(), work.clone());
            Box::pin(async move {
                let mut unit = Unit::new(shop, session);
                let answers = decide(&mut unit, &work).await?;
                let changed = unit.finish().await.map_err(of_store)?;
                Ok::<Done, store::Error>((answers, changed))
            })
        })
        .await
}

async fn decide(unit: &mut Unit<'_>, work: &[Shared]) -> store::Result<Vec<Result<Value>>> {
    let mut answers = Vec::with_capacity(work.len());
    unit.prefetch(work.iter().flat_map(|job| job.1.iter().cloned()).collect()).await.map_err(of_store)?;
    for job in work {
        let mark = unit.mark();
        match (job.0)(unit).await {
            Err(Error::Store(error)) => return Err(error),
            Err(refusal) => {
                unit.back_to(mark);
                answers.push(Err(refusal));
            }
            Ok(value) => answers.push(Ok(value)),
        }
    }
    Ok(answers)
}

fn of_store(error: Error) -> store::Error {
    match error {
        Error::Store(error) => error,
        other => store::Error::new(8, other.to_string()),
    }
}
