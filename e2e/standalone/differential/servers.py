"""The two API servers: calls with a connection kept open, and watches that are read beside them."""
import base64
import http.client
import json
import os
import re
import ssl
import tempfile
import threading
import urllib.parse

PATIENCE_S = 240


class Answer:
    def __init__(self, code, headers, text):
        self.code, self.headers, self.text = code, headers, text
        try:
            self.body = json.loads(text) if text else None
        except ValueError:
            self.body = text.decode("utf-8", "replace")


class Server:
    """What a kubeconfig leads to: a token, or a certificate of the client."""

    def __init__(self, name, kubeconfig):
        self.name = name
        with open(kubeconfig, encoding="utf-8") as file:
            text = file.read()
        self.address = urllib.parse.urlparse(re.search(r"server: \"?([^\s\"}]+)", text).group(1))
        self.tls = ssl.create_default_context(cadata=self.part(text, "certificate-authority-data"))
        token = re.search(r"token: ([^\s}]+)", text)
        self.token = token.group(1) if token else None
        if not self.token:
            with tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False) as pair:
                pair.write(self.part(text, "client-certificate-data") + self.part(text, "client-key-data"))
            self.tls.load_cert_chain(pair.name)
            os.unlink(pair.name)
        self.anonymous = ssl.create_default_context(cadata=self.part(text, "certificate-authority-data"))

    @staticmethod
    def part(text, name):
        return base64.b64decode(re.search(name + r": ([^\s,}]+)", text).group(1)).decode()

    def connect(self, named=True):
        return http.client.HTTPSConnection(self.address.hostname, self.address.port, timeout=PATIENCE_S,
                                           context=self.tls if named else self.anonymous)


def send(connection, server, method, target, headers, body, named=True):
    connection.putrequest(method, target, skip_accept_encoding=True)
    if named and server.token:
        connection.putheader("Authorization", "Bearer " + server.token)
    for name, value in headers.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    try:
        connection.endheaders(body)
    except OSError:  # who refuses a body does not take all of it: the answer may be there
        if connection.sock is None:
            raise
    return connection.getresponse()


# What a server says that has too much to do.
BUSY = (429, 503, 504)


class Session:
    """Calls one after the other. A connection that the server closed is opened again once.

    disturbed: an answer was none of the object's, or a write may have been made twice."""

    def __init__(self, server):
        self.server = server
        self.connection = None
        self.disturbed = False

    def ask(self, method, target, headers, body=None, named=True):
        if not named:
            return self.once(self.server.connect(False), method, target, headers, body, False)
        for last in (False, True):
            if not self.connection:
                self.connection = self.server.connect()
            try:
                return self.once(self.connection, method, target, headers, body, True)
            except (http.client.HTTPException, OSError):
                self.connection.close()
                self.connection = None
                self.disturbed |= method not in ("GET", "HEAD")
                if last:
                    raise
        return None

    def once(self, connection, method, target, headers, body, named):
        response = send(connection, self.server, method, target, headers, body, named)
        answer = Answer(response.status, response.headers, response.read())
        self.disturbed |= answer.code in BUSY
        if response.will_close:
            connection.close()
            self.connection = None if connection is self.connection else self.connection
        return answer


class Watch:
    """A stream that is read by a thread of its own, until enough() or its end."""

    def __init__(self, server, target, headers):
        self.events, self.changed = [], threading.Condition()
        self.ended = False
        self.connection = server.connect()
        response = send(self.connection, server, "GET", target, headers, None)
        self.code, self.headers = response.status, response.headers
        if self.code != 200:
            self.answer = Answer(self.code, response.headers, response.read())
            self.connection.close()
            self.ended = True
            return
        self.answer = Answer(self.code, response.headers, b"")
        threading.Thread(target=self.read, args=(response,), daemon=True).start()

    def read(self, response):
        try:
            while line := response.readline():
                with self.changed:
                    self.events.append(json.loads(line))
                    self.changed.notify_all()
        except (OSError, ValueError, AttributeError, http.client.HTTPException):  # closed while it was read
            pass
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait(self, enough, seconds):
        """False: it did not come."""
        with self.changed:
            return self.changed.wait_for(lambda: self.ended or enough(self.events), seconds)

    def close(self):
        try:
            if self.connection.sock:
                self.connection.sock.shutdown(2)
            self.connection.close()
        except (OSError, AttributeError):  # its thread saw the end first, and closes it
            pass
