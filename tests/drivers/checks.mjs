// Shared by the Node scripts: a client and a fresh database, named checks with a time limit, the closing tally.
import { MongoClient, BSON } from 'mongodb';

export const URI = process.env.MONGODB_URI ?? 'mongodb://127.0.0.1:27017/?directConnection=true';
const CHECK_LIMIT_MS = 30_000;

const text = (value) => BSON.EJSON.stringify({ value }, { relaxed: true });
const short = (line) => (line.length > 1000 ? `${line.slice(0, 1000)}…` : line);

/** Checks under a title; `known` maps the name of a check that is known to fail to the reason: a pass is a failure then. */
export class Checks {
  constructor(title, known = {}) {
    this.known = new Map(Object.entries(known));
    this.passed = 0;
    this.failed = 0;
    this.dbName = `${title}_${Date.now().toString(36)}`;
    this.client = new MongoClient(URI, { serverSelectionTimeoutMS: 10_000 });
    this.db = this.client.db(this.dbName);
  }

  /** Passes if the body's result equals `expected`: same fields in the same order; dates, ids, decimals and binaries are told from text. */
  async equal(name, expected, body) {
    let detail;
    let timer;
    const limit = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no result within ${CHECK_LIMIT_MS} ms`)), CHECK_LIMIT_MS);
    });
    try {
      const actual = await Promise.race([(async () => body())(), limit]);
      if (text(actual) !== text(expected)) detail = `expected ${short(text(expected))} got ${short(text(actual))}`;
    } catch (error) {
      detail = `${error?.name} [code ${error?.code}]: ${short(String(error?.message ?? error).replace(/\s+/g, ' '))}`;
    } finally {
      clearTimeout(timer);
    }
    this.#record(name, detail);
  }

  #record(name, detail) {
    const reason = this.known.get(name);
    this.known.delete(name);
    if (detail === undefined && reason === undefined) {
      this.passed += 1;
      console.log(`ok ${name}`);
    } else if (detail !== undefined && reason !== undefined) {
      this.passed += 1;
      console.log(`ok ${name} # fails as known (${reason}): ${detail}`);
    } else {
      this.failed += 1;
      console.log(`FAIL ${name}: ${detail ?? `passes, though it is known to fail: ${reason}`}`);
    }
  }

  /** Cleans up, prints the tally and ends the process. */
  async done() {
    await this.db.dropDatabase().catch((error) => this.#record('the database is dropped', error.message));
    await this.client.close();
    const left = [...this.known.keys()];
    this.known.clear();
    for (const name of left) this.#record(name, 'listed as a known failure, but it did not run');
    console.log(`${this.passed} passed, ${this.failed} failed`);
    process.exit(this.failed ? 1 : 0);
  }
}

/** The error that a refusal throws; a failure if nothing is refused. */
export async function refusal(work) {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error('accepted, though it had to be refused');
}

/** Some fields of an object, in the order given. */
export const pick = (object, ...names) => Object.fromEntries(names.map((name) => [name, object?.[name]]));

export const range = (length, from = 0) => Array.from({ length }, (_, n) => n + from);

/** The stages of a plan from its outermost to what it reads. */
export function stages(plan) {
  const found = [];
  for (let stage = plan?.queryPlan ?? plan; stage; stage = stage.inputStage ?? stage.inputStages?.[0]) found.push(stage);
  return found;
}
