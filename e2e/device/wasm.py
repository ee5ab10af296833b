"""Runs WebAssembly and words its errors as the real device's runtime does: core modules, and components as commands."""

import base64
import binascii
import os
import re
import struct
import tempfile
from decimal import Decimal

import wasmtime
from wasmtime import component

FALLBACKS = ("main", "run", "_start")
COMPONENT = b"\0asm\x0d"
COMMANDS = re.compile(r"_start$|fl-round-")
PRINTED_BYTES = 1 << 20
BASE64_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class TaskError(Exception):
    """What the device puts into `error` of the result."""


def decode_base64(text):
    data = text.encode()
    for offset, byte in enumerate(data.rstrip(b"=")):
        if byte not in BASE64_ALPHABET:
            raise TaskError(f"Invalid symbol {byte}, offset {offset}.")
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise TaskError("Invalid padding") from error


def parse_integer(text, bits):
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        kind = "cannot parse integer from empty string" if not text else "invalid digit found in string"
        raise TaskError(f"Failed to parse '{text}' as i{bits}: {kind}")
    value = int(text)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        size = "small" if value < 0 else "large"
        raise TaskError(f"Failed to parse '{text}' as i{bits}: number too {size} to fit in target type")
    return value


def parse_float(text, bits):
    try:
        return float(text)
    except ValueError as error:
        raise TaskError(f"Failed to parse '{text}' as f{bits}: invalid float literal") from error


PARSERS = {
    "i32": lambda text: parse_integer(text, 32),
    "i64": lambda text: parse_integer(text, 64),
    "f32": lambda text: parse_float(text, 32),
    "f64": lambda text: parse_float(text, 64),
}


def float_text(value, single):
    """The shortest decimal that reads back as the same number, never in exponent form."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN"}.get(str(value), str(value))
    text = repr(value)
    if single:
        for digits in range(1, 10):
            text = f"{value:.{digits}g}"
            if struct.unpack("f", struct.pack("f", float(text)))[0] == value:
                break
    text = format(Decimal(text), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def result_text(value, kind):
    if kind in ("f32", "f64"):
        return float_text(value, kind == "f32")
    return str(value)


def runner(binary, prints):
    """One run of one binary, which says itself what it is."""
    return Component(binary) if binary.startswith(COMPONENT) else Module(binary, prints)


class Runner:
    """stop() may be called from another thread."""

    def __init__(self, form, binary):
        config = wasmtime.Config()
        config.epoch_interruption = True
        self.engine = wasmtime.Engine(config)
        self.store = wasmtime.Store(self.engine)
        self.store.set_epoch_deadline(1)  # the engine's clock moves in stop() only
        try:
            self.module = form(self.engine, binary)
        except wasmtime.WasmtimeError as error:
            raise TaskError(
                "Failed to compile Wasmtime module from binary: failed to parse WebAssembly module"
            ) from error

    def stop(self):
        """Unlike the real device, which lets it compute on: a test machine has better uses for a core."""
        self.engine.increment_epoch()

    def run(self, name, inputs, env):
        with tempfile.TemporaryDirectory() as folder:
            return self._run(name, inputs, env, os.path.join(folder, "stdout"))

    def _wasi(self, env, **files):
        wasi = wasmtime.WasiConfig()
        wasi.env = list(env.items())
        for name, path in files.items():
            setattr(wasi, name, path)
        self.store.set_wasi(wasi)

    def _call(self, name, function, arguments):
        try:
            return function(self.store, *arguments)
        except wasmtime.ExitTrap as trap:
            if trap.code == 0:
                return None
            raise TaskError(f"Failed to call function '{name}': exit status {trap.code}") from trap
        except (wasmtime.Trap, wasmtime.WasmtimeError) as trap:
            # The cause stands in the real device's log only, not in its result.
            text = str(trap).split("\n\nCaused by")[0].rstrip()
            raise TaskError(f"Failed to call function '{name}': {text}") from trap


def printed(path):
    with open(path, "rb") as file:
        return file.read(PRINTED_BYTES).decode(errors="replace").removesuffix("\n")


class Component(Runner):
    """As a command alone. The real device calls other exports, too, and serves HTTP."""

    def __init__(self, binary):
        super().__init__(component.Component, binary)

    def _run(self, name, inputs, env, stdout):
        if not COMMANDS.match(name):
            raise TaskError(f"Function '{name}' not found: this device runs components as commands only")
        linker = component.Linker(self.engine)
        linker.add_wasip2()
        stderr = f"{stdout}.err"
        self._wasi(env, stdout_file=stdout, stderr_file=stderr)
        instance = linker.instantiate(self.store, self.module)
        command = instance.get_export_index(self.store, "wasi:cli/run@0.2.0")
        run = command and instance.get_export_index(self.store, "run", command)
        if not run:
            raise TaskError("Failed to run the component: it does not export wasi:cli/run")
        result = self._call(name, instance.get_func(self.store, run), [])
        if result is not None and result.tag == "err":
            raise TaskError(f"Failed to call function '{name}': exit status 1")
        return "\n".join(filter(None, (printed(stdout), printed(stderr))))


class Module(Runner):
    """A core module."""

    def __init__(self, binary, prints=False):
        self.prints = prints  # as with an external runtime: what it prints is its result
        super().__init__(wasmtime.Module, binary)

    def _run(self, name, inputs, env, stdout):
        instance = self._instantiate(env, stdout)
        initialize = instance.exports(self.store).get("_initialize")
        if initialize is not None:
            self._call("_initialize", initialize, [])
        name, function = self._find(name, instance)
        kinds = [str(kind) for kind in function.type(self.store).params]
        if len(kinds) != len(inputs):
            raise TaskError(
                f"Argument count mismatch for function '{name}': "
                f"expected {len(kinds)} arguments but got {len(inputs)}"
            )
        arguments = [PARSERS[kind](text) for kind, text in zip(kinds, inputs)]
        value = self._call(name, function, arguments)
        if self.prints:
            return printed(stdout)
        results = [str(kind) for kind in function.type(self.store).results]
        if not results:
            return ""
        first = value[0] if isinstance(value, (list, tuple)) else value
        return result_text(first, results[0])

    def _instantiate(self, env, stdout):
        linker = wasmtime.Linker(self.engine)
        linker.define_wasi()
        self._wasi(env, **({"stdout_file": stdout} if self.prints else {}))
        try:
            return linker.instantiate(self.store, self.module)
        except wasmtime.WasmtimeError as error:
            text = str(error).splitlines()[0]
            raise TaskError(f"Failed to instantiate Wasmtime module: {text}") from error

    def instantiate(self, env):
        """For a run in parts: see longrun.py."""
        return self._instantiate(env, os.devnull)

    def call(self, instance, name, *arguments):
        function = instance.exports(self.store).get(name)
        if function is None:
            raise TaskError(f"Function '{name}' not found in module exports")
        return self._call(name, function, arguments)

    def _find(self, wanted, instance):
        exports = instance.exports(self.store)
        functions = {
            export.name: exports[export.name]
            for export in self.module.exports
            if isinstance(exports[export.name], wasmtime.Func)
        }
        for name in (wanted, *FALLBACKS):
            if name in functions:
                return name, functions[name]
        names = ", ".join(f'"{name}"' for name in functions)
        raise TaskError(
            f"Function '{wanted}' not found, and fallbacks [\"main\", \"run\", \"_start\"] "
            f"also not found in module exports. Available function exports: [{names}]"
        )
