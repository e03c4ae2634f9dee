"""Fields and widgets of forms that Django does not have; `FormInput` names them."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from core.text.words import compose
from tasks.config.field_types.criteria import format_criteria
from tasks.config.field_types.media import DIGEST_PATTERN, MAX_ALT_CHARS
from tasks.config.field_types.spans import format_marks


class TextChoiceField(forms.ChoiceField):
    """A choice among texts; submitted texts are normalised before the comparison."""

    def to_python(self, value: Any) -> str:
        return compose(str(super().to_python(value)))


class _ColouredChoices:
    """A mixin for choices that can have colours."""

    colours: Mapping[str, str] = {}

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option: dict[str, Any] = super().create_option(name, value, *args, **kwargs)  # type: ignore[misc]
        if colour := self.colours.get(str(value)):
            option["attrs"]["class"] = f"colour-{colour}"
        return option


class RadioSelect(_ColouredChoices, forms.RadioSelect):
    """A single choice, with colours."""


class CheckboxSelectMultiple(_ColouredChoices, forms.CheckboxSelectMultiple):
    """A multiple choice, with colours."""


class Marks(forms.Textarea):
    """A text area with one mark per line.

    A script adds the selected text when the button of a tag is pressed.
    """

    template_name = "annotation/_marks.html"
    choices: Sequence[tuple[str, str]] = ()
    colours: Mapping[str, str] = {}

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context(name, format_marks(value), attrs)
        context["widget"]["tags"] = tags = [tag for tag, _ in self.choices]
        context["widget"]["buttons"] = [(tag, self.colours.get(tag, "")) for tag in tags]
        return context


def build_criteria_example(*, has_points: bool) -> str:
    """Return two criteria as people write them, one per line."""
    criteria = [(_("Names the dose"), 3), (_("Tells people to stop their medicine"), -2)]
    if has_points:
        return "\n".join(f"{text} = {points}" for text, points in criteria)
    return "\n".join(text for text, _points in criteria)


class CriteriaLines(forms.Textarea):
    """A text area with one criterion per line."""

    template_name = "annotation/_criteria_lines.html"
    has_points = False

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        super().__init__({name: value for name, value in attrs.items() if name != "points"})
        self.has_points = bool(attrs.get("points"))
        # Two lines, because one alone would not show that each criterion has its own.
        self.attrs["placeholder"] = build_criteria_example(has_points=self.has_points)

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context(name, format_criteria(value), attrs)
        context["widget"]["has_points"] = self.has_points
        return context


class Ranking(forms.Widget):
    """A widget that ranks the `choices`; the value is `{text: rank}` or the texts in order."""

    template_name = "annotation/_ranking.html"
    use_fieldset = True
    choices: Sequence[tuple[str, str]] = ()

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context(name, value, attrs)
        if not isinstance(value, Mapping):
            value = {text: place for place, text in enumerate(value or (), 1)}
        rows = [(text, str(value.get(text, ""))) for text, _ in self.choices]
        places = [str(place) for place in range(1, len(rows) + 1)]
        context["widget"] |= {"rows": rows, "places": places}
        return context

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Mapping[str, str] | None:
        # A form posts one field per text, all of one name; programs send a list.
        chosen_places = data.getlist(name) if hasattr(data, "getlist") else data.get(name, [])
        texts = (text for text, _ in self.choices)
        # A form that was tampered with may send fewer places, or more.
        places = {text: place for text, place in zip(texts, chosen_places, strict=False) if place}
        return places or None

    def id_for_label(self, id_: str, index: str | None = None) -> str:
        return ""


class MediaInput(forms.Widget):
    """A file input with a description.

    The value is `{digest, alt}` of a stored file; `annotation.writing.uploads` stores the
    file and replaces it by its digest.
    """

    template_name = "annotation/_media.html"
    needs_multipart_form = True

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        super().__init__({name: value for name, value in attrs.items() if name != "kind"})
        self.kind = attrs["kind"]

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        # The value is a mapping, which is no text for an input.
        context: dict[str, Any] = super().get_context(name, None, attrs)
        value = value if isinstance(value, Mapping) else {}
        context["widget"] |= {
            "kind": self.kind,
            "digest": value.get("digest", ""),
            "alt": value.get("alt", ""),
        }
        return context

    def value_from_datadict(self, data: Any, files: Any, name: str) -> dict[str, str] | None:
        digest, alt = data.get(name) or "", (data.get(f"{name}_alt") or "")[:MAX_ALT_CHARS]
        media = {"digest": digest if DIGEST_PATTERN.fullmatch(digest) else "", "alt": alt.strip()}
        return media if any(media.values()) else None


class MediaField(forms.Field):
    """A form field for the value of `MediaInput`; None for a description without a file."""

    def clean(self, value: Any) -> Any:
        return value if value and value["digest"] else None
