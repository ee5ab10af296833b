"""One task on the device: where its module comes from, and its run."""

import time
import urllib.error
import urllib.request

from wasm import TaskError, decode_base64, runner

FETCH_SECONDS = 30
FETCH_BYTES = 100 << 20
MODULE_TYPES = (None, "application/wasm", "application/octet-stream")


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=FETCH_SECONDS) as reply:
            kind = reply.headers.get("Content-Type")
            if kind not in MODULE_TYPES:
                raise TaskError(
                    f"unexpected content type '{kind}' fetching wasm from {url} "
                    "(expected application/wasm or application/octet-stream)"
                )
            return reply.read(FETCH_BYTES)
    except urllib.error.HTTPError as error:
        raise TaskError(f"HTTP {error.code} {error.reason} fetching wasm from {url}") from error
    except OSError as error:
        raise TaskError(f"error sending request for url ({url})") from error


class Task:
    def __init__(self, message):
        self.message = message
        self.ident = message["id"]
        self.is_daemon = message["daemon"]
        self.is_http = (message.get("image_url") or "").startswith(("http://", "https://"))
        profile = message["monitoring_profile"]
        self.monitored = profile["enabled"]
        self.interval = max(1, profile["interval"])
        self.history = profile["retain_history"]
        self.started = time.monotonic()
        self.computing = False
        self.parts = None
        self.module = None
        self.prints = False  # its result is what the module prints
        self.is_training = False

    def prepare(self):
        if self.message.get("file"):
            binary = decode_base64(self.message["file"])
        elif self.parts is not None:
            binary = b"".join(decode_base64(part) for part in self.parts)
        else:
            binary = fetch(self.message["image_url"])
        self.module = runner(binary, self.prints)

    def compute(self):
        return self.module.run(self.message["name"], self.message["inputs"], self.message["env"])

    def stop(self):
        if self.module:
            self.module.stop()
