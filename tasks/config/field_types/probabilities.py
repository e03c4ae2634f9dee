"""Probabilities: one number from people; from models also one per label."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.text.words import gettext_noop
from tasks.config.components import (
    Component,
    FieldType,
    FormInput,
    display_plainly,
    find_reference_errors,
)
from tasks.config.parsing import Finding, Loc, locate_inside
from tasks.config.values import format_subject

SUM_TOLERANCE = 1e-4  # as Dynabench 1.0


class Prob(FieldType, name="prob"):
    """A field with `{label: probability}` or, with `single`, one number set by a slider."""

    title = gettext_noop("Probability")
    place = 11
    keys = ("reference", "single")
    sections = ("input", "output", "metadata")
    is_read = False
    cell_type = "number"
    display = display_plainly

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        subject = format_subject(component)
        if component.single:
            if _is_probability(value):
                return []
            return [f"{subject} must be between 0 and 1"]
        if not isinstance(value, Mapping) or not all(map(_is_probability, value.values())):
            return [f"{subject} must give a number between 0 and 1 for each label"]
        # `fsum`, so that many small probabilities do not add up a rounding error.
        total = math.fsum(value.values())
        if abs(total - 1) <= SUM_TOLERANCE:
            return []
        return [f"{subject} must sum to 1, not {total:g}"]

    def build_form_input(self, component: Component) -> FormInput:
        attrs = {"min": 0.0, "max": 1.0, "step": 0.01}
        return FormInput("FloatField", "NumberInput", attrs, template="annotation/_slider.html")

    def describe_value(self, component: Component) -> str:
        if component.single:
            return "a probability"
        return "a probability for each label"

    def find_contradictions(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        if not component.single:
            group = "input"
            if loc[0] == "output":
                group = "output"
            choices = []
            for field in groups[group]:
                if field.type == "multiclass":
                    choices.append(field.name)
            yield from find_reference_errors(
                loc, component, choices, f"a multiclass field of the {loc[0]}"
            )
        elif component.reference is not None:
            location = locate_inside(loc, "reference")
            yield Finding(
                location, "a single probability has no reference", "remove reference or single"
            )

    def find_unsupported_settings(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        if loc[0] != "output" and not component.single:
            message = "people give one probability, not one for each label"
            yield Finding(loc, message, "add single: true, and remove reference")


def _is_probability(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
