"""Texts of which one is chosen. No page can ask for them yet."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.config.components import Component, FieldType, never_asked, plainly, refers
from tasks.config.parsing import Finding, Loc
from tasks.config.values import subject


class Candidates(FieldType, name="candidates"):
    """A list of texts; or the number of the chosen one, where it refers to such a list."""

    keys = ("reference",)
    places = ()
    is_list = True
    missing = "Choose {title}"
    form_input = never_asked
    display = plainly

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        named = subject(component)
        if component.reference is not None:
            offered = context.get(component.reference) or []
            is_number = isinstance(value, int) and not isinstance(value, bool)
            if is_number and 0 <= value < len(offered):
                return []
            return [f"{named} must be the number of a candidate, from 0 to {len(offered) - 1}"]
        texts = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
        return [] if texts else [f"{named} must be a list of texts"]

    def described(self, component: Component) -> str:
        return "a list of texts" if component.reference is None else "the number of the chosen one"

    def findings(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        if component.reference is not None:
            offered = [one.name for one in groups["context"] if one.type == "candidates"]
            yield from refers(loc, component, offered, "candidates of the context")
