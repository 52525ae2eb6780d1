//! Progress bars on a terminal; nothing elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// One bar.
pub(crate) struct Progress {
    bar: ProgressBar,
    begun: Instant,
}

impl Progress {
    /// A bar for `total` documents, or for an unknown number.
    pub(crate) fn documents(label: &str, total: Option<u64>, quiet: bool) -> Progress {
        let template = match total {
            Some(_) => "{prefix:30!} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}",
            None => "{prefix:30!} {spinner} {human_pos} {per_sec}",
        };
        Progress::of(label, total, template, quiet)
    }

    /// A bar for `total` bytes.
    pub(crate) fn bytes(label: &str, total: u64, quiet: bool) -> Progress {
        Progress::of(label, Some(total), "{prefix:30!} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}", quiet)
    }

    fn of(label: &str, total: Option<u64>, template: &str, quiet: bool) -> Progress {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(total, target);
        bar.set_style(ProgressStyle::with_template(template).expect("the templates are valid"));
        bar.set_prefix(label.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar, begun: Instant::now() }
    }

    /// So much more is done.
    pub(crate) fn add(&self, amount: u64) {
        self.bar.inc(amount);
    }

    /// Takes the bar away; says how long it took.
    pub(crate) fn finish(self) -> Duration {
        self.bar.finish_and_clear();
        self.begun.elapsed()
    }
}
