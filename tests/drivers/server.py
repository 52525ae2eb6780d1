"""A server that a script starts, kills and starts again, on a folder and a port of its own; SHEAF_BINARY names it."""

import os
import signal
import socket
import subprocess
import time

from pymongo import MongoClient
from pymongo.errors import PyMongoError

START_LIMIT_S = 60


class Server:
    """The server on one folder and port."""

    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = None

    def start(self):
        with open(os.path.join(self.folder, "server.log"), "ab") as log:
            self.process = subprocess.Popen(
                [os.environ["SHEAF_BINARY"], "serve", "--data", os.path.join(self.folder, "data"), "--port", str(self.port)],
                stdout=log, stderr=log)
        end = time.monotonic() + START_LIMIT_S
        while True:
            client = self.client()
            try:
                client.admin.command("ping")
                # The expiry runs once a minute by itself: too seldom to be met by a kill.
                client.admin.command({"setParameter": 1, "ttlMonitorSleepSecs": 1})
                return client
            except PyMongoError:
                client.close()
                if self.process.poll() is not None:
                    raise RuntimeError(f"the server ended with {self.process.returncode} instead of starting")
                if time.monotonic() > end:
                    raise RuntimeError(f"the server does not answer within {START_LIMIT_S} s")

    def client(self):
        return MongoClient("127.0.0.1", self.port, directConnection=True, serverSelectionTimeoutMS=300, maxPoolSize=50)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def log_tail(self):
        with open(os.path.join(self.folder, "server.log"), errors="replace") as log:
            return log.readlines()[-20:]
