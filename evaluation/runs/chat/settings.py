"""How a submitted chat model is asked, and what it may cost. Pure."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

from core.text.words import gettext_noop
from tasks.config.schema import TaskConfig
from tasks.targets.endpoints.answer_reader import READER

MOST_SHOTS = 32
MOST_TEXT = 20_000
MOST_COST = 1_000_000
MOST_STOPS, MOST_STOP = 4, 40
PLACE = re.compile(r"\{(\w+)\}")
Problem = tuple[str, str, Mapping[str, Any]]
"""The field, a sentence with named places, and what stands in them."""


@dataclass(frozen=True)
class ChatSettings:
    """All that a request has besides the example; prices are of a million tokens.

    instructions and template: what is sent, whoever wrote it. shots: examples of the train split
    that are asked and answered before, drawn by shots_seed; shot_items: their rows, once drawn.
    perturbed: whether it is asked about perturbed examples too. most_cost: of all runs together.
    is_open: whether others than its owner and their team may try to fool it, which counts as well.
    stop: texts before which an answer ends. logprobs: whether a server is asked for them; what
    runs here tells them always. A model that runs here has no server's name, price or
    chance.
    """

    model: str = ""
    instructions: str = ""
    template: str = ""
    shots: int = 0
    shots_seed: int = 0
    temperature: float = 0.0
    seed: int | None = None
    max_tokens: int = 256
    price_in: float = 0.0
    price_out: float = 0.0
    most_cost: float | None = None
    perturbed: bool = False
    is_open: bool = False
    stop: tuple[str, ...] = ()
    logprobs: bool = False
    shot_items: tuple[int, ...] = ()

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "ChatSettings":
        """Build the settings from a submission's column."""
        known = {one.name for one in fields(cls)}
        told = {name: value for name, value in stored.items() if name in known}
        lists = {name: tuple(told.get(name, ())) for name in ("stop", "shot_items")}
        return cls(**told | lists)

    @property
    def is_paid(self) -> bool:
        """Return whether its owner entered a price for tokens."""
        return self.price_in > 0 or self.price_out > 0

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        """Return what tokens cost, in the currency of the prices."""
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1_000_000

    def options(self, shots: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the options of the adapter `openai_chat`.

        shots: the fields of the examples in the prompt, each with its answer.
        """
        return {
            "model": self.model,
            "instructions": self.instructions,
            "template": self.template,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            **({} if self.seed is None else {"seed": self.seed}),
            **({"stop": [*self.stop]} if self.stop else {}),
            **({"logprobs": True} if self.logprobs else {}),
            **({"examples": [dict(one) for one in shots]} if shots else {}),
        }

    def digest(self, url: str, shots: Sequence[Mapping[str, Any]]) -> str:
        """Return the model's identity: its address, its options, how its answers are read.

        The price is not part of it.
        """
        asked = [url, self.options(shots), READER]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def settings_for(
    config: TaskConfig, *, instructions: str | None = None, template: str = "", **told: Any
) -> ChatSettings:
    """Return settings for a task; instructions and template default to the standard ones."""
    return ChatSettings(
        instructions=task_instructions(config) if instructions is None else instructions,
        template=template or plain_template(config),
        **told,
    )


def plain_template(config: TaskConfig) -> str:
    """Return a template with every field that models read, in the order of the page."""
    return "\n\n".join(f"{{{name}}}" for name in config.ordered_fields)


def task_instructions(config: TaskConfig) -> str:
    """Return the default prompt: the task's name, and its labels in the task's own words."""
    answer = config.component(config.answer_field)
    asked = answer.title.lower().removeprefix("your ")  # people read "Your label"
    about = f"The task is “{config.name}”. Give the {asked}."
    lines = [
        f"- {one.value}: {one.words}" + (f" ({one.help})" if one.help else "")
        for one in answer.labels
    ]
    return "\n".join([about, *lines])


def problem_of(
    config: TaskConfig, chat: ChatSettings, *, runs_here: bool = False
) -> Problem | None:
    """Return the first problem with the settings; None when there is none."""
    of_kind = _problems_here(config, chat) if runs_here else _problems_of_server(chat)
    return next(chain(of_kind, _problems(config, chat)), None)


def _problems_here(config: TaskConfig, chat: ChatSettings) -> Iterator[Problem]:
    if config.media_fields:
        yield "kind", gettext_noop("Language models that run here read texts only."), {}
    for name in OF_SERVERS:
        if getattr(chat, name):
            sentence = gettext_noop("A language model that runs here has no %(name)s.")
            yield name, sentence, {"name": name}


def _problems_of_server(chat: ChatSettings) -> Iterator[Problem]:
    if not chat.model.strip():
        yield "model", gettext_noop("Enter the name that the server gives the model."), {}
    if chat.is_paid and not chat.most_cost:
        sentence = gettext_noop("Say at most how much all of its evaluations may cost together.")
        yield "most_cost", sentence, {}
    if chat.most_cost and not chat.is_paid:
        sentence = gettext_noop("Enter what a million tokens cost, so that the cap can be held.")
        yield "price_in", sentence, {}


def _problems(config: TaskConfig, chat: ChatSettings) -> Iterator[Problem]:
    read = config.model_fields
    named = PLACE.findall(chat.template)
    for name in read:
        if name not in named:
            sentence = gettext_noop("The template lacks {%(field)s}. Models read: %(fields)s.")
            yield "template", sentence, {"field": name, "fields": _places(read)}
    for name in named:
        if name not in read:
            sentence = gettext_noop("Models do not read {%(field)s}. They read: %(fields)s.")
            yield "template", sentence, {"field": name, "fields": _places(read)}
    for name, (low, high) in RANGES.items():
        value = getattr(chat, name)
        if value is not None and not low <= value <= high:
            sentence = gettext_noop("Choose a number from %(low)s to %(high)s.")
            yield name, sentence, {"low": low, "high": high}
    if len(chat.stop) > MOST_STOPS or not all(0 < len(one) <= MOST_STOP for one in chat.stop):
        sentence = gettext_noop("Name at most %(n)d texts, of at most %(length)d characters each.")
        yield "stop", sentence, {"n": MOST_STOPS, "length": MOST_STOP}


OF_SERVERS = ("model", "temperature", "seed", "price_in", "price_out", "most_cost", "logprobs")
RANGES = {
    "shots": (0, MOST_SHOTS),
    "shots_seed": (0, 2**31 - 1),
    "temperature": (0, 2),
    "seed": (0, 2**31 - 1),
    "max_tokens": (1, 8192),
    "price_in": (0, 100_000),
    "price_out": (0, 100_000),
    "most_cost": (0, MOST_COST),
}


def _places(names: Sequence[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)
