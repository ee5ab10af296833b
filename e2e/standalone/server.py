"""propeller-standalone without its controller, and calls to it or to another API server, for the programs here."""
import argparse
import base64
import contextlib
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

PATH = "/api/v1/namespaces/default/configmaps"
PATIENCE_S = 120
JSON, MERGE = "application/json", "application/merge-patch+json"
KEEPERS = []


def expect(holds, message):
    if not holds:
        raise SystemExit(f"{os.path.basename(sys.argv[0])}: {message}")


def wait_until(holds, message, seconds=PATIENCE_S):
    deadline = time.monotonic() + seconds
    while not holds():
        expect(time.monotonic() < deadline, message)
        time.sleep(0.2)


def in_threads(count, function, *args):
    """Calls function(i, *args) in `count` threads; the first failure is the caller's."""
    failures = []

    def run(i):
        try:
            function(i, *args)
        except (Exception, SystemExit) as failure:  # pylint: disable=broad-except
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def free_port():
    """A port for a program of this process; the socket that keeps it listens to nothing (common/tests/process.c)."""
    for port in range(12000 + os.getpid() % 4000, 16000):
        keeper = socket.socket()
        try:
            keeper.bind(("127.0.0.1", port))
        except OSError:
            keeper.close()
            continue
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        KEEPERS.append(keeper)
        return port
    raise SystemExit("no port is free")


class Connection(http.client.HTTPSConnection):
    """One connection of a user; as many calls as wished, one after the other."""

    def __init__(self, api, token=None):
        super().__init__(api.host, api.port, context=api.tls, timeout=PATIENCE_S)
        token = token or api.token
        self.headers = {"Authorization": "Bearer " + token} if token else {}

    def call(self, method, path, body=None, **headers):
        """The response, not read yet. Headers are named as in Accept=, Content_Type=."""
        named = {name.replace("_", "-"): value for name, value in headers.items() if value}
        self.request(method, path, body, {**self.headers, **named})
        return self.getresponse()

    def ask(self, method, path, body=None):
        """The status and the object of a call."""
        response = self.call(method, path, json.dumps(body) if body is not None else None,
                             Content_Type=MERGE if method == "PATCH" else JSON)
        return response.status, json.loads(response.read())

    def watch(self, since, **options):
        query = "".join(f"&{name}={value}" for name, value in options.items())
        return self.call("GET", f"{PATH}?watch=1&resourceVersion={since}{query}")


class Api:
    """An API server: what a kubeconfig says about it."""

    def __init__(self, kubeconfig):
        with open(kubeconfig, encoding="utf-8") as file:
            text = file.read()
        self.host, port = re.search(r"https://([^:\s]+):(\d+)", text).groups()
        self.port = int(port)
        token = re.search(r"token: ([^\s}]+)", text)
        self.token = token and token.group(1)

        def decoded(name):
            return base64.b64decode(re.search(name + r": ([^\s,}]+)", text).group(1)).decode()

        self.tls = ssl.create_default_context(cadata=decoded("certificate-authority-data"))
        if not token:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
                pair.write(decoded("client-certificate-data") + decoded("client-key-data"))
                pair.flush()
                self.tls.load_cert_chain(pair.name)

    def connect(self, token=None):
        return Connection(self, token)


class Server(Api):
    """A propeller-standalone with its data in a folder."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.options = ["--data-dir", os.path.join(folder, "data"), "--address", f"127.0.0.1:{free_port()}"]
        self.process = None
        subprocess.run([program, "init", *self.options], check=True, stdout=subprocess.DEVNULL)
        super().__init__(os.path.join(folder, "data", "admin.kubeconfig"))

    def start(self):
        """Seconds until it answers."""
        began = time.monotonic()
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen([self.program, "serve", *self.options, "--controller=false"],
                                            stdout=log, stderr=log)
        while True:
            try:
                with contextlib.closing(self.connect()) as connection:
                    connection.connect()
                return time.monotonic() - began
            except OSError:
                expect(self.process.poll() is None, f"it does not start; its log: {self.folder}/log")
                expect(time.monotonic() - began < PATIENCE_S, "it does not answer")
                time.sleep(0.005)

    def kill(self):
        self.process.kill()
        status = self.process.wait()
        expect(status == -9, f"it ended by itself ({status}); its log: {self.folder}/log")

    def add_user(self, name):
        """The token of a new user, who reads."""
        done = subprocess.run([self.program, "add-user", "--name", name, "--role=view", *self.options], check=True,
                              stdout=subprocess.PIPE, text=True)
        return re.search(r"token: (\S+)", done.stdout).group(1)

    def proc(self, name):
        with open(f"/proc/{self.process.pid}/{name}", encoding="utf-8") as file:
            return file.read()

    def memory(self, name):
        """KiB: VmRSS or VmHWM."""
        return int(re.search(name + r":\s+(\d+)", self.proc("status")).group(1))

    def processor_s(self):
        """Seconds of processor time that it has had."""
        fields = self.proc("stat").rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def revision(thing):
    return int(thing["metadata"]["resourceVersion"])


def play_on_a_server(play, before=None, **options):
    """main() of a program that takes PROGRAM FOLDER and numbers as options, and calls play(server, options, state)
    with what before(folder) returned. The end of the server's log is shown when it fails."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("program")
    parser.add_argument("folder")
    for name, default in options.items():
        parser.add_argument("--" + name, type=int, default=default)
    given = parser.parse_args()
    state = before and before(given.folder)
    server = Server(given.program, given.folder)
    server.start()
    try:
        play(server, given, state)
    except SystemExit:
        with open(os.path.join(given.folder, "log"), encoding="utf-8") as log:
            sys.stderr.write("".join(log.readlines()[-20:]))
        raise
    finally:
        if server.process.poll() is None:
            server.kill()
