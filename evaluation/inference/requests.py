"""What a task's models read and may answer, and the examples as they are sent, in random order.

Knows neither database nor scores, so that a model can be checked anywhere.
"""

import os
import random
import secrets
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import orjson

from evaluation.contract import Runnable
from evaluation.inference.answers import Answers, Check
from evaluation.task_shape import Untrainable, shape_of
from tasks.config.loading import dump_config
from tasks.config.schema import TaskConfig
from tasks.config.values import check_value

PARTS = (
    *("version", "name", "language", "goal", "context", "input", "output", "verdict", "metrics"),
    "support",
)
"""What of a configuration tells what models read and answer."""
EVERY = 500  # examples between two looks at the clock
T = TypeVar("T")

Tell = Callable[[float, str], None]
"""Called often with progress (0-1) and message; an error that it raises ends the evaluation."""


def runnable(
    config: TaskConfig,
    *,
    folder: Path | None = None,
    image: str | None = None,
    adapter: str = "jsonl",
) -> Runnable:
    """A model with what the task asks of it: fields in order, answer field, labels."""
    return Runnable(
        folder=folder,
        image=image,
        adapter=adapter,
        fields=config.ordered_fields,
        output=config.answer_field,
        labels=labels_of(config),
    )


def text_for_models(config: TaskConfig) -> str:
    """The configuration without what concerns people alone; a check by it is the same."""
    return dump_config(TaskConfig(**{name: getattr(config, name) for name in PARTS}))


def model_for(config: TaskConfig) -> dict[str, Any]:
    """What a model of the task must be: what it reads, in order, and what it may answer.

    kind: of a folder of weights; None where no folder can be run. type: of the answer's field.
    """
    try:
        kind = shape_of(config).kind
    except Untrainable:
        kind = None
    return {
        "kind": kind,
        "type": config.component(config.answer_field).type,
        "fields": config.ordered_fields,
        "output": config.answer_field,
        "labels": labels_of(config),
    }


def answers_for(config: TaskConfig, ids: Iterable[str]) -> Answers:
    """What takes the answers to the task's answer field."""
    return Answers(config.answer_field, labels_of(config), ids, check=_check_of(config))


def labels_of(config: TaskConfig) -> tuple[str, ...] | None:
    """The labels among which the task's models choose; None where they answer freely."""
    return tuple(label.value for label in config.labels(config.answer_field)) or None


def _check_of(config: TaskConfig) -> Check | None:
    """What checks values that are neither one label nor a text; None for those that are."""
    part = config.component(config.answer_field)
    if part.type in ("multiclass", "text", "long_text", "span"):
        return None
    return lambda value: check_value(part, value, {})


class Sent:
    """The examples of one run as its model reads them: fresh ids, in an order by chance.

    Neither says anything about the set. Memory keeps eight bytes of an example.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, 0
        self._key = secrets.token_bytes(16)

    def write(self, inputs: Iterable[Mapping[str, Any]], fields: Iterable[str], tell: Tell) -> None:
        """Write `{"id": …, "inputs": …}` a line, of these fields only, shuffled."""
        names, starts = tuple(fields), array("q", [0])
        scratch = self.path.with_suffix(".set")
        with scratch.open("wb") as file:
            for each in ticking(inputs, tell, "writing the examples"):
                line = orjson.dumps({name: each[name] for name in names if name in each})
                starts.append(starts[-1] + file.write(line))
        self.size = len(starts) - 1
        places = array("q", range(self.size))
        random.Random(secrets.randbits(128)).shuffle(places)
        with scratch.open("rb") as source, self.path.open("wb") as target:
            for place in ticking(places, tell, "writing the examples"):
                line = os.pread(source.fileno(), starts[place + 1] - starts[place], starts[place])
                id = self._id(place).encode()
                target.write(b'{"id":"' + id + b'","inputs":' + line + b"}\n")
        scratch.unlink()
        self.path.chmod(0o644)  # the sandbox's user reads it

    def ids(self) -> Iterator[str]:
        """The ids in the order of the set."""
        return map(self._id, range(self.size))

    def _id(self, place: int) -> str:
        return blake2b(place.to_bytes(8), key=self._key, digest_size=10).hexdigest()

    def texts(self) -> Iterator[str]:
        """Every text that the model was sent."""
        with self.path.open("rb") as lines:
            for line in lines:
                yield from _texts(orjson.loads(line)["inputs"])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def ticking(items: Iterable[T], tell: Tell, message: str, progress: float = 0.0) -> Iterator[T]:
    """The items; calls `tell` on the way, so that long work is watched."""
    for number, item in enumerate(items):
        if number % EVERY == 0:
            tell(progress, message)
        yield item
