"""Good and bad examples, written in the fields of the draft."""

from typing import Any

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from annotation.writing.forms import form_field
from dynabench.lib.refusals import as_form_error
from dynabench.own.wizard.forms import text_area
from dynabench.own.wizard.shared import mends_of, own_draft, show
from tasks.config.components import Component
from tasks.config.loading import load_config
from tasks.config.parsing import ConfigError
from tasks.config.schema import TaskConfig
from tasks.making.draft_services import change_draft
from tasks.making.outline import Data, data_of, get, previewed, put, text_of

KINDS = {"good": gettext_lazy("Good example"), "bad": gettext_lazy("Bad example")}
PARTS = ("context", "input")


class ExampleForm(forms.Form):
    """An example: the fields of the context and of the input, and why it is good or bad."""

    def __init__(self, config: TaskConfig, example: Data, sent: Any = None) -> None:
        super().__init__(sent)
        self.config = config
        for part in PARTS:
            for component in getattr(config, part):
                self._add(part, component, (example.get(part) or {}).get(component.name))
        self.fields["reason"] = forms.CharField(
            label=_("Why it is good or bad"),
            max_length=1000,
            initial=example.get("reason"),
            widget=text_area(2),
        )

    def _add(self, part: str, component: Component, value: Any) -> None:
        name = f"{part}-{component.name}"
        if component.type == "candidates" and part == "context":
            value = "\n".join(value or ())
            words = _("One text a line.")
            made: forms.Field = forms.CharField(widget=text_area(3), help_text=words)
            made.label, made.required = component.title, False
        else:
            made = form_field(component, {})
        if part == "context" and component.kind.is_text:
            made.widget = text_area(4)
        made.initial = component.kind.typed(value)
        self.fields[name] = made

    def write(self, data: Data, kind: str, index: int) -> None:
        """Store the example as the one of that number, or as the last."""
        made: Data = {"context": {}, "input": {}, "reason": self.cleaned_data["reason"]}
        for part in PARTS:
            for component in getattr(self.config, part):
                value = self._value(component, self.cleaned_data[f"{part}-{component.name}"], made)
                if value not in (None, "", [], {}):
                    made[part][component.name] = value
        if not made["context"]:
            del made["context"]
        shown = list(get(data, ("examples", kind), ()))
        shown[index : index + 1] = [made]
        put(data, ("examples", kind), shown)

    def _value(self, component: Component, typed: Any, made: Data) -> Any:
        typed = typed.replace("\r\n", "\n") if isinstance(typed, str) else typed
        if component.type == "candidates" and component.reference is None:
            return list(filter(None, map(str.strip, typed.split("\n"))))
        if typed in (None, "", []):
            return None
        return component.kind.stored(component, typed, made["context"])


def _config_of(data: Data) -> TaskConfig:
    """The fields of the draft, without its examples. Raises Http404 while they have errors."""
    try:
        return load_config(text_of(previewed({**data, "examples": {}})))
    except ConfigError:
        raise Http404 from None


def can_be_typed(config: TaskConfig) -> bool:
    """Whether examples can be written here: no form asks for a file, nor for a conversation."""
    fields = (*config.context, *config.input)
    return not any(one.is_media or one.type == "chat" for one in fields)


def listed(data: Data) -> dict[str, Any]:
    """The examples there are, and whether more can be written here."""
    try:
        is_typed = can_be_typed(_config_of(data))
    except Http404:
        is_typed = False
    rows = [
        (kind, words, [_words(one) for one in get(data, ("examples", kind), ())])
        for kind, words in KINDS.items()
    ]
    return {"is_typed": is_typed, "rows": rows}


def _words(example: Data) -> str:
    """The beginning of an example's texts."""
    held = [*(example.get("input") or {}).values(), *(example.get("context") or {}).values()]
    texts = [one for one in held if isinstance(one, str)]
    return (texts or [str(example.get("reason", ""))])[0][:80]


@require_http_methods(["GET", "POST"])
def example(request: HttpRequest, pk: int, kind: str, index: int) -> HttpResponse:
    """Write an example, or change it, or take it away."""
    draft = own_draft(request, pk)
    data = data_of(draft.text)
    config, there = _config_of(data), get(data, ("examples", kind), ())
    if kind not in KINDS or index > len(there) or not can_be_typed(config):
        raise Http404
    if "remove" in request.POST:
        change_draft(draft=draft, change=lambda data: _remove(data, kind, index))
        return redirect("draft-step", pk, "words")
    form = ExampleForm(config, there[index] if index < len(there) else {}, request.POST or None)
    if form.is_valid():
        with as_form_error(form, ConfigError):
            change_draft(draft=draft, change=lambda data: form.write(data, kind, index))
            return redirect("draft-step", pk, "words")
    path = f"examples.{kind}[{index}]"
    values: dict[str, Any] = {"form": form, "kind": kind, "index": index, "words": KINDS[kind]}
    values["mends"] = mends_of(draft, "words", path)
    values["is_there"] = index < len(there)
    page, status = "own/wizard/example.html", 422 if form.errors else 200
    return show(request, draft, "words", values, template=page, status=status)


def _remove(data: Data, kind: str, index: int) -> None:
    shown = list(get(data, ("examples", kind), ()))
    del shown[index : index + 1]
    put(data, ("examples", kind), shown)
