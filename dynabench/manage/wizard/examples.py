"""Good and bad examples, written in the fields of the draft."""

import json
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from annotation.writing.forms import form_field
from core.errors import Refused
from core.text.words import composed_value
from core.web.refusals import as_form_error
from dynabench.manage.wizard.shared import is_preview, look, mends_of, own_draft, show
from dynabench.manage.wizard.step_form import text_area
from tasks.config.components import Component
from tasks.config.loading import load_config
from tasks.config.parsing import ConfigError
from tasks.config.schema import TaskConfig
from tasks.making.draft_services import change_draft
from tasks.making.outline import Data, data_of, get, previewed, put, text_of

KINDS = {"good": gettext_lazy("Good example"), "bad": gettext_lazy("Bad example")}
PARTS = ("context", "input")
NEW = "new"
"""Names the example that is not there yet."""


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

    def write(self, data: Data, kind: str, key: str) -> None:
        """Store the example in the place of that one, or as the last. Raises Refused."""
        made: Data = {"context": {}, "input": {}, "reason": self.cleaned_data["reason"]}
        for part in PARTS:
            for component in getattr(self.config, part):
                value = self._value(component, self.cleaned_data[f"{part}-{component.name}"], made)
                if value not in (None, "", [], {}):
                    made[part][component.name] = value
        if not made["context"]:
            del made["context"]
        shown = list(get(data, ("examples", kind), ()))
        index = len(shown) if key == NEW else _place(shown, key)
        if index is None:
            raise Refused(_("The example was changed meanwhile. Save again to add this one too."))
        shown[index : index + 1] = [made]
        put(data, ("examples", kind), shown)

    def _value(self, component: Component, typed: Any, made: Data) -> Any:
        typed = composed_value(typed)
        if component.type == "candidates" and component.reference is None:
            return list(filter(None, map(str.strip, typed.split("\n"))))
        if typed in (None, "", []):
            return None
        return component.kind.stored(component, typed, made["context"])


def _config_of(data: Data) -> TaskConfig:
    """Return the draft's configuration without its examples. Raises Http404 while it has errors."""
    try:
        return load_config(text_of(previewed({**data, "examples": {}})))
    except ConfigError:
        raise Http404 from None


def can_be_typed(config: TaskConfig) -> bool:
    """Return whether examples can be written here: no field is a file or a conversation."""
    fields = (*config.context, *config.input)
    return not any(one.is_media or one.type == "chat" for one in fields)


def listed(data: Data) -> dict[str, Any]:
    """Return the examples there are, and whether more can be written here."""
    try:
        is_typed = can_be_typed(_config_of(data))
    except Http404:
        is_typed = False
    rows = [
        (kind, words, [(_key(one), _words(one)) for one in get(data, ("examples", kind), ())])
        for kind, words in KINDS.items()
    ]
    return {"is_typed": is_typed, "rows": rows}


def _key(example: Data) -> str:
    """Return the name of an example in addresses: a digest, so that it never means another one."""
    return sha256(json.dumps(example, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _place(shown: Sequence[Data], key: str) -> int | None:
    return next((index for index, one in enumerate(shown) if _key(one) == key), None)


def _words(example: Data) -> str:
    """Return the beginning of an example's texts."""
    held = [*(example.get("input") or {}).values(), *(example.get("context") or {}).values()]
    texts = [one for one in held if isinstance(one, str)]
    return (texts or [str(example.get("reason", ""))])[0][:80]


@require_http_methods(["GET", "POST"])
def example(request: HttpRequest, pk: int, kind: str, key: str) -> HttpResponse:
    """Write an example, or change it, or take it away."""
    draft = own_draft(request, pk)
    data = data_of(draft.text)
    config, there = _config_of(data), get(data, ("examples", kind), ())
    if kind not in KINDS or not can_be_typed(config):
        raise Http404
    index = len(there) if key == NEW else _place(there, key)
    if index is None and request.method == "GET":
        raise Http404
    is_there = index is not None and index < len(there)
    form = ExampleForm(config, there[index] if is_there else {}, request.POST or None)
    write = partial(form.write, kind=kind, key=key)
    if is_preview(request):
        return look(request, draft, write if form.is_valid() else None)
    if "remove" in request.POST:
        change_draft(draft=draft, change=lambda data: _remove(data, kind, key))
        return redirect("draft-step", pk, "words")
    if form.is_valid():
        with as_form_error(form, ConfigError):
            change_draft(draft=draft, change=write)
            return redirect("draft-step", pk, "words")
    values: dict[str, Any] = {"form": form, "kind": kind, "words": KINDS[kind]}
    values["mends"] = mends_of(draft, "words", f"examples.{kind}[{index}]")
    values |= {"is_there": is_there, "key": key if is_there else NEW}
    page, status = "own/wizard/example.html", 422 if form.errors else 200
    return show(request, draft, "words", values, template=page, status=status)


def _remove(data: Data, kind: str, key: str) -> None:
    there = get(data, ("examples", kind), ())
    index = _place(there, key)
    put(data, ("examples", kind), [one for at, one in enumerate(there) if at != index])
