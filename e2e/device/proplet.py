"""One identity: its connection, and what the real Linux device says and does on it."""

import json
import os
import platform
import socket
import threading
import time

import longrun
import paho.mqtt.client as mqtt
import training
from start import Dropped, decode_start
from tasks import Task
from wasm import TaskError

KEEP_ALIVE = 30
IN_FLIGHT = 10
QUEUED = 128
HOUSEKEEPING = 5
SAMPLE_AFTER = 0.1
REGISTRY_POLL = 5
REGISTRY_PATIENCE = 60
ASSEMBLY_SECONDS = 300
# Messages are handled side by side: a part is stored a moment after it came.
STORE_AFTER = 0.05
PAGE = os.sysconf("SC_PAGE_SIZE")


def timestamp():
    now = time.time_ns()
    return {"secs_since_epoch": now // 10**9, "nanos_since_epoch": now % 10**9}


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE


class Proplet:
    """Everything here runs on the loop's thread, except Task.compute()."""

    def __init__(self, loop, journal, options, identity, secret):
        self.loop, self.journal, self.options, self.identity = loop, journal, options, identity
        channel = options.channel.replace("{id}", identity)
        self.prefix = f"m/{options.domain}/c/{channel}/"
        self.tasks = {}
        self.daemons = {}
        self.assemblies = {}  # by app_name: of everything on the channel, asked for or not
        self.drops = None  # the index of a part that is lost once
        self.muted = False
        self.held = None  # results that wait for `release`
        self.holds_all = True  # false: only those of training
        self.replies = [json.loads(options.reply)] if options.reply else []  # JSON null is a reply, too
        self.backoff = 1
        self.retry = None  # the timer of the next attempt to connect
        self.introduced = False
        self.unacknowledged = {}  # message number of the client library -> id of the result in it
        self.client = self._make_client(secret)
        journal.write(identity, "boot")

    # ---- connection ----

    def _make_client(self, secret):
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, self.identity, clean_session=True)
        client.username_pw_set(self.identity, secret)
        client.max_inflight_messages_set(IN_FLIGHT)
        client.max_queued_messages_set(QUEUED)
        client.on_connect = self._connected
        client.on_disconnect = self._disconnected
        client.on_message = self._message
        client.on_publish = self._acknowledged
        self.loop.attach(client)
        if self.options.tls_ca:
            client.tls_set(ca_certs=self.options.tls_ca)
        if self.options.last_will:
            will = {"proplet_id": self.identity, "status": "offline", "namespace": "embedded"}
            client.will_set(self.topic("control/proplet/alive"), json.dumps(will), qos=1)
        return client

    def topic(self, suffix):
        return self.prefix + suffix

    def start(self):
        self._connect()
        self.loop.after(HOUSEKEEPING, self._housekeeping)

    def _housekeeping(self):
        self.client.loop_misc()
        self.loop.after(HOUSEKEEPING, self._housekeeping)

    def _connect(self):
        self.retry = None
        try:
            self.client.connect(self.options.host, self.options.port, KEEP_ALIVE)
        except OSError as error:
            self.journal.write(self.identity, "unreachable", error=str(error))
            self._connect_later()

    def _connect_later(self):
        if self.retry:
            return
        self.retry = self.loop.after(self.backoff, self._connect)
        self.backoff = min(self.backoff * 2, self.options.reconnect_max)

    def _disconnected(self, _client, _userdata, _flags, reason, _properties):
        self.journal.write(self.identity, "disconnected", reason=str(reason))
        self._connect_later()

    def _connected(self, client, _userdata, _flags, reason, _properties):
        if reason.is_failure:
            self.journal.write(self.identity, "refused", reason=str(reason))
            return
        self.backoff = 1
        topics = ("control/manager/start", "control/manager/stop", "registry/server")
        client.subscribe([(self.topic(topic), self.options.qos) for topic in topics])
        self.journal.write(self.identity, "connected")
        if not self.introduced:
            self._introduce()

    def _introduce(self):
        """Once per process: a reconnect subscribes again and says nothing."""
        self.introduced = True
        create = {"proplet_id": self.identity, "namespace": self.options.namespace}
        self.publish("control/proplet/create", {**create, "metadata": self._metadata()})
        self._heartbeat()
        if self.options.metrics_interval:
            self._device_metrics()

    def publish(self, suffix, message):
        text = json.dumps(message, separators=(",", ":"))
        return self.client.publish(self.topic(suffix), text, qos=self.options.qos).mid

    def _acknowledged(self, _client, _userdata, number, _reason, _properties):
        ident = self.unacknowledged.pop(number, None)
        if ident is not None and self.options.qos:
            self.journal.write(self.identity, "acknowledged", task=ident)

    # ---- what it says about itself ----

    def _metadata(self):
        known = {
            "description": self.options.description,
            "tags": self.options.tags,
            "location": self.options.location,
        }
        return {
            **{key: value for key, value in known.items() if value},
            "ip": "127.0.0.1",
            "environment": "binary",
            "os": "linux",
            "hostname": socket.gethostname(),
            "cpu_arch": platform.machine(),
            "total_memory_bytes": os.sysconf("SC_PHYS_PAGES") * PAGE,
            "proplet_version": "0.5.0",
            "wasm_runtime": "wasmtime-internal",
        }

    def _heartbeat(self):
        self.loop.after(self.options.alive_interval, self._heartbeat)
        if not self.muted:
            alive = {"proplet_id": self.identity, "status": "alive"}
            self.publish("control/proplet/alive", {**alive, "namespace": self.options.namespace})

    def _device_metrics(self):
        self.loop.after(self.options.metrics_interval, self._device_metrics)
        times = os.times()
        cpu = {"user_seconds": times.user, "system_seconds": times.system}
        memory = {"rss_bytes": resident_bytes(), "heap_alloc_bytes": 0, "heap_sys_bytes": 0}
        message = {
            "proplet_id": self.identity,
            "namespace": self.options.namespace,
            "timestamp": timestamp(),
            "cpu_metrics": {**cpu, "percent": 100.0 * min(1.0, os.getloadavg()[0] / os.cpu_count())},
            "memory_metrics": {**memory, "heap_inuse_bytes": 0, "container_usage_bytes": 0},
        }
        self.publish("control/proplet/metrics", message)

    # ---- commands ----

    def _message(self, _client, _userdata, message):
        # The real device looks for these words anywhere in the topic, in this order.
        for word, handler in (
            ("control/manager/start", self._start),
            ("control/manager/stop", self._stop),
            ("registry/server", self._chunk),
        ):
            if word in message.topic:
                handler(message.payload)
                return

    def _start(self, payload):
        try:
            message = decode_start(payload)
        except Dropped as why:
            self.journal.write(self.identity, "dropped", why=str(why))
            return
        ident, wanted = message["id"], message.get("proplet_id")
        if not message["broadcast"] and wanted is not None and wanted != self.identity:
            return
        if ident in self.tasks:
            self.journal.write(self.identity, "ignored", task=ident)
            return
        self.journal.write(self.identity, "start", task=ident, name=message["name"])
        task = Task(message)
        task.is_training = training.is_training(message)
        task.prints = self.options.external_runtime
        if message["encrypted"]:
            self._publish_result(task, "", "TEE runtime not available")
            return
        self.tasks[ident] = task
        if message.get("file") or task.is_http:
            self._compute(task)
        else:
            self.publish("registry/proplet", {"app_name": message["image_url"]})
            self.journal.write(self.identity, "asked", task=ident, name=message["image_url"])
            self._await_chunks(task, time.monotonic() + REGISTRY_PATIENCE)

    def _stop(self, payload):
        try:
            ident = json.loads(payload)["id"]
        except (ValueError, KeyError, TypeError):
            self.journal.write(self.identity, "dropped", why="not a stop")
            return
        # Not filtered by proplet_id: whoever runs this id stops it.
        daemon, task = self.daemons.pop(ident, None), self.tasks.get(ident)
        if daemon:
            daemon.stop()
            self.journal.write(self.identity, "stopped", task=ident)
        elif task and task.computing:
            task.stop()
            self.journal.write(self.identity, "stopped", task=ident)
            self._finish(task, "", "Task was cancelled or panicked")
        else:
            self.journal.write(self.identity, "unknown-stop", task=ident)

    # ---- modules from the registry ----

    def _chunk(self, payload):
        self.loop.after(STORE_AFTER, lambda: self._store_chunk(payload))

    def _store_chunk(self, payload):
        try:
            chunk = json.loads(payload)
            name, index, total = chunk["app_name"], chunk["chunk_idx"], chunk["total_chunks"]
            data = chunk["data"]
        except (ValueError, KeyError, TypeError):
            self.journal.write(self.identity, "dropped", why="not a chunk")
            return
        if index == self.drops:
            self.drops = None
            self.journal.write(self.identity, "lost", name=name, index=index)
            return
        self._expire_assemblies()
        assembly = self.assemblies.setdefault(name, {"total": total, "since": time.monotonic(), "parts": {}})
        if assembly["total"] != total:
            self.journal.write(self.identity, "dropped", why=f"{total} chunks, not {assembly['total']}")
            return
        assembly["parts"][index] = data
        self.journal.write(self.identity, "chunk", name=name, index=index, total=total)

    def _expire_assemblies(self):
        """Whatever it has of them: five minutes after the first part."""
        oldest = time.monotonic() - ASSEMBLY_SECONDS
        for name in [name for name, assembly in self.assemblies.items() if assembly["since"] < oldest]:
            del self.assemblies[name]

    def _await_chunks(self, task, deadline):
        self._expire_assemblies()
        name = task.message["image_url"]
        assembly = self.assemblies.get(name)
        if assembly and len(assembly["parts"]) == assembly["total"]:
            del self.assemblies[name]
            task.parts = [assembly["parts"][index] for index in sorted(assembly["parts"])]
            self._compute(task)
        elif time.monotonic() > deadline:
            self._finish(task, "", "Timeout waiting for binary chunks")
        else:
            self.loop.after(REGISTRY_POLL, lambda: self._await_chunks(task, deadline))

    # ---- running ----

    def _compute(self, task):
        task.computing = True
        self.run(task)
        if task.monitored and not task.is_daemon and not self.options.no_task_metrics:
            self.loop.after(SAMPLE_AFTER, lambda: self._task_metrics(task, 1))

    def run(self, task):
        """Ends with a call of computed(), on this thread."""
        threading.Thread(target=self._compute_in_thread, args=(task,), daemon=True).start()

    def _compute_in_thread(self, task):
        results, error = "", None
        try:
            if task.is_training:
                task.message["env"].update(training.fetch_model(task.message["env"]))
            task.prepare()
            if task.is_daemon:
                self.loop.post(lambda: self._daemon_started(task))
            if longrun.is_long(task):
                results = self._run_long(task)
            else:
                results = task.compute()
        except TaskError as problem:
            error = str(problem)
        except training.Silent as why:
            self.loop.post(lambda: self._end_in_silence(task, str(why)))
            return
        self.loop.post(lambda: self.computed(task, results, error))

    def _run_long(self, task):
        def say(event, **values):
            self.loop.post(lambda: self.journal.write(self.identity, event, task=task.ident, **values))

        return longrun.LongRun(task.module, task.message["env"], self.options.slice_pause, say).run()

    def _end_in_silence(self, task, why):
        self.tasks.pop(task.ident, None)
        self.journal.write(self.identity, "silent", task=task.ident, why=why)

    def _daemon_started(self, task):
        self.daemons[task.ident] = task
        self._finish(task, "", None)

    def computed(self, task, results, error):
        if self.tasks.get(task.ident) is not task:
            return  # stopped, or a daemon: its end is never reported
        self.journal.write(self.identity, "computed", task=task.ident)
        # While it is sampled, the sampler is awaited before the result leaves.
        floor = SAMPLE_AFTER if task.monitored else 0
        wait = max(self.options.result_delay, task.started + floor - time.monotonic())
        self.loop.after(max(0, wait), lambda: self._finish(task, results, error))

    def _finish(self, task, results, error):
        if self.tasks.get(task.ident) is not task:
            return
        del self.tasks[task.ident]
        if self.replies and error is None:
            results = self.replies[0]
        if self.held is not None and (self.holds_all or task.is_training):
            self.held.append((task, results, error))
        else:
            self._let_go(task, results, error)

    def _let_go(self, task, results, error):
        if task.is_training:
            self._hand_over(task, results, error)
        else:
            self._publish_result(task, results, error)

    def _hand_over(self, task, text, error):
        """An update: to the coordinator, else on a topic; the results message follows in any case."""
        env = task.message["env"]
        if "MANAGER_COORDINATOR_URL" not in env:
            self.journal.write(self.identity, "silent", task=task.ident, why="no coordinator")
            return

        def hand_over():
            is_update = error is None and training.is_json(text)
            stored = is_update and training.post(env, text)
            self.loop.post(lambda: self._handed_over(task, text, error, is_update, stored))

        threading.Thread(target=hand_over, daemon=True).start()

    def _handed_over(self, task, text, error, is_update, stored):
        how = "http" if stored else "topic" if is_update else "nowhere"
        self.journal.write(self.identity, "update", task=task.ident, how=how, text=text)
        if how == "topic":
            topic = f"fl/rounds/{task.message['env']['ROUND_ID']}/updates/{self.identity}"
            self.client.publish(topic, text, qos=self.options.qos)
        results = training.envelope(self.identity, task, text if error is None else "")
        self._publish_result(task, results, error)

    def _publish_result(self, task, results, error):
        result = {"task_id": task.ident}
        if not task.is_training:  # there it is inside the results
            result["proplet_id"] = self.identity
        self.journal.write(self.identity, "result", task=task.ident, results=results, error=error)
        result.update(results=results, error=error)
        self.unacknowledged[self.publish("control/proplet/results", result)] = task.ident

    def _task_metrics(self, task, sample):
        if self.tasks.get(task.ident) is not task:
            return
        memory = resident_bytes() * 1024  # as the real one: a thousand times too much
        metrics = {"cpu_percent": 0.5, "memory_bytes": memory, "memory_percent": 0.0}
        usage = {"avg_cpu_usage": 0.5, "max_cpu_usage": 0.5, "avg_memory_usage": memory}
        totals = {"max_memory_usage": memory, "total_disk_read": 0, "total_disk_write": 0}
        message = {
            "task_id": task.ident,
            "proplet_id": self.identity,
            "metrics": {
                **metrics,
                "disk_read_bytes": 0,
                "disk_write_bytes": 0,
                "uptime_seconds": int(time.monotonic() - task.started),
                "thread_count": threading.active_count(),
                "file_descriptor_count": len(os.listdir("/proc/self/fd")),
            },
            "aggregated": {**usage, **totals, "sample_count": sample} if task.history else None,
            "timestamp": timestamp(),
        }
        self.publish("control/proplet/task_metrics", message)
        self.loop.after(task.interval, lambda: self._task_metrics(task, sample + 1))

    # ---- control by the test ----

    def control(self, verb, argument):
        if verb in ("mute", "unmute"):
            self.muted = verb == "mute"
        elif verb == "hold":
            self.held, self.holds_all = self.held or [], argument != "training"
        elif verb == "release":
            held, self.held = self.held or [], None
            for task, results, error in held:
                self._let_go(task, results, error)
        elif verb == "drop":
            self.drops = int(argument)
        elif verb == "reply":
            self.replies = [] if argument == "default" else [json.loads(argument)]
        else:
            raise ValueError(f"unknown verb '{verb}'")
