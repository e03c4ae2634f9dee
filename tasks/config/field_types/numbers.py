"""Numbers: number (typed) and slider (between two ends)."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.text.words import gettext_noop
from tasks.config.components import SECTIONS, Component, FieldType, FormInput, display_plainly
from tasks.config.parsing import Finding, Loc
from tasks.config.values import format_subject

MAX_FLOAT = sys.float_info.max
MAX_EXACT_INTEGER = 2**53
"""The largest integer up to which floats represent all integers exactly."""


class Number(FieldType, name="number"):
    """A field with a number between the configured minimum and maximum."""

    title = gettext_noop("Number")
    place = 7
    keys = ("minimum", "maximum", "step")
    sections = SECTIONS
    is_read = False
    can_be_in_prompt = True
    cell_type = "number"
    template = ""
    display = display_plainly

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        subject = format_subject(component)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        # Written so that NaN, which compares with nothing, is refused as well.
        if not is_number or not abs(value) <= MAX_FLOAT:
            return [f"{subject} must be a number"]
        if component.minimum is not None and value < component.minimum:
            return [f"{subject} must be at least {component.minimum:g}"]
        if component.maximum is not None and value > component.maximum:
            return [f"{subject} must be at most {component.maximum:g}"]
        if component.step is not None:
            start = component.minimum or 0.0
            steps = (value - start) / component.step
            # With a tolerance: 0.3 is no exact multiple of 0.1 in binary.
            if abs(steps - round(steps)) > 1e-6:
                return [f"{subject} must go in steps of {component.step:g} from {start:g}"]
        return []

    def parse_typed_value(
        self, component: Component, typed_value: Any, context: Mapping[str, Any]
    ) -> Any:
        """Return the entered number, as int if it is whole, because forms yield 3.0 for 3."""
        is_whole = (
            isinstance(typed_value, float)
            and typed_value.is_integer()
            and abs(typed_value) <= MAX_EXACT_INTEGER
        )
        if is_whole:
            return int(typed_value)
        return typed_value

    def build_form_input(self, component: Component) -> FormInput:
        bounds = {"min": component.minimum, "max": component.maximum}
        attrs: dict[str, Any] = {name: bound for name, bound in bounds.items() if bound is not None}
        attrs["step"] = component.step or "any"
        return FormInput("FloatField", "NumberInput", attrs, template=self.template)

    def describe_value(self, component: Component) -> str:
        minimum, maximum = component.minimum, component.maximum
        phrases = ["a number"]
        if minimum is not None:
            phrases.append(f"from {minimum:g}")
        if maximum is not None:
            phrases.append(f"to {maximum:g}")
        return " ".join(phrases)


class Slider(Number, name="slider"):
    """A field with a number input and a slider. Without JavaScript, the slider is hidden."""

    title = gettext_noop("Slider")
    place = 8
    sections = ("input", "output", "metadata")
    can_be_in_prompt = False
    template = "annotation/_slider.html"

    def find_contradictions(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        if component.minimum is None or component.maximum is None:
            yield Finding(loc, "a slider needs both ends", "add minimum and maximum")
