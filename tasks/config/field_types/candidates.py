"""Texts that compete: in the context a list of them; elsewhere the chosen one, or their order."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.text.words import gettext_noop
from tasks.config.components import (
    Component,
    FieldType,
    FormInput,
    check_reference,
    check_required_reference,
    format_value,
)
from tasks.config.parsing import Finding, Loc, locate_inside
from tasks.config.values import FORBIDDEN_CHARACTERS, format_subject


class Candidates(FieldType, name="candidates"):
    """A list of texts, or one text of the list that `reference` names; with `rank`, all of them
    ordered, best first.
    """

    title = gettext_noop("Texts that compete")
    place = 9
    keys = ("reference", "rank")
    places = ("context", "input", "output")
    own_metrics = ("pair_accuracy",)
    missing = "Choose {title}"

    def is_list(self, component: Component) -> bool:
        return component.reference is None or component.rank

    def offered(self, component: Component, context: Mapping[str, Any]) -> Sequence[str]:
        return context.get(str(component.reference)) or ()

    def check_shape(self, component: Component, value: Any) -> list[str]:
        subject = format_subject(component)
        if not self.is_list(component):
            if isinstance(value, str):
                return []
            return [f"{subject} must be one of the candidates"]
        if component.rank and isinstance(value, Mapping):
            return [f"{subject}: give each text a place of its own, from 1 to {len(value)}"]
        if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
            return [f"{subject} must be a list of texts"]
        if len(set(value)) < len(value):
            return [f"{subject} has the same text twice"]
        if component.reference is None:
            return _find_unfit_texts(subject, value)
        return []

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        wrong = self.check_shape(component, value)
        if wrong or component.reference is None:
            return wrong
        subject, candidates = format_subject(component), self.offered(component, context)
        if not component.rank:
            if value in candidates:
                return []
            return [f"{subject} must be one of the candidates, unchanged"]
        # Each once: an order must hold all texts, and no other.
        if sorted(value) == sorted(candidates):
            return []
        return [f"{subject} must hold each of the {len(candidates)} candidates once, unchanged"]

    def form_input(self, component: Component) -> FormInput:
        if component.rank:
            return FormInput("Field", "Ranking")
        return FormInput("TextChoiceField", "RadioSelect")

    def stored(self, component: Component, typed: Any, context: Mapping[str, Any]) -> Any:
        """Convert the ranks of texts to an ordered list.

        Inconsistent ranks are returned unchanged, so that `check` refuses them.
        """
        if not isinstance(typed, Mapping):
            return typed
        candidates = self.offered(component, context)
        places = {text: typed.get(text) for text in candidates}
        # As texts, since a form may send anything, also nothing.
        if sorted(map(str, places.values())) != sorted(map(str, range(1, len(candidates) + 1))):
            return places
        return sorted(candidates, key=lambda text: int(places[text]))  # type: ignore[arg-type]

    def display(self, component: Component, value: Any) -> str:
        if not isinstance(value, list | tuple):
            return format_value(value)
        return "\n".join(f"{number}. {format_value(text)}" for number, text in enumerate(value, 1))

    def described(self, component: Component) -> str:
        if component.reference is None:
            return "a list of texts"
        noun = "one of the texts"
        if component.rank:
            noun = "the texts"
        return f"{noun} of {component.reference}" + (", best first" if component.rank else "")

    def stand_in(self, component: Component) -> Any:
        texts = [f"({component.title} {letter})" for letter in "AB"]
        return texts if component.reference is None else None

    def findings(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        if component.reference is not None:
            field_names = []
            for field in groups["context"]:
                if field.type == "candidates":
                    field_names.append(field.name)
            yield from check_reference(loc, component, field_names, "candidates of the context")

    def unfinished(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        if loc[0] == "context" and (component.reference is not None or component.rank):
            key = "rank" if component.rank else "reference"
            message = "candidates of the context are a list of texts"
            yield Finding(locate_inside(loc, key), message, f"remove {key}")
        elif loc[0] != "context" and component.reference is None:
            message = "the answer is one of a list of texts"
            yield Finding(loc, message, "add reference: NAME, of candidates of the context")
        else:
            yield from check_required_reference(loc, component, groups)

    def metrics(self, component: Component) -> tuple[str, ...]:
        return self.own_metrics if component.rank else ()

    def rule(self, component: Component) -> str:
        if component.rank:
            return "rank"
        return ""


def _find_unfit_texts(subject: str, texts: Sequence[str]) -> list[str]:
    """Return the reasons why people could not choose one of the texts."""
    if len(texts) < 2:
        return [f"{subject} must hold at least two texts"]
    if any(not text.strip() or text != text.strip() for text in texts):
        return [f"{subject} must hold no empty text, and no space before or after one"]
    if any("\r" in text or FORBIDDEN_CHARACTERS.search(text) for text in texts):
        return [f"{subject} holds a control character; delete it"]
    return []
