"""Decoding of start messages, as strict as the real device: what it refuses, it drops in silence."""

import json


class Dropped(Exception):
    """The message is not a start that a device would accept; the text is for its log only."""


TASK_FLAGS = ("daemon", "broadcast", "encrypted", "latent")
TEXTS = ("file", "image_url", "proplet_id", "mode", "kbs_resource_path", "hal_storage_path")
TEXT_LISTS = ("inputs", "cli_args")
PROFILE_FLAGS = (
    "enabled",
    "collect_cpu",
    "collect_memory",
    "collect_disk_io",
    "collect_threads",
    "collect_file_descriptors",
    "export_to_mqtt",
    "retain_history",
)
PROFILE_NUMBERS = ("interval", "history_size")
DEFAULT_PROFILE = {"enabled": True, "interval": 10, "retain_history": True}


def is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_text_list(value):
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def is_text_map(value):
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def demand(condition, why):
    if not condition:
        raise Dropped(why)


def check_profile(profile):
    demand(isinstance(profile, dict), "monitoring_profile is not an object")
    for key in PROFILE_FLAGS:
        demand(isinstance(profile.get(key), bool), f"monitoring_profile.{key} is not a boolean")
    for key in PROFILE_NUMBERS:
        demand(is_integer(profile.get(key)), f"monitoring_profile.{key} is not an integer")


def check_types(message):
    for key in ("id", "name"):
        demand(isinstance(message.get(key), str), f"{key} is not a string")
    if "state" in message:
        demand(is_integer(message["state"]) and 0 <= message["state"] <= 255, "state is not 0..255")
    for key in TASK_FLAGS:
        demand(isinstance(message.get(key, False), bool), f"{key} is not a boolean")
    for key in TEXTS:
        demand(message.get(key) is None or isinstance(message[key], str), f"{key} is not a string")
    for key in TEXT_LISTS:
        demand(message.get(key) is None or is_text_list(message[key]), f"{key} holds no strings")
    demand(message.get("env") is None or is_text_map(message["env"]), "env holds no strings")
    if message.get("monitoring_profile") is not None:
        check_profile(message["monitoring_profile"])


def decode_start(payload):
    """The message as a dict with every optional field present, or Dropped."""
    try:
        message = json.loads(payload)
    except ValueError as error:
        raise Dropped(f"not JSON: {error}") from error
    demand(isinstance(message, dict), "not an object")
    check_types(message)
    demand(message["id"], "id is empty")
    demand(message["name"], "name is empty")
    demand(message.get("file") or message.get("image_url"), "neither file nor image_url")
    demand(not (message.get("encrypted") and message.get("file")), "encrypted with a file")
    for key in TASK_FLAGS:
        message.setdefault(key, False)
    for key in TEXT_LISTS:
        message[key] = message.get(key) or []
    message["env"] = message.get("env") or {}
    message["monitoring_profile"] = message.get("monitoring_profile") or DEFAULT_PROFILE
    return message
