//! The till: everything that changes the shop goes through it in the order of arrival, many jobs to a transaction.
//!
//! ```text
//!   buyers ──> queue (bounded) ──> batch ──> one transaction: read, decide, write once, commit ──> answers
//! ```
//!
//! Two transactions that want the same SKU would conflict, and with thousands of buyers of one SKU nearly all work would
//! be thrown away. Here they stand in line, and the whole line is served by one transaction: each job is decided on what
//! the jobs before it left, a refused one leaves no trace, and everybody gets an answer when the batch is durable. A lone
//! job waits for nobody. Other processes on the same deployment may still conflict with a batch; it then runs again.

use crate::error::{Error, Result};
use crate::note::Note;
use crate::shop::Shop;
use crate::unit::{Place, Unit};
use parking_lot::Mutex;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use store::BoxFuture;
use tokio::sync::oneshot;

/// The most jobs in one transaction.
pub const MAX_BATCH: usize = 256;

/// The most jobs that may wait.
pub const MAX_QUEUE: usize = 20_000;

/// How often a job that met a duplicate key is run again.
const MAX_ATTEMPTS: usize = 3;

type Value = Box<dyn Any + Send>;
type Work = Box<dyn for<'u, 's> Fn(&'u mut Unit<'s>) -> BoxFuture<'u, Result<Value>> + Send + Sync>;

struct Job {
    work: Work,
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
        self.submit(work, false).await
    }

    /// The same, with a note of what became of it in the same transaction.
    pub(crate) async fn run_noted<T, F>(&self, work: F, note: Option<Note<T>>) -> Result<T>
    where
        T: Send + Sync + 'static,
        F: for<'u, 's> Fn(&'u mut Unit<'s>) -> BoxFuture<'u, Result<T>> + Send + Sync + 'static,
    {
        let Some(note) = note else { return self.run(work).await };
        let (work, making) = (Arc::new(work), note.clone());
        let noted = self.run(move |unit| {
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
        self.submit(work, true).await
    }

    async fn submit<T, F>(&self, work: F, alone: bool) -> Result<T>
    where
        T: Send + 'static,
        F: for<'u, 's> Fn(&'u mut Unit<'s>) -> BoxFuture<'u, Result<T>> + Send + Sync + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let work: Work = Box::new(move |unit| {
            let running = work(unit);
            Box::pin(async move { running.await.map(|value| Box::new(value) as Value) })
        });
        self.stand_in_line(Job { work, alone, reply })?;
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
    loop {
        let batch: Vec<Job> = {
            let mut line = server.shop.till().line.lock();
            if line.waiting.is_empty() {
                line.served = false;
                server.done = true;
                break;
            }
            let together = line.waiting.iter().take(MAX_BATCH).take_while(|job| !job.alone).count();
            let count = together.max(1);
            line.waiting.drain(..count).collect()
        };
        let (work, replies): (Vec<Work>, Vec<_>) = batch.into_iter().map(|job| (job.work, job.reply)).unzip();
        for (reply, answer) in replies.into_iter().zip(execute(&server.shop, work).await) {
            let _ = reply.send(answer); // who asked may have gone
        }
    }
}

/// Runs a batch; when the store refuses it, its jobs one by one.
async fn execute(shop: &Shop, work: Vec<Work>) -> Vec<Result<Value>> {
    let count = work.len();
    let work: Vec<Arc<Work>> = work.into_iter().map(Arc::new).collect();
    match transact(shop, &work).await {
        Ok(answers) => answers,
        Err(error) if count == 1 || error.has_label("UnknownTransactionCommitResult") => {
            let mut outcome = Err(error);
            for _ in 1..MAX_ATTEMPTS {
                match &outcome {
                    Err(error) if error.is_duplicate_key() => outcome = transact(shop, &work).await,
                    _ => break,
                }
            }
            outcome.unwrap_or_else(|error| (0..count).map(|_| Err(Error::Store(error.clone()))).collect())
        }
        Err(_) => {
            let mut answers = Vec::with_capacity(count);
            for job in work {
                answers.extend(Box::pin(execute_shared(shop, job)).await);
            }
            answers
        }
    }
}

async fn execute_shared(shop: &Shop, job: Arc<Work>) -> Vec<Result<Value>> {
    let work: Work = Box::new(move |unit| job(unit));
    execute(shop, vec![work]).await
}

/// The answers, what was changed, and whose orders are among it.
type Done = (Vec<Result<Value>>, (Vec<Place>, Vec<String>));

async fn transact(shop: &Shop, work: &[Arc<Work>]) -> store::Result<Vec<Result<Value>>> {
    let (mine, work) = (shop.clone(), work.to_vec());
    let (answers, (changed, buyers)) = shop
        .store()
        .with_transaction(move |session| {
            let (shop, work) = (mine.clone(), work.clone());
            Box::pin(async move {
                let mut unit = Unit::new(shop, session);
                let answers = decide(&mut unit, &work).await?;
                let changed = unit.finish().await.map_err(of_store)?;
                Ok::<Done, store::Error>((answers, changed))
            })
        })
        .await?;
    shop.forget(&changed, &buyers);
    Ok(answers)
}

async fn decide(unit: &mut Unit<'_>, work: &[Arc<Work>]) -> store::Result<Vec<Result<Value>>> {
    let mut answers = Vec::with_capacity(work.len());
    for job in work {
        let mark = unit.mark();
        match job(unit).await {
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
