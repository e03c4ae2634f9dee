"""The wizard's pages of good and bad examples, written in the draft's fields."""

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

from annotation.writing.forms import build_form_field
from core.errors import Refused
from core.text.words import compose_value
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error
from dynabench.manage.wizard.shared import (
    find_own_draft,
    find_step_problems,
    is_preview,
    show_preview,
    show_step,
)
from dynabench.manage.wizard.step_form import build_text_area
from tasks.config.components import MAX_TACTIC_CHARS, Component
from tasks.config.loading import load_config
from tasks.config.parsing import ConfigError
from tasks.config.schema import TaskConfig
from tasks.making.draft_services import change_draft
from tasks.making.outline import Data, build_preview, format_data, get_value, parse_data, set_value

KIND_WORDS = {"good": gettext_lazy("Good example"), "bad": gettext_lazy("Bad example")}
EXAMPLE_PARTS = ("context", "input")
NEW_KEY = "new"
"""The key of an example that does not exist yet."""


class ExampleForm(forms.Form):
    """A form for an example: its context and input fields, and why it is good or bad.

    A good example may also name its tactic.
    """

    def __init__(self, config: TaskConfig, example: Data, kind: str, form_data: Any = None) -> None:
        super().__init__(form_data)
        self.config = config
        for section in EXAMPLE_PARTS:
            values = example.get(section) or {}
            for component in getattr(config, section):
                self._add_field(section, component, values.get(component.name))
        self.fields["reason"] = forms.CharField(
            label=_("Why the example is good or bad"),
            max_length=1000,
            initial=example.get("reason"),
            widget=build_text_area(2),
        )
        if kind == "good":
            self.fields["tactic"] = forms.CharField(
                label=_("Tactic"),
                max_length=MAX_TACTIC_CHARS,
                initial=example.get("tactic"),
                help_text=_(
                    "What the example uses, such as irony. The practice page suggests this "
                    "tactic to writers."
                ),
                required=False,
            )

    def _add_field(self, section: str, component: Component, value: Any) -> None:
        name = f"{section}-{component.name}"
        if component.type == "candidates" and section == "context":
            value = "\n".join(value or ())
            words = _("One text per line.")
            field: forms.Field = forms.CharField(widget=build_text_area(3), help_text=words)
            field.label, field.required = component.title, False
        else:
            field = build_form_field(component, {})
        # Given texts are long.
        if section == "context" and component.kind.is_text:
            field.widget = build_text_area(4)
        field.initial = component.kind.build_initial_value(value)
        self.fields[name] = field

    def write(self, data: Data, kind: str, key: str) -> None:
        """Store the example in `data`: replace the one with this key, or append a new one.

        kind: "good" or "bad". key: a digest, or NEW_KEY. Raises Refused if the replaced example no
        longer exists.
        """
        example: Data = {"context": {}, "input": {}, "reason": self.cleaned_data["reason"]}
        for section in EXAMPLE_PARTS:
            for component in getattr(self.config, section):
                entered_value = self.cleaned_data[f"{section}-{component.name}"]
                value = self._parse_value(component, entered_value, example)
                if value not in (None, "", [], {}):
                    example[section][component.name] = value
        if tactic := self.cleaned_data.get("tactic"):
            example["tactic"] = tactic
        if not example["context"]:
            del example["context"]
        examples = list(get_value(data, ("examples", kind), ()))
        index: int | None = len(examples)
        if key != NEW_KEY:
            index = _find_index(examples, key)
        if index is None:
            raise Refused(
                _(
                    "Someone changed this example while you were editing. Save again to keep "
                    "both versions."
                )
            )
        examples[index : index + 1] = [example]
        set_value(data, ("examples", kind), examples)

    def _parse_value(self, component: Component, entered_value: Any, example: Data) -> Any:
        entered_value = compose_value(entered_value)
        if component.type == "candidates" and component.reference is None:
            lines = [line.strip() for line in entered_value.split("\n")]
            return [line for line in lines if line]
        if entered_value in (None, "", []):
            return None
        # Spans, for one, are found in the context that was typed beside them.
        return component.kind.parse_typed_value(component, entered_value, example["context"])


def _load_config(data: Data) -> TaskConfig:
    """Return the draft's configuration without its examples. Raises Http404 if it has errors."""
    try:
        # Examples that do not fit the fields any more must not stop the form that corrects them.
        return load_config(format_data(build_preview({**data, "examples": {}})))
    except ConfigError:
        raise Http404 from None


def fits_form(config: TaskConfig) -> bool:
    """Return whether the task's examples can be written in a form.

    They cannot if a field is a file or a conversation.
    """
    for section in EXAMPLE_PARTS:
        for component in getattr(config, section):
            if component.is_media or component.type == "chat":
                return False
    return True


def list_examples(data: Data) -> dict[str, Any]:
    """Return the template's values with the draft's examples, and whether a form can add more."""
    try:
        is_typed = fits_form(_load_config(data))
    except Http404:
        is_typed = False
    rows = []
    for kind, words in KIND_WORDS.items():
        examples = get_value(data, ("examples", kind), ())
        rows.append(
            (
                kind,
                words,
                [(_compute_key(example), _shorten_example(example)) for example in examples],
            )
        )
    return {"is_typed": is_typed, "rows": rows}


def _compute_key(example: Data) -> str:
    """Return a digest that identifies the example in URLs.

    Unlike an index, it never identifies another example later.
    """
    return sha256(json.dumps(example, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _find_index(examples: Sequence[Data], key: str) -> int | None:
    """Return the index of the example with this key, or None."""
    for index, example in enumerate(examples):
        if _compute_key(example) == key:
            return index
    return None


def _shorten_example(example: Data) -> str:
    """Return the beginning of an example's first text."""
    for section in ("input", "context"):
        for value in (example.get(section) or {}).values():
            if isinstance(value, str):
                return value[:80]
    return str(example.get("reason", ""))[:80]


@require_http_methods(["GET", "POST"])
def show_example_form(request: HttpRequest, pk: int, kind: str, key: str) -> HttpResponse:
    """Show the form for one example. A POST previews, stores or removes it.

    Raises Http404 if the draft's fields have errors, or if examples cannot be written in a form.
    """
    draft = find_own_draft(request, pk)
    data = parse_data(draft.text)
    config, examples = _load_config(data), get_value(data, ("examples", kind), ())
    if kind not in KIND_WORDS or not fits_form(config):
        raise Http404
    index: int | None = len(examples)
    if key != NEW_KEY:
        index = _find_index(examples, key)
    if index is None and request.method == "GET":
        raise Http404
    # A POST whose example was changed in another window may still add it as a new one.
    current_example: Data = {}
    is_stored = index is not None and index < len(examples)
    if is_stored:
        current_example = examples[index]
    form = ExampleForm(config, current_example, kind, request.POST or None)
    write = partial(form.write, kind=kind, key=key)
    if is_preview(request):
        return show_preview(request, draft, form, write)
    if "remove" in request.POST:
        change_draft(draft=draft, change=lambda data: _remove_example(data, kind, key))
        return redirect("draft-step", pk, "words")
    if form.is_valid():
        with show_as_form_error(form, ConfigError):
            change_draft(draft=draft, change=write)
            return redirect("draft-step", pk, "words")
    values: dict[str, Any] = {"form": form, "kind": kind, "words": KIND_WORDS[kind]}
    values["mends"] = find_step_problems(draft, "words", f"examples.{kind}[{index}]")
    values |= {"is_there": is_stored, "key": key if is_stored else NEW_KEY}
    return show_step(
        request,
        draft,
        "words",
        values,
        template="own/wizard/example.html",
        status=get_form_status(form),
    )


def _remove_example(data: Data, kind: str, key: str) -> None:
    examples = list(get_value(data, ("examples", kind), ()))
    index = _find_index(examples, key)
    if index is not None:
        del examples[index]
    set_value(data, ("examples", kind), examples)
