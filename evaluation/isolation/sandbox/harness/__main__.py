"""Answer examples as JSON lines on stdout; write everything else to stderr.

Run as `python3 -m evaluation.isolation.sandbox.harness`.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import BinaryIO

from evaluation.contract import PLAN_PART, REST_PART
from serving.errors import ServingError

from .answering import answer_batches, read_examples, stream_answers
from .arguments import STDIN, read_command_line
from .batches import Example, iterate_plan_lines
from .loading import load_classifier, load_writer
from .singles import time_single_examples
from .writing import read_prompts, stream_texts, write_texts


def main() -> int:
    """Answer all examples. Returns 0, or 1 if the model cannot be used.

    In that case the last line of stderr says why.
    """
    options = read_command_line()
    source = options.input
    if source == STDIN:
        source = 0
    # Answers go to a copy of standard output, which then becomes standard error. Output of
    # libraries must not get between the answers.
    with os.fdopen(os.dup(1), "wb") as output_file, open(source, "rb") as lines:
        os.dup2(2, 1)
        try:
            for answer in _iterate_answers(options, lines):
                output_file.write(answer)
                output_file.flush()  # so that the watching process sees progress and pace
        except ServingError as error:
            print(" ".join(str(error).split()), file=sys.stderr)  # the last line is shown
            return 1
    return 0


def _iterate_answers(options: Namespace, lines: BinaryIO) -> Iterator[bytes]:
    """Yield lines of answers, or of texts for a language model, then a line with single times.

    Raises ServingError.
    """
    reads_stdin = options.input == STDIN
    if options.max_tokens:
        writer = load_writer(options)
        if reads_stdin:
            yield from stream_texts(lines, writer)
        else:
            prompts = list(read_prompts(lines, writer))
            yield from _answer_set_or_shard(
                options.part, prompts, partial(write_texts, writer=writer)
            )
        return
    model = load_classifier(options)
    if reads_stdin:
        yield from stream_answers(lines, model)
    else:
        answer_examples = partial(
            answer_batches, codec=model.codec, backend=model.backend, workers=model.workers
        )
        examples = list(read_examples(lines, model.codec))
        yield from _answer_set_or_shard(options.part, examples, answer_examples)


def _answer_set_or_shard(
    shard_part: str | None,
    examples: Sequence[Example],
    answer_examples: Callable[[Sequence[Example]], Iterator[bytes]],
) -> Iterator[bytes]:
    """Yield the answers to all examples, then a line with the times of single examples.

    shard_part: PLAN_PART yields only the batches, REST_PART only the answers, None everything.
    """
    if shard_part == PLAN_PART:
        yield from iterate_plan_lines(examples)
        return
    yield from answer_examples(examples)
    if shard_part != REST_PART:
        yield from time_single_examples(examples, lambda example: answer_examples([example]))


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # a normal exit with torch would take a second
