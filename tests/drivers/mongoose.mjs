// Mongoose against the server: schemas, validation, populate, middleware, transactions, versions, timestamps, unique indexes.
import mongoose from 'mongoose';
import { Checks, URI, pick, range, refusal } from './checks.mjs';

/** Checks that MongoDB's documentation asks for and the server does not pass yet, with the reason. */
const KNOWN_FAILURES = {};

const checks = new Checks('mongoose', KNOWN_FAILURES);
const { Schema } = mongoose;
await mongoose.connect(URI, { dbName: checks.dbName, autoIndex: false, serverSelectionTimeoutMS: 10_000 });

const calls = [];
const authorSchema = new Schema({
  name: { type: String, required: true, trim: true },
  email: { type: String, required: true, lowercase: true, unique: true },
  age: { type: Number, min: 18 },
  role: { type: String, enum: ['writer', 'editor'], default: 'writer' },
}, { timestamps: true });
authorSchema.virtual('books', { ref: 'Book', localField: '_id', foreignField: 'author' });
const bookSchema = new Schema({
  title: String,
  author: { type: Schema.Types.ObjectId, ref: 'Author' },
  price: Schema.Types.Decimal128,
  tags: [String],
  reviews: [{ by: String, stars: { type: Number, min: 1, max: 5 } }],
  facts: { type: Map, of: Number },
  slug: String,
}, { optimisticConcurrency: true });
bookSchema.index({ title: 1, author: 1 });
bookSchema.pre('save', function before() { calls.push('pre save'); this.slug = this.title.toLowerCase().replace(/\W+/g, '-'); });
bookSchema.post('save', () => { calls.push('post save'); });
bookSchema.pre('findOneAndUpdate', () => { calls.push('pre findOneAndUpdate'); });
bookSchema.statics.cheap = function cheap(limit) { return this.find({ price: { $lt: limit } }).sort({ price: 1 }); };
const Author = mongoose.model('Author', authorSchema);
const Book = mongoose.model('Book', bookSchema);

await checks.equal('init builds the indexes of the schema', [['_id_', 'email_1'], ['_id_', 'title_1_author_1']], async () => {
  await Promise.all([Author.createCollection(), Book.createCollection()]);
  await Promise.all([Author.createIndexes(), Book.createIndexes()]);
  return [Object.keys(await Author.collection.indexInformation()).sort(), Object.keys(await Book.collection.indexInformation()).sort()];
});
await checks.equal('syncIndexes drops what the schema does not name', [['stray_1'], ['_id_', 'email_1']], async () => {
  await Author.collection.createIndex({ stray: 1 });
  return [await Author.syncIndexes(), Object.keys(await Author.collection.indexInformation()).sort()];
});

let ann;
await checks.equal('create casts, trims and fills in defaults', { name: 'Ann', email: 'ann@x.org', age: 40, role: 'writer', __v: 0 }, async () => {
  ann = await Author.create({ name: ' Ann ', email: 'ANN@x.org', age: '40' });
  return pick(await Author.findById(ann._id).lean(), 'name', 'email', 'age', 'role', '__v');
});
await checks.equal('timestamps are set, and updatedAt moves on', { same: true, kept: true, later: true }, async () => {
  const same = ann.createdAt.getTime() === ann.updatedAt.getTime();
  await new Promise((resolve) => { setTimeout(resolve, 20); });
  await Author.updateOne({ _id: ann._id }, { age: 41 });
  const now = await Author.findById(ann._id);
  return { same, kept: now.createdAt.getTime() === ann.createdAt.getTime(), later: now.updatedAt > ann.updatedAt };
});
await checks.equal('validation refuses before anything is sent', ['age', 'email', 'role'], async () => Object.keys((await refusal(() => Author.create({ name: 'Kid', age: 3, role: 'boss' }))).errors).sort());
await checks.equal('validators run on updates if asked', 'ValidationError', async () => (await refusal(() => Author.updateOne({ _id: ann._id }, { age: 1 }, { runValidators: true }))).name);
await checks.equal('the unique index refuses a second email', { code: 11000, keyValue: { email: 'ann@x.org' } }, async () => pick(await refusal(() => Author.create({ name: 'Other', email: 'ann@x.org' })), 'code', 'keyValue'));

let book;
await checks.equal('middleware runs around save', { slug: 'the-first-book', calls: ['pre save', 'post save'] }, async () => {
  book = await Book.create({ title: 'The First Book', author: ann._id, price: '9.90', tags: ['a'], facts: { pages: 300 } });
  return { slug: (await Book.findById(book._id)).slug, calls: calls.splice(0) };
});
await checks.equal('middleware runs before findOneAndUpdate', { tags: ['a', 'b'], calls: ['pre findOneAndUpdate'] }, async () => {
  const after = await Book.findOneAndUpdate({ _id: book._id }, { $addToSet: { tags: 'b' } }, { returnDocument: 'after' });
  return { tags: [...after.tags], calls: calls.splice(0) };
});
await checks.equal('Decimal128 and Map come back', ['9.90', 300], async () => {
  const found = await Book.findById(book._id);
  return [found.price.toString(), found.facts.get('pages')];
});
await checks.equal('populate follows the reference', 'Ann', async () => (await Book.findOne({ title: /first/i }).populate('author', 'name')).author.name);
await checks.equal('a virtual populate follows it back', ['Second', 'The First Book'], async () => {
  await Book.create({ title: 'Second', author: ann._id, price: '5' });
  return (await Author.findById(ann._id).populate('books')).books.map((b) => b.title).sort();
});
await checks.equal('a static compares decimals', ['Second'], async () => (await Book.cheap(mongoose.Types.Decimal128.fromString('6'))).map((b) => b.title));
await checks.equal('a subdocument array is saved by its changes', [[{ by: 'x', stars: 5 }, { by: 'y', stars: 4 }], 'ValidationError'], async () => {
  const one = await Book.findById(book._id);
  one.reviews.push({ by: 'x', stars: 5 }, { by: 'y', stars: 2 });
  await one.save();
  one.reviews[1].stars = 4;
  await one.save();
  one.reviews.push({ by: 'z', stars: 9 });
  const error = await refusal(() => one.save());
  return [(await Book.findById(book._id).lean()).reviews.map((r) => pick(r, 'by', 'stars')), error.name];
});
await checks.equal('a stale copy is refused by its version', { name: 'VersionError', title: 'Theirs' }, async () => {
  const mine = await Book.findById(book._id);
  const theirs = await Book.findById(book._id);
  theirs.title = 'Theirs';
  await theirs.save();
  mine.title = 'Mine';
  return { name: (await refusal(() => mine.save())).name, title: (await Book.findById(book._id)).title };
});
await checks.equal('each save raises the version by one', 1, async () => {
  const one = await Book.findById(book._id);
  const before = one.__v;
  one.title = 'Later';
  await one.save();
  return (await Book.findById(book._id)).__v - before;
});
await checks.equal('a transaction commits', 2, () => mongoose.connection.transaction(async (session) => {
  await Author.create([{ name: 'T1', email: 't1@x.org' }, { name: 'T2', email: 't2@x.org' }], { session, ordered: true });
}).then(() => Author.countDocuments({ name: /^T/ })));
await checks.equal('a transaction that throws leaves nothing and resets the document', { message: 'stop', count: 0, isNew: true }, async () => {
  const lost = new Author({ name: 'Lost', email: 'lost@x.org' });
  const error = await refusal(() => mongoose.connection.transaction(async (session) => { await lost.save({ session }); throw new Error('stop'); }));
  return { message: error.message, count: await Author.countDocuments({ name: 'Lost' }), isNew: lost.isNew };
});
await checks.equal('ten transactions at once all count', 10, async () => {
  const Counter = mongoose.model('Counter', new Schema({ n: Number }));
  const { _id } = await Counter.create({ n: 0 });
  await Promise.all(range(10).map(() => mongoose.connection.transaction(async (session) => {
    const counter = await Counter.findById(_id).session(session);
    counter.n += 1;
    await counter.save({ session });
  })));
  return (await Counter.findById(_id)).n;
});
await checks.equal('bulkWrite and insertMany', { inserted: 3, modified: 3 }, async () => {
  const inserted = await Book.insertMany(range(3).map((n) => ({ title: `Bulk ${n}`, author: ann._id })));
  const { modifiedCount } = await Book.bulkWrite(inserted.map((b) => ({ updateOne: { filter: { _id: b._id }, update: { $push: { tags: 'bulk' } } } })));
  return { inserted: inserted.length, modified: modifiedCount };
});
await checks.equal('aggregate groups by author', [{ _id: 'Ann', books: 5 }], () => Book.aggregate([
  { $lookup: { from: 'authors', localField: 'author', foreignField: '_id', as: 'who' } }, { $unwind: '$who' }, { $group: { _id: '$who.name', books: { $sum: 1 } } }]));
await checks.equal('a cursor streams documents', 5, async () => {
  let n = 0;
  for await (const one of Book.find().cursor({ batchSize: 2 })) if (one instanceof Book) n += 1;
  return n;
});
await checks.equal('discriminators share a collection', [['Click'], 2], async () => {
  const Event = mongoose.model('Event', new Schema({ at: Date }, { discriminatorKey: 'kind' }));
  const Click = Event.discriminator('Click', new Schema({ url: String }));
  await Click.create({ url: '/' });
  await Event.create({ at: new Date() });
  return [(await Click.find()).map((e) => e.kind), await Event.countDocuments()];
});
await checks.equal('a change stream tells of a new document', 'Watched', async () => {
  const stream = Author.watch();
  try {
    const next = new Promise((resolve, reject) => { stream.once('change', resolve); stream.once('error', reject); });
    const timer = setInterval(() => { Author.create({ name: 'Watched', email: `${Math.random()}@x.org` }).catch(() => {}); }, 200);
    const event = await next.finally(() => clearInterval(timer));
    return event.fullDocument.name;
  } finally {
    await stream.close();
  }
});
await checks.equal('deleting tells how many', [1, 4], async () => [(await Book.deleteOne({ _id: book._id })).deletedCount, (await Book.deleteMany({})).deletedCount]);

await mongoose.disconnect();
await checks.done();
