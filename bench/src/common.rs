//! What the rivals share too: numbers by chance, clocks, memory, and the orders that are stored.

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
    cpu_of("self")
}

/// The processor time of this process's present threads, to the nanosecond: for what no thread ends in.
pub fn cpu_fine() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().filter_map(|task| task.ok());
    let times = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    Duration::from_nanos(times.map(|stat| stat.split(' ').next().unwrap().parse::<u64>().unwrap()).sum())
}

/// The processor time of a process so far.
pub fn cpu_of(process: &str) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// The resident memory of a process in MB: now, and at most so far.
pub fn memory_mb(process: &str) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).expect("a field of status");
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// A shop's order as a document of about 400 bytes: what most measurements store.
pub fn order(number: i64, dice: &mut Dice) -> bson::RawDocumentBuf {
    const CITIES: [&str; 8] = ["Lyon", "Porto", "Ghent", "Bergen", "Turin", "Graz", "Gdansk", "Malmo"];
    const STATES: [&str; 4] = ["created", "paid", "shipped", "signed"];
    bson::rawdoc! {
        "_id": number,
        "number": format!("2026-{number:09}"),
        "user": dice.below(100_000) as i64,
        "city": CITIES[dice.below(8) as usize],
        "state": STATES[dice.below(4) as usize],
        "total": dice.below(100_000) as i64,
        "created": bson::DateTime::from_millis(1_700_000_000_000 + dice.below(31_536_000_000) as i64),
        "buyer": { "name": format!("buyer {}", dice.below(100_000)), "phone": "+33 1 23 45 67 89" },
        "items": [
            { "sku": dice.below(10_000) as i64, "name": "Desk lamp, brass", "price": 4_900_i64, "quantity": 1_i32 },
            { "sku": dice.below(10_000) as i64, "name": "Bulb, warm white", "price": 450_i64, "quantity": 4_i32 },
        ],
    }
}

/// A document as plain JSON, for rivals that store that.
pub fn json(document: &bson::RawDocument) -> String {
    let tree = bson::Document::try_from(document).unwrap();
    plain(bson::Bson::Document(tree)).to_string()
}

fn plain(value: bson::Bson) -> serde_json::Value {
    match value {
        bson::Bson::Document(fields) => {
            serde_json::Value::Object(fields.into_iter().map(|(name, value)| (name, plain(value))).collect())
        }
        bson::Bson::Array(values) => serde_json::Value::Array(values.into_iter().map(plain).collect()),
        bson::Bson::Int64(number) => number.into(),
        bson::Bson::Int32(number) => number.into(),
        bson::Bson::DateTime(time) => time.timestamp_millis().into(),
        bson::Bson::String(text) => text.into(),
        other => panic!("{other} is in no order"),
    }
}
