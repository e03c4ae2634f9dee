"""Numbers: number (typed) and slider (between two ends)."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.text.words import gettext_noop
from tasks.config.components import PLACES, Component, FieldType, FormInput, display_plainly
from tasks.config.parsing import Finding, Loc
from tasks.config.values import format_subject

LARGEST_FLOAT = sys.float_info.max
MAX_EXACT_INTEGER = 2**53
"""Up to here a float holds each whole number."""


class Number(FieldType, name="number"):
    """A number between the configured minimum and maximum."""

    title = gettext_noop("Number")
    place = 7
    keys = ("minimum", "maximum", "step")
    places = PLACES
    is_read = False
    in_prompt = True
    cell = "number"
    template = ""
    display = display_plainly

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        subject = format_subject(component)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        # Written so that NaN, which compares with nothing, is refused as well.
        if not is_number or not abs(value) <= LARGEST_FLOAT:
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

    def stored(self, component: Component, typed: Any, context: Mapping[str, Any]) -> Any:
        """Convert whole numbers to int, because a form yields 3.0 for 3."""
        is_whole = (
            isinstance(typed, float) and typed.is_integer() and abs(typed) <= MAX_EXACT_INTEGER
        )
        if is_whole:
            return int(typed)
        return typed

    def form_input(self, component: Component) -> FormInput:
        ends = {"min": component.minimum, "max": component.maximum}
        attrs: dict[str, Any] = {name: end for name, end in ends.items() if end is not None}
        attrs["step"] = component.step or "any"
        return FormInput("FloatField", "NumberInput", attrs, template=self.template)

    def described(self, component: Component) -> str:
        minimum, maximum = component.minimum, component.maximum
        words = ["a number"]
        if minimum is not None:
            words.append(f"from {minimum:g}")
        if maximum is not None:
            words.append(f"to {maximum:g}")
        return " ".join(words)


class Slider(Number, name="slider"):
    """A number input with a slider. Without JavaScript, only the number input is shown."""

    title = gettext_noop("Slider")
    place = 8
    places = ("input", "output", "metadata")
    in_prompt = False
    template = "annotation/_slider.html"

    def findings(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        if component.minimum is None or component.maximum is None:
            yield Finding(loc, "a slider needs both ends", "add minimum and maximum")
