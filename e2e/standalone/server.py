"""A propeller-standalone without its controller, and requests to it, for the programs of this folder."""
import argparse
import base64
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time

PATH = "/api/v1/namespaces/default/configmaps"
PATIENCE_S = 120
KEEPERS = []


def expect(holds, message):
    if not holds:
        raise SystemExit(f"{os.path.basename(sys.argv[0])}: {message}")


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


class Server:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.port = free_port()
        self.options = ["--data-dir", os.path.join(folder, "data"), "--address", f"127.0.0.1:{self.port}"]
        subprocess.run([program, "init", *self.options], check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(folder, "data", "admin.kubeconfig"), encoding="utf-8") as file:
            kubeconfig = file.read()
        self.token = re.search(r"token: (\S+)", kubeconfig).group(1)
        authority = base64.b64decode(re.search(r"certificate-authority-data: (\S+)", kubeconfig).group(1))
        self.tls = ssl.create_default_context(cadata=authority.decode())
        self.process = None

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=PATIENCE_S)

    def start(self):
        """Seconds until it answers."""
        began = time.monotonic()
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen([self.program, "serve", *self.options, "--controller=false"],
                                            stdout=log, stderr=log)
        while True:
            try:
                connection = self.connect()
                connection.connect()
                connection.close()
                return time.monotonic() - began
            except OSError:
                expect(self.process.poll() is None, f"it does not start; its log: {self.folder}/log")
                expect(time.monotonic() - began < PATIENCE_S, "it does not answer")
                time.sleep(0.005)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        status = self.process.wait()
        expect(status == -signal.SIGKILL, f"it ended by itself ({status}); its log: {self.folder}/log")


def bearer(server):
    return {"Authorization": "Bearer " + server.token}


def ask(connection, server, method, path, body=None):
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    connection.request(method, path, json.dumps(body) if body else None, {**bearer(server), "Content-Type": kind})
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def add_user(server, name):
    """The token of a new one, who reads."""
    done = subprocess.run([server.program, "add-user", "--name", name, "--role=view", *server.options], check=True,
                          stdout=subprocess.PIPE, text=True)
    return re.search(r"token: (\S+)", done.stdout).group(1)


def watch(server, since, connect=None, token=None):
    connection = connect or server.connect()
    headers = {"Authorization": "Bearer " + token} if token else bearer(server)
    connection.request("GET", f"{PATH}?watch=1&resourceVersion={since}", headers=headers)
    return connection, connection.getresponse()


def revision(thing):
    return int(thing["metadata"]["resourceVersion"])


def of_status(server, name):
    with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name + ":"))


def processor_s(server):
    """Seconds of processor time that it has had."""
    with open(f"/proc/{server.process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def play_on_a_server(play):
    """main() of a program that takes PROGRAM FOLDER and plays on one server."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    options = parser.parse_args()
    server = Server(options.program, options.folder)
    server.start()
    try:
        play(server)
    finally:
        if server.process.poll() is None:
            server.kill()
