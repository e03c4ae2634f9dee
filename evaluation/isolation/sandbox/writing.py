"""The runner of a language model's folder, which is asked like a chat model, in the sandbox."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from evaluation.contract import Beat, Ending, InvalidOutput, Runnable, Take
from evaluation.isolation.sandbox.endpoint import MAX_USELESS_ANSWERS, answer_line, named_note
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.sandbox.meter import Meter
from evaluation.isolation.sandbox.monitor import Runner
from tasks.targets.endpoints.base import EndpointError, Prediction, Reason


class Reads(Protocol):
    """The part of `OpenAIChatEndpoint` that turns examples into messages and texts into answers."""

    def asked(self, item: Mapping[str, Any]) -> list[Mapping[str, Any]]: ...

    def read(self, item: Mapping[str, Any], answer: Any) -> Prediction: ...


class WritingRunner:
    """A runner that has a model write texts through another runner and extracts their answers."""

    def __init__(self, runner: Runner, reader: Reads) -> None:
        self.name = runner.name
        self._runner, self._reads = runner, reader

    def run(
        self, model: Runnable, inputs: Path, limits: Limits, *, take: Take, beat: Beat
    ) -> Ending:
        """Run a model as `Runner.run` does. A text without an answer counts as wrong."""
        prompts = inputs.with_name("prompts.jsonl")
        with inputs.open("rb") as lines:
            reading = _Reading(self._reads, lines, take)
            with prompts.open("wb") as file:
                file.writelines(reading.prompts())
            ending = self._runner.run(model, prompts, limits, take=reading.take, beat=beat)
        notes = [ending.log] + reading.notes
        if reading.named:
            notes.append(named_note(reading.named).strip())
        log = "\n".join(filter(None, notes))
        usage = reading.meter.usage(ending.usage)
        return replace(ending, usage=usage, log=log[-limits.log_bytes :])


class _Reading:
    """The examples of one run, with the answers parsed from the model's texts.

    notes: messages for the log.
    """

    def __init__(self, reader: Reads, lines: BinaryIO, take: Take) -> None:
        self.meter, self.notes = Meter(), list[str]()
        self._reads, self._lines, self._pass_on = reader, lines, take
        self._places: dict[str, int] = {}
        self._usable = self.named = 0

    def prompts(self) -> Iterator[bytes]:
        """Yield the messages for each example, one line per example, in the order of the file."""
        place = 0
        for line in self._lines:
            example = json.loads(line)
            self._places[example["id"]] = place
            place += len(line)
            messages = self._reads.asked(example["inputs"])
            yield json.dumps({"id": example["id"], "messages": messages}).encode() + b"\n"

    def take(self, line: bytes) -> None:
        """Parse the answer in a text and pass it on.

        Raises InvalidOutput if none of the first MAX_USELESS_ANSWERS texts contains an answer.
        """
        generation = json.loads(line)
        # Read again from the file of examples: a million of them would fill the memory.
        self._lines.seek(self._places[generation["id"]])
        item = json.loads(self._lines.readline())["inputs"]
        answer: Prediction | Reason
        try:
            answer = self._reads.read(item, _make_reply(generation))
            self.meter.note(answer.usage)
            self.named += answer.is_named
            self._usable += 1
        except EndpointError as error:
            answer = error.reason
            self.meter.note(error.usage)
            if len(self.notes) < MAX_USELESS_ANSWERS:
                self.notes.append(str(error))
        if len(self.notes) == MAX_USELESS_ANSWERS and not self._usable:
            raise InvalidOutput(
                f"None of the first {MAX_USELESS_ANSWERS} texts holds an answer. {self.notes[-1]}"
            )
        self._pass_on(answer_line(generation["id"], answer).rstrip())


def parse_answer_line(reader: Reads, item: Mapping[str, Any], line: bytes) -> bytes:
    """Return the answer line for a written text. Its output is null if the text has no answer."""
    generation = json.loads(line)
    answer: Prediction | Reason
    try:
        answer = reader.read(item, _make_reply(generation))
    except EndpointError as error:
        answer = error.reason
    return answer_line(generation["id"], answer).rstrip()


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
