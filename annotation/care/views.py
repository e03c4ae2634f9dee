"""The page about breaks and help, and the endpoint for reading times that browsers report."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.validators import MaxValueValidator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from annotation.access import require_annotator
from annotation.care import services
from annotation.care.services import CareRecord
from annotation.rules.care import MAX_REPORT_SECONDS, Limits
from core.web.htmx import render_page
from tasks.access import ALL_KINDS, find_task
from tasks.models import Task
from tasks.permissions import can_see

# A day has 1,440 minutes; without the owner's caps these hold.
MAX_LIMITS = {"minutes": 1440, "items": 1000}


class LimitsForm(forms.Form):
    """A form for a person's own limits, up to the owner's caps."""

    minutes = forms.IntegerField(label=gettext_lazy("Minutes per day"), min_value=1, required=False)
    items = forms.IntegerField(
        label=gettext_lazy("Texts before each break"), min_value=1, required=False
    )

    def __init__(self, record: CareRecord, data: Any = None) -> None:
        super().__init__(
            data,
            initial={"minutes": record.limits.minutes, "items": record.limits.items},
        )
        for name, field in self.fields.items():
            max_value = getattr(record.caps, name) or MAX_LIMITS[name]
            field.max_value = max_value  # type: ignore[attr-defined]
            field.validators.append(MaxValueValidator(max_value))
            field.widget.attrs["max"] = max_value
            field.help_text = _("At most %(n)d.") % {"n": max_value}


def show_care(
    request: HttpRequest,
    task: Task,
    record: CareRecord,
    form: LimitsForm | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    """Show today's reading time, help and the person's own limits.

    Also shown instead of the next text when a rest is due.
    """
    warning = task.config.content_warning
    values = {
        "task": task,
        "care": record,
        "form": form or LimitsForm(record),
        "support": warning.support if warning else (),
        "is_asked": request.resolver_match.view_name == "annotation:care",  # type: ignore[union-attr]
    }
    return render_page(request, "annotation/care.html", values, block_name="work", status=status)


@require_http_methods(["GET", "POST"])
def manage_limits(request: HttpRequest, code: str) -> HttpResponse:
    """Show the person's reading time; POST sets their own limits."""
    task = find_task(request, code, kinds=ALL_KINDS)
    annotator = require_annotator(request, task, can_see)
    care_record = services.get_care(annotator, task)
    if request.method == "GET" or not task.is_sensitive:
        return show_care(request, task, care_record)
    form = LimitsForm(care_record, request.POST)
    if not form.is_valid():
        return show_care(request, task, care_record, form, status=422)
    services.set_limits(annotator=annotator, task=task, own_limits=Limits(**form.cleaned_data))
    messages.success(request, _("Limits saved."))
    return redirect("annotation:care", code=code)


@require_POST
def record_seen_seconds(request: HttpRequest, code: str) -> HttpResponse:
    """Count the seconds that a text was in view, which a script reports."""
    task = find_task(request, code, kinds=ALL_KINDS)
    reported_text = request.POST.get("seconds", "")
    seconds = (
        min(int(reported_text), MAX_REPORT_SECONDS)
        if reported_text.isdecimal() and len(reported_text) < 6
        else 0
    )
    services.record_reported_seconds(
        annotator=require_annotator(request, task, can_see), task=task, seconds=seconds
    )
    return HttpResponse(status=204)
