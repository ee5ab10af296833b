#!/usr/bin/env python3
"""The test device in a pod: takes its settings from the environment, as the real one does.

Either set of names must be complete (domain, client, key; or tenant, entity, API key). Numbers are
whole: one with a unit is ignored, and the default stays.
"""

import os
import ssl
import sys
import urllib.parse

NAMES = (("PROPLET_DOMAIN_ID", "PROPLET_CHANNEL_ID", "PROPLET_CLIENT_ID", "PROPLET_CLIENT_KEY"),
         ("PROPLET_TENANT_ID", "PROPLET_CHANNEL_ID", "PROPLET_ENTITY_ID", "PROPLET_API_KEY"))


def number(name, default):
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else default


def connection():
    for names in NAMES:
        values = [os.environ.get(name, "") for name in names]
        if all(values):
            return values
    sys.exit(f"none of the sets of variables is complete: {NAMES}")


def become(program, arguments):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), program)
    os.execv(sys.executable, [sys.executable, path, *arguments])


def main():
    if sys.argv[1:2] == ["job"]: # the same image serves as that of a Task
        become("job.py", sys.argv[2:])
    domain, channel, identity, key = connection()
    address = os.environ.get("PROPLET_MQTT_ADDRESS", "tcp://localhost:1883")
    broker = urllib.parse.urlsplit(address if "://" in address else f"tcp://{address}")
    passwords = "/tmp/passwords"
    with open(passwords, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(f"{identity}:{key}\n")
    tls = broker.scheme in ("ssl", "tls", "mqtts")
    ca = os.environ.get("PROPLET_MQTT_TLS_CA_CERT") or ssl.get_default_verify_paths().cafile
    if tls and not ca:
        sys.exit("there are no roots to check the broker's certificate with")
    become("device.py", [
        "--broker", f"{broker.hostname}:{broker.port or (8883 if tls else 1883)}",
        *(["--tls-ca", ca] if tls else []),
        "--domain", domain, "--channel", channel, "--identity", identity, "--passwords", passwords,
        "--namespace", os.environ.get("PROPLET_MANAGER_K8S_NAMESPACE") or "default",
        "--qos", str(number("PROPLET_MQTT_QOS", 2)),
        "--alive-interval", str(number("PROPLET_LIVELINESS_INTERVAL", 10)),
        "--metrics-interval", str(number("PROPLET_METRICS_INTERVAL", 10)),
        "--reconnect-max", "2"])


if __name__ == "__main__":
    main()
