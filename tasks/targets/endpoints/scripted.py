"""A target that answers by rules in its options, for tests and demonstrations."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, get_args

from tasks.targets.endpoints.answers import expect_object, read_output, read_prob
from tasks.targets.endpoints.base import (
    EndpointConfig,
    EndpointError,
    EndpointInfo,
    OptionKind,
    Prediction,
    Reason,
    build_misconfigured_error,
)
from tasks.targets.endpoints.transport import Clock

ANSWER_KEYS = frozenset({"label", "output", "prob", "delay", "fail", "retry_after"})
RULE_KEYS = ANSWER_KEYS | {"contains", "field", "equals"}
NUMBER_KEYS, TEXT_KEYS = ("delay", "retry_after"), ("contains", "field")


class ScriptedEndpoint:
    """An endpoint that answers by the first matching rule, with defaults for missing keys.

    Options: label or output, prob, delay (seconds that it really sleeps), fail (a reason),
    retry_after, and rules. Each rule is an object with the same keys, "contains" or "equals" and,
    optionally, "field".
    """

    OPTIONS: ClassVar[Mapping[str, OptionKind]] = {
        "label": str,
        "output": Mapping,
        "prob": Mapping,
        "delay": int | float,
        "fail": str,
        "retry_after": int | float,
        "rules": list,
    }

    def __init__(self, config: EndpointConfig) -> None:
        config.check_options(self.OPTIONS)
        self._config = config
        self._rules: list[dict[str, Any]] = list(config.get_option("rules", Sequence, ()))
        for rule in [*self._rules, config.options]:
            _check_types(rule)
            if rule.get("fail") not in (None, *get_args(Reason)):
                raise build_misconfigured_error(f"'fail' is one of {', '.join(get_args(Reason))}.")
        for rule in self._rules:
            if unknown_keys := sorted(set(rule) - RULE_KEYS):
                raise build_misconfigured_error(
                    f"Unknown key {unknown_keys[0]!r} in a rule; {sorted(RULE_KEYS)}."
                )

    def predict(
        self, batch: Sequence[Mapping[str, Any]], *, deadline_seconds: float
    ) -> list[Prediction]:
        """Return one prediction for each example, in order. Raises EndpointError."""
        clock = Clock(deadline_seconds)
        return [self._answer_item(self._config.select_fields(item), clock) for item in batch]

    def _answer_item(self, item: Mapping[str, Any], clock: Clock) -> Prediction:
        rule = next((rule for rule in self._rules if _matches_rule(rule, item)), {})
        script = dict(self._config.options) | rule
        started_at = clock.get_used_seconds()
        # Never longer than the deadline, as a real target would be given up then.
        time.sleep(min(script.get("delay", 0), clock.get_remaining_seconds()))
        clock.get_remaining_seconds()  # raises where the delay was cut
        if script.get("fail"):
            raise EndpointError(
                "The target fails as scripted.",
                reason=script["fail"],
                is_permanent=script["fail"] in ("refused", "misconfigured"),
                retry_after=script.get("retry_after"),
            )
        answer = script
        if {"label", "output"} & set(rule):
            answer = rule
        raw_output = answer.get("output", {self._config.output: answer.get("label")})
        output = read_output(self._config, item, expect_object(raw_output, "output"))
        prob = read_prob(self._config, answer.get("prob"))
        return Prediction(
            output, prob, clock.get_used_seconds() - started_at, {"digest": "scripted"}
        )

    def info(self, *, deadline_seconds: float) -> EndpointInfo:
        return EndpointInfo("scripted", self._config.kind, {"digest": "scripted"})


def _check_types(rule: Any) -> None:
    if not isinstance(rule, Mapping):
        raise build_misconfigured_error("'rules' is a list of objects.")
    for names, kind, type_phrase in (
        (NUMBER_KEYS, int | float, "a number"),
        (TEXT_KEYS, str, "a text"),
    ):
        for name in names:
            if name in rule and not isinstance(rule[name], kind):
                raise build_misconfigured_error(f"{name!r} must be {type_phrase}.")


def _matches_rule(rule: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    texts = [str(item.get(rule["field"], ""))] if "field" in rule else list(map(str, item.values()))
    if "equals" in rule:
        return rule["equals"] in texts
    return any(rule.get("contains", "") in text for text in texts)
