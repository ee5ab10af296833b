"""A device that pretends to run wasm/nap.wat: for fleets larger than a machine has threads for."""

import threading

import longrun
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
        saver = None
        if "CHECKPOINT_URL" in task.message["env"]:
            saver = self._save(task)
            if "." not in task.ident:  # the first attempt
                results, error = "", "lost my state"
        self.loop.after(naps * NAP_SECONDS, lambda: self._napped(task, results, error, saver))

    def _save(self, task):
        def say(event, **values):
            self.loop.post(lambda: self.journal.write(self.identity, event, task=task.ident, **values))

        saver = longrun.Saver(task, self.options.coordinators, say)
        threading.Thread(target=saver.run, daemon=True).start()
        return saver

    def _napped(self, task, results, error, saver):
        if saver:
            saver.ended = True
        self.computed(task, results, error)
