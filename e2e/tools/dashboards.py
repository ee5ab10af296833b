#!/usr/bin/env python3
"""Tests the dashboards of config/metrics, and the metrics of running programs.

    dashboards.py PROMTOOL PROMETHEUS METRICS-URL [PICTURE-COMMAND...]

The programs behind METRICS-URL are those of `make demo KEEP=1`, on which this runs Tasks. The dashboards must be what
config/metrics/dashboards.py makes, with a unit and a description in each panel and declared metrics alone; promtool must
find nothing in the metrics; and a Prometheus that scraped them must answer each query with a series, but those below.
Grafana itself is not started. PICTURE-COMMAND runs at the end, with the address of that Prometheus as its last argument.
"""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from metric_names import declared

FOLDER = pathlib.Path("config/metrics/dashboards")
SCRAPES, WITHIN_S = 4, 60
PICTURED_S = 120
# Series of these metrics exist only when it happened.
UNANSWERED = {
    'rate(propeller_task_attempts_total{outcome="failed"}': "no Task of the demo fails",
    "rate(controller_runtime_reconcile_total{result=\"error\"}": "no reconcile of the demo fails",
}


def panels_of():
    for file in sorted(FOLDER.glob("*.json")):
        for panel in json.loads(file.read_text(encoding="utf-8"))["panels"]:
            if panel["type"] != "row":
                yield file.name, panel


def static_problems(metrics):
    with tempfile.TemporaryDirectory() as name:
        subprocess.run([sys.executable, "-B", "config/metrics/dashboards.py", name], check=True)
        fresh = {file.name: file.read_text(encoding="utf-8") for file in pathlib.Path(name).iterdir()}
    kept = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.json")}
    if fresh != kept:
        yield "config/metrics/dashboards is not what dashboards.py makes: run make dashboards"
    for file, panel in panels_of():
        place = f"{file}: {panel['title']}"
        if not panel.get("description") or not panel["fieldConfig"]["defaults"].get("unit"):
            yield f"{place}: no description, or no unit"
        for target in panel["targets"]:
            for metric in re.findall(r"\b((?:propeller|controller_runtime|workqueue|rest_client)_\w+)", target["expr"]):
                if re.sub(r"_(bucket|sum|count)$", "", metric) not in metrics and metric not in metrics:
                    yield f"{place}: no source declares the metric {metric}"


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as reply:
        return reply.read().decode()


def run_tasks(*, waits):
    """Some runs, and one that waits for ever."""
    module = subprocess.run(["kubectl", "get", "task", "addition", "-o", "jsonpath={.spec.file}"], check=True,
                            capture_output=True).stdout
    with tempfile.NamedTemporaryFile(suffix=".wasm") as file:
        subprocess.run(["base64", "-d"], input=module, stdout=file, check=True)
        command = ["kubectl-propeller", "run", "--wasm", file.name, "--input", "10", "--input", "32"]
        for _ in range(3):
            subprocess.run([*command, "--rm", "--timeout", "60s"], check=True, capture_output=True)
        if waits:
            subprocess.run([*command, "--detach", "--capability", "none-has-it"], check=True, capture_output=True)


class Prometheus:
    """One that scrapes the programs every second, as long as the block lasts."""

    def __init__(self, program, target):
        self.program, self.target = program, target

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        config = {"global": {"scrape_interval": "1s"},
                  "scrape_configs": [{"job_name": "propeller", "static_configs": [{"targets": [self.target]}]}]}
        path = pathlib.Path(self.folder.name) / "prometheus.yml"
        path.write_text(json.dumps(config), encoding="utf-8")
        self.process = subprocess.Popen(
            [self.program, f"--config.file={path}", f"--storage.tsdb.path={self.folder.name}/data",
             f"--web.listen-address={self.url.removeprefix('http://')}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def ask(self, expr):
        try:
            reply = fetch(f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": expr}))
        except (urllib.error.URLError, ConnectionError):
            return []
        return json.loads(reply)["data"]["result"]

    def answers(self, exprs):
        """Those that no series answers within the time."""
        ends = time.monotonic() + WITHIN_S
        while (left := [expr for expr in exprs if not self.ask(expr)]) and time.monotonic() < ends:
            time.sleep(0.5)
        return left


def draw(server, command):
    """Pictures of two minutes in which Tasks run and a round of federated learning lacks devices."""
    subprocess.run(["kubectl", "apply", "-f", "config/samples/federatedjob.yaml"], check=True, capture_output=True)
    ends = time.monotonic() + PICTURED_S
    while time.monotonic() < ends:
        run_tasks(waits=False)
    subprocess.run([*command, server.url], check=True)


def live_problems(promtool, prometheus, url, picture_command):
    checked = subprocess.run([promtool, "check", "metrics"], input=fetch(url), capture_output=True, text=True, check=False)
    if checked.returncode or checked.stderr.strip():
        yield f"promtool check metrics: {checked.stdout}{checked.stderr}"
    with Prometheus(prometheus, urllib.parse.urlparse(url).netloc) as server:
        if server.answers([f"count_over_time(up[1m]) >= {SCRAPES}"]): # rates need a time before the Tasks
            yield f"Prometheus did not scrape {SCRAPES} times within {WITHIN_S} s"
        run_tasks(waits=True)
        exprs = [target["expr"].replace("$__rate_interval", "1m") for _, panel in panels_of() for target in panel["targets"]]
        for expr in server.answers([expr for expr in exprs if not any(part in expr for part in UNANSWERED)]):
            yield f"no series answers {expr}"
        if picture_command:
            draw(server, picture_command)


def main(promtool, prometheus, url, *picture_command):
    with tempfile.TemporaryDirectory() as name:
        problems = list(static_problems(declared(pathlib.Path(name))))
    problems += live_problems(promtool, prometheus, url, picture_command)
    print("\n".join(problems) or f"dashboards: {len(list(panels_of()))} panels passed, 0 failed")
    return 1 if problems else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main(*sys.argv[1:]))
