"""Answers as JSON lines on stdout, all else on stderr.

Run as `python3 -m evaluation.isolation.sandbox.harness`.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import BinaryIO

from evaluation.contract import PLAN, REST
from serving.errors import ServingError

from .answering import answers, each_answer, read_examples
from .arguments import STDIN, read
from .batches import Example, planned
from .loading import load, load_writer
from .singles import timed
from .writing import each_text, read_prompts, texts


def main() -> int:
    """Answer all examples. Return 0, or 1 when the model cannot be used.

    The last line of stderr then says why.
    """
    asked = read()
    # What a library prints must not get between the answers.
    source = 0 if asked.input == STDIN else asked.input
    with os.fdopen(os.dup(1), "wb") as out, open(source, "rb") as lines:
        os.dup2(2, 1)
        try:
            for part in _answered(asked, lines):
                out.write(part)
                out.flush()
        except ServingError as error:
            print(" ".join(str(error).split()), file=sys.stderr)  # the last line is shown
            return 1
    return 0


def _answered(asked: Namespace, lines: BinaryIO) -> Iterator[bytes]:
    """Yield lines of answers, or of texts if the model writes; then the time of single ones.

    Raises ServingError.
    """
    if asked.max_tokens:
        writer = load_writer(asked)
        if asked.input == STDIN:
            yield from each_text(lines, writer)
            return
        yield from _part(
            asked.part, list(read_prompts(lines, writer)), partial(texts, writer=writer)
        )
        return
    model = load(asked)
    if asked.input == STDIN:
        yield from each_answer(lines, model)
        return
    answer = partial(answers, codec=model.codec, backend=model.backend, workers=model.workers)
    yield from _part(asked.part, list(read_examples(lines, model.codec)), answer)


def _part(
    part: str | None,
    examples: Sequence[Example],
    answer: Callable[[Sequence[Example]], Iterator[bytes]],
) -> Iterator[bytes]:
    if part == PLAN:
        yield from planned(examples)
        return
    yield from answer(examples)
    if part != REST:
        yield from timed(examples, lambda one: answer([one]))


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # tidying up behind torch would take a second
