//! How often a caller may call: a token bucket for each, in a bounded table.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The most callers that are remembered; beyond, those whose buckets are full again are forgotten.
const MAX_CALLERS: usize = 100_000;

/// The buckets.
pub(crate) struct RateLimit {
    per_second: f64,
    burst: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

struct Bucket {
    left: f64,
    at: Instant,
}

impl RateLimit {
    /// Buckets of `burst` calls that refill by `per_second`; zero for no limit.
    pub(crate) fn new(per_second: u32, burst: u32) -> RateLimit {
        RateLimit {
            per_second: f64::from(per_second),
            burst: f64::from(burst.max(1)),
            buckets: Mutex::new(HashMap::new()),
        }
    }

    /// Takes a call from a caller's bucket.
    ///
    /// # Errors
    /// How long to wait for the next.
    pub(crate) fn take(&self, caller: &str, now: Instant) -> Result<(), Duration> {
        if self.per_second == 0.0 {
            return Ok(());
        }
        let mut buckets = self.buckets.lock();
        if buckets.len() >= MAX_CALLERS && !buckets.contains_key(caller) {
            let (rate, burst) = (self.per_second, self.burst);
            buckets.retain(|_, bucket| bucket.left + (now - bucket.at).as_secs_f64() * rate < burst);
            if buckets.len() >= MAX_CALLERS {
                return Err(Duration::from_secs(1));
            }
        }
        let full = Bucket { left: self.burst, at: now };
        let bucket = buckets.entry(caller.to_owned()).or_insert(full);
        let refilled = bucket.left + now.saturating_duration_since(bucket.at).as_secs_f64() * self.per_second;
        bucket.left = refilled.min(self.burst);
        bucket.at = now;
        if bucket.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.left) / self.per_second));
        }
        bucket.left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate_and_others_are_not_held_up() {
        let limit = RateLimit::new(10, 3);
        let now = Instant::now();
        for _ in 0..3 {
            limit.take("ada", now).unwrap();
        }
        let wait = limit.take("ada", now).unwrap_err();
        assert!((wait.as_secs_f64() - 0.1).abs() < 0.001, "{wait:?}");
        limit.take("bob", now).unwrap();
        limit.take("ada", now + Duration::from_millis(101)).unwrap();
        assert!(limit.take("ada", now + Duration::from_millis(102)).is_err());
    }

    #[test]
    fn zero_is_no_limit() {
        let limit = RateLimit::new(0, 1);
        let now = Instant::now();
        assert!((0..1000).all(|_| limit.take("ada", now).is_ok()));
    }
}
