"""The owners' pages of a configuration's versions, and its download for the original Dynabench."""

from typing import Any

from django import forms
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_safe

from annotation.models import Example
from core.web.downloads import respond_with_attachment
from core.web.htmx import get_form_status
from core.web.refusals import show_as_message
from dynabench.manage.access import find_owned_task
from tasks.config.dynabench_export import VERSIONS, export_to_dynabench
from tasks.config_changes import build_diff, hash_text
from tasks.models import ConfigVersion, Task
from tasks.permissions import can_edit


class CompareForm(forms.Form):
    """A form for the numbers of two versions, the older one first."""

    older = forms.TypedChoiceField(coerce=int, label=pgettext_lazy("version", "From"))
    newer = forms.TypedChoiceField(coerce=int, label=pgettext_lazy("version", "To"))

    def __init__(self, versions: list[ConfigVersion], data: Any) -> None:
        super().__init__(data)
        choices = []
        for version in versions:
            words = _("Version %(number)d") % {"number": version.number}
            choices.append((version.number, words))
        for name in self.fields:
            field = self.fields[name]
            assert isinstance(field, forms.TypedChoiceField)
            field.choices = choices
            # Django's own message repeats what was sent.
            field.error_messages["invalid_choice"] = gettext_lazy(
                "This version doesn't exist. Choose another one."
            )


@require_safe
def show_config_history(request: HttpRequest, code: str) -> HttpResponse:
    """Show all versions with their authors and numbers of examples, and compare two of them."""
    task = find_owned_task(request, code, can_edit)
    versions = list(task.config_versions.select_related("actor__annotator"))
    data: Any = request.GET
    if "older" not in request.GET:
        data = _pick_last_two(versions)
    form = CompareForm(versions, data)
    texts = {version.number: version.text for version in versions}
    example_counts = count_examples_by_version(task)
    values: dict[str, Any] = {
        "task": task,
        "form": form,
        "base": hash_text(task.config_text),
        "rows": [(version, example_counts.get(version.number, 0)) for version in versions],
    }
    if versions and form.is_valid():
        older, newer = form.cleaned_data["older"], form.cleaned_data["newer"]
        lines = build_diff(texts[older], texts[newer]).splitlines()[2:]  # without the file names
        values |= {"diff": lines, "compared": True}
    status = 200
    if versions:  # a task whose text was never changed has no versions to choose from
        status = get_form_status(form)
    return render(request, "own/config_history.html", values, status=status)


@require_safe
def export_config_for_dynabench(request: HttpRequest, code: str) -> HttpResponse:
    """Download the configuration for Dynabench 1.0 or 2.0, or explain why that is impossible."""
    task = find_owned_task(request, code, can_edit)
    version = VERSIONS[0]
    for offered in VERSIONS:
        if offered == request.GET.get("version"):
            version = offered
    with show_as_message(request):
        text = export_to_dynabench(task.config, version).text
        return respond_with_attachment(
            text, f"{task.code}-dynabench-{version}.yaml", "application/yaml"
        )
    return redirect("own:config", code=code)


def _pick_last_two(versions: list[ConfigVersion]) -> dict[str, int]:
    """Return the numbers of the last two versions; of a single version, its number twice.

    versions: newest first. Return an empty dictionary without versions.
    """
    if not versions:
        return {}
    newest, previous = versions[0], versions[:2][-1]
    return {"older": previous.number, "newer": newest.number}


def count_examples_by_version(task: Task) -> dict[int | None, int]:
    """Return the number of examples by the number of the version under which they were written.

    Imported examples are left out.
    """
    # Imported examples were written under no version.
    rows = Example.objects.filter(round__task=task, config_number__isnull=False).order_by()
    return dict(rows.values_list("config_number").annotate(Count("pk")))
