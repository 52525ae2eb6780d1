//! What the measurements share.

use std::time::{Duration, Instant};

/// A stream of pseudo-random numbers.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }
}

/// A key of 24 bytes, in an order unrelated to its number.
pub fn key(number: u64) -> [u8; 24] {
    let mut key = *b"docs/0123456701234567890";
    key[5..13].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key[13..21].copy_from_slice(&number.to_be_bytes());
    key
}

/// A value that lz4 shortens about as much as a document.
pub fn value(dice: &mut Dice, length: usize) -> Vec<u8> {
    (0..length).map(|at| if at % 4 == 0 { dice.below(64) as u8 + 32 } else { (at % 23) as u8 + 97 }).collect()
}

/// Runs something a number of times and returns the mean time.
pub fn mean(times: u32, mut body: impl FnMut()) -> Duration {
    let started = Instant::now();
    for _ in 0..times {
        body();
    }
    started.elapsed() / times
}

/// The processor time of this process so far.
pub fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}
