"""Runs a language model's folder: asked and read as a chat model is, but writing in the sandbox."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from evaluation.contract import Beat, Ending, InvalidOutput, Runnable, Take
from evaluation.isolation.sandbox.endpoint import HOPELESS, answer_line, named_note
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.sandbox.meter import Meter
from evaluation.isolation.sandbox.monitor import Runner
from tasks.targets.endpoints.base import EndpointError, Prediction, Reason


class Reads(Protocol):
    """How examples become messages, and texts answers: of `OpenAIChatEndpoint`."""

    def asked(self, item: Mapping[str, Any]) -> list[Mapping[str, Any]]: ...

    def read(self, item: Mapping[str, Any], answer: Any) -> Prediction: ...


class WritingRunner:
    """Lets another runner's harness write, and reads an answer in each text."""

    def __init__(self, runner: Runner, reads: Reads) -> None:
        self.name = runner.name
        self._runner, self._reads = runner, reads

    def run(
        self, model: Runnable, inputs: Path, limits: Limits, *, take: Take, beat: Beat
    ) -> Ending:
        """See `Runner`. A text in which there is no answer counts as a wrong one."""
        prompts = inputs.with_name("prompts.jsonl")
        with inputs.open("rb") as lines:
            reading = _Reading(self._reads, lines, take)
            with prompts.open("wb") as file:
                file.writelines(reading.prompts())
            ending = self._runner.run(model, prompts, limits, take=reading.take, beat=beat)
        named = named_note(reading.named).strip() if reading.named else ""
        log = "\n".join(filter(None, (ending.log, *reading.notes, named)))
        usage = reading.meter.usage(ending.usage)
        return replace(ending, usage=usage, log=log[-limits.log_bytes :])


class _Reading:
    """The examples of one run, and what was read in the texts about them. notes: for the log."""

    def __init__(self, reads: Reads, lines: BinaryIO, take: Take) -> None:
        self.meter, self.notes = Meter(), list[str]()
        self._reads, self._lines, self._answer = reads, lines, take
        self._places: dict[str, int] = {}
        self._usable = self.named = 0

    def prompts(self) -> Iterator[bytes]:
        """Yield what the model is asked about each example, a line each, in their order."""
        place = 0
        for line in self._lines:
            example = json.loads(line)
            self._places[example["id"]] = place
            place += len(line)
            messages = self._reads.asked(example["inputs"])
            yield json.dumps({"id": example["id"], "messages": messages}).encode() + b"\n"

    def take(self, line: bytes) -> None:
        """Pass the answer in a text on. Raises InvalidOutput where no text holds one."""
        told = json.loads(line)
        self._lines.seek(self._places[told["id"]])
        item = json.loads(self._lines.readline())["inputs"]
        said: Prediction | Reason
        try:
            said = self._reads.read(item, _as_reply(told))
            self.meter.note(said.usage)
            self.named += said.is_named
            self._usable += 1
        except EndpointError as error:
            said = error.reason
            self.meter.note(error.usage)
            if len(self.notes) < HOPELESS:
                self.notes.append(str(error))
        if len(self.notes) == HOPELESS and not self._usable:
            raise InvalidOutput(
                f"None of the first {HOPELESS} texts holds an answer. {self.notes[-1]}"
            )
        self._answer(answer_line(told["id"], said).rstrip())


def answer_in(reads: Reads, item: Mapping[str, Any], line: bytes) -> bytes:
    """Return the answer line for the text in one line; its output is null without an answer."""
    told = json.loads(line)
    said: Prediction | Reason
    try:
        said = reads.read(item, _as_reply(told))
    except EndpointError as error:
        said = error.reason
    return answer_line(told["id"], said).rstrip()


def _as_reply(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a text in the form of a reply from a chat model's server."""
    read, written = told["tokens"]
    message = {"role": "assistant", "content": told["text"]}
    chances = {"content": [{"logprob": told["logprob"]}]}
    choice = {"message": message, "finish_reason": told["finish"], "logprobs": chances}
    return {
        "choices": [choice],
        "usage": {"prompt_tokens": read, "completion_tokens": written},
    }
