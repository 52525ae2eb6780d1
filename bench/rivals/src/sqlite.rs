//! SQLite with documents as jsonb.

use crate::Rival;
use crate::common::{Dice, json, order};
use rusqlite::{Connection, params};
use std::path::{Path, PathBuf};

pub struct Sqlite(PathBuf);

thread_local! {
    static CONNECTION: std::cell::RefCell<Option<Connection>> = const { std::cell::RefCell::new(None) };
}

impl Sqlite {
    pub fn open(file: &Path) -> Sqlite {
        let sqlite = Sqlite(file.to_owned());
        sqlite.with(|connection| {
            connection.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, doc BLOB NOT NULL)").unwrap();
        });
        sqlite
    }

    /// Runs something on the thread's own connection.
    fn with<T>(&self, body: impl FnOnce(&mut Connection) -> T) -> T {
        CONNECTION.with_borrow_mut(|slot| {
            let connection = slot.get_or_insert_with(|| {
                let connection = Connection::open(&self.0).unwrap();
                connection.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
                let settings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -262144;";
                connection.execute_batch(settings).unwrap();
                connection
            });
            body(connection)
        })
    }

    fn rows(&self, question: &str) -> Option<usize> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(question).unwrap();
            let mut rows = statement.query([]).unwrap();
            let mut count = 0;
            while rows.next().unwrap().is_some() {
                count += 1;
            }
            Some(count)
        })
    }
}

impl Rival for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn insert(&self, from: i64, to: i64) {
        let mut dice = Dice::new(from as u64);
        let orders: Vec<String> = (from..to).map(|number| json(&order(number, &mut dice))).collect();
        self.with(|connection| {
            let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
            {
                let mut insert = transaction.prepare_cached("INSERT INTO orders VALUES (?1, jsonb(?2))").unwrap();
                for (number, order) in (from..to).zip(&orders) {
                    insert.execute(params![number, order]).unwrap();
                }
            }
            transaction.commit().unwrap();
        });
    }

    fn index(&self) {
        self.with(|connection| {
            let index = "CREATE INDEX mine ON orders (doc ->> '$.user', doc ->> '$.created' DESC)";
            connection.execute_batch(index).unwrap();
        });
    }

    fn point(&self, id: i64) {
        self.with(|connection| {
            let mut find = connection.prepare_cached("SELECT doc FROM orders WHERE id = ?1").unwrap();
            let bytes: Vec<u8> = find.query_row([id], |row| row.get(0)).unwrap();
            assert!(!bytes.is_empty());
        });
    }

    fn sorted(&self, user: i64) {
        self.with(|connection| {
            let question =
                "SELECT doc FROM orders WHERE doc ->> '$.user' = ?1 ORDER BY doc ->> '$.created' DESC LIMIT 20";
            let mut find = connection.prepare_cached(question).unwrap();
            let rows = find.query_map([user], |row| row.get::<_, Vec<u8>>(0)).unwrap();
            rows.for_each(|row| drop(row.unwrap()));
        });
    }

    fn group(&self) -> Option<usize> {
        self.rows("SELECT doc ->> '$.city', sum(doc ->> '$.total'), count(*) FROM orders GROUP BY 1")
    }

    fn match_group(&self) -> Option<usize> {
        self.rows(
            "SELECT doc ->> '$.city', sum(doc ->> '$.total'), count(*) FROM orders WHERE doc ->> '$.state' = 'paid' \
             GROUP BY 1",
        )
    }

    fn top(&self) -> Option<usize> {
        self.rows("SELECT id, doc FROM orders ORDER BY doc ->> '$.total' DESC LIMIT 10")
    }
}
