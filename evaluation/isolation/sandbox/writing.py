"""Run a language model's folder in the sandbox, and ask it like a chat model."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from evaluation.contract import BeatCallback, Ending, InvalidOutput, LineCallback, Runnable
from evaluation.isolation.sandbox.endpoint import (
    MAX_USELESS_ANSWERS,
    describe_named_answers,
    format_answer_line,
)
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.sandbox.meter import Meter
from evaluation.isolation.sandbox.monitor import Runner
from tasks.targets.endpoints.base import EndpointError, Prediction, Reason


class ChatFormatter(Protocol):
    """The part of `OpenAIChatEndpoint` that turns examples into messages and texts into answers."""

    def build_visible_messages(self, item: Mapping[str, Any]) -> list[Mapping[str, Any]]: ...

    def read(self, item: Mapping[str, Any], answer: Any) -> Prediction: ...


class WritingRunner:
    """A runner that has a model write texts, through another runner, and extracts the answers."""

    def __init__(self, runner: Runner, formatter: ChatFormatter) -> None:
        self.name = runner.name
        self._runner, self._formatter = runner, formatter

    def run(
        self,
        model: Runnable,
        inputs: Path,
        limits: Limits,
        *,
        take: LineCallback,
        beat: BeatCallback,
    ) -> Ending:
        """Run a model; see `Runner.run`. A text without an answer counts as wrong."""
        prompts = inputs.with_name("prompts.jsonl")
        with inputs.open("rb") as lines:
            text_reader = _TextReader(self._formatter, lines, take)
            with prompts.open("wb") as file:
                file.writelines(text_reader.iterate_prompts())
            ending = self._runner.run(model, prompts, limits, take=text_reader.take, beat=beat)
        notes = [ending.log] + text_reader.notes
        if text_reader.named_count:
            notes.append(describe_named_answers(text_reader.named_count).strip())
        log = "\n".join(filter(None, notes))
        usage = text_reader.meter.add_to_usage(ending.usage)
        return replace(ending, usage=usage, log=log[-limits.log_bytes :])


class _TextReader:
    """A reader of the texts that a model writes in one run. It passes on the answers in them.

    formatter: builds prompts and finds answers. lines: the file of examples. take: receives the
    lines of answers. notes: messages for the log.
    """

    def __init__(self, formatter: ChatFormatter, lines: BinaryIO, take: LineCallback) -> None:
        self.meter, self.notes = Meter(), list[str]()
        self._formatter, self._lines, self._pass_line_on = formatter, lines, take
        self._offsets: dict[str, int] = {}
        self._usable_count = self.named_count = 0

    def iterate_prompts(self) -> Iterator[bytes]:
        """Yield the messages for each example, one line per example, in the order of the file."""
        offset = 0
        for line in self._lines:
            example = json.loads(line)
            self._offsets[example["id"]] = offset
            offset += len(line)
            messages = self._formatter.build_visible_messages(example["inputs"])
            yield json.dumps({"id": example["id"], "messages": messages}).encode() + b"\n"

    def take(self, line: bytes) -> None:
        """Parse the answer in a text and pass it on.

        Raises InvalidOutput if none of the first MAX_USELESS_ANSWERS texts contains an answer.
        """
        generation = json.loads(line)
        # Read again from the file, because a million examples would fill the memory.
        self._lines.seek(self._offsets[generation["id"]])
        item = json.loads(self._lines.readline())["inputs"]
        answer: Prediction | Reason
        try:
            answer = self._formatter.read(item, _make_reply(generation))
            self.meter.record_answer(answer.usage)
            self.named_count += answer.is_named
            self._usable_count += 1
        except EndpointError as error:
            answer = error.reason
            self.meter.record_answer(error.usage)
            if len(self.notes) < MAX_USELESS_ANSWERS:
                self.notes.append(str(error))
        if len(self.notes) == MAX_USELESS_ANSWERS and not self._usable_count:
            raise InvalidOutput(
                f"None of the first {MAX_USELESS_ANSWERS} texts contains an answer. "
                f"{self.notes[-1]}"
            )
        self._pass_line_on(format_answer_line(generation["id"], answer).rstrip())


def parse_answer_line(formatter: ChatFormatter, item: Mapping[str, Any], line: bytes) -> bytes:
    """Return the answer line for a written text. Its output is null if the text has no answer."""
    generation = json.loads(line)
    answer: Prediction | Reason
    try:
        answer = formatter.read(item, _make_reply(generation))
    except EndpointError as error:
        answer = error.reason
    return format_answer_line(generation["id"], answer).rstrip()


def _make_reply(generation: Mapping[str, Any]) -> dict[str, Any]:
    """Return a text in the format of a chat server's reply."""
    tokens_in, tokens_out = generation["tokens"]
    message = {"role": "assistant", "content": generation["text"]}
    logprobs = {"content": [{"logprob": generation["logprob"]}]}
    choice = {"message": message, "finish_reason": generation["finish"], "logprobs": logprobs}
    return {
        "choices": [choice],
        "usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out},
    }
