"""The owners' pages of a configuration's versions, and its download for Dynabench."""

from typing import Any

from django import forms
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_safe

from annotation.models import Example
from core.web.downloads import attachment
from core.web.refusals import as_message
from dynabench.manage.access import owned_task
from tasks.config.dynabench_out import VERSIONS, to_dynabench
from tasks.config_changes import diff, digest
from tasks.models import ConfigVersion, Task
from tasks.permissions import can_edit


class CompareForm(forms.Form):
    """Two versions by their numbers, the older one first."""

    older = forms.TypedChoiceField(coerce=int, label=pgettext_lazy("version", "From"))
    newer = forms.TypedChoiceField(coerce=int, label=pgettext_lazy("version", "To"))

    def __init__(self, versions: list[ConfigVersion], data: Any) -> None:
        super().__init__(data)
        numbers = [
            (one.number, _("Version %(number)d") % {"number": one.number}) for one in versions
        ]
        for name in self.fields:
            field = self.fields[name]
            assert isinstance(field, forms.TypedChoiceField)
            field.choices = numbers
            field.error_messages["invalid_choice"] = gettext_lazy("There is no such version here.")


@require_safe
def config_history(request: HttpRequest, code: str) -> HttpResponse:
    """Show all versions, their authors and how many examples each has, and compare two of them."""
    task = owned_task(request, code, can_edit)
    versions = list(task.config_versions.select_related("actor__annotator"))
    given = request.GET if "older" in request.GET else _last_two(versions)
    form = CompareForm(versions, given)
    texts, written = {one.number: one.text for one in versions}, written_under(task)
    values: dict[str, Any] = {
        "task": task,
        "form": form,
        "base": digest(task.config_text),
        "rows": [(one, written.get(one.number, 0)) for one in versions],
    }
    if versions and form.is_valid():
        before, after = (form.cleaned_data[name] for name in ("older", "newer"))
        values |= {"diff": diff(texts[before], texts[after]).splitlines()[2:], "compared": True}
    status = 422 if versions and form.errors else 200
    return render(request, "own/config_history.html", values, status=status)


@require_safe
def config_dynabench(request: HttpRequest, code: str) -> HttpResponse:
    """Download the configuration for Dynabench 1.0 or 2.0, or say why there is no such file."""
    task = owned_task(request, code, can_edit)
    version = next((one for one in VERSIONS if one == request.GET.get("version")), VERSIONS[0])
    with as_message(request):
        text = to_dynabench(task.config, version).text
        return attachment(text, f"{task.code}-dynabench-{version}.yaml", "application/yaml")
    return redirect("own:config", code=code)


def _last_two(versions: list[ConfigVersion]) -> dict[str, int]:
    return {"older": versions[:2][-1].number, "newer": versions[0].number} if versions else {}


def written_under(task: Task) -> dict[int | None, int]:
    """Return how many examples were written under each version."""
    rows = Example.objects.filter(round__task=task, config_number__isnull=False).order_by()
    return dict(rows.values_list("config_number").annotate(Count("pk")))
