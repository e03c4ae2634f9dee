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

from .answering import answer_batches, each_answer, read_examples
from .arguments import STDIN, read_command_line
from .batches import Example, planned
from .loading import load_classifier, load_writer
from .singles import timed
from .writing import each_text, read_prompts, texts


def main() -> int:
    """Answer all examples. Returns 0, or 1 if the model cannot be used.

    In that case the last line of stderr says why.
    """
    options = read_command_line()
    source = options.input
    if source == STDIN:
        source = 0
    # Answers go to a copy of standard output, which then becomes standard error: what a library
    # prints must not get between the answers.
    with os.fdopen(os.dup(1), "wb") as output_file, open(source, "rb") as lines:
        os.dup2(2, 1)
        try:
            for answer in _answered(options, lines):
                output_file.write(answer)
                output_file.flush()  # who watches sees progress, and measures the pace
        except ServingError as error:
            print(" ".join(str(error).split()), file=sys.stderr)  # the last line is shown
            return 1
    return 0


def _answered(options: Namespace, lines: BinaryIO) -> Iterator[bytes]:
    """Yield lines of answers, or of texts for a language model, then the time of single examples.

    Raises ServingError.
    """
    reads_stdin = options.input == STDIN
    if options.max_tokens:
        writer = load_writer(options)
        if reads_stdin:
            yield from each_text(lines, writer)
        else:
            prompts = list(read_prompts(lines, writer))
            yield from _whole_or_shard(options.part, prompts, partial(texts, writer=writer))
        return
    model = load_classifier(options)
    if reads_stdin:
        yield from each_answer(lines, model)
    else:
        answer = partial(
            answer_batches, codec=model.codec, backend=model.backend, workers=model.workers
        )
        examples = list(read_examples(lines, model.codec))
        yield from _whole_or_shard(options.part, examples, answer)


def _whole_or_shard(
    shard: str | None,
    examples: Sequence[Example],
    answer: Callable[[Sequence[Example]], Iterator[bytes]],
) -> Iterator[bytes]:
    """Yield the answers to all examples, then the time of single ones.

    shard: PLAN yields only the batches, REST only the answers.
    """
    if shard == PLAN:
        yield from planned(examples)
        return
    yield from answer(examples)
    if shard != REST:
        yield from timed(examples, lambda example: answer([example]))


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # tidying up behind torch would take a second
