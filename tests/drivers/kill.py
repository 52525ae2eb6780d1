"""Ends the server with SIGKILL in the middle of work by 16 threads, starts it again on the same folder and looks for losses.

What must hold after every restart: each acknowledged write is there, a transaction is there whole or not at all, the
indexes hold what the documents hold, and `validate` finds nothing. KILLS says how often (default 5), SEED repeats a run's
moments. The server is a child of this script, on a folder and a port of its own; SHEAF_BINARY names it.
"""

import datetime
import os
import random
import shutil
import sys
import tempfile
import threading
import time

from pymongo.errors import PyMongoError

from checks import Checks
from server import Server

KILLS = int(os.environ.get("KILLS", "5"))
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(1 << 32))))
INSERTERS, TRANSFERS, COUNTERS, EXPIRERS = 8, 4, 2, 2
GROUPS = 20
ACCOUNTS = 6
ROUNDS_PER_DATABASE = 10
"""After so many rounds the database is dropped and a new one begun, so that a round's reading stays short."""


class Ledger:
    """What the server has acknowledged since the database was begun; each thread writes to sets of its own kind under a lock."""

    def __init__(self):
        self.lock = threading.Lock()
        self.inserted = {}
        self.moved = set()
        self.aborted = set()
        self.counted = {n: 0 for n in range(COUNTERS)}
        self.counted_perhaps = {n: 0 for n in range(COUNTERS)}
        self.kept = set()

    def total(self):
        return len(self.inserted), len(self.moved), sum(self.counted.values()), len(self.kept)


def begin(db):
    """The collections and indexes that every round writes to."""
    db.create_collection("items")
    db.items.create_index("code", unique=True, name="code_1")
    db.items.create_index([("group", 1), ("n", -1)], name="group_1_n_-1")
    for name in ("out", "in"):
        db.create_collection(name)
        db[name].create_index("thread", name="thread_1")
    db.accounts.insert_many([{"_id": n, "balance": 0} for n in range(ACCOUNTS)])
    db.counters.insert_many([{"_id": n, "value": 0} for n in range(COUNTERS)])
    db.counters.create_index("value", name="value_1")
    db.sessions.create_index("at", expireAfterSeconds=60, name="at_1")


def insert_items(db, ledger, thread, round_number, stop):
    n = 0
    while not stop.is_set():
        size = 1 if n % 3 else 5
        docs = [{"_id": f"{round_number}-{thread}-{n + i}", "code": f"c{round_number}-{thread}-{n + i}",
                 "group": (n + i) % GROUPS, "n": n + i, "text": "x" * ((n + i) * 37 % 700)} for i in range(size)]
        if size == 1:
            db.items.insert_one(docs[0])
        else:
            db.items.insert_many(docs)
        with ledger.lock:
            ledger.inserted.update((doc["_id"], doc) for doc in docs)
        n += size


def transfer(client, db, ledger, thread, round_number, stop):
    chance = random.Random(f"{SEED} {round_number} {thread}")
    n = 0
    while not stop.is_set():
        name = f"{round_number}-{thread}-{n}"
        source, target = chance.sample(range(ACCOUNTS), 2)
        amount = chance.randrange(1, 100)
        abort = chance.random() < 0.1
        with client.start_session() as session:
            session.start_transaction()
            try:
                db.out.insert_one({"_id": name, "thread": thread, "account": source, "amount": amount}, session=session)
                db.accounts.update_one({"_id": source}, {"$inc": {"balance": -amount}}, session=session)
                db.accounts.update_one({"_id": target}, {"$inc": {"balance": amount}}, session=session)
                db["in"].insert_one({"_id": name, "thread": thread, "account": target, "amount": amount}, session=session)
                if abort:
                    with ledger.lock:
                        ledger.aborted.add(name)
                    session.abort_transaction()
                else:
                    session.commit_transaction()
                    with ledger.lock:
                        ledger.moved.add(name)
                n += 1
            except PyMongoError as error:
                if getattr(error, "code", None) != 112:
                    raise
                n += 1  # a write conflict: the transaction is gone, the next one has a new name


def count(db, ledger, number, stop):
    while not stop.is_set():
        with ledger.lock:
            ledger.counted_perhaps[number] += 1
        db.counters.update_one({"_id": number}, {"$inc": {"value": 1}})
        with ledger.lock:
            ledger.counted[number] += 1


def insert_expiring(db, ledger, thread, round_number, stop):
    n = 0
    while not stop.is_set():
        now = datetime.datetime.now(datetime.timezone.utc)
        late = n % 2 == 0
        at = now - datetime.timedelta(hours=1) if late else now + datetime.timedelta(days=30)
        name = f"{round_number}-{thread}-{n}"
        db.sessions.insert_one({"_id": name, "at": at, "late": late})
        if not late:
            with ledger.lock:
                ledger.kept.add(name)
        n += 1


def work_until_killed(server, client, db_name, ledger, round_number, chance):
    """Runs all threads, kills the server at a random moment; gives the time it ran and the errors of another kind than a lost server."""
    stop = threading.Event()
    killed = threading.Event()
    unexpected = []
    db = client[db_name]

    def guarded(body, *arguments):
        try:
            body(*arguments, stop)
        except PyMongoError as error:
            if not killed.is_set():
                time.sleep(0.2)  # the error may be seen before the flag is
            if not killed.is_set():
                unexpected.append(f"{body.__name__}: {error}"[:300])

    plans = [(insert_items, db, ledger, n, round_number) for n in range(INSERTERS)]
    plans += [(transfer, client, db, ledger, n, round_number) for n in range(TRANSFERS)]
    plans += [(count, db, ledger, n) for n in range(COUNTERS)]
    plans += [(insert_expiring, db, ledger, n, round_number) for n in range(EXPIRERS)]
    threads = [threading.Thread(target=guarded, args=plan) for plan in plans]
    for thread in threads:
        thread.start()
    span = chance.uniform(0.2, 2.5)
    time.sleep(span)
    killed.set()
    server.kill()
    stop.set()
    for thread in threads:
        thread.join()
    client.close()
    return span, unexpected


def lost_items(db, ledger):
    found = {doc["_id"]: doc for doc in db.items.find()}
    return [name for name, doc in ledger.inserted.items() if found.get(name) != doc]


def torn_transfers(db, ledger):
    """Transactions that are half there, gone though acknowledged, there though aborted, or whose sums do not show in the accounts."""
    outs = {doc["_id"]: doc for doc in db.out.find()}
    ins = {doc["_id"]: doc for doc in db["in"].find()}
    wrong = [f"half of {name}" for name in outs.keys() ^ ins.keys()]
    wrong += [f"lost {name}" for name in ledger.moved - outs.keys()]
    wrong += [f"aborted {name}" for name in ledger.aborted & (outs.keys() | ins.keys())]
    for doc in db.accounts.find():
        balance = sum(d["amount"] for d in ins.values() if d["account"] == doc["_id"])
        balance -= sum(d["amount"] for d in outs.values() if d["account"] == doc["_id"])
        if balance != doc["balance"]:
            wrong.append(f"account {doc['_id']} has {doc['balance']}, its transfers sum to {balance}")
    return wrong


def wrong_counters(db, ledger):
    values = {doc["_id"]: doc["value"] for doc in db.counters.find()}
    return [f"counter {n}: {values.get(n)}, acknowledged {ledger.counted[n]}, sent {ledger.counted_perhaps[n]}"
            for n in ledger.counted if not ledger.counted[n] <= values.get(n, -1) <= ledger.counted_perhaps[n]]


def lost_sessions(db, ledger):
    found = {doc["_id"] for doc in db.sessions.find({"late": False})}
    return sorted(ledger.kept - found)


def unclean(db):
    """What `validate` finds wrong: it compares every document with its entries in all indexes, and every entry with its document."""
    wrong = []
    for name in db.list_collection_names():
        answer = db.command("validate", name)
        found = {part: answer[part][:3] for part in ("errors", "missingIndexEntries", "extraIndexEntries", "corruptRecords") if answer[part]}
        invalid = [index for index, details in answer["indexDetails"].items() if not details["valid"]]
        if not answer["valid"] or found or invalid or answer["nInvalidDocuments"]:
            wrong.append(f"{name}: {invalid} {found}")
    return wrong


def unequal_keys(db):
    """Where an index over a field that every document has once does not have a key for each document, as `validate` counts them."""
    wrong = []
    for name in ("items", "out", "in", "counters", "sessions"):
        answer = db.command("validate", name)
        wrong += [f"{name}.{index}: {keys} keys of {answer['nrecords']} documents"
                  for index, keys in answer["keysPerIndex"].items() if keys != answer["nrecords"]]
    by_group = sum(db.items.count_documents({"group": group}, hint="group_1_n_-1") for group in range(GROUPS))
    by_scan = len(list(db.items.find({}, {"_id": 1}).hint([("$natural", 1)])))
    if by_group != by_scan:
        wrong.append(f"items: {by_group} by group, {by_scan} by the scan")
    return wrong


def verify(checks, label, client, db_name, ledger, unexpected):
    db = client[db_name]
    nothing = []
    checks.equal(f"{label} before it no writer met an error", nothing, lambda: unexpected[:5])
    checks.equal(f"{label} every acknowledged insert is there", nothing, lambda: lost_items(db, ledger)[:5])
    checks.equal(f"{label} transactions are whole or absent", nothing, lambda: torn_transfers(db, ledger)[:5])
    checks.equal(f"{label} every acknowledged $inc is counted once", nothing, lambda: wrong_counters(db, ledger)[:5])
    checks.equal(f"{label} nothing expired before its time", nothing, lambda: lost_sessions(db, ledger)[:5])
    checks.equal(f"{label} validate is clean", nothing, lambda: unclean(db)[:5])
    checks.equal(f"{label} every index has a key for each document", nothing, lambda: unequal_keys(db)[:5])


def run(checks, server):
    chance = random.Random(SEED)
    print(f"# {KILLS} kills, SEED={SEED}", flush=True)
    client = server.start()
    sums = [0, 0, 0, 0]
    ledger, db_name = None, None
    for round_number in range(1, KILLS + 1):
        if ledger is None:
            ledger, db_name = Ledger(), f"kill_{round_number}"
            begin(client[db_name])
        before = ledger.total()
        span, unexpected = work_until_killed(server, client, db_name, ledger, round_number, chance)
        gained = [b - a for a, b in zip(before, ledger.total())]
        sums = [a + b for a, b in zip(sums, gained)]
        started = time.monotonic()
        client = server.start()
        print(f"# kill {round_number} after {span:.2f} s: {gained[0]} inserts, {gained[1]} transactions, {gained[2]} $inc, "
              f"{gained[3]} with an expiry; up again in {time.monotonic() - started:.2f} s", flush=True)
        verify(checks, f"kill {round_number}:", client, db_name, ledger, unexpected)
        if round_number % ROUNDS_PER_DATABASE == 0:
            client.drop_database(db_name)
            server.kill()
            client.close()
            client = server.start()
            checks.equal(f"kill {round_number}: a dropped database stays dropped", False, lambda: db_name in client.list_database_names())
            ledger = None
    checks.equal("every kind of write was acknowledged during the run", [True] * 4, lambda: [n > 0 for n in sums])
    client.close()
    server.process.terminate()
    checks.equal("the server ends with 0 within 10 s of SIGTERM", 0, lambda: server.process.wait(10))


def main():
    checks = Checks({})
    folder = tempfile.mkdtemp(prefix="sheaf-kill-")
    server = Server(folder)
    try:
        run(checks, server)
    except RuntimeError as error:
        checks.fail("the server starts again", str(error))
    finally:
        if server.process and server.process.poll() is None:
            server.kill()
    if checks.failed:
        print("".join(f"# {line}" for line in server.log_tail()), end="")
    if checks.failed and os.environ.get("KEEP"):
        print(f"# the folder is kept: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(checks.tally())


main()
