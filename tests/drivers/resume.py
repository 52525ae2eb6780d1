"""Resumes a change stream again and again while others write and the server is ended with SIGKILL.

Nothing may be lost or told twice: what the stream tells, one short look after the other, each resumed at the token of the
last event, is in the end exactly what the collection holds. RESUMES says how often (default 300), KILLS how often the server
is ended meanwhile (default 3), SEED repeats a run's moments.
"""

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

RESUMES = int(os.environ.get("RESUMES", "300"))
KILLS = int(os.environ.get("KILLS", "3"))
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(1 << 32))))
WRITERS = 4
MOST_EVENTS = 20
"""So many events at most are read before the stream is closed and resumed."""
SILENCE_LIMIT_S = 60
"""A stream that tells nothing new for so long has lost what it waits for."""


class Writers:
    """Threads that insert, update and delete numbered documents until they are stopped; they note what was acknowledged."""

    def __init__(self, server):
        self.server = server
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.inserted = set()
        self.deleted = set()
        self.threads = [threading.Thread(target=self.write, args=(n,), daemon=True) for n in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def write(self, thread):
        client = self.server.client()
        items, n = client.stream.items, 0
        while not self.stop.is_set():
            n += 1
            key = f"{thread}-{n}"
            try:
                items.insert_one({"_id": key, "n": n})
                with self.lock:
                    self.inserted.add(key)
                items.update_one({"_id": key}, {"$inc": {"n": 1}})
                if n % 5 == 0:
                    items.delete_one({"_id": key})
                    with self.lock:
                        self.deleted.add(key)
            except PyMongoError:
                time.sleep(0.01)
            time.sleep(0.002)
        client.close()

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()


class Story:
    """What the stream has told so far, and where it goes on."""

    def __init__(self, token):
        self.token = token
        self.documents = {}
        self.twice = []
        self.unordered = []
        self.events = 0
        self.last_time = None

    def tell(self, event):
        self.token = event["_id"]
        self.events += 1
        key, kind, time_told = event["documentKey"]["_id"], event["operationType"], event["clusterTime"]
        if self.last_time is not None and time_told < self.last_time:
            self.unordered.append(key)
        self.last_time = time_told
        step = {"insert": 1, "update": 2, "delete": 3}[kind]
        # Each document is inserted, updated once and perhaps deleted: a step that does not go on was told before.
        if step <= self.documents.get(key, 0):
            self.twice.append((key, kind))
        self.documents[key] = step

    def present(self):
        return {key for key, step in self.documents.items() if step < 3}


def look(client, story, most):
    """Resumes, reads some events and closes; gives how many there were."""
    with client.stream.items.watch(resume_after=story.token, max_await_time_ms=200, batch_size=7) as stream:
        for read in range(most):
            event = stream.try_next()
            if event is None:
                return read
            story.tell(event)
    return most


def run(server, checks):
    dice = random.Random(SEED)
    client = server.start()
    client.stream.create_collection("items")
    with client.stream.items.watch() as stream:
        stream.try_next()
        story = Story(stream.resume_token)
    writers = Writers(server)
    kills_at = set(dice.sample(range(1, RESUMES), min(KILLS, RESUMES - 1)))
    resumes = failed = 0
    while resumes < RESUMES:
        if resumes in kills_at:
            kills_at.discard(resumes)
            server.kill()
            client.close()
            client = server.start()
        try:
            look(client, story, dice.randint(1, MOST_EVENTS))
            resumes += 1
        except PyMongoError as error:
            failed += 1
            if failed > RESUMES:
                raise error
    writers.end()
    # The rest, until it has told what is there.
    stored = {document["_id"] for document in client.stream.items.find()}
    news = time.monotonic()
    while story.present() != stored and time.monotonic() - news < SILENCE_LIMIT_S:
        if look(client, story, 1000):
            news = time.monotonic()
    told = story.present()
    checks.equal("the stream told what the collection holds", [], lambda: sorted(told ^ stored)[:10])
    checks.equal("nothing was told twice", [], lambda: story.twice[:10])
    checks.equal("cluster times never went back", [], lambda: story.unordered[:10])
    acknowledged = writers.inserted - writers.deleted
    perhaps = {key for key in acknowledged if int(key.split("-")[1]) % 5 == 0}
    checks.equal("no acknowledged insert is missing", [], lambda: sorted((acknowledged - perhaps) - stored)[:10])
    checks.equal("no acknowledged delete is undone", [], lambda: sorted(writers.deleted & stored)[:10])
    print(f"{resumes} resumes, {KILLS} kills, {story.events} events, {len(story.documents)} documents, {failed} looks failed", flush=True)
    client.close()


def main():
    checks = Checks({})
    folder = tempfile.mkdtemp(prefix="sheaf-resume-")
    server = Server(folder)
    print(f"seed {SEED}", flush=True)
    try:
        run(server, checks)
    except Exception as error:
        checks.fail("the run comes to its end", f"{type(error).__name__}: {error}")
        print("".join(server.log_tail()))
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)
    return checks.tally()


if __name__ == "__main__":
    sys.exit(main())
