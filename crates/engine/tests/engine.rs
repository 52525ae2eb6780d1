//! The engine through its public face: one document's life, batches, guards, transactions, hooks, a restart.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

use bson::{Binary, RawBsonRef, RawDocumentBuf, rawdoc};
use engine::hook::{DocumentWrite, HookScope, WriteHook};
use engine::operation::{
    Aggregate, Count, Create, Delete, DeleteStatement, Find, FindAndModify, Insert, Modification, Query, Update,
    UpdateStatement,
};
use engine::{Code, Context, Engine, Namespace, Options, SessionContext};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

fn memory() -> Engine {
    Engine::in_memory(Options::system()).unwrap()
}

fn namespace() -> Namespace {
    Namespace::new("shop", "items").unwrap()
}

fn insert(engine: &Engine, context: &Context, documents: Vec<RawDocumentBuf>) -> usize {
    let insert = Insert {
        namespace: namespace(),
        documents,
        ordered: true,
        bypass_document_validation: false,
        statement_ids: Vec::new(),
    };
    let reply = engine.insert(context, insert).unwrap().wait().unwrap();
    assert!(reply.errors.is_empty(), "{:?}", reply.errors);
    reply.n
}

fn find(engine: &Engine, context: &Context, filter: RawDocumentBuf) -> Vec<RawDocumentBuf> {
    let find = Find { query: Query { filter, ..Query::default() }, ..Find::new(namespace()) };
    let batch = engine.find(context, &find).unwrap();
    batch.documents.iter().map(|bytes| RawDocumentBuf::from_bytes(bytes.to_vec()).unwrap()).collect()
}

fn update(filter: RawDocumentBuf, update: RawDocumentBuf) -> Update {
    Update {
        namespace: namespace(),
        statements: vec![UpdateStatement {
            query: Query { filter, ..Query::default() },
            update: update.into(),
            multi: false,
            upsert: false,
            array_filters: Vec::new(),
        }],
        ordered: true,
        bypass_document_validation: false,
        statement_ids: Vec::new(),
    }
}

fn transaction(session: u8, number: i64, start: bool) -> Context {
    let session = SessionContext {
        id: [session; 16],
        user: [0; 32],
        txn_number: Some(number),
        in_transaction: true,
        start_transaction: start,
        ahead: false,
        begun: Arc::default(),
    };
    Context { session: Some(session), ..Context::default() }
}

#[test]
fn a_document_is_inserted_found_changed_and_deleted() {
    let engine = memory();
    let context = Context::default();
    assert_eq!(insert(&engine, &context, vec![rawdoc! { "_id": 1, "a": "x" }, rawdoc! { "_id": 2, "a": "y" }]), 2);
    assert_eq!(find(&engine, &context, rawdoc! { "a": "y" }), [rawdoc! { "_id": 2, "a": "y" }]);
    let change = update(rawdoc! { "_id": 1 }, rawdoc! { "$set": { "a": "z" } });
    let reply = engine.update(&context, &change).unwrap().wait().unwrap();
    assert_eq!((reply.n, reply.n_modified), (1, 1));
    assert_eq!(find(&engine, &context, rawdoc! { "_id": 1 }), [rawdoc! { "_id": 1, "a": "z" }]);
    let delete = Delete {
        namespace: namespace(),
        statements: vec![DeleteStatement { query: Query::default(), multi: true }],
        ordered: true,
        statement_ids: Vec::new(),
    };
    assert_eq!(engine.delete(&context, &delete).unwrap().wait().unwrap().n, 2);
    assert_eq!(engine.count(&context, &Count { namespace: namespace(), query: Query::default() }).unwrap(), 0);
}

#[test]
fn a_second_document_with_the_same_id_is_refused_and_the_rest_of_an_unordered_batch_stays() {
    let engine = memory();
    let insert = Insert {
        namespace: namespace(),
        documents: vec![rawdoc! { "_id": 1 }, rawdoc! { "_id": 1.0 }, rawdoc! { "_id": 3 }],
        ordered: false,
        bypass_document_validation: false,
        statement_ids: Vec::new(),
    };
    let reply = engine.insert(&Context::default(), insert).unwrap().wait().unwrap();
    assert_eq!(reply.n, 2);
    assert_eq!(reply.errors.len(), 1);
    assert_eq!((reply.errors[0].index, reply.errors[0].error.code), (1, Code::DUPLICATE_KEY));
}

#[test]
fn two_hundred_buyers_of_fifty_units_sell_exactly_fifty() {
    let engine = memory();
    insert(&engine, &Context::default(), vec![rawdoc! { "_id": "sku", "stock": 50 }]);
    let sold = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let change =
                        update(rawdoc! { "_id": "sku", "stock": { "$gte": 1 } }, rawdoc! { "$inc": { "stock": -1 } });
                    let reply = engine.update(&Context::default(), &change).unwrap().wait().unwrap();
                    sold.fetch_add(reply.n as u64, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(sold.into_inner(), 50);
    assert_eq!(find(&engine, &Context::default(), rawdoc! { "_id": "sku" }), [rawdoc! { "_id": "sku", "stock": 0 }]);
}

#[test]
fn a_transaction_is_invisible_until_it_commits_and_the_first_updater_wins() {
    let engine = memory();
    let plain = Context::default();
    insert(&engine, &plain, vec![rawdoc! { "_id": 1, "n": 0 }]);
    let change = update(rawdoc! { "_id": 1 }, rawdoc! { "$inc": { "n": 1 } });
    let _ = engine.update(&transaction(1, 1, true), &change).unwrap();
    assert_eq!(find(&engine, &plain, rawdoc! {}), [rawdoc! { "_id": 1, "n": 0 }]);
    assert_eq!(find(&engine, &transaction(1, 1, false), rawdoc! {}), [rawdoc! { "_id": 1, "n": 1 }]);
    let lost = engine.update(&transaction(2, 1, true), &change).err().unwrap();
    assert_eq!(lost.code, Code::WRITE_CONFLICT);
    assert_eq!(lost.labels(), ["TransientTransactionError"]);
    engine.commit_transaction(&transaction(1, 1, false)).unwrap().wait().unwrap();
    engine.commit_transaction(&transaction(1, 1, false)).unwrap().wait().unwrap();
    assert_eq!(find(&engine, &plain, rawdoc! {}), [rawdoc! { "_id": 1, "n": 1 }]);
    assert_eq!(engine.commit_transaction(&transaction(2, 1, false)).err().unwrap().code, Code::NO_SUCH_TRANSACTION);
}

#[test]
fn a_transaction_that_reads_ahead_sees_what_is_not_flushed_and_nobody_else_does() {
    let engine = memory();
    let plain = Context::default();
    insert(&engine, &plain, vec![rawdoc! { "_id": 1, "n": 0 }]);
    let gate = Arc::new(Mutex::new(()));
    let (held, closed) = (gate.clone(), gate.lock().unwrap());
    engine.storage().on_publish(Box::new(move |_| drop(held.lock())));
    let ahead = |start: bool| {
        let mut context = transaction(2, 1, start);
        context.session.as_mut().unwrap().ahead = true;
        context
    };
    let change = update(rawdoc! { "_id": 1 }, rawdoc! { "$inc": { "n": 1 } });
    let first = engine.update(&plain, &change).unwrap();
    assert_eq!(find(&engine, &transaction(1, 1, true), rawdoc! {}), [rawdoc! { "_id": 1, "n": 0 }]);
    assert_eq!(find(&engine, &ahead(true), rawdoc! {}), [rawdoc! { "_id": 1, "n": 1 }]);
    let _ = engine.update(&ahead(false), &change).unwrap();
    let second = engine.commit_transaction(&ahead(false)).unwrap();
    let lost = engine.update(&transaction(1, 1, false), &change).err().unwrap();
    assert_eq!(lost.code, Code::WRITE_CONFLICT, "its snapshot is older");
    assert_eq!(find(&engine, &plain, rawdoc! {}), [rawdoc! { "_id": 1, "n": 0 }], "nothing is flushed yet");
    drop(closed);
    second.wait().unwrap();
    assert_eq!(find(&engine, &plain, rawdoc! {}), [rawdoc! { "_id": 1, "n": 2 }]);
    first.wait().unwrap();
}

#[test]
fn what_a_transaction_has_deleted_it_may_insert_again() {
    let engine = memory();
    let unique = [rawdoc! { "key": { "n": 1 }, "name": "n_1", "unique": true }];
    engine.create_indexes(&Context::default(), &namespace(), &unique).unwrap().wait().unwrap();
    insert(&engine, &Context::default(), vec![rawdoc! { "_id": 1, "n": 1 }, rawdoc! { "_id": 2, "n": 2 }]);
    let delete = Delete {
        namespace: namespace(),
        statements: vec![DeleteStatement { query: Query::default(), multi: true }],
        ordered: true,
        statement_ids: Vec::new(),
    };
    assert_eq!(engine.delete(&transaction(1, 1, true), &delete).unwrap().reply.n, 2);
    // The same ids, and the keys of the unique index the other way round.
    let anew = vec![rawdoc! { "_id": 1, "n": 2 }, rawdoc! { "_id": 2, "n": 1 }];
    assert_eq!(insert(&engine, &transaction(1, 1, false), anew.clone()), 2);
    engine.commit_transaction(&transaction(1, 1, false)).unwrap().wait().unwrap();
    assert_eq!(find(&engine, &Context::default(), rawdoc! {}), anew);
    // Somebody else's key is a conflict as before.
    assert!(find(&engine, &transaction(2, 1, true), rawdoc! { "_id": 9 }).is_empty());
    insert(&engine, &Context::default(), vec![rawdoc! { "_id": 3, "n": 3 }]);
    for taken in [rawdoc! { "_id": 3 }, rawdoc! { "_id": 4, "n": 3 }] {
        let mine = Insert {
            namespace: namespace(),
            documents: vec![taken],
            ordered: true,
            bypass_document_validation: false,
            statement_ids: Vec::new(),
        };
        let refused = engine.insert(&transaction(2, 1, false), mine).err().map(|error| error.code);
        assert!([Some(Code::WRITE_CONFLICT), Some(Code::NO_SUCH_TRANSACTION)].contains(&refused), "{refused:?}");
    }
}

#[test]
fn a_retried_write_is_done_once_and_answers_the_same() {
    let engine = memory();
    insert(&engine, &Context::default(), vec![rawdoc! { "_id": 1, "n": 0 }]);
    let session = SessionContext {
        id: [9; 16],
        user: [0; 32],
        txn_number: Some(5),
        in_transaction: false,
        start_transaction: false,
        ahead: false,
        begun: Arc::default(),
    };
    let context = Context { session: Some(session), ..Context::default() };
    let arguments = FindAndModify {
        namespace: namespace(),
        query: Query { filter: rawdoc! { "_id": 1 }, ..Query::default() },
        modification: Modification::Update {
            update: rawdoc! { "$inc": { "n": 1 } }.into(),
            upsert: false,
            new: true,
            array_filters: Vec::new(),
        },
        fields: None,
        bypass_document_validation: false,
        statement_id: 0,
    };
    for _ in 0..3 {
        let reply = engine.find_and_modify(&context, &arguments).unwrap().wait().unwrap();
        assert_eq!(reply.value, Some(rawdoc! { "_id": 1, "n": 1 }));
    }
}

#[test]
fn a_retryable_write_beside_a_transaction_of_its_own_session_does_not_stop_the_engine() {
    let engine = memory();
    insert(&engine, &Context::default(), vec![rawdoc! { "_id": "one", "n": 0 }]);
    let (number, (done, all_done)) = (Arc::new(AtomicU64::new(1)), std::sync::mpsc::channel());
    let next = move || number.fetch_add(1, Ordering::Relaxed) as i64;
    let allowed = [Code::TRANSACTION_TOO_OLD, Code::NO_SUCH_TRANSACTION, Code::WRITE_CONFLICT];
    for writes_alone in [true, false] {
        let (engine, next, done) = (engine.clone(), next.clone(), done.clone());
        std::thread::spawn(move || {
            for _ in 0..2_000 {
                let number = next();
                let mut context = transaction(7, number, !writes_alone);
                if let (true, Some(session)) = (writes_alone, &mut context.session) {
                    session.in_transaction = false;
                }
                let written =
                    engine.update(&context, &update(rawdoc! { "_id": "one" }, rawdoc! { "$inc": { "n": 1 } }));
                let outcome = match written.and_then(|written| written.wait()) {
                    Ok(reply) if reply.errors.is_empty() && !writes_alone => {
                        engine.commit_transaction(&transaction(7, number, false)).map(drop)
                    }
                    Ok(reply) => reply.errors.into_iter().next().map_or(Ok(()), |failed| Err(failed.error)),
                    Err(error) => Err(error),
                };
                if let Err(error) = outcome {
                    assert!(allowed.contains(&error.code), "{error:?}");
                }
            }
            done.send(()).unwrap();
        });
    }
    for _ in 0..2 {
        all_done
            .recv_timeout(std::time::Duration::from_secs(120))
            .expect("neither thread waits for the other for ever");
    }
}

/// Counts a collection's documents in `shop.counts`.
struct Counter;

impl WriteHook for Counter {
    fn watches(&self, namespace: &Namespace) -> bool {
        namespace.collection == "items"
    }

    fn before_write(
        &self,
        write: DocumentWrite<'_>,
        scope: &mut dyn HookScope,
    ) -> engine::Result<Option<RawDocumentBuf>> {
        let by = i32::from(write.after.is_some()) - i32::from(write.before.is_some());
        let counts = Namespace::new("shop", "counts")?;
        let before = scope.get(&counts, RawBsonRef::String("items"))?;
        let count = before.as_ref().map_or(0, |document| document.get_i32("n").unwrap());
        let after = rawdoc! { "_id": "items", "n": count + by };
        if before.is_some() {
            scope.replace(&counts, after).map(|_| ())?
        } else {
            scope.insert(&counts, after)?
        }
        Ok(None)
    }
}

#[test]
fn a_hook_keeps_a_counter_in_single_writes_and_in_transactions_and_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let counted = |engine: &Engine| {
        let counts = Namespace::new("shop", "counts").unwrap();
        let batch = engine.find(&Context::default(), &Find::new(counts)).unwrap();
        batch.documents.first().map_or(0, |bytes| bson::RawDocument::from_bytes(bytes).unwrap().get_i32("n").unwrap())
    };
    {
        let engine = Engine::open(folder.path(), Options::system()).unwrap();
        engine.add_hook(Arc::new(Counter));
        insert(&engine, &Context::default(), (0..10).map(|id| rawdoc! { "_id": id }).collect());
        insert(&engine, &transaction(1, 1, true), vec![rawdoc! { "_id": 100 }, rawdoc! { "_id": 101 }]);
        assert_eq!(counted(&engine), 10);
        engine.commit_transaction(&transaction(1, 1, false)).unwrap().wait().unwrap();
        assert_eq!(counted(&engine), 12);
        engine.close().unwrap();
    }
    let engine = Engine::open(folder.path(), Options::system()).unwrap();
    assert_eq!(counted(&engine), 12);
    assert_eq!(find(&engine, &Context::default(), rawdoc! {}).len(), 12);
}

#[test]
fn an_index_is_built_on_what_is_there_and_unique_means_unique() {
    let engine = memory();
    let context = Context::default();
    insert(&engine, &context, (0..1000).map(|id| rawdoc! { "_id": id, "v": id % 999 }).collect());
    let spec = rawdoc! { "key": { "v": 1 }, "name": "v_1", "unique": true };
    let refused = engine.create_indexes(&context, &namespace(), std::slice::from_ref(&spec)).err().unwrap();
    assert_eq!(refused.code, Code::DUPLICATE_KEY);
    assert_eq!(engine.collection(&context, &namespace()).unwrap().collection.indexes.len(), 0);
    let change = update(rawdoc! { "_id": 999 }, rawdoc! { "$set": { "v": 5000 } });
    engine.update(&context, &change).unwrap().wait().unwrap();
    let reply = engine.create_indexes(&context, &namespace(), &[spec]).unwrap().wait().unwrap();
    assert_eq!((reply.before, reply.after), (1, 2));
    let change = update(rawdoc! { "_id": 3 }, rawdoc! { "$set": { "v": 7 } });
    let reply = engine.update(&context, &change).unwrap().wait().unwrap();
    assert_eq!(reply.errors[0].error.code, Code::DUPLICATE_KEY);
    assert_eq!(
        reply.errors[0].error.message,
        "E11000 duplicate key error collection: shop.items index: v_1 dup key: { v: 7 }"
    );
}

#[test]
fn a_statement_sees_what_earlier_statements_of_its_command_wrote() {
    let engine = memory();
    let context = Context::default();
    insert(&engine, &context, vec![rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }]);
    let mut command = update(rawdoc! { "_id": 3 }, rawdoc! { "n": 3 });
    command.statements[0].upsert = true;
    command.statements.extend(update(rawdoc! {}, rawdoc! { "$inc": { "all": 1 } }).statements);
    command.statements[1].multi = true;
    command.statements.extend(update(rawdoc! { "all": 1, "n": 3 }, rawdoc! { "$set": { "seen": true } }).statements);
    let reply = engine.update(&context, &command).unwrap().wait().unwrap();
    assert_eq!((reply.n, reply.n_modified), (5, 4));
    assert_eq!(find(&engine, &context, rawdoc! { "_id": 3 }), [rawdoc! { "_id": 3, "n": 3, "all": 1, "seen": true }]);
}

#[test]
fn a_change_stream_is_closed_with_the_invalidate_event() {
    let (engine, context) = (memory(), Context::default());
    insert(&engine, &context, vec![rawdoc! { "_id": 1 }]);
    let mut pipeline = bson::RawArrayBuf::new();
    pipeline.push(rawdoc! { "$changeStream": {} });
    for whole_database in [false, true] {
        let collection = if whole_database { String::new() } else { "items".to_owned() };
        let watched = Namespace { collection, ..namespace() };
        let stream = engine.aggregate(&context, &Aggregate::new(watched, pipeline.clone())).unwrap();
        assert_ne!(stream.cursor, 0);
        insert(&engine, &context, vec![rawdoc! { "_id": 2 + i32::from(whole_database) }]);
        match whole_database {
            true => drop(engine.drop_database(&context, "shop").unwrap().wait().unwrap()),
            false => drop(engine.drop_collection(&context, &namespace()).unwrap().wait().unwrap()),
        }
        let (mut kinds, mut open) = (Vec::new(), stream.cursor);
        while open != 0 {
            let batch = engine.get_more(&context, open, &stream.namespace, None, None).unwrap();
            open = batch.cursor;
            for bytes in batch.documents {
                let event = RawDocumentBuf::from_bytes(bytes.to_vec()).unwrap();
                kinds.push(event.get_str("operationType").unwrap().to_owned());
            }
            assert!(open == 0 || kinds.last().is_none_or(|kind| kind != "invalidate"), "closed with it: {kinds:?}");
        }
        assert_eq!(kinds.last().unwrap(), "invalidate");
        let gone = engine.get_more(&context, stream.cursor, &stream.namespace, None, None);
        assert_eq!(gone.unwrap_err().code, Code::CURSOR_NOT_FOUND);
    }
}

/// How often the operations of one test made room for others.
static MADE_ROOM: AtomicU64 = AtomicU64::new(0);

#[test]
fn what_is_a_few_reads_away_is_answered_at_once_and_what_may_take_long_makes_room() {
    let engine = memory();
    let context = Context {
        blocking: |part| {
            MADE_ROOM.fetch_add(1, Ordering::Relaxed);
            part();
        },
        ..Context::default()
    };
    let many: Vec<i32> = (0..200).collect();
    let documents = (0..300).map(|id| rawdoc! { "_id": id, "other": (id + 1) % 300, "even": id % 2 }).collect();
    insert(&engine, &context, documents);
    insert(&engine, &context, vec![rawdoc! { "_id": "many", "other": bson::RawArrayBuf::from_iter(many) }]);
    let by_id = |id: bson::RawBson| rawdoc! { "$match": { "_id": id } };
    let join = |foreign: &str| rawdoc! { "$lookup": { "from": "items", "localField": "other", "foreignField": foreign, "as": "joined" } };
    let shown = rawdoc! { "$project": { "joined": 1 } };
    let joined = |pipeline: &[RawDocumentBuf]| {
        let before = MADE_ROOM.load(Ordering::Relaxed);
        let pipeline = pipeline.iter().cloned().collect();
        let rows = engine.aggregate(&context, &Aggregate::new(namespace(), pipeline)).unwrap().documents;
        let first = rawdoc_of(&rows[0]).get_array("joined").map_or(0, |joined| joined.into_iter().count());
        (rows.len(), first, MADE_ROOM.load(Ordering::Relaxed) - before)
    };
    let one = by_id(7.into());
    assert_eq!(joined(&[one.clone(), join("_id"), join("_id"), shown.clone()]), (1, 1, 0));
    assert_eq!(joined(&[one.clone(), join("even")]), (1, 0, 1), "without an index the other collection is read whole");
    assert_eq!(joined(&[by_id("many".into()), join("_id")]), (1, 200, 1), "200 values");
    assert_eq!(joined(&[rawdoc! { "$match": { "even": 1 } }, join("_id")]).2, 1, "a collection is read for each row");
    let all = rawdoc! { "$group": { "_id": null, "joined": { "$first": "$joined" } } };
    assert_eq!(joined(&[one, join("_id"), all]).2, 1, "a group reads everything for one row");
    let range = rawdoc! { "$match": { "_id": { "$gte": 0 } } };
    assert_eq!(joined(&[range.clone(), join("_id"), shown]), (101, 1, 0), "a page of an index's range");
    let slow = rawdoc! { "$set": { "x": { "$size": { "$range": [0, 10] } } } };
    assert_eq!(joined(&[by_id(7.into()), slow]).2, 1, "nobody knows how long an expression takes");
    let redact = rawdoc! { "$redact": { "$cond": [{ "$eq": ["$_id", 299] }, "$$KEEP", "$$PRUNE"] } };
    assert_eq!(joined(&[range, join("_id"), redact]), (1, 1, 1), "any number of rows may be left out");
}

fn rawdoc_of(bytes: &[u8]) -> RawDocumentBuf {
    RawDocumentBuf::from_bytes(bytes.to_vec()).unwrap()
}

#[test]
fn a_clustered_key_has_a_largest_size() {
    let engine = memory();
    let context = Context::default();
    let options = rawdoc! { "clusteredIndex": { "v": 2, "key": { "_id": 1 }, "name": "_id_", "unique": true } };
    engine.create(&context, &Create { namespace: namespace(), options }).unwrap().wait().unwrap();
    let most = 8 << 20;
    let binary = |bytes: usize| Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![0; bytes] };
    insert(&engine, &context, vec![rawdoc! { "_id": "x".repeat(most - 2) }, rawdoc! { "_id": binary(most - 7) }]);
    for document in [rawdoc! { "_id": "x".repeat(most - 1) }, rawdoc! { "_id": binary(most - 6) }] {
        let insert = Insert {
            namespace: namespace(),
            documents: vec![document],
            ordered: true,
            bypass_document_validation: false,
            statement_ids: Vec::new(),
        };
        let reply = engine.insert(&context, insert).unwrap().wait().unwrap();
        assert_eq!((reply.n, reply.errors[0].error.code), (0, Code(5_894_900)));
    }
}

#[test]
fn a_cursor_says_so_when_its_place_in_a_capped_collection_is_gone() {
    let engine = memory();
    let context = Context::default();
    let options = rawdoc! { "capped": true, "size": 10_000_i64, "max": 3_i64 };
    engine.create(&context, &Create { namespace: namespace(), options }).unwrap().wait().unwrap();
    insert(&engine, &context, vec![rawdoc! { "_id": 1 }]);
    let tail = || {
        let find = Find { tailing: engine::Tailing::Tailable, ..Find::new(namespace()) };
        engine.find(&context, &find).unwrap().cursor
    };
    let more = |cursor: i64| engine.get_more(&context, cursor, &namespace(), None, None);
    let (behind, along) = (tail(), tail());
    insert(&engine, &context, vec![rawdoc! { "_id": 2 }, rawdoc! { "_id": 3 }]);
    assert_eq!(more(along).unwrap().documents.len(), 2);
    insert(&engine, &context, vec![rawdoc! { "_id": 4 }]);
    assert_eq!(more(behind).unwrap_err().code, Code::CAPPED_POSITION_LOST, "it stood at the first of four");
    assert_eq!(more(along).unwrap().documents.len(), 1);
    assert_eq!(more(behind).unwrap_err().code, Code::CURSOR_NOT_FOUND, "it is over");
    insert(&engine, &context, vec![rawdoc! { "_id": 5 }, rawdoc! { "_id": 6 }]);
    assert_eq!(more(along).unwrap().documents.len(), 2, "its place is still there");
}
