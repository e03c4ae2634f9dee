"""The owners' page of reports on contexts."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from annotation.models import Report
from annotation.moderation import resolve_reports
from annotation.writing.result_panel import list_context_fields
from core.accounts.people import get_person, get_shown_name
from core.web.lists import ListFilter, list_page
from dynabench.manage.access import find_owned_task
from tasks.contexts.services import set_retired
from tasks.models import Context
from tasks.permissions import can_edit, can_review
from validation.models import Comment

PAGE_SIZE = 20


class ReportFilter(ListFilter):
    """A form for the state of the reports to show."""

    state = forms.ChoiceField(
        choices=[
            # Translators: adjective: a round, or a report that nobody has resolved
            ("open", _("Open")),
            # Translators: state of a report
            ("resolved", _("Resolved")),
        ],
        initial="open",
        label=_("State"),
    )


@require_safe
def show_reports(request: HttpRequest, code: str) -> HttpResponse:
    """Show the open reports, newest first, or the resolved ones on request."""
    task = find_owned_task(request, code)
    filters = ReportFilter(request)
    is_open = filters.cleaned_data["state"] == "open"
    task_reports = Report.objects.filter(context__round__task=task, resolved_at__isnull=is_open)
    rows = task_reports.select_related("annotator", "context__round").order_by("-pk")
    page = list_page(request, rows, size=PAGE_SIZE)
    report_rows = []
    for report in page:
        fields = list_context_fields(task.config, report.context)
        report_rows.append((report, get_shown_name(report.annotator), fields))
    comments = Comment.objects.none()
    if is_open:  # a resolved comment is reported no longer
        comments = Comment.objects.filter(example__round__task=task, reported_at__isnull=False)
    values = {
        "task": task,
        "page": page,
        "reports": report_rows,
        "is_open": is_open,
        "filters": filters,
        "comments": comments.select_related("example"),
    }
    return render(request, "own/reports.html", {**values, "may": can_edit(request.user, task)})


@require_POST
def resolve_context_report(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Resolve a report. Editors may retire its context in the same step."""
    retires_context = "retire" in request.POST
    task = find_owned_task(request, code, can_edit if retires_context else can_review)
    report = get_object_or_404(Report, pk=pk, context__round__task=task)
    if retires_context:
        reported_context = Context.objects.filter(pk=report.context_id)
        set_retired(contexts=reported_context, is_retired=True, actor=get_person(request))
    resolve_reports(reports=[report], actor=get_person(request))
    messages.success(request, gettext("Report resolved."))
    return redirect("own:reports", code=code)
