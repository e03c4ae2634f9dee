"""Fields and widgets of forms that Django does not have; `FormInput` names them."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from tasks.config.field_types.spans import as_lines


class TextChoiceField(forms.ChoiceField):
    """A choice among texts; browsers send their line breaks as two characters."""

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\r\n", "\n")


class Marks(forms.Textarea):
    """Stretches of a text, one a line; a script adds what is chosen there, with a tag's button."""

    template_name = "annotation/_marks.html"
    choices: Sequence[tuple[str, str]] = ()

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context(name, as_lines(value), attrs)
        context["widget"]["tags"] = [tag for tag, _ in self.choices]
        return context


class Ranking(forms.Widget):
    """A place for each of the `choices`; the value is `{text: place}` or the texts in order."""

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
        given = data.getlist(name) if hasattr(data, "getlist") else data.get(name, [])
        texts = (text for text, _ in self.choices)
        places = {text: place for text, place in zip(texts, given, strict=False) if place}
        return places or None

    def id_for_label(self, id_: str, index: str | None = None) -> str:
        return ""
