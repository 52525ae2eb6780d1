"""MongoDB's own Python driver against the server: the essentials that the Node.js script checks, with what is PyMongo's own."""

import datetime
import decimal
import os
import re
import sys
import threading
import time
import uuid

import bson
import gridfs
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions, TypeCodec, TypeRegistry
from bson.decimal128 import Decimal128
from pymongo import ASCENDING, DESCENDING, DeleteOne, IndexModel, InsertOne, MongoClient, ReplaceOne, ReturnDocument, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError, CursorNotFound, DuplicateKeyError, ExecutionTimeout, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference
from pymongo.write_concern import WriteConcern

from checks import Checks

KNOWN_FAILURES = {}
"""Checks that MongoDB's documentation asks for and the server does not pass yet, with the reason."""

URI = os.environ.get("MONGODB_URI", "mongodb://127.0.0.1:27017/?directConnection=true")
checks = Checks(KNOWN_FAILURES)
client = MongoClient(URI, serverSelectionTimeoutMS=10_000)
db = client[f"python_{int(time.time() * 1000):x}"]


def refusal(body):
    try:
        body()
    except OperationFailure as error:
        return error
    raise AssertionError("accepted, though it had to be refused")


def crud():
    c = db.crud
    checks.equal("insert_one gives the id", 1, lambda: c.insert_one({"_id": 1, "a": 1}).inserted_id)
    checks.equal("insert_many gives the ids", [2, 3], lambda: c.insert_many([{"_id": 2, "a": 2}, {"_id": 3, "a": 3}]).inserted_ids)
    checks.equal("find with projection, sort, skip and limit", [{"a": 2}],
                 lambda: list(c.find({"a": {"$gte": 1}}, {"_id": 0, "a": 1}).sort("a", DESCENDING).skip(1).limit(1)))

    def update():
        result = c.update_one({"_id": 1}, {"$inc": {"a": 10}, "$push": {"tags": {"$each": [3, 1, 2], "$sort": -1, "$slice": 2}}})
        return result.matched_count, result.modified_count, c.find_one({"_id": 1})
    checks.equal("update_one with operators", (1, 1, {"_id": 1, "a": 11, "tags": [3, 2]}), update)
    checks.equal("update_many by a pipeline", 2, lambda: c.update_many({"_id": {"$in": [2, 3]}}, [{"$set": {"b": {"$add": ["$a", 1]}}}]).modified_count)
    checks.equal("an upsert gives its id", "u", lambda: c.update_one({"_id": "u"}, {"$set": {"n": 1}}, upsert=True).upserted_id)
    checks.equal("find_one_and_update gives the document after", {"_id": "u", "n": 2},
                 lambda: c.find_one_and_update({"_id": "u"}, {"$inc": {"n": 1}}, return_document=ReturnDocument.AFTER))
    checks.equal("find_one_and_delete gives what is gone", {"_id": "u", "n": 2}, lambda: c.find_one_and_delete({"_id": "u"}))
    checks.equal("delete_many counts", 2, lambda: c.delete_many({"_id": {"$gt": 1}}).deleted_count)
    checks.equal("distinct over array elements", [2, 3], lambda: sorted(c.distinct("tags")))
    checks.equal("a regular expression matches", 1, lambda: (c.insert_one({"_id": "re", "s": "Hello"}), c.count_documents({"s": re.compile("^hEL", re.I)}))[1])


def bulk():
    c = db.bulk

    def mixed():
        r = c.bulk_write([InsertOne({"_id": 1}), InsertOne({"_id": 2}), UpdateOne({"_id": 1}, {"$set": {"n": 1}}), ReplaceOne({"_id": 3}, {"n": 3}, upsert=True),
                          UpdateMany({}, {"$inc": {"all": 1}}), DeleteOne({"_id": 2})])
        return r.inserted_count, r.matched_count, r.modified_count, r.upserted_ids, r.deleted_count
    checks.equal("bulk_write counts each kind", (2, 4, 4, {3: 3}, 1), mixed)

    def unordered():
        try:
            c.bulk_write([InsertOne({"_id": 1}), InsertOne({"_id": 8}), InsertOne({"_id": 1}), InsertOne({"_id": 9})], ordered=False)
        except BulkWriteError as error:
            return [(e["index"], e["code"]) for e in error.details["writeErrors"]], error.details["nInserted"]
    checks.equal("an unordered bulk_write reports every duplicate and goes on", ([(0, 11000), (2, 11000)], 2), unordered)

    def by_client():
        r = client.bulk_write([InsertOne({"_id": 1}, namespace=f"{db.name}.one"), InsertOne({"_id": 1, "v": 1}, namespace=f"{db.name}.two"),
                               UpdateOne({"_id": 1}, {"$inc": {"v": 1}}, namespace=f"{db.name}.two")], verbose_results=True)
        return r.inserted_count, r.modified_count, db.two.find_one()
    checks.equal("client.bulk_write writes to two collections", (2, 1, {"_id": 1, "v": 2}), by_client)
    checks.equal("an unacknowledged write arrives", 1, lambda: (
        c.with_options(write_concern=WriteConcern(w=0)).insert_one({"_id": "quiet"}), time.sleep(0.5), c.count_documents({"_id": "quiet"}))[2])


class MoneyCodec(TypeCodec):
    """Python's decimals as BSON's."""

    python_type = decimal.Decimal
    bson_type = Decimal128

    def transform_python(self, value):
        return Decimal128(value)

    def transform_bson(self, value):
        return value.to_decimal()


def types():
    c = db.types
    checks.equal("Decimal128 keeps its digits", "0.10", lambda: (c.insert_one({"_id": "d", "v": Decimal128("0.10")}), str(c.find_one({"_id": "d"})["v"]))[1])
    checks.equal("decimals are summed exactly", Decimal128("0.3"), lambda: (
        db.sums.insert_many([{"v": Decimal128("0.1")}, {"v": Decimal128("0.2")}]), next(db.sums.aggregate([{"$group": {"_id": None, "s": {"$sum": "$v"}}}]))["s"])[1])
    money = c.with_options(codec_options=CodecOptions(type_registry=TypeRegistry([MoneyCodec()])))
    checks.equal("a type codec maps decimals both ways", decimal.Decimal("12.50"), lambda: (money.insert_one({"_id": "m", "v": decimal.Decimal("12.50")}), money.find_one({"_id": "m"})["v"])[1])
    moment = datetime.datetime(2024, 2, 29, 12, 0, 0, 123000, tzinfo=datetime.timezone.utc)
    aware = c.with_options(codec_options=CodecOptions(tz_aware=True))
    checks.equal("a time zone aware date keeps its moment", moment, lambda: (c.insert_one({"_id": "t", "v": moment}), aware.find_one({"_id": "t"})["v"])[1])
    ids = c.with_options(codec_options=CodecOptions(uuid_representation=UuidRepresentation.STANDARD))
    value = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    checks.equal("a UUID is found by itself", "u", lambda: (ids.insert_one({"_id": "u", "v": value}), ids.find_one({"v": value})["_id"])[1])
    checks.equal("an int beyond 32 bits is a long", ["int", "long"], lambda: (
        c.insert_one({"_id": "i", "a": 2**31 - 1, "b": 2**31}), [next(c.aggregate([{"$match": {"_id": "i"}}, {"$project": {"t": {"$type": f}}}]))["t"] for f in ("$a", "$b")])[1])
    checks.equal("raw documents keep field order", ["z", "a", "m"], lambda: (
        c.insert_one({"_id": "o", "v": {"z": 1, "a": 2, "m": 3}}), list(c.with_options(codec_options=CodecOptions(document_class=bson.SON)).find_one({"_id": "o"})["v"]))[1])
    checks.equal("a document beyond 16 MB is refused", True, lambda: _too_large(c))


def _too_large(c):
    try:
        c.insert_one({"v": "x" * (16 * 1024 * 1024 + 20_000)})
    except Exception as error:  # the driver refuses it by itself where the server has told its limit
        return type(error).__name__ in ("DocumentTooLarge", "WriteError", "OperationFailure")
    return False


def cursors():
    c = db.many
    c.insert_many([{"_id": n, "a": n % 7} for n in range(1500)])
    checks.equal("a cursor over many batches gives all in order", list(range(1500)), lambda: [d["_id"] for d in c.find().sort("_id").batch_size(64)])

    def killed():
        cursor = c.find(batch_size=2)
        next(cursor)
        db.command("killCursors", c.name, cursors=[cursor.cursor_id])
        try:
            list(cursor)
        except CursorNotFound as error:
            return error.code
    checks.equal("a killed cursor is not found", 43, killed)

    def slow():
        try:
            list(c.aggregate([{"$lookup": {"from": "many", "let": {"a": "$a"}, "pipeline": [{"$match": {"$expr": {"$gt": ["$a", "$$a"]}}}, {"$count": "n"}], "as": "n"}}], maxTimeMS=20))
        except ExecutionTimeout as error:
            return error.code
    checks.equal("maxTimeMS ends a long aggregation", 50, slow)
    checks.equal("aggregation: $match, $group, $sort", [{"_id": 0, "n": 8}, {"_id": 1, "n": 7}],
                 lambda: list(c.aggregate([{"$match": {"_id": {"$lt": 50}}}, {"$group": {"_id": "$a", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}, {"$limit": 2}])))
    checks.equal("aggregation: $facet with $bucketAuto and $count", (5, 1500), lambda: (
        lambda d: (len(d["parts"]), d["all"][0]["n"]))(next(c.aggregate([{"$facet": {"parts": [{"$bucketAuto": {"groupBy": "$_id", "buckets": 5}}], "all": [{"$count": "n"}]}}]))))
    checks.equal("aggregation: $graphLookup walks up", ["a", "b"], lambda: (
        db.tree.insert_many([{"_id": "a", "up": None}, {"_id": "b", "up": "a"}, {"_id": "c", "up": "b"}]),
        sorted(d["_id"] for d in next(db.tree.aggregate([{"$match": {"_id": "c"}}, {"$graphLookup": {"from": "tree", "startWith": "$up", "connectFromField": "up", "connectToField": "_id", "as": "way"}}]))["way"]))[1])


def indexes():
    c = db.indexed
    c.insert_many([{"_id": n, "a": n % 5, "mail": f"m{n}"} for n in range(100)])
    checks.equal("create_indexes gives the names", ["a_1__id_-1", "mail_1"], lambda: c.create_indexes([IndexModel([("a", ASCENDING), ("_id", DESCENDING)]), IndexModel("mail", unique=True)]))
    checks.equal("index_information tells the options", (True, [("a", 1), ("_id", -1)]), lambda: (c.index_information()["mail_1"]["unique"], c.index_information()["a_1__id_-1"]["key"]))

    def plan():
        stage = c.find({"a": 2}).explain()["queryPlanner"]["winningPlan"]
        stage = stage.get("queryPlan", stage)
        while "inputStage" in stage:
            stage = stage["inputStage"]
        return stage["stage"], stage.get("indexName")
    checks.equal("explain shows the index", ("IXSCAN", "a_1__id_-1"), plan)

    def duplicate():
        try:
            c.insert_one({"_id": "x", "mail": "m5"})
        except DuplicateKeyError as error:
            return error.code, error.details["keyPattern"], error.details["keyValue"]
    checks.equal("a duplicate names pattern and value", (11000, {"mail": 1}, {"mail": "m5"}), duplicate)
    checks.equal("a hint is followed, an unknown one refused", (20, 2), lambda: (len(list(c.find({"a": 1}).hint("a_1__id_-1"))), refusal(lambda: list(c.find().hint("none"))).code))
    checks.equal("a collation compares without case", ["x"], lambda: (
        db.names.insert_one({"_id": "x", "name": "Émile"}), [d["_id"] for d in db.names.find({"name": "émile"}).collation({"locale": "fr", "strength": 2})])[1])


def transactions():
    a, b = db.create_collection("tx_a"), db.create_collection("tx_b")

    def commit():
        def body(session):
            a.insert_one({"_id": 1}, session=session)
            b.insert_one({"_id": 1}, session=session)
            return "done"
        with client.start_session() as session:
            result = session.with_transaction(body, read_concern=ReadConcern("snapshot"), write_concern=WriteConcern("majority"), read_preference=ReadPreference.PRIMARY)
        return result, a.count_documents({}), b.count_documents({})
    checks.equal("with_transaction commits both writes", ("done", 1, 1), commit)

    def abort():
        with client.start_session() as session:
            session.start_transaction()
            a.insert_one({"_id": 2}, session=session)
            inside, outside = a.count_documents({}, session=session), a.count_documents({})
            session.abort_transaction()
        return inside, outside, a.count_documents({})
    checks.equal("an aborted transaction leaves nothing", (2, 1, 1), abort)

    def conflict():
        with client.start_session() as first, client.start_session() as second:
            first.start_transaction()
            second.start_transaction()
            a.update_one({"_id": 1}, {"$set": {"by": 1}}, session=first)
            error = refusal(lambda: a.update_one({"_id": 1}, {"$set": {"by": 2}}, session=second))
            first.commit_transaction()
            return error.code, error.has_error_label("TransientTransactionError"), a.find_one({"_id": 1})["by"]
    checks.equal("the second writer gets WriteConflict with its label", (112, True, 1), conflict)

    def concurrent():
        a.insert_one({"_id": "n", "n": 0})

        def body(session):
            n = a.find_one({"_id": "n"}, session=session)["n"]
            a.update_one({"_id": "n"}, {"$set": {"n": n + 1}}, session=session)

        def work():
            with client.start_session() as session:
                session.with_transaction(body)
        threads = [threading.Thread(target=work) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return a.find_one({"_id": "n"})["n"]
    checks.equal("ten concurrent with_transaction increments all count", 10, concurrent)

    def committed_twice():
        with client.start_session() as session:
            session.start_transaction()
            b.insert_one({"_id": "twice"}, session=session)
            session.commit_transaction()
            session.commit_transaction()
        return b.count_documents({"_id": "twice"})
    checks.equal("a commit sent again answers as the first", 1, committed_twice)


def streams():
    c = db.create_collection("watched")

    def watch():
        with c.watch(max_await_time_ms=500) as stream:
            stream.try_next()
            c.insert_one({"_id": 1, "n": 1})
            c.update_one({"_id": 1}, {"$set": {"n": 2}})
            first, second = next(stream), next(stream)
        with c.watch(resume_after=first["_id"]) as stream:
            again = next(stream)
        return first["operationType"], first["fullDocument"], second["updateDescription"]["updatedFields"], again["_id"] == second["_id"]
    checks.equal("watch tells of changes and resumes", ("insert", {"_id": 1, "n": 1}, {"n": 2}, True), watch)

    def before():
        db.command("collMod", "watched", changeStreamPreAndPostImages={"enabled": True})
        with c.watch(full_document="whenAvailable", full_document_before_change="required") as stream:
            c.update_one({"_id": 1}, {"$set": {"n": 3}})
            event = next(stream)
        return event["fullDocumentBeforeChange"]["n"], event["fullDocument"]["n"]
    checks.equal("images before and after a change", (2, 3), before)


def files():
    bucket = gridfs.GridFSBucket(db, chunk_size_bytes=100_000)
    data = os.urandom(1_000_000)
    checks.equal("GridFS gives back what was stored", data, lambda: bucket.open_download_stream(bucket.upload_from_stream("f", data)).read())

    def part():
        stream = bucket.open_download_stream_by_name("f")
        stream.seek(299_990)
        return stream.read(20)
    checks.equal("GridFS reads a range over a chunk's end", data[299_990:300_010], part)
    checks.equal("GridFS gives revisions by name", b"second", lambda: (bucket.upload_from_stream("f", b"second"), bucket.open_download_stream_by_name("f", revision=-1).read())[1])

    def delete():
        for file in list(bucket.find({})):
            bucket.delete(file._id)
        return db["fs.files"].count_documents({}), db["fs.chunks"].count_documents({})
    checks.equal("GridFS removes files and chunks", (0, 0), delete)


def diagnostics():
    c = db.watched_by_nobody
    c.insert_many([{"_id": n, "a": n % 10, "text": "x" * 100} for n in range(1000)])
    c.create_index("a", name="a_1")

    def profiled():
        db.command("profile", 2, slowms=50)
        list(c.find({"a": 3}))
        c.update_many({"a": 4}, {"$set": {"b": 1}})
        try:
            list(c.find({"$nonsense": 1}))
        except OperationFailure:
            pass
        was = db.command("profile", 0)["was"]
        entries = list(db["system.profile"].find({"ns": c.full_name}).sort("ts", 1))
        shown = [(e["op"], e.get("planSummary"), e.get("keysExamined"), e.get("docsExamined"), e.get("nreturned", e.get("nModified"))) for e in entries]
        return was, shown, entries[-1]["errCode"], entries[1]["command"]["q"]
    checks.equal("the profiler notes what operations looked at", (
        2, [("query", "IXSCAN { a: 1 }", 100, 100, 100), ("update", "IXSCAN { a: 1 }", 100, 100, 100), ("query", None, None, None, None)], 2, {"a": 4}), profiled)

    def filtered():
        db.command("profile", 1, filter={"op": "remove"})
        c.delete_one({"_id": 999})
        c.find_one()
        db.command("profile", 0, filter="unset")
        return db["system.profile"].count_documents({"op": "remove"}), db["system.profile"].options()["capped"]
    checks.equal("a filter picks what is profiled", (1, True), filtered)

    def top():
        counters = client.admin.command("top")["totals"][c.full_name]
        return counters["queries"]["count"] >= 2, counters["update"]["count"] >= 1, counters["total"]["time"] > 0
    checks.equal("top counts by collection", (True, True, True), top)

    def validated():
        answer = db.command("validate", c.name)
        return answer["valid"], answer["nrecords"], answer["keysPerIndex"]
    checks.equal("validate counts the keys of each index", (True, 999, {"_id_": 999, "a_1": 999}), validated)

    def operations():
        rows = client.admin.aggregate([{"$currentOp": {"localOps": True}}, {"$match": {"command.aggregate": 1}}])
        return [(row["type"], row["op"], row["active"]) for row in rows]
    checks.equal("$currentOp shows itself", [("op", "command", True)], operations)
    checks.equal("$listLocalSessions shows the session in use", True, lambda: len(list(db.aggregate([{"$listLocalSessions": {}}]))) > 0)

    def moment():
        with client.start_session(snapshot=True) as session:
            before = len(list(c.find({}, {"_id": 1}, session=session)))
            c.insert_one({"_id": "later"})
            return before, len(list(c.find({}, {"_id": 1}, session=session))), c.count_documents({})
    checks.equal("a snapshot session keeps its moment", (999, 999, 1000), moment)

    def hashed():
        first = db.command("dbHash")["collections"][c.name]
        c.update_one({"_id": 1}, {"$set": {"b": 2}})
        second = db.command("dbHash")["collections"][c.name]
        c.update_one({"_id": 1}, {"$unset": {"b": 1}})
        return first != second, first == db.command("dbHash")["collections"][c.name]
    checks.equal("dbHash follows the content", (True, True), hashed)

    def capped():
        db.command("convertToCapped", c.name, size=20_000)
        return c.options()["capped"], 0 < c.count_documents({}) < 200, c.find_one({"_id": "later"}) is not None
    checks.equal("convertToCapped keeps the newest", (True, True, True), capped)

    def deserted():
        """An operation whose client goes is not worked for any longer."""
        big = db.deserted
        big.insert_many([{"n": n} for n in range(3000)])
        slow = MongoClient(URI, socketTimeoutMS=300, retryReads=False)
        pipeline = [{"$lookup": {"from": "deserted", "pipeline": [{"$match": {"$expr": {"$gt": ["$n", -1]}}}, {"$group": {"_id": None, "s": {"$sum": "$n"}}}], "as": "all"}}, {"$count": "n"}]
        try:
            list(slow[db.name].deserted.aggregate(pipeline, comment="deserted"))
        except PyMongoError:
            pass
        slow.close()
        end = time.monotonic() + 5
        while time.monotonic() < end:
            running = client.admin.aggregate([{"$currentOp": {"allUsers": True}}, {"$match": {"command.comment": "deserted"}}])
            if not list(running):
                return "gone"
            time.sleep(0.1)
        return "still running"
    checks.equal("an operation ends with its client", "gone", deserted)


for family in (crud, bulk, types, cursors, indexes, transactions, streams, files, diagnostics):
    family()
checks.equal("drop_database removes it", False, lambda: (client.drop_database(db.name), db.name in client.list_database_names())[1])
client.close()
sys.exit(checks.tally())
