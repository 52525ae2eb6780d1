//! How much memory the caches get.

use std::fs::read_to_string;

/// The caches get one part in so many of the memory there is.
const SHARE: u64 = 4;
/// And never less than this.
const LEAST_BYTES: u64 = 320 << 20;

/// What the caches of the table file take where nobody says how much: a quarter of the memory that this process may use.
pub(crate) fn default_cache_bytes() -> u64 {
    let limits = [
        machine_bytes(&read_to_string("/proc/meminfo").unwrap_or_default()),
        limit_bytes(&read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default()),
        limit_bytes(&read_to_string("/sys/fs/cgroup/memory/memory.limit_in_bytes").unwrap_or_default()),
    ];
    limits.into_iter().flatten().min().map_or(0, |bytes| bytes / SHARE).max(LEAST_BYTES)
}

/// The sizes of the page cache and of the cache of single values, from what both may take.
pub(crate) fn split(cache_bytes: u64) -> (usize, usize) {
    let points = cache_bytes / 5 * 2;
    ((cache_bytes - points) as usize, points as usize)
}

/// The machine's memory, from the text of `/proc/meminfo`.
fn machine_bytes(text: &str) -> Option<u64> {
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(total.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// The limit of a control group, from the text of its file; none where it says `max`.
fn limit_bytes(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{default_cache_bytes, limit_bytes, machine_bytes, split};

    #[test]
    fn limits_are_read_from_the_systems_files() {
        assert_eq!(machine_bytes("MemTotal:       24683108 kB\nMemFree:  1 kB\n"), Some(24_683_108 * 1024));
        assert_eq!(limit_bytes("536870912\n"), Some(536_870_912));
        assert_eq!(limit_bytes("max\n"), None);
        assert!(default_cache_bytes() >= super::LEAST_BYTES);
    }

    #[test]
    fn two_fifths_go_to_single_values() {
        assert_eq!(split(1000), (600, 400));
    }
}
