"""`python3 -m evaluation.sandbox.harness`: answers as JSON lines on stdout, all else on stderr."""

import os
import sys

from tasks.targets.serving.errors import ServingError

from .answering import answers, read_examples
from .arguments import read
from .loading import load


def main() -> int:
    """0, or 1 when the model cannot be used; the last line of stderr then says why."""
    asked = read()
    # What a library prints must not get between the answers.
    with os.fdopen(os.dup(1), "wb") as out, open(asked.input, "rb") as lines:
        os.dup2(2, 1)
        try:
            model = load(asked)
            examples = list(read_examples(lines, model.codec))
            for part in answers(examples, model.codec, model.backend, workers=model.workers):
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
