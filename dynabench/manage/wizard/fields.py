"""The step for a task's fields: a list for moving them, and a page for each field."""

from functools import partial
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_http_methods, require_POST

from core.errors import Refused
from core.web.htmx import get_form_status, render_page
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.manage.wizard.field_forms import (
    PLACE_WORDS,
    AddFieldForm,
    FieldForm,
    build_label_formset,
    describe_type,
    find_field_title,
    list_first_choices,
    list_places,
    write_labels,
)
from dynabench.manage.wizard.shared import (
    find_field,
    find_own_draft,
    find_step_problems,
    is_preview,
    redirect_to_next_step,
    show_preview,
    show_step,
)
from tasks.config.components import FIELD_TYPES
from tasks.config.parsing import ConfigError
from tasks.making.draft_services import change_draft
from tasks.making.outline import (
    SECTION_PATHS,
    Data,
    get_fields,
    list_steps,
    move_field,
    parse_data,
    remove_field,
    repeats_input,
)
from tasks.models import TaskDraft

MOVE_STEPS = {"up": -1, "down": 1}
STALE_MESSAGE = gettext_noop("The fields were changed in another window. Check them again.")


def _list_fields(data: Data, focus: str) -> list[dict[str, Any]]:
    """Return the template's values with the fields by place.

    focus: the id of the button that gets the focus, such as `input-1-up`.
    """
    sections = []
    for place, words in PLACE_WORDS.items():
        sections.append({"place": place, "words": words, "rows": _build_rows(data, place, focus)})
    return sections


def _build_rows(data: Data, place: str, focus: str) -> list[dict[str, Any]]:
    """Return the template's values for the fields of a place, with the buttons that move them."""
    fields = get_fields(data, place)
    rows = []
    focused_field, _dash, button = focus.rpartition("-")
    for index, field in enumerate(fields):
        end_flags = {"up": index == 0, "down": index == len(fields) - 1}
        row = {
            "title": find_field_title(field),
            "kind": describe_type(field),
            "index": index,
            "ends": end_flags,
        }
        if repeats_input(data, place, field):
            row |= {"repeats_input": True, "title": _find_input_title(data, field)}
        if focused_field == f"{place}-{index}":
            # A button that can move the field no further is disabled and takes no focus.
            row["focus"] = "edit" if end_flags.get(button) else button
        rows.append(row)
    return rows


def _find_input_title(data: Data, output: Data) -> str:
    """Return the title of the input with the output's name, or else the output's own title."""
    inputs = {field.get("name"): find_field_title(field) for field in get_fields(data, "input")}
    return inputs.get(output.get("name"), "") or find_field_title(output)


@require_http_methods(["GET", "POST"])
def show_fields(request: HttpRequest, pk: int) -> HttpResponse:
    """Show all fields, and a form that adds one.

    Going to another step also adds the field entered in the form, if any.
    """
    draft = find_own_draft(request, pk)
    if "fields" not in list_steps(parse_data(draft.text)):
        raise Http404
    # The way to another step sends the form too; left empty it adds nothing.
    is_sent = request.method == "POST" and (request.POST.get("label") or "go" not in request.POST)
    data = request.POST if is_sent else None
    # The link of an empty section names it.
    form = AddFieldForm(data, initial={"place": request.GET.get("place", "")})
    if is_preview(request):
        return show_preview(request, draft, form, form.write)
    if request.method == "POST" and not is_sent:
        return redirect_to_next_step(request, draft, "fields")
    if form.is_valid():
        with show_as_form_error(form, ConfigError):
            draft = change_draft(draft=draft, change=form.write)
            if "go" in request.POST:
                return redirect_to_next_step(request, draft, "fields")
            place = form.cleaned_data["place"]
            # The page of the new field, whose other settings are to be chosen.
            last_index = len(get_fields(parse_data(draft.text), place)) - 1
            return redirect("draft-field", pk, place, last_index)
    places = _list_fields(parse_data(draft.text), request.GET.get("at", ""))
    values: dict[str, Any] = {
        "places": places,
        "has_fields": any(place["rows"] for place in places),
        "first_choices": list_first_choices(),
        "form": form,
    }
    values["mends"] = find_step_problems(draft, "fields")
    if request.method == "GET" and request.htmx:  # type: ignore[attr-defined]
        page = "own/wizard/fields.html"
        return render_page(request, page, {**values, "draft": draft}, block_name="fields")
    return show_step(request, draft, "fields", values, status=get_form_status(form))


@require_POST
def change_fields(request: HttpRequest, pk: int) -> HttpResponse:
    """Move or remove a field.

    The parameter `do` is read by `_move_field`, its words separated by colons.
    """
    draft = find_own_draft(request, pk)
    focus = ""
    with show_as_message(request, ConfigError):
        focus = _move_field(draft, request.POST.get("do", "").split(":"))
    return redirect(f"{reverse('draft-step', args=[pk, 'fields'])}?at={focus}")


def _move_field(draft: TaskDraft, words: list[str]) -> str:
    """Move or remove a field of the draft; return the id of the button that gets the focus.

    words: `up`, `down`, `remove` or `move`; the field's place and index; for `move`, also the new
    place and index. Raises Refused or ConfigError.
    """
    action = words[0]
    try:
        place, index = words[1], int(words[2])
        new_place, new_index = place, index + MOVE_STEPS.get(action, 0)
        if len(words) > 3:
            new_place, new_index = words[3], int(words[4])
        if (
            place not in SECTION_PATHS
            or new_place not in SECTION_PATHS
            or min(index, new_index) < 0
        ):
            raise ValueError

        def change(data: Data) -> None:
            if action == "remove":
                remove_field(data, place, index)
                return
            kind = get_fields(data, place)[index].get("type", "")
            if new_place != place and new_place not in list_places(kind):
                raise Refused(
                    _("This type of field can't be used in that section. Choose another section."),
                    code="place",
                )
            move_field(data, place, index, new_place, new_index)

        change_draft(draft=draft, change=change)
    # Words that no button sends, or a place that another window has emptied.
    except (ValueError, IndexError):
        raise Refused(_(STALE_MESSAGE), code="stale") from None
    return f"{new_place}-{new_index}-{action}"


@require_http_methods(["GET", "POST"])
def show_field(request: HttpRequest, pk: int, place: str, index: int) -> HttpResponse:
    """Show a field's settings with its labels and colours. A POST stores them.

    Raises Http404 for an output that repeats an input, which has its own page.
    """
    draft = find_own_draft(request, pk)
    data = parse_data(draft.text)
    current_field = find_field(data, place, index)
    # A mirror shows an input that the model answers, which has its own page.
    if (
        current_field is None
        or repeats_input(data, place, current_field)
        or current_field.get("type") not in FIELD_TYPES
    ):
        raise Http404
    form = FieldForm(data, place, index, request.POST or None)
    rows = build_label_formset(current_field, form.row_key, request.POST or None)
    is_complete = form.is_valid() and (rows is None or rows.is_valid())
    if is_preview(request):
        if not is_complete:
            return show_preview(request, draft)
        return show_preview(request, draft, form, partial(_write_field, form=form, rows=rows))
    if is_complete:
        with show_as_form_error(form, ConfigError):
            return _store_field(request, draft, form, rows)
    path = f"{'.'.join(SECTION_PATHS[place])}[{index}]"
    values: dict[str, Any] = {"form": form, "rows": rows, "place": place, "index": index}
    values |= {"mends": find_step_problems(draft, "fields", path)}
    values |= {"name": find_field_title(current_field), "key": form.row_key}
    status = get_form_status(form)
    if rows is not None and rows.is_bound and not rows.is_valid():
        status = 422
    return show_step(
        request,
        draft,
        "fields",
        values,
        template="own/wizard/field.html",
        status=status,
    )


def _write_field(data: Data, *, form: FieldForm, rows: Any) -> None:
    """Write the labels, then the field. The field's new type may not have labels."""
    if rows is not None:
        pasted_text = form.cleaned_data.get("pasted", "")
        write_labels(
            get_fields(data, form.field_place)[form.index], form.row_key, rows, pasted_text
        )
    form.write(data)


def _store_field(
    request: HttpRequest, draft: TaskDraft, form: FieldForm, rows: Any
) -> HttpResponse:
    """Store a field and return a redirect.

    If the field's type changed, its own page is shown again. Raises Refused.
    """
    try:
        draft = change_draft(draft=draft, change=partial(_write_field, form=form, rows=rows))
    except LookupError:
        raise Refused(_(STALE_MESSAGE), code="stale") from None
    values = form.cleaned_data
    # Other settings appear with another type.
    has_more_settings = values["type"] != form.kind.name or "more" in request.POST
    if has_more_settings and values["place"] == form.field_place:
        return redirect("draft-field", draft.pk, form.field_place, form.index)
    if request.POST.get("go"):
        return redirect_to_next_step(request, draft, "fields")
    return redirect(f"{reverse('draft-step', args=[draft.pk, 'fields'])}#fields")
