"""Runs the files of custom metrics in this process."""

import io
from contextlib import redirect_stdout

from evaluation.contract import Ending, InvalidOutput, Outcome
from evaluation.isolation.sandbox import metric_script


class InProcess:
    """Runs the script as the sandbox does, without one; then ends so."""

    name = "here"

    def __init__(self, ending=Outcome.OK, more=b""):
        self.ending, self.more, self.read = Ending(ending, sentence="why"), more, []

    def run(self, model, inputs, limits, *, take, beat):
        beat()
        self.read.append(inputs.read_text())
        out = io.StringIO()
        with redirect_stdout(out):
            metric_script.main(str(model.folder / "metric.py"), str(inputs))
        try:
            for line in [*out.getvalue().encode().splitlines(), *self.more.splitlines()]:
                take(line)
        except InvalidOutput:
            return Ending(Outcome.INVALID_OUTPUT)
        return self.ending
