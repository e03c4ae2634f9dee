"""Competing texts: a list in the context; elsewhere the chosen text or the ranked list."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.text.words import gettext_noop
from tasks.config.components import (
    Component,
    FieldType,
    FormInput,
    find_optional_reference,
    find_reference_errors,
    format_value,
)
from tasks.config.parsing import Finding, Loc, locate_inside
from tasks.config.values import FORBIDDEN_CHARACTERS, format_subject


class Candidates(FieldType, name="candidates"):
    """A list of texts in the context, or a choice from the list that `reference` names.

    The choice is one text or, with `rank`, all of them ordered, best first.
    """

    title = gettext_noop("Competing texts")
    place = 9
    keys = ("reference", "rank")
    sections = ("context", "input", "output")
    own_metrics = ("pair_accuracy",)
    missing_message = "Choose {title}"

    def is_list(self, component: Component) -> bool:
        return component.reference is None or component.rank

    def list_options(self, component: Component, context: Mapping[str, Any]) -> Sequence[str]:
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
        messages = self.check_shape(component, value)
        if messages or component.reference is None:
            return messages
        subject, candidates = format_subject(component), self.list_options(component, context)
        if not component.rank:
            if value in candidates:
                return []
            return [f"{subject} must be one of the candidates, unchanged"]
        # Each once: an order must hold all texts, and no other.
        if sorted(value) == sorted(candidates):
            return []
        return [f"{subject} must contain each of the {len(candidates)} candidates once, unchanged"]

    def build_form_input(self, component: Component) -> FormInput:
        if component.rank:
            return FormInput("Field", "Ranking")
        return FormInput("TextChoiceField", "RadioSelect")

    def parse_typed_value(
        self, component: Component, typed_value: Any, context: Mapping[str, Any]
    ) -> Any:
        """Return the texts in the order of the ranks that a person entered.

        If each rank does not occur exactly once, return the ranks by text, which `check` refuses.
        """
        if not isinstance(typed_value, Mapping):
            return typed_value
        candidates = self.list_options(component, context)
        typed_ranks = {text: typed_value.get(text) for text in candidates}
        # As texts, since a form may send anything, also nothing.
        if sorted(map(str, typed_ranks.values())) != sorted(
            map(str, range(1, len(candidates) + 1))
        ):
            return typed_ranks
        return sorted(candidates, key=lambda text: int(typed_ranks[text]))  # type: ignore[arg-type]

    def display(self, component: Component, value: Any) -> str:
        if not isinstance(value, list | tuple):
            return format_value(value)
        return "\n".join(f"{number}. {format_value(text)}" for number, text in enumerate(value, 1))

    def describe_value(self, component: Component) -> str:
        if component.reference is None:
            return "a list of texts"
        noun = "one of the texts"
        if component.rank:
            noun = "the texts"
        return f"{noun} of {component.reference}" + (", best first" if component.rank else "")

    def build_placeholder(self, component: Component) -> Any:
        texts = [f"({component.title} {letter})" for letter in "AB"]
        return texts if component.reference is None else None

    def find_contradictions(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        if component.reference is not None:
            field_names = []
            for field in groups["context"]:
                if field.type == "candidates":
                    field_names.append(field.name)
            yield from find_reference_errors(
                loc, component, field_names, "candidates of the context"
            )

    def find_unsupported_settings(
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
            yield from find_optional_reference(loc, component, groups)

    def list_metrics(self, component: Component) -> tuple[str, ...]:
        return self.own_metrics if component.rank else ()

    def get_verdict_rule(self, component: Component) -> str:
        if component.rank:
            return "rank"
        return ""


def _find_unfit_texts(subject: str, texts: Sequence[str]) -> list[str]:
    """Return the reasons why people could not choose one of the texts; empty if they can."""
    if len(texts) < 2:
        return [f"{subject} must contain at least two texts"]
    if any(not text.strip() or text != text.strip() for text in texts):
        return [f"{subject} must not contain empty texts, or spaces before or after one"]
    if any("\r" in text or FORBIDDEN_CHARACTERS.search(text) for text in texts):
        return [f"{subject} contains a control character; delete it"]
    return []
