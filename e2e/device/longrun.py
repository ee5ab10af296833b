"""Long runs that hand over checkpoints by HTTP.

LongRun does it as a component would: in slices of real wasm. The module exports slice(n), steps() and result(), and
its first page of memory is its state. Saver only pretends to compute, for the many devices of a run of chaos.
"""

import time
import urllib.error
import urllib.parse
import urllib.request

PAGE = 1 << 16
SLICE = 20000
HTTP_SECONDS = 60


def is_long(task):
    return "CHECKPOINT_URL" in task.message["env"] and task.message["name"] == "slice"


def request(url, method, data=None):
    """Its status, headers and body; status 0: no answer."""
    message = urllib.request.Request(url, method=method, data=data)
    try:
        with urllib.request.urlopen(message, timeout=HTTP_SECONDS) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, b""
    except OSError:
        return 0, {}, b""


class LongRun:
    """One attempt. say(event, **values) writes to the journal."""

    def __init__(self, module, env, pause, say):
        self.env, self.pause, self.say = env, pause, say
        self.url = env["CHECKPOINT_URL"]
        self.interval = int(env["CHECKPOINT_INTERVAL"])
        self.module = module
        self.instance = module.instantiate(env)
        self.memory = self.instance.exports(module.store)["memory"]

    def call(self, name, *arguments):
        return self.module.call(self.instance, name, *arguments)

    def steps(self):
        return self.call("steps")

    def resume(self):
        """By the step of what it got, which may be older than what the variable says."""
        if "CHECKPOINT_STEP" not in self.env:
            self.say("begun")
            return
        status, headers, body = request(self.url, "GET")
        if status == 200:
            self.memory.write(self.module.store, body, 0)
        self.say("resumed", told=int(self.env["CHECKPOINT_STEP"]), status=status,
                 step=int(headers.get("Checkpoint-Step", 0)), steps=self.steps())

    def hand_over(self):
        state = bytes(self.memory.read(self.module.store, 0, PAGE))
        step = self.steps()
        status, _, _ = request(f"{self.url}?step={step}&samples={step}", "PUT", state)
        self.say("checkpoint", step=step, status=status)
        return status

    def run(self):
        self.resume()
        due = time.monotonic() + self.interval
        before = -1
        while self.steps() != before:
            before = self.steps()
            self.call("slice", SLICE)
            self.say("slice", steps=self.steps() - before)
            time.sleep(self.pause)
            if time.monotonic() >= due:
                self.hand_over()
                due = time.monotonic() + self.interval
        return str(self.call("result"))


def state_of(ident, step):
    """The bytes that a Saver hands over: of this Task and this step alone."""
    return (f"{ident.partition('.')[0]} {step}\n" * 100).encode()


class Saver:
    """One attempt that hands over a made-up state. Any of the coordinators may be the one that leads."""

    RETRY_SECONDS = 0.5

    def __init__(self, task, coordinators, say):
        env = task.message["env"]
        self.ident, self.say, self.ended = task.ident, say, False
        path = urllib.parse.urlsplit(env["CHECKPOINT_URL"]).path
        self.urls = [f"http://{address}{path}" for address in coordinators] or [env["CHECKPOINT_URL"]]
        self.interval = int(env["CHECKPOINT_INTERVAL"])
        self.told = int(env["CHECKPOINT_STEP"]) if "CHECKPOINT_STEP" in env else None

    def ask(self, method, query="", data=None):
        """The answer of the one that leads. The others refuse, and are asked again until the Task has ended."""
        while not self.ended:
            for url in self.urls:
                status, headers, body = request(url + query, method, data)
                if status in (200, 409):
                    return status, headers, body
            time.sleep(self.RETRY_SECONDS)
        return 0, {}, b""

    def resume(self):
        if self.told is None:
            return 0
        status, headers, body = self.ask("GET")
        step = int(headers.get("Checkpoint-Step", 0))
        if status == 200:
            self.say("resumed", told=self.told, status=status, step=step, right=body == state_of(self.ident, step))
        return step

    def run(self):
        self.say("begun", told=self.told)
        step = self.resume()
        while not self.ended:
            time.sleep(self.interval)
            step += 1
            status, _, _ = self.ask("PUT", f"?step={step}", state_of(self.ident, step))
            if status:
                self.say("checkpoint", step=step, status=status)
