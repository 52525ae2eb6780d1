//! Sheaf's engine.

use crate::Rival;
use crate::common::{Dice, order};
use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};
use engine::operation::{Aggregate, Find, Insert};
use engine::{Context, Engine, Namespace, Options};
use std::path::Path;

pub struct Sheaf(Engine);

impl Sheaf {
    pub fn open(folder: &Path) -> Sheaf {
        Sheaf(Engine::open(folder, Options::system()).unwrap())
    }

    fn run(&self, stages: Vec<RawDocumentBuf>) -> Option<usize> {
        let pipeline: RawArrayBuf = stages.into_iter().collect();
        Some(self.0.aggregate(&Context::default(), &Aggregate::new(orders(), pipeline)).unwrap().documents.len())
    }
}

fn orders() -> Namespace {
    Namespace::new("shop", "orders").unwrap()
}

impl Rival for Sheaf {
    fn name(&self) -> &'static str {
        "sheaf"
    }

    fn insert(&self, from: i64, to: i64) {
        let mut dice = Dice::new(from as u64);
        let insert = Insert {
            namespace: orders(),
            documents: (from..to).map(|number| order(number, &mut dice)).collect(),
            ordered: true,
            bypass_document_validation: false,
            statement_ids: Vec::new(),
        };
        assert!(self.0.insert(&Context::default(), insert).unwrap().wait().unwrap().errors.is_empty());
    }

    fn index(&self) {
        let index = rawdoc! { "key": { "user": 1, "created": -1 }, "name": "mine" };
        self.0.create_indexes(&Context::default(), &orders(), &[index]).unwrap().wait().unwrap();
    }

    fn point(&self, id: i64) {
        let mut find = Find::new(orders());
        find.query.filter = rawdoc! { "_id": id };
        assert_eq!(self.0.find(&Context::default(), &find).unwrap().documents.len(), 1);
    }

    fn sorted(&self, user: i64) {
        let mut find = Find::new(orders());
        find.query.filter = rawdoc! { "user": user };
        find.query.sort = Some(rawdoc! { "created": -1 });
        find.query.limit = 20;
        self.0.find(&Context::default(), &find).unwrap();
    }

    fn group(&self) -> Option<usize> {
        self.run(vec![rawdoc! { "$group": { "_id": "$city", "total": { "$sum": "$total" }, "count": { "$sum": 1 } } }])
    }

    fn match_group(&self) -> Option<usize> {
        let group = rawdoc! { "$group": { "_id": "$city", "total": { "$sum": "$total" }, "count": { "$sum": 1 } } };
        self.run(vec![rawdoc! { "$match": { "state": "paid" } }, group])
    }

    fn top(&self) -> Option<usize> {
        self.run(vec![rawdoc! { "$sort": { "total": -1 } }, rawdoc! { "$limit": 10 }])
    }
}
