"""The names of all metrics that the sources declare."""

import re
import subprocess
import sys

SOURCES = ("common", "controller", "certs", "webhook", "standalone")


def declared(folder):
    """folder: for a file that is made on the way."""
    page = folder / "metrics.md"
    subprocess.run([sys.executable, "-B", "docs/tools/metrics.py", page, *SOURCES], check=True)
    return set(re.findall(r"`(\w+)` \|", page.read_text(encoding="utf-8")))
