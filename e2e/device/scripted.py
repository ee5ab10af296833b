"""A device that pretends to run wasm/nap.wat: for fleets larger than a machine has threads for."""

from proplet import Proplet
from wasm import TaskError, parse_integer

NAP_SECONDS = 0.02


class ScriptedProplet(Proplet):
    """Whatever the module is: n naps, then the value, or the error that the runtime would give."""

    def run(self, task):
        results, error, naps = "", None, 0
        try:
            naps, value = (parse_integer(text, 32) for text in task.message["inputs"][:2])
            results = str(value)
        except TaskError as problem:
            error, naps = str(problem), 0
        self.loop.after(naps * NAP_SECONDS, lambda: self.computed(task, results, error))
