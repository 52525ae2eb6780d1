//! The storage compared with a `BTreeMap`, while folding goes on.

use super::{all, commit};
use crate::storage::*;
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

type Model = BTreeMap<Bytes, Bytes>;
type Write = (Bytes, Option<Bytes>);

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<Write>),
    Checkpoint,
    Keep,
    Layer(Vec<Write>),
    Reopen,
}

fn key() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(prop::sample::select(vec![0u8, 1, 0x61, 0x62, 0xff]), 0..4).prop_map(Bytes::from)
}

fn write() -> impl Strategy<Value = Write> {
    let value = prop_oneof![
        2 => Just(None),
        5 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Some),
        1 => (4000usize..9000).prop_map(|size| Some(vec![7; size])),
    ];
    (key(), value.prop_map(|value| value.map(Bytes::from)))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::collection::vec(write(), 0..8).prop_map(Step::Commit),
        1 => Just(Step::Checkpoint),
        2 => Just(Step::Keep),
        3 => prop::collection::vec(write(), 0..8).prop_map(Step::Layer),
        1 => Just(Step::Reopen),
    ]
}

fn bound() -> impl Strategy<Value = Bound<Bytes>> {
    prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded)]
}

fn apply(model: &mut Model, writes: &[Write]) {
    for (key, value) in writes {
        match value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(key),
        };
    }
}

fn agree(view: &dyn View, model: &Model, bounds: &[(Bound<Bytes>, Bound<Bytes>)]) {
    let expected: Vec<_> = model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    assert_eq!(all(view, Direction::Forward), expected);
    for key in [&b""[..], b"a", b"b", b"ab", &[0xff], &[0, 1]] {
        assert_eq!(view.get(key).unwrap(), model.get(key).cloned());
    }
    for (from, to) in bounds {
        let (from, to) = (from.as_ref().map(|key| &key[..]), to.as_ref().map(|key| &key[..]));
        let within = |key: &Bytes| {
            (match from {
                Bound::Unbounded => true,
                Bound::Included(from) => &key[..] >= from,
                Bound::Excluded(from) => &key[..] > from,
            }) && (match to {
                Bound::Unbounded => true,
                Bound::Included(to) => &key[..] <= to,
                Bound::Excluded(to) => &key[..] < to,
            })
        };
        let mut expected: Vec<_> = expected.iter().filter(|(key, _)| within(key)).cloned().collect();
        let range = |direction| view.range(from, to, direction).unwrap().collect::<crate::Result<Vec<_>>>().unwrap();
        assert_eq!(range(Direction::Forward), expected);
        expected.reverse();
        assert_eq!(range(Direction::Backward), expected);
    }
}

fn run(steps: Vec<Step>, bounds: &[(Bound<Bytes>, Bound<Bytes>)], on_medium: bool) {
    let options = Options { overlay_bytes: 3000, segment_bytes: 1 << 16, cache_bytes: 1 << 20, ..Options::default() };
    let medium = Arc::new(Memory::default());
    let open = || {
        if on_medium {
            Storage::open_on(medium.clone(), options.clone()).unwrap()
        } else {
            Storage::in_memory(options.clone())
        }
    };
    let mut storage = open();
    let mut model = Model::new();
    let mut kept: Vec<(Snapshot, Model)> = Vec::new();
    for step in steps {
        match step {
            Step::Commit(writes) => {
                apply(&mut model, &writes);
                let ticket = commit(&storage, writes);
                agree(&storage.writer().unwrap(), &model, &[]);
                ticket.wait().unwrap();
            }
            Step::Checkpoint => storage.checkpoint().unwrap(),
            Step::Keep => kept.push((storage.snapshot(), model.clone())),
            Step::Layer(writes) => {
                let snapshot = storage.snapshot();
                let mut lower = Layer::new(&snapshot);
                let mut changed = model.clone();
                let (first, second) = writes.split_at(writes.len() / 2);
                fill(lower.writes_mut(), first);
                apply(&mut changed, first);
                let mut upper = Layer::new(&lower);
                fill(upper.writes_mut(), second);
                apply(&mut changed, second);
                agree(&upper, &changed, bounds);
                let upper = upper.into_writes();
                lower.writes_mut().absorb(upper);
                agree(&lower, &changed, bounds);
                let mut overlaid = Overlaid::new(snapshot.clone());
                overlaid.writes = lower.into_writes();
                agree(&overlaid, &changed, bounds);
            }
            Step::Reopen if on_medium => {
                kept.clear();
                drop(storage);
                storage = open();
            }
            Step::Reopen => {}
        }
        agree(&storage.snapshot(), &model, bounds);
    }
    for (snapshot, model) in kept {
        agree(&snapshot, &model, bounds);
    }
}

fn fill(layer: &mut Writes, writes: &[Write]) {
    for (key, value) in writes {
        match value {
            Some(value) => layer.put(key.clone(), value.clone()),
            None => layer.delete(key.clone()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn views_are_maps(
        steps in prop::collection::vec(step(), 1..40),
        bounds in prop::collection::vec((bound(), bound()), 4),
        on_medium: bool,
    ) {
        run(steps, &bounds, on_medium);
    }
}
