"""The interface between the platform and a target model, wherever that model runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Literal, NamedTuple, Protocol

from serving.proofs import Prover
from tasks.config.components import Component
from tasks.config.field_types.chat import strip_secrets

Reason = Literal[
    "down",
    "slow",
    "busy",
    "rubbish",
    "misconfigured",
    "refused",
    "too_long",
    "filtered",
    "declined",
    "empty",
    "unmatched",
    "unfinished",
]
UNANSWERED_REASONS: Mapping[Reason, str] = {
    "refused": "refused by the server",
    "too_long": "too long for the model",
    "filtered": "stopped by a content filter",
    "declined": "declined by the model",
    "empty": "answered with nothing",
    "unmatched": "answered with none of the possible answers",
    "unfinished": "not finished",
}
"""Descriptions of failures that concern one example: the model responded, but without an answer."""
QA_KIND = "extractive-qa"
GENERATOR_KIND = "generator"  # generates text
CHAT = "chat"  # answers the last of the messages in the field `messages`


class Usage(NamedTuple):
    """The usage of a target: tokens read, tokens written and number of calls."""

    tokens_in: int
    tokens_out: int
    requests: int = 1


def sum_usages(usages: Iterable[Usage | None]) -> Usage | None:
    """Return the sum of the known usages, or None if none is known."""
    counted_usages = []
    for usage in usages:
        if usage is not None:
            counted_usages.append(usage)
    if counted_usages:
        # Each number by itself: tokens read, tokens written, and calls.
        return Usage(*map(sum, zip(*counted_usages, strict=True)))
    return None


@dataclass(frozen=True)
class Prediction:
    """A target's answer for one example.

    output: values by field name. prob: probabilities by label. seconds: the time for this example
    only. usage: the usage of the call, if it may cost money. logprob: the natural logarithm of the
    probability of the whole written text, if reported. label_logprob: the same of the label alone,
    if it was chosen from a list. is_named: whether the answer was only mentioned in a sentence.
    """

    output: Mapping[str, Any]
    prob: Mapping[str, float] | None
    seconds: float
    fingerprint: Mapping[str, Any]
    usage: Usage | None = None
    logprob: float | None = None
    label_logprob: float | None = None
    is_named: bool = False


@dataclass(frozen=True)
class EndpointInfo:
    """A target's description of itself. The fingerprint identifies the exact model."""

    name: str
    kind: str  # sequence-classification | pair-classification | extractive-qa | remote
    fingerprint: Mapping[str, Any]


class EndpointError(Exception):
    """Raised if a target gives no usable answer.

    reason: about the target, down (no connection, server error), slow (deadline passed), busy
    (asked us to wait), rubbish (a response that violates the protocol), misconfigured (the owner
    must change something). About this input, refused (by the server), too_long (for the model),
    filtered (by a content filter), declined (by the model), empty (no text), unmatched (none of the
    possible answers), unfinished (ended by `max_tokens`). is_permanent: whether the same call will
    fail again. retry_after: seconds to wait, if known. usage: what was used before the failure.
    """

    usage: Usage | None = None

    def __init__(
        self,
        message: str,
        reason: Reason,
        is_permanent: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.is_permanent = is_permanent
        self.retry_after = retry_after


def build_misconfigured_error(message: str) -> EndpointError:
    """Return the error for a problem that only the target's owner can correct."""
    return EndpointError(message, reason="misconfigured", is_permanent=True)


def build_unmatched_error(message: str) -> EndpointError:
    """Return the error for a text that is none of the possible answers."""
    return EndpointError(message, reason="unmatched")


def build_rubbish_error(message: str) -> EndpointError:
    """Return the error for an answer that is not a valid prediction."""
    return EndpointError(message, reason="rubbish")


OptionKind = type | UnionType
"""The type of an adapter's option: str, int, int | float, bool, list or Mapping."""
COMMON_OPTIONS: Mapping[str, OptionKind] = {"passage_field": str}
"""Options that every adapter has."""


def describe_option_type(kind: OptionKind) -> str:
    """Return a phrase for an option's type in the terms of JSON."""
    phrases = {str: "a text", int: "a whole number", bool: "true or false", list: "a list"}
    if kind == int | float:
        return "a number"
    if isinstance(kind, type):
        return phrases.get(kind, "an object")
    return str(kind)


@dataclass(frozen=True)
class EndpointConfig:
    """The settings for reaching a target and checking its answers.

    fields: names of the input fields to send, in order. output: the target field that is answered.
    labels: allowed answers; None for free or extractive ones. answer: the target field's
    component, with which answers are checked, if known. media: the fields with data URLs of
    pictures (image) or recordings (audio). secret: the bearer token. options: specific to the
    adapter.
    allow_private_hosts: True, or the names, addresses and networks that may resolve to private
    addresses (an operator's decision, never a task owner's). prover: signs calls to our own model
    server.
    """

    url: str
    fields: tuple[str, ...]
    output: str
    labels: tuple[str, ...] | None = None
    answer: Component | None = None
    media: Mapping[str, str] = field(default_factory=dict, hash=False)
    kind: str = "remote"
    secret: str | None = field(default=None, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    max_response_bytes: int = 1_000_000
    allow_private_hosts: bool | tuple[str, ...] = False
    prover: Prover | None = None

    def __post_init__(self) -> None:
        # Checked when the target is described, long before it is first asked.
        if not self.fields:
            raise build_misconfigured_error("The target needs at least one input field.")
        if self.kind == QA_KIND and self.passage_field not in self.fields:
            raise build_misconfigured_error(
                f"The passage field {self.passage_field!r} is not an input field; "
                "name it in the option 'passage_field'."
            )

    @property
    def passage_field(self) -> str:
        """Return the name of the field with the passage of an extractive answer."""
        return str(self.options.get("passage_field", "passage"))

    def select_fields(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of an example that the model may see, without copies of a secret.

        Raises EndpointError if a field is missing.
        """
        missing_fields = []
        for name in self.fields:
            if name not in item:
                missing_fields.append(name)
        if missing_fields:
            raise build_misconfigured_error(
                f"The example lacks the input field {missing_fields[0]!r}; it has {sorted(item)}."
            )
        return {name: strip_secrets(item[name]) for name in self.fields}

    def check_options(self, adapter_options: Iterable[str]) -> None:
        """Raise EndpointError for an option that the adapter does not have.

        adapter_options: the adapter's own option names.
        """
        names = set(adapter_options).union(COMMON_OPTIONS)
        unknown_names = sorted(set(self.options) - names)
        if unknown_names:
            option_list = ", ".join(sorted(names))
            raise build_misconfigured_error(
                f"Unknown option {unknown_names[0]!r}; this adapter has: {option_list}."
            )

    def get_option(self, name: str, kind: OptionKind, default: Any = None) -> Any:
        """Return an option's value. Raises EndpointError if its type is wrong.

        The option is required if `default` is Ellipsis.
        """
        value = self.options.get(name, default)
        if value is ...:
            raise build_misconfigured_error(f"The option {name!r} is missing.")
        is_unexpected_bool = kind is not bool and isinstance(
            value, bool
        )  # to Python True is a number
        if value is not default and (is_unexpected_bool or not isinstance(value, kind)):
            raise build_misconfigured_error(
                f"The option {name!r} must be {describe_option_type(kind)}."
            )
        return value

    def get_name_map(self, name: str) -> Mapping[str, str]:
        """Return an option that maps names to names, empty by default. Raises EndpointError."""
        value: Mapping[str, Any] = self.get_option(name, Mapping, {})
        # Other values would be sent as names, and only the server would notice.
        if not all(isinstance(text, str) for text in value.values()):
            raise build_misconfigured_error(f"The option {name!r} must give each name a text.")
        return value


class Endpoint(Protocol):
    """The interface of every adapter. Both calls raise no exception but EndpointError."""

    def predict(
        self, batch: Sequence[Mapping[str, Any]], *, deadline_seconds: float
    ) -> list[Prediction]: ...

    def info(self, *, deadline_seconds: float) -> EndpointInfo: ...
