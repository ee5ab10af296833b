"""Federated learning as the real Linux device does it: a Task is training if it has a ROUND_ID."""

import base64
import json
import re
import urllib.error
import urllib.request

HTTP_SECONDS = 30


class Silent(Exception):
    """It ends with a line in the device's log, and nobody is told."""


def is_training(message):
    return "ROUND_ID" in (message.get("env") or {})


def version_of(uri):
    match = re.search(r"global_model_v([0-9]+)", uri) or re.search(r"([0-9]+)$", uri)
    return int(match[1]) if match else 0


def fetch_model(env):
    """MODEL_DATA for the module, as the registry has it."""
    if "MODEL_URI" not in env:
        return {}
    if "MODEL_REGISTRY_URL" not in env:
        raise Silent("MODEL_URI without MODEL_REGISTRY_URL")
    url = f"{env['MODEL_REGISTRY_URL']}/models/{version_of(env['MODEL_URI'])}"
    try:
        with urllib.request.urlopen(url, timeout=HTTP_SECONDS) as reply:
            return {"MODEL_DATA": reply.read().decode()}
    except (OSError, ValueError):
        return {}  # the module has to do without


def is_json(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def post(env, text):
    """True: the coordinator has it."""
    request = urllib.request.Request(
        f"{env['MANAGER_COORDINATOR_URL']}/update",
        data=text.encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=HTTP_SECONDS) as reply:
            return 200 <= reply.status < 300
    except (OSError, ValueError):
        return False


def envelope(identity, task, text):
    env = task.message["env"]
    return {
        "format": env.get("FL_FORMAT", "f32-delta"),
        "metrics": {},
        "num_samples": int(env.get("FL_NUM_SAMPLES", "1")),
        "proplet_id": identity,
        "round_id": env["ROUND_ID"],
        "task_id": task.ident,
        "update_b64": base64.b64encode(text.encode()).decode(),
    }
