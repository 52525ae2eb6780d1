//! `sheaf keep`: keeps a model true on a deployment that others write to.

use super::{block_on, complain, load};
use crate::metrics::{self, Pages, Text};
use ::model::keep::Keeper;
use ::model::keep::deployment::{Deployment, Progress, run as keep_on};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::Store;

/// How long to wait for another keeper's lease before looking again.
const LEASE_POLL: Duration = Duration::from_secs(5);

/// `sheaf keep …`
#[derive(Args)]
pub(crate) struct Arguments {
    /// The deployment's mongodb:// URL
    url: String,
    /// A *.sheaf.kdl file, or a folder of them
    model: PathBuf,
    /// The database, unless the URL names it
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Print what was done every so many seconds
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    every: u64,
    /// Port for Prometheus (/metrics) and health (/health) on 127.0.0.1 (0 takes any free one)
    #[arg(long, value_name = "N")]
    metrics_port: Option<u16>,
    /// Catch up and end
    #[arg(long)]
    once: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    let model = match load(&arguments.model) {
        Ok(checked) => checked.model,
        Err(code) => return code,
    };
    match block_on(keep(&arguments, &model)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            complain(&format!("sheaf keep: {message}\n"));
            ExitCode::FAILURE
        }
    }
}

async fn keep(arguments: &Arguments, model: &::model::Model) -> Result<(), String> {
    let text = |error: store::Error| error.to_string();
    if !store::is_url(&arguments.url) {
        return Err("a folder is kept by `sheaf serve` itself; give the mongodb:// URL of a deployment".to_owned());
    }
    let store = Store::connect(&arguments.url).await.map_err(text)?;
    let database = arguments.database.clone().or_else(|| store.default_database().map(str::to_owned));
    let database = database.ok_or("name the database with --database, or in the URL")?;
    let stopping = Arc::new(AtomicBool::new(false));
    let stop = stopping.clone();
    tokio::spawn(async move {
        // Without the signal there is nothing to wait for.
        let _ = tokio::signal::ctrl_c().await;
        stop.store(true, Ordering::Relaxed);
    });
    let known = Arc::new(Mutex::new(Known::default()));
    if let Some(port) = arguments.metrics_port {
        let address = metrics::start("127.0.0.1", port, pages(known.clone())).await;
        let address = address.map_err(|error| format!("the metrics' port {port}: {error}"))?;
        complain(&format!("sheaf keep: metrics: http://{address}/metrics\n"));
    }
    let owner = format!("{}:{}", std::env::var("HOSTNAME").unwrap_or_default(), std::process::id());
    let mut deployment = loop {
        let keeper = Keeper::new(model).map_err(|error| error.to_string())?;
        for unkept in keeper.unkept_beside() {
            complain(&format!("sheaf keep: {unkept} is not kept on a deployment\n"));
        }
        match Deployment::start(&store, &database, keeper, &owner).await.map_err(text)? {
            Some(deployment) => break deployment,
            None if stopping.load(Ordering::Relaxed) => return Ok(()),
            None => {
                complain("sheaf keep: another keeper holds the lease; waiting\n");
                tokio::time::sleep(LEASE_POLL).await;
            }
        }
    };
    if arguments.once {
        while deployment.step().await.map_err(text)? > 0 {}
        report(deployment.progress(), 0.0);
    } else {
        let every = Duration::from_secs(arguments.every.max(1));
        let tell = |progress: &Progress, per_second: f64| {
            *known.lock().unwrap_or_else(PoisonError::into_inner) = Known { progress: progress.clone(), per_second };
            report(progress, per_second);
        };
        keep_on(&mut deployment, || stopping.load(Ordering::Relaxed), every, tell).await.map_err(text)?;
    }
    deployment.stop().await.map_err(text)
}

/// What was last reported.
#[derive(Default)]
struct Known {
    progress: Progress,
    per_second: f64,
}

fn pages(known: Arc<Mutex<Known>>) -> Pages {
    let numbers = known.clone();
    let page = move || {
        let known = numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut text, progress) = (Text::default(), &known.progress);
        let lag = progress.lag.as_secs_f64();
        text.one("keep_lag_seconds", "gauge", "How old the last event was when it was carried out.", lag);
        text.one("keep_effects_per_second", "gauge", "Effects carried out, lately.", known.per_second);
        for (name, help, value) in [
            ("keep_effects_total", "Effects carried out.", progress.effects),
            ("keep_events_total", "Events read.", progress.events),
            ("keep_documents_total", "Documents looked at.", progress.documents),
            ("keep_passes_total", "Passes over everything.", progress.passes),
            ("keep_errors_total", "Transactions that had to be tried again, and lost tokens.", progress.errors),
        ] {
            text.one(name, "counter", help, value as f64);
        }
        text.0
    };
    let health = move || {
        let known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let reasons: Vec<String> = known.progress.last_error.iter().cloned().collect();
        ("200 OK", metrics::state("ok", &reasons))
    };
    Pages::new(page, health)
}

fn report(progress: &Progress, per_second: f64) {
    let last_error = progress.last_error.as_deref().unwrap_or("none");
    complain(&format!(
        "keep_lag_seconds {:.1}  keep_effects_per_second {per_second:.0}  keep_effects_total {}  keep_events_total {}  \
         keep_passes_total {}  last error: {last_error}\n",
        progress.lag.as_secs_f64(),
        progress.effects,
        progress.events,
        progress.passes
    ));
}
