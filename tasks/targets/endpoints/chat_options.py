"""Check the options of a chat model that are lists or numbers of money."""

from collections.abc import Mapping
from typing import Any

from tasks.targets.endpoints.base import (
    CHAT,
    GENERATOR_KIND,
    EndpointConfig,
    build_misconfigured_error,
)

SPENDING_OPTIONS = (
    "price_in",
    "price_out",  # of a million tokens, in whole money
    "requests_a_day",
    "tokens_a_day",
    "requests_a_round",
    "tokens_a_round",
)
"""Options that do not affect answers, so they may change while a round is open."""
ROUND_OPTIONS = ("requests_a_round", "tokens_a_round")
MAX_STOPS = 4
API_CHOICES = ("auto", "chat", "responses")
"""The option `api`: the protocol to ask in. auto: /responses where only that is served."""


def read_api(config: EndpointConfig) -> str:
    """Return the option 'api'. Raises EndpointError with the reason `misconfigured`."""
    api: str = config.get_option("api", str, "auto")
    if api not in API_CHOICES:
        raise build_misconfigured_error("The option 'api' is auto, chat or responses.")
    return api


def read_stops(config: EndpointConfig) -> list[str]:
    """Return the option 'stop'. Raises EndpointError with the reason `misconfigured`."""
    stop: list[Any] = config.get_option("stop", list, [])
    if len(stop) > MAX_STOPS or not all(isinstance(text, str) and text for text in stop):
        raise build_misconfigured_error(
            f"The option 'stop' is a list of at most {MAX_STOPS} texts."
        )
    return stop


def read_examples(config: EndpointConfig) -> list[Any]:
    """Return the option 'examples'. Raises EndpointError with the reason `misconfigured`."""
    examples: list[Any] = config.get_option("examples", list, [])
    names = set(config.fields) | {config.output}
    if not all(_is_example(example, names) for example in examples):
        name_list = ", ".join(sorted(names))
        raise build_misconfigured_error(
            f"The option 'examples' is a list of objects of texts: {name_list}."
        )
    return examples


def check_spending(config: EndpointConfig) -> None:
    """Raise EndpointError for prices and budgets that do not apply to this kind of model."""
    options = set(config.options)
    if config.kind == GENERATOR_KIND and (wrong_options := options.intersection(SPENDING_OPTIONS)):
        reason = "the calls of a generator are not counted"
        raise build_misconfigured_error(
            f"The option {min(wrong_options)!r} doesn't exist here: {reason}."
        )
    if config.kind == CHAT and (wrong_options := options.intersection(ROUND_OPTIONS)):
        raise build_misconfigured_error(
            f"The option {min(wrong_options)!r} doesn't exist here: no rounds."
        )
    for name in SPENDING_OPTIONS:
        if config.get_option(name, int | float, 0) < 0:
            raise build_misconfigured_error(f"The option {name!r} must not be below 0.")


def _is_example(example: Any, names: set[str]) -> bool:
    has_all_names = isinstance(example, Mapping) and set(example) == names
    return has_all_names and all(isinstance(value, str) for value in example.values())
