"""The settings of calls to a submitted chat model, and the cap on their cost. Pure."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

from core.text.words import gettext_noop
from tasks.config.schema import TaskConfig
from tasks.targets.endpoints.answer_reader import READER_VERSION

MAX_SHOTS = 32
MAX_TEXT_CHARS = 20_000
MAX_COST = 1_000_000
MAX_STOPS, MAX_STOP_CHARS = 4, 40
PLACEHOLDER_PATTERN = re.compile(r"\{(\w+)\}")
Problem = tuple[str, str, Mapping[str, Any]]
"""A field, a sentence about it with named placeholders, and the values of the placeholders."""


@dataclass(frozen=True)
class ChatSettings:
    """Everything in a request to a chat model except the example. Prices are per million tokens.

    instructions and template: the texts that are sent, default or custom.
    shots: the number of examples from the train split that precede each question with their
    answers; drawn by shots_seed. shot_items: their row ids, once drawn.
    perturbed: whether the model is also asked about perturbed examples.
    short_only: whether it gets only short evaluations, until its owner wants whole ones.
    most_cost: the maximum cost of all runs together.
    is_open: whether people other than the owner and their team may try to fool the model; their
    calls count towards most_cost.
    stop: texts at which an answer ends.
    logprobs: whether log probabilities are requested from a server; models that run here always
    report them.
    A model that runs here has no server name, price, temperature or seed.
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
    short_only: bool = False
    is_open: bool = False
    stop: tuple[str, ...] = ()
    logprobs: bool = False
    shot_items: tuple[int, ...] = ()

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> "ChatSettings":
        """Build the settings from a submission's column. Ignores settings that no longer exist."""
        names = {field.name for field in fields(cls)}
        # An older release may have stored settings that no longer exist.
        values = {name: value for name, value in stored.items() if name in names}
        for name in ("stop", "shot_items"):  # JSON has only lists
            values[name] = tuple(values.get(name, ()))
        return cls(**values)

    @property
    def is_paid(self) -> bool:
        """Return whether the model's owner entered a price for tokens."""
        return self.price_in > 0 or self.price_out > 0

    def compute_cost(self, tokens_in: float, tokens_out: float) -> float:
        """Return the cost of the tokens, in the currency of the prices."""
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1_000_000

    def build_options(self, shots: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the options of the adapter `openai_chat`.

        shots: the fields of the examples in the prompt, each with its answer.
        """
        options: dict[str, Any] = {
            "model": self.model,
            "instructions": self.instructions,
            "template": self.template,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }
        # Only settings with a value: servers refuse unknown options, and the digest of a model
        # stays the same when a later release adds an option.
        if self.seed is not None:
            options["seed"] = self.seed
        if self.stop:
            options["stop"] = list(self.stop)
        if self.logprobs:
            options["logprobs"] = True
        if shots:
            options["examples"] = [dict(shot) for shot in shots]
        return options

    def compute_digest(self, url: str, shots: Sequence[Mapping[str, Any]]) -> str:
        """Return a digest of the model's address, options and answer reader, which identifies it.

        The price is left out.
        """
        identity = [url, self.build_options(shots), READER_VERSION]
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def make_chat_settings(
    config: TaskConfig, *, instructions: str | None = None, template: str = "", **settings: Any
) -> ChatSettings:
    """Return settings for a task; instructions and template default to the standard ones."""
    if instructions is None:  # an empty text is a prompt without instructions
        instructions = make_task_instructions(config)
    return ChatSettings(
        instructions=instructions,
        template=template or make_plain_template(config),
        **settings,
    )


def make_plain_template(config: TaskConfig) -> str:
    """Return a template with every field that models read, in the order of the task's page."""
    return "\n\n".join(f"{{{name}}}" for name in config.ordered_fields)


def make_task_instructions(config: TaskConfig) -> str:
    """Return the default prompt: the task's name, and its labels in the task's own words."""
    answer = config.get_component(config.answer_field)
    title = answer.title.lower().removeprefix("your ")  # people read "Your label"
    lines = [f"The task is “{config.name}”. Give the {title}."]
    for label in answer.labels:
        line = f"- {label.value}: {label.words}"
        if label.help:
            line += f" ({label.help})"
        lines.append(line)
    return "\n".join(lines)


def find_settings_problem(
    config: TaskConfig, chat: ChatSettings, *, runs_here: bool = False
) -> Problem | None:
    """Return the first problem with the settings; None if they are valid.

    runs_here: whether the model runs on this site, where settings of servers are not allowed.
    """
    if runs_here:
        problems_of_kind = _find_local_problems(config, chat)
    else:
        problems_of_kind = _find_server_problems(chat)
    return next(chain(problems_of_kind, _find_common_problems(config, chat)), None)


def _find_local_problems(config: TaskConfig, chat: ChatSettings) -> Iterator[Problem]:
    if config.media_fields:
        yield (
            "kind",
            gettext_noop(
                "Language models on this site read only texts. Choose another kind of model."
            ),
            {},
        )
    for name in SERVER_SETTINGS:
        if getattr(chat, name):
            sentence = gettext_noop(
                "Language models on this site don't have the setting %(name)s. Leave it empty."
            )
            yield name, sentence, {"name": name}


def _find_server_problems(chat: ChatSettings) -> Iterator[Problem]:
    if not chat.model.strip():
        yield "model", gettext_noop("Enter the model's name on the server."), {}
    if chat.is_paid and not chat.most_cost:
        sentence = gettext_noop("Enter a cost cap, because this model has token prices.")
        yield "most_cost", sentence, {}
    if chat.most_cost and not chat.is_paid:
        sentence = gettext_noop(
            "Enter the price of a million tokens, so that we can apply the cost cap."
        )
        yield "price_in", sentence, {}


def _find_common_problems(config: TaskConfig, chat: ChatSettings) -> Iterator[Problem]:
    model_fields = config.model_fields
    template_fields = PLACEHOLDER_PATTERN.findall(chat.template)
    for name in model_fields:
        if name not in template_fields:
            sentence = gettext_noop(
                "Add {%(field)s} to the template. Models read these fields: %(fields)s."
            )
            yield "template", sentence, {"field": name, "fields": _join_placeholders(model_fields)}
    for name in template_fields:
        if name not in model_fields:
            sentence = gettext_noop(
                "Remove {%(field)s} from the template. Models read only these fields: %(fields)s."
            )
            yield "template", sentence, {"field": name, "fields": _join_placeholders(model_fields)}
    for name, (low, high) in SETTING_RANGES.items():
        value = getattr(chat, name)
        if value is not None and not low <= value <= high:
            sentence = gettext_noop("Enter a number from %(low)s to %(high)s.")
            yield name, sentence, {"low": low, "high": high}
    if len(chat.stop) > MAX_STOPS or not all(0 < len(text) <= MAX_STOP_CHARS for text in chat.stop):
        sentence = gettext_noop(
            "Enter at most %(n)d texts, each with at most %(length)d characters."
        )
        yield "stop", sentence, {"n": MAX_STOPS, "length": MAX_STOP_CHARS}


SERVER_SETTINGS = (
    *("model", "temperature", "seed", "price_in", "price_out", "most_cost", "logprobs"),
    "short_only",
)
SETTING_RANGES = {
    "shots": (0, MAX_SHOTS),
    "shots_seed": (0, 2**31 - 1),
    "temperature": (0, 2),
    "seed": (0, 2**31 - 1),
    "max_tokens": (1, 8192),
    "price_in": (0, 100_000),
    "price_out": (0, 100_000),
    "most_cost": (0, MAX_COST),
}


def _join_placeholders(names: Sequence[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)
