"""build.py FOLDER FILE.wat...: writes FOLDER/FILE as base64 of the module."""

import base64
import pathlib
import sys

import wasmtime

for name in sys.argv[2:]:
    source = pathlib.Path(name)
    module = wasmtime.wat2wasm(source.read_text(encoding="utf-8"))
    (pathlib.Path(sys.argv[1]) / source.stem).write_bytes(base64.b64encode(module))
