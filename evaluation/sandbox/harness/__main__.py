"""`python3 -m evaluation.sandbox.harness`: answers as JSON lines on stdout, all else on stderr."""

import os
import sys

from tasks.targets.serving.errors import ServingError

from .answering import all_answers, each_answer
from .arguments import STDIN, read
from .loading import load


def main() -> int:
    """0, or 1 when the model cannot be used; the last line of stderr then says why."""
    asked = read()
    # What a library prints must not get between the answers.
    as_they_come = asked.input == STDIN
    source = 0 if as_they_come else asked.input
    with os.fdopen(os.dup(1), "wb") as out, open(source, "rb") as lines:
        os.dup2(2, 1)
        try:
            model = load(asked)
            for part in each_answer(lines, model) if as_they_come else all_answers(lines, model):
                out.write(part)
                out.flush()
        except ServingError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # tidying up behind torch would take a second
