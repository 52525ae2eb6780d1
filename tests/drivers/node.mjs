// MongoDB's own Node.js driver against the server: reading and writing, cursors, aggregation, indexes, transactions, streams, GridFS.
import { Binary, Decimal128, GridFSBucket, Long, MongoClient, ObjectId, Timestamp } from 'mongodb';
import { createHash, randomBytes } from 'node:crypto';
import { Checks, URI, pick, range, refusal, stages } from './checks.mjs';

/** Checks that MongoDB's documentation asks for and the server does not pass yet, with the reason. */
const KNOWN_FAILURES = {};

const checks = new Checks('node', KNOWN_FAILURES);
const { client, db } = checks;

async function types() {
  const values = {
    _id: new ObjectId('65a000000000000000000001'),
    double: 1.5, int: 7, long: Long.fromString('9007199254740993'), decimal: Decimal128.fromString('0.10'),
    text: 'Grüße 钛', yes: true, nothing: null, at: new Date('2024-02-29T12:00:00.123Z'),
    bytes: new Binary(Buffer.from([0, 1, 254, 255]), 128), pattern: /^a.b/i, stamp: new Timestamp({ t: 7, i: 3 }),
    list: [1, [2, { three: 3 }]], inner: { z: 1, a: 2 },
  };
  await checks.equal('a document of every type comes back as it was sent', values, async () => {
    await db.collection('types').insertOne(values);
    return db.collection('types').findOne({ _id: values._id }, { promoteLongs: false, promoteValues: true, bsonRegExp: false });
  });
  await checks.equal('$type names the types', [['double', 'int', 'long', 'decimal', 'binData', 'regex', 'timestamp']],
    () => db.collection('types').aggregate([{ $project: { _id: 0, names: ['double', 'int', 'long', 'decimal', 'bytes', 'pattern', 'stamp'].map((f) => ({ $type: `$${f}` })) } }])
      .map((d) => d.names).toArray());
}

async function crud() {
  const c = db.collection('crud');
  await checks.equal('insertOne gives the id', { acknowledged: true, insertedId: 1 }, () => c.insertOne({ _id: 1, a: 1, tags: ['x'] }));
  await checks.equal('insertMany gives the ids', { acknowledged: true, insertedCount: 2, insertedIds: { 0: 2, 1: 3 } }, () => c.insertMany([{ _id: 2, a: 2 }, { _id: 3, a: 3 }]));
  await checks.equal('an unordered insertMany goes on after a duplicate', { code: 11000, inserted: 2, left: 5 }, async () => {
    const error = await refusal(() => c.insertMany([{ _id: 4 }, { _id: 1 }, { _id: 5 }], { ordered: false }));
    return { code: error.code, inserted: error.result.insertedCount, left: await c.countDocuments() };
  });
  await checks.equal('find with filter, projection, sort, skip and limit', [{ a: 2 }], () => c.find({ a: { $gte: 1 } }, { projection: { _id: 0, a: 1 } }).sort({ a: -1 }).skip(1).limit(1).toArray());
  await checks.equal('updateOne with operators', { acknowledged: true, modifiedCount: 1, upsertedId: null, upsertedCount: 0, matchedCount: 1 },
    () => c.updateOne({ _id: 1 }, { $inc: { a: 10 }, $push: { tags: { $each: ['z', 'y'], $sort: 1 } }, $set: { 'deep.er': true } }));
  await checks.equal('the updated document', { _id: 1, a: 11, tags: ['x', 'y', 'z'], deep: { er: true } }, () => c.findOne({ _id: 1 }));
  await checks.equal('an update that changes nothing matches one, modifies none', { matchedCount: 1, modifiedCount: 0 },
    async () => pick(await c.updateOne({ _id: 1 }, { $set: { a: 11 } }), 'matchedCount', 'modifiedCount'));
  await checks.equal('updateMany', { matchedCount: 2, modifiedCount: 2 }, async () => pick(await c.updateMany({ _id: { $in: [2, 3] } }, [{ $set: { b: { $multiply: ['$a', 2] } } }]), 'matchedCount', 'modifiedCount'));
  await checks.equal('an update by a pipeline computed the field', [4, 6], () => c.find({ b: { $exists: true } }).sort({ _id: 1 }).map((d) => d.b).toArray());
  await checks.equal('arrayFilters touch the matching elements', [1, 100, 100], async () => {
    await c.insertOne({ _id: 'grades', grades: [1, 95, 98] });
    await c.updateOne({ _id: 'grades' }, { $set: { 'grades.$[high]': 100 } }, { arrayFilters: [{ high: { $gt: 90 } }] });
    return (await c.findOne({ _id: 'grades' })).grades;
  });
  await checks.equal('an upsert takes the equality of the filter', { _id: 'new', kind: 'k', n: 1, once: true }, async () => {
    await c.updateOne({ _id: 'new', kind: 'k' }, { $inc: { n: 1 }, $setOnInsert: { once: true } }, { upsert: true });
    return c.findOne({ _id: 'new' });
  });
  await checks.equal('replaceOne keeps the id alone', { _id: 'new', fresh: 1 }, async () => {
    await c.replaceOne({ _id: 'new' }, { fresh: 1 });
    return c.findOne({ _id: 'new' });
  });
  await checks.equal('the id cannot change', 66, async () => (await refusal(() => c.updateOne({ _id: 1 }, { $set: { _id: 9 } }))).code);
  await checks.equal('an unknown update operator is refused', 9, async () => (await refusal(() => c.updateOne({ _id: 1 }, { $nonsense: { a: 1 } }))).code);
  await checks.equal('an unknown query operator is refused', 2, async () => (await refusal(() => c.findOne({ a: { $nonsense: 1 } }))).code);
  await checks.equal('an unknown command is refused', 59, async () => (await refusal(() => db.command({ nonsense: 1 }))).code);
  await checks.equal('distinct', [2, 3, 11], async () => (await c.distinct('a')).sort((x, y) => x - y));
  await checks.equal('deleteOne and deleteMany', [1, 2], async () => [(await c.deleteOne({ _id: 5 })).deletedCount, (await c.deleteMany({ _id: { $in: [3, 4, 77] } })).deletedCount]);
  await checks.equal('countDocuments and estimatedDocumentCount agree', [4, 4], async () => [await c.countDocuments({}), await c.estimatedDocumentCount()]);
}

async function findAndModify() {
  const c = db.collection('queue');
  await c.insertMany(range(3).map((n) => ({ _id: n, state: 'open' })));
  await checks.equal('findOneAndUpdate gives the document before by default', { _id: 2, state: 'open' }, () => c.findOneAndUpdate({ state: 'open' }, { $set: { state: 'taken' } }, { sort: { _id: -1 } }));
  await checks.equal('findOneAndUpdate gives the document after if asked', { _id: 1, state: 'taken', by: 'me' },
    () => c.findOneAndUpdate({ state: 'open' }, { $set: { state: 'taken', by: 'me' } }, { sort: { _id: -1 }, returnDocument: 'after' }));
  await checks.equal('findOneAndUpdate without a match gives null', null, () => c.findOneAndUpdate({ state: 'none' }, { $set: { x: 1 } }));
  await checks.equal('findOneAndUpdate tells of an upsert', { updatedExisting: false, upserted: 'u' },
    async () => pick((await c.findOneAndUpdate({ _id: 'u' }, { $inc: { n: 1 } }, { upsert: true, includeResultMetadata: true })).lastErrorObject, 'updatedExisting', 'upserted'));
  await checks.equal('findOneAndReplace', { state: 'replaced' }, () => c.findOneAndReplace({ _id: 0 }, { state: 'replaced' }, { returnDocument: 'after', projection: { _id: 0 } }));
  await checks.equal('findOneAndDelete gives what is gone', [{ _id: 0, state: 'replaced' }, null], async () => [await c.findOneAndDelete({ _id: 0 }), await c.findOne({ _id: 0 })]);
}

async function bulk() {
  const c = db.collection('bulk');
  await checks.equal('bulkWrite counts each kind', { insertedCount: 2, matchedCount: 2, modifiedCount: 2, deletedCount: 1, upsertedCount: 1, upsertedIds: { 4: 'up' } }, async () => pick(await c.bulkWrite([
    { insertOne: { document: { _id: 1, n: 1 } } },
    { insertOne: { document: { _id: 2, n: 2 } } },
    { updateOne: { filter: { _id: 1 }, update: { $inc: { n: 5 } } } },
    { replaceOne: { filter: { _id: 2 }, replacement: { n: 'r' } } },
    { updateOne: { filter: { _id: 'up' }, update: { $set: { n: 0 } }, upsert: true } },
    { deleteOne: { filter: { _id: 2 } } },
  ]), 'insertedCount', 'matchedCount', 'modifiedCount', 'deletedCount', 'upsertedCount', 'upsertedIds'));
  await checks.equal('an ordered bulkWrite stops at the first error', { code: 11000, index: 1, there: 1 }, async () => {
    const error = await refusal(() => c.bulkWrite([{ insertOne: { document: { _id: 'a' } } }, { insertOne: { document: { _id: 'a' } } }, { insertOne: { document: { _id: 'b' } } }]));
    return { code: error.code, index: error.writeErrors[0].index, there: await c.countDocuments({ _id: { $in: ['a', 'b'] } }) };
  });
  const one = `${db.databaseName}.client_one`;
  const two = `${db.databaseName}.client_two`;
  await checks.equal('client.bulkWrite writes to two collections', { insertedCount: 2, matchedCount: 1, modifiedCount: 1, deletedCount: 1, upsertedCount: 1 }, async () => pick(await client.bulkWrite([
    { namespace: one, name: 'insertOne', document: { _id: 1 } },
    { namespace: two, name: 'insertOne', document: { _id: 1, v: 1 } },
    { namespace: two, name: 'updateOne', filter: { _id: 1 }, update: { $set: { v: 2 } } },
    { namespace: two, name: 'updateOne', filter: { _id: 2 }, update: { $set: { v: 3 } }, upsert: true },
    { namespace: one, name: 'deleteOne', filter: { _id: 1 } },
  ]), 'insertedCount', 'matchedCount', 'modifiedCount', 'deletedCount', 'upsertedCount'));
  await checks.equal('what client.bulkWrite left', [{ _id: 1, v: 2 }, { _id: 2, v: 3 }], () => db.collection('client_two').find().sort({ _id: 1 }).toArray());
  await checks.equal('client.bulkWrite reports a duplicate by its index', [[1, 11000]], async () => {
    const error = await refusal(() => client.bulkWrite([{ namespace: one, name: 'insertOne', document: { _id: 5 } }, { namespace: one, name: 'insertOne', document: { _id: 5 } }]));
    return [...error.writeErrors].map(([index, e]) => [Number(index), e.code]);
  });
}

async function cursors() {
  const c = db.collection('many');
  await c.insertMany(range(2500).map((n) => ({ _id: n, pad: 'p'.repeat(100) })));
  await checks.equal('a cursor over many batches gives all, in order', { count: 2500, ordered: true }, async () => {
    const got = await c.find().sort({ _id: 1 }).batchSize(77).map((d) => d._id).toArray();
    return { count: got.length, ordered: got.every((id, n) => id === n) };
  });
  await checks.equal('the first batch holds 101 documents by default', 101, async () => (await db.command({ find: 'many' })).cursor.firstBatch.length);
  await checks.equal('getMore gives the batch size asked for, killCursors ends the cursor', { more: 10, killed: 1, after: 43 }, async () => {
    const session = client.startSession();
    try {
      const { cursor } = await db.command({ find: 'many', batchSize: 5 }, { session });
      const more = await db.command({ getMore: cursor.id, collection: 'many', batchSize: 10 }, { session });
      const killed = await db.command({ killCursors: 'many', cursors: [cursor.id] }, { session });
      const after = await refusal(() => db.command({ getMore: cursor.id, collection: 'many' }, { session }));
      return { more: more.cursor.nextBatch.length, killed: killed.cursorsKilled.length, after: after.code };
    } finally {
      await session.endSession();
    }
  });
  await checks.equal('for await may stop early', 150, async () => {
    let n = 0;
    for await (const _ of c.find().batchSize(100)) if (++n === 150) break;
    return n;
  });
  await checks.equal('an aggregation cursor runs over batches too', 2500, async () => (await c.aggregate([{ $match: {} }], { batchSize: 300 }).toArray()).length);
  await checks.equal('a batch ends before 16 MB', 20, async () => {
    await db.collection('big').insertMany(range(20).map((n) => ({ _id: n, pad: 'b'.repeat(2_000_000) })));
    return (await db.collection('big').find().toArray()).length;
  });
  await checks.equal('a tailable cursor on a capped collection gives what comes later', [1, 2], async () => {
    const capped = await db.createCollection('capped', { capped: true, size: 100_000 });
    await capped.insertOne({ _id: 1 });
    const cursor = capped.find({}, { tailable: true, awaitData: true, maxAwaitTimeMS: 2000 });
    const first = await cursor.next();
    await capped.insertOne({ _id: 2 });
    const second = await cursor.next();
    await cursor.close();
    return [first._id, second._id];
  });
}

async function aggregation() {
  const orders = db.collection('orders');
  const customers = db.collection('customers');
  await customers.insertMany([{ _id: 'c1', name: 'Ann' }, { _id: 'c2', name: 'Bob' }]);
  await orders.insertMany([
    { _id: 1, customer: 'c1', state: 'paid', lines: [{ sku: 'a', n: 2, price: 10 }, { sku: 'b', n: 1, price: 5 }] },
    { _id: 2, customer: 'c1', state: 'open', lines: [{ sku: 'a', n: 1, price: 10 }] },
    { _id: 3, customer: 'c2', state: 'paid', lines: [{ sku: 'c', n: 4, price: 2 }] },
    { _id: 4, customer: 'gone', state: 'paid', lines: [] },
  ]);
  await checks.equal('$match, $unwind, $group and $sort', [{ _id: 'c1', total: 25, skus: 2 }, { _id: 'c2', total: 8, skus: 1 }], () => orders.aggregate([
    { $match: { state: 'paid' } }, { $unwind: '$lines' },
    { $group: { _id: '$customer', total: { $sum: { $multiply: ['$lines.n', '$lines.price'] } }, skus: { $sum: 1 } } }, { $sort: { total: -1 } },
  ]).toArray());
  await checks.equal('$unwind keeps empty arrays if asked', [{ _id: 4 }], () => orders.aggregate([{ $match: { _id: 4 } }, { $unwind: { path: '$lines', preserveNullAndEmptyArrays: true } }, { $project: { _id: 1 } }]).toArray());
  await checks.equal('$lookup by equality', [['Ann'], ['Ann'], ['Bob'], []], () => orders.aggregate([
    { $sort: { _id: 1 } }, { $lookup: { from: 'customers', localField: 'customer', foreignField: '_id', as: 'who' } },
  ]).map((d) => d.who.map((w) => w.name)).toArray());
  await checks.equal('$lookup with let and a pipeline', [{ _id: 'c1', open: [{ _id: 2 }] }, { _id: 'c2', open: [] }], () => customers.aggregate([
    { $lookup: { from: 'orders', let: { id: '$_id' }, as: 'open', pipeline: [
      { $match: { $expr: { $and: [{ $eq: ['$customer', '$$id'] }, { $eq: ['$state', 'open'] }] } } }, { $project: { _id: 1 } }] } },
    { $project: { open: 1 } }, { $sort: { _id: 1 } },
  ]).toArray());
  await checks.equal('$facet runs branches over the same input', [{ states: [{ _id: 'paid', count: 3 }, { _id: 'open', count: 1 }], total: [{ n: 4 }] }], () => orders.aggregate([
    { $facet: { states: [{ $sortByCount: '$state' }], total: [{ $count: 'n' }] } },
  ]).toArray());
  await checks.equal('$bucket', [{ _id: 0, count: 1 }, { _id: 1, count: 2 }, { _id: 2, count: 1 }], () => orders.aggregate([{ $bucket: { groupBy: { $size: '$lines' }, boundaries: [0, 1, 2, 3] } }]).toArray());
  await checks.equal('$setWindowFields sums up in order', [1, 3, 6, 10], () => orders.aggregate([
    { $setWindowFields: { sortBy: { _id: 1 }, output: { running: { $sum: '$_id', window: { documents: ['unbounded', 'current'] } } } } }, { $sort: { _id: 1 } }]).map((d) => d.running).toArray());
  await checks.equal('$merge updates another collection', [{ _id: 'c1', name: 'Ann', orders: 2 }, { _id: 'c2', name: 'Bob', orders: 1 }], async () => {
    await orders.aggregate([{ $group: { _id: '$customer', orders: { $sum: 1 } } }, { $merge: { into: 'customers', whenMatched: 'merge', whenNotMatched: 'discard' } }]).toArray();
    return customers.find().sort({ _id: 1 }).toArray();
  });
  await checks.equal('$out replaces a collection', 3, async () => {
    await orders.aggregate([{ $match: { state: 'paid' } }, { $out: 'paid' }]).toArray();
    return db.collection('paid').countDocuments();
  });
  await checks.equal('a view reads through its pipeline', [1, 3, 4], async () => {
    await db.createCollection('paid_view', { viewOn: 'orders', pipeline: [{ $match: { state: 'paid' } }] });
    return db.collection('paid_view').find().sort({ _id: 1 }).map((d) => d._id).toArray();
  });
  await checks.equal('an unknown stage is refused', 40324, async () => (await refusal(() => orders.aggregate([{ $nonsense: {} }]).toArray())).code);
}

async function indexes() {
  const c = db.collection('indexed');
  await c.insertMany(range(200).map((n) => ({ _id: n, a: n % 10, b: n, email: `u${n}@x.org`, tags: [n % 3, 'all'] })));
  await checks.equal('createIndexes names the indexes', ['a_1_b_-1', 'mail', 'tags_1', 'b_1'], () => c.createIndexes([
    { key: { a: 1, b: -1 } }, { key: { email: 1 }, unique: true, name: 'mail' }, { key: { tags: 1 } }, { key: { b: 1 }, partialFilterExpression: { b: { $gt: 150 } } }]));
  await checks.equal('listIndexes gives keys and options', [
    { key: { _id: 1 }, name: '_id_' }, { key: { a: 1, b: -1 }, name: 'a_1_b_-1' }, { key: { email: 1 }, name: 'mail', unique: true }, { key: { tags: 1 }, name: 'tags_1' },
    { key: { b: 1 }, name: 'b_1', partialFilterExpression: { b: { $gt: 150 } } },
  ], () => c.listIndexes().map((i) => Object.fromEntries(['key', 'name', 'unique', 'partialFilterExpression'].filter((k) => i[k] !== undefined).map((k) => [k, i[k]]))).toArray());
  const read = async (filter, sort = {}) => {
    const { queryPlanner, executionStats } = await c.find(filter).sort(sort).explain('executionStats');
    const found = stages(queryPlanner.winningPlan);
    return { reads: found.at(-1).stage, index: found.at(-1).indexName ?? null, sorts: found.some((s) => s.stage === 'SORT'), keys: executionStats.totalKeysExamined, returned: executionStats.nReturned };
  };
  await checks.equal('equality and range use the compound index', { reads: 'IXSCAN', index: 'a_1_b_-1', sorts: false, keys: 10, returned: 10 }, () => read({ a: 3, b: { $lt: 100 } }));
  await checks.equal('the index gives the order: no SORT', { reads: 'IXSCAN', index: 'a_1_b_-1', sorts: false, keys: 20, returned: 20 }, () => read({ a: 3 }, { b: -1 }));
  await checks.equal('a multikey index serves an element', { reads: 'IXSCAN', index: 'tags_1' }, async () => pick(await read({ tags: 2 }), 'reads', 'index'));
  await checks.equal('a partial index serves what implies its filter', { reads: 'IXSCAN', index: 'b_1' }, async () => pick(await read({ b: { $gt: 180 } }), 'reads', 'index'));
  await checks.equal('a partial index does not serve more than its filter', 'COLLSCAN', async () => (await read({ b: { $gt: 10 } })).reads);
  await checks.equal('no index, no IXSCAN', { reads: 'COLLSCAN', index: null, sorts: true, keys: 0, returned: 200 }, () => read({ missing: null }, { other: 1 }));
  await checks.equal('a covered query examines no documents', 0, async () => (await c.find({ a: 3 }, { projection: { _id: 0, a: 1, b: 1 } }).explain('executionStats')).executionStats.totalDocsExamined);
  await checks.equal('a unique violation names pattern and value', { code: 11000, keyPattern: { email: 1 }, keyValue: { email: 'u7@x.org' } },
    async () => pick(await refusal(() => c.insertOne({ _id: 'dup', email: 'u7@x.org' })), 'code', 'keyPattern', 'keyValue'));
  await checks.equal('an update meets the unique index too', 11000, async () => (await refusal(() => c.updateOne({ _id: 1 }, { $set: { email: 'u7@x.org' } }))).code);
  await checks.equal('a unique index over duplicates is not built', 11000, async () => (await refusal(() => c.createIndex({ a: 1 }, { unique: true }))).code);
  await checks.equal('the same name for another key is refused', 86, async () => (await refusal(() => c.createIndex({ z: 1 }, { name: 'mail' }))).code);
  await checks.equal('an unknown hint is refused', 2, async () => (await refusal(() => c.find({ a: 1 }).hint('none').toArray())).code);
  await checks.equal('dropIndex', false, async () => { await c.dropIndex('tags_1'); return c.indexExists('tags_1'); });
  await checks.equal('a validator refuses with 121', 121, async () => {
    await db.createCollection('strict', { validator: { $jsonSchema: { required: ['name'], properties: { name: { bsonType: 'string' } } } } });
    await db.collection('strict').insertOne({ name: 'x' });
    return (await refusal(() => db.collection('strict').insertOne({ name: 5 }))).code;
  });
}

async function transactions() {
  const a = await db.createCollection('tx_a');
  const b = await db.createCollection('tx_b');
  await checks.equal('withTransaction commits both writes', [{ _id: 1 }, { _id: 1 }, 'done'], () => client.withSession(async (session) => {
    const result = await session.withTransaction(async () => { await a.insertOne({ _id: 1 }, { session }); await b.insertOne({ _id: 1 }, { session }); return 'done'; });
    return [await a.findOne(), await b.findOne(), result];
  }));
  await checks.equal('an aborted transaction leaves nothing; inside it sees itself, outside does not', { inside: 2, outside: 1, after: 1 }, () => client.withSession(async (session) => {
    session.startTransaction();
    await a.insertOne({ _id: 2 }, { session });
    const inside = await a.countDocuments({}, { session });
    const outside = await a.countDocuments({});
    await session.abortTransaction();
    return { inside, outside, after: await a.countDocuments({}) };
  }));
  await checks.equal('an exception in withTransaction aborts', ['stop', 1], () => client.withSession(async (session) => {
    const error = await refusal(() => session.withTransaction(async () => { await a.insertOne({ _id: 3 }, { session }); throw new Error('stop'); }));
    return [error.message, await a.countDocuments({})];
  }));
  await checks.equal('a transaction reads its snapshot', [1, 1, 2], () => client.withSession(async (session) => {
    session.startTransaction({ readConcern: { level: 'snapshot' } });
    const before = (await b.find({}, { session }).toArray()).length;
    await b.insertOne({ _id: 'later' });
    const during = (await b.find({}, { session }).toArray()).length;
    await session.commitTransaction();
    return [before, during, await b.countDocuments({})];
  }));
  await checks.equal('the second writer of a document gets WriteConflict with its label', { code: 112, label: true, value: 'first' }, () => client.withSession((first) => client.withSession(async (second) => {
    first.startTransaction();
    second.startTransaction();
    await a.updateOne({ _id: 1 }, { $set: { by: 'first' } }, { session: first });
    const error = await refusal(() => a.updateOne({ _id: 1 }, { $set: { by: 'second' } }, { session: second }));
    await first.commitTransaction();
    return { code: error.code, label: error.hasErrorLabel('TransientTransactionError'), value: (await a.findOne({ _id: 1 })).by };
  })));
  await checks.equal('an error other than a conflict aborts the transaction on the server', { first: 11000, next: 251 }, () => client.withSession(async (session) => {
    session.startTransaction();
    const first = await refusal(() => a.insertOne({ _id: 1 }, { session }));
    const next = await refusal(() => a.insertOne({ _id: 'x' }, { session }));
    await session.abortTransaction().catch(() => {});
    return { first: first.code, next: next.code };
  }));
  await checks.equal('20 concurrent withTransaction increments all count', { n: 20, log: 20 }, async () => {
    await a.insertOne({ _id: 'n', n: 0 });
    await Promise.all(range(20).map((i) => client.withSession((session) => session.withTransaction(async () => {
      const { n } = await a.findOne({ _id: 'n' }, { session });
      await a.updateOne({ _id: 'n' }, { $set: { n: n + 1 } }, { session });
      await b.insertOne({ _id: `log${i}` }, { session });
    }))));
    return { n: (await a.findOne({ _id: 'n' })).n, log: await b.countDocuments({ _id: /^log/ }) };
  });
  await checks.equal('a collection may be created within a transaction', 1, () => client.withSession(async (session) => {
    await session.withTransaction(() => db.collection('tx_new').insertOne({ _id: 1 }, { session }));
    return db.collection('tx_new').countDocuments();
  }));
}

async function sessions() {
  const c = db.collection('sessions');
  // Sessions are pooled by client, and the numbers given by hand here must not be met by later writes: a client apart.
  const other = new MongoClient(URI);
  const numbered = other.db(db.databaseName);
  await checks.equal('a causally consistent session reads its own write', { n: 1, time: true }, () => client.withSession({ causalConsistency: true }, async (session) => {
    await c.insertOne({ _id: 1, n: 1 }, { session });
    return { n: (await c.findOne({ _id: 1 }, { session })).n, time: session.operationTime instanceof Timestamp };
  }));
  await checks.equal('a snapshot session keeps its moment', [1, 1], () => client.withSession({ snapshot: true }, async (session) => {
    const before = (await c.find({}, { session }).toArray()).length;
    await c.insertOne({ _id: 2 });
    return [before, (await c.find({}, { session }).toArray()).length];
  }));
  await checks.equal('the same numbered write twice is done once', { answers: [1, 1], n: 1 }, () => other.withSession(async (session) => {
    await numbered.collection('sessions').insertOne({ _id: 'once', n: 0 });
    const command = { update: 'sessions', updates: [{ q: { _id: 'once' }, u: { $inc: { n: 1 } } }], txnNumber: Long.fromNumber(1000) };
    const answers = [];
    for (let i = 0; i < 2; i++) answers.push((await numbered.command(command, { session })).nModified);
    return { answers, n: (await numbered.collection('sessions').findOne({ _id: 'once' })).n };
  }));
  await checks.equal('a numbered findAndModify answers the second time as the first', [{ _id: 'fam', n: 1 }, { _id: 'fam', n: 1 }], () => other.withSession(async (session) => {
    const command = { findAndModify: 'sessions', query: { _id: 'fam' }, update: { $inc: { n: 1 } }, upsert: true, new: true, txnNumber: Long.fromNumber(2000) };
    return [(await numbered.command(command, { session })).value, (await numbered.command(command, { session })).value];
  }));
  await other.close();
  await checks.equal('the driver numbers its writes by itself', true, async () => {
    const watched = new MongoClient(URI, { monitorCommands: true, retryWrites: true });
    let numbered = false;
    watched.on('commandStarted', (event) => { if (event.commandName === 'insert') numbered = event.command.txnNumber !== undefined; });
    await watched.db(db.databaseName).collection('sessions').insertOne({});
    await watched.close();
    return numbered;
  });
  await checks.equal('maxTimeMS ends a long operation', 50, async () => (await refusal(() => db.collection('many').aggregate([
    { $lookup: { from: 'many', let: { id: '$_id' }, pipeline: [{ $match: { $expr: { $gt: [{ $concat: ['$pad', { $toString: '$$id' }] }, 'a'] } } }, { $count: 'n' }], as: 'all' } }, { $count: 'n' }], { maxTimeMS: 20 }).toArray())).code);
}

async function changeStreams() {
  const c = await db.createCollection('watched');
  let token;
  await checks.equal('a change stream tells of insert, update, replace and delete', [
    { operationType: 'insert', documentKey: { _id: 1 }, fullDocument: { _id: 1, n: 1, gone: true } },
    { operationType: 'update', documentKey: { _id: 1 }, updateDescription: { updatedFields: { n: 2 }, removedFields: ['gone'], truncatedArrays: [] } },
    { operationType: 'replace', documentKey: { _id: 1 }, fullDocument: { _id: 1, r: 1 } },
    { operationType: 'delete', documentKey: { _id: 1 } },
  ], async () => {
    const stream = c.watch([], { maxAwaitTimeMS: 1000 });
    try {
      await stream.tryNext();
      await c.insertOne({ _id: 1, n: 1, gone: true });
      await c.updateOne({ _id: 1 }, { $set: { n: 2 }, $unset: { gone: 1 } });
      await c.replaceOne({ _id: 1 }, { r: 1 });
      await c.deleteOne({ _id: 1 });
      const events = [];
      while (events.length < 4) {
        const event = await stream.next();
        if (events.length === 1) token = event._id;
        events.push(Object.fromEntries(['operationType', 'documentKey', 'fullDocument', 'updateDescription'].filter((k) => event[k] !== undefined).map((k) => [k, event[k]])));
      }
      return events;
    } finally {
      await stream.close();
    }
  });
  await checks.equal('a change stream resumes after a token', ['replace', 'delete'], async () => {
    const stream = c.watch([], { resumeAfter: token });
    try {
      return [(await stream.next()).operationType, (await stream.next()).operationType];
    } finally {
      await stream.close();
    }
  });
  await checks.equal('the writes of a transaction come once it has committed, under its number', { ids: ['t1', 't2'], together: true }, async () => {
    const stream = c.watch([{ $match: { operationType: 'insert' } }]);
    try {
      await stream.tryNext();
      await client.withSession((session) => session.withTransaction(async () => {
        await c.insertOne({ _id: 't1' }, { session });
        await c.insertOne({ _id: 't2' }, { session });
      }));
      const events = [await stream.next(), await stream.next()];
      return { ids: events.map((e) => e.documentKey._id), together: events[0].txnNumber !== undefined && String(events[0].txnNumber) === String(events[1].txnNumber) };
    } finally {
      await stream.close();
    }
  });
  await checks.equal('updateLookup adds the document as it is', { _id: 't1', n: 5 }, async () => {
    const stream = db.watch([{ $match: { operationType: 'update', 'ns.coll': 'watched' } }], { fullDocument: 'updateLookup' });
    try {
      await stream.tryNext();
      await c.updateOne({ _id: 't1' }, { $set: { n: 5 } });
      return (await stream.next()).fullDocument;
    } finally {
      await stream.close();
    }
  });
}

async function gridfs() {
  const bucket = new GridFSBucket(db, { bucketName: 'files', chunkSizeBytes: 255 * 1024 });
  const bytes = randomBytes(1024 * 1024);
  const hash = (buffer) => createHash('sha256').update(buffer).digest('hex');
  const collect = async (stream) => { const parts = []; for await (const part of stream) parts.push(part); return Buffer.concat(parts); };
  let id;
  await checks.equal('GridFS stores 1 MB in five chunks', { length: 1024 * 1024, chunks: 5, kind: 'test' }, async () => {
    const upload = bucket.openUploadStream('blob', { metadata: { kind: 'test' } });
    id = upload.id;
    await new Promise((resolve, reject) => { upload.on('finish', resolve); upload.on('error', reject); upload.end(bytes); });
    const [file] = await bucket.find({ filename: 'blob' }).toArray();
    return { length: file.length, chunks: await db.collection('files.chunks').countDocuments({ files_id: id }), kind: file.metadata.kind };
  });
  await checks.equal('GridFS gives the same bytes', hash(bytes), async () => hash(await collect(bucket.openDownloadStream(id))));
  for (const [start, end] of [[0, 1000], [261_000, 262_000], [500_000, 1_048_576]]) {
    await checks.equal(`GridFS gives the bytes ${start} to ${end}`, hash(bytes.subarray(start, end)), async () => hash(await collect(bucket.openDownloadStream(id, { start, end }))));
  }
  await checks.equal('GridFS makes its unique index', true, async () => (await db.collection('files.chunks').indexes()).some((i) => i.unique && i.key.files_id === 1 && i.key.n === 1));
  await checks.equal('GridFS removes file and chunks', [0, 0], async () => {
    await bucket.delete(id);
    return [await db.collection('files.files').countDocuments(), await db.collection('files.chunks').countDocuments()];
  });
}

for (const part of [types, crud, findAndModify, bulk, cursors, aggregation, indexes, transactions, sessions, changeStreams, gridfs]) await part();
await checks.done();
