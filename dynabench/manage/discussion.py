"""The page where members who may read a task discuss one of its examples."""

import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from annotation.models import Example, ShownExample
from annotation.shown_services import note_shown_examples
from core.accounts.models import Annotator
from core.accounts.people import get_person
from core.accounts.services import get_annotator
from core.web.htmx import get_form_status
from core.web.refusals import show_as_message
from dynabench.manage.selectors import build_case_file
from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import can_own, can_read, can_review
from validation.discussion import services
from validation.models import Comment


class CommentForm(forms.Form):
    """A form for a comment on an example.

    readers: the people who may be notified, by name in lower case.
    """

    text = forms.CharField(
        max_length=2000,
        label=_("Comment"),
        help_text=_("Plain text, visible to members who can read the task."),
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": _("Write a comment.")},
    )
    tell = forms.CharField(
        max_length=40,
        required=False,
        # Translators: button: send a message
        label=_("Notify"),
        help_text=_("Choose a member, or use @name in the comment."),
        widget=forms.TextInput(attrs={"list": "readers", "autocomplete": "off"}),
    )

    def __init__(self, data: Any, readers: Mapping[str, Annotator]) -> None:
        super().__init__(data)
        self.readers = readers

    def clean(self) -> dict[str, Any]:
        """Insert the name of the person to notify into the text.

        Only readers of the task may be named.
        """
        data: dict[str, Any] = super().clean() or {}
        name = data.get("tell", "").strip().removeprefix("@")
        if name and name.casefold() not in self.readers:
            self.add_error("tell", gettext("Choose someone who can read the task."))
        elif name and "text" in data and f"@{name}" not in data["text"]:
            data["text"] = f"@{name} {data['text']}"
        return data


def _find_example(task: Task, uuid: UUID) -> Example:
    rows = Example.objects.select_related("context", "annotator", "round")
    example = get_object_or_404(rows, uuid=uuid, round__task=task)
    example.round.task = task  # saves a query: its roles are known
    return example


@require_http_methods(["GET", "POST"])
def show_discussion(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Show an example and its comments by members. A POST adds a comment.

    Also marks mentions of the reader as seen, and records that the reader has seen the example.
    """
    task = find_task(request, code, can_read)
    # Whoever reads the task reads the answers, so nothing is hidden here.
    example, reader = _find_example(task, uuid), get_person(request)
    readers = services.find_readers(task)
    form = CommentForm(request.POST or None, readers)
    if request.method == "POST" and form.is_valid():
        with show_as_message(request):
            author = get_annotator(reader)
            text = form.cleaned_data["text"]
            services.add_comment(example=example, author=author, text=text)
            _warn_of_unknown_names(request, text, readers)
        return redirect(_build_comments_url(example))
    values: dict[str, Any] = {
        **build_case_file(task, example),
        "task": task,
        "example": example,
        "form": form,
        "comments": services.read_discussion(example, reader),
        "readers": readers.values(),
        "reviews": can_review(request.user, task),
        "owns": can_own(request.user, task),
    }
    # Mentions of the reader on this page are seen from now on.
    services.mark_mentions_seen(person=get_annotator(reader), example=example)
    # Noted for the day when the person's role no longer reads labels: then they might judge it.
    note_shown_examples(
        annotator=get_annotator(reader), examples=[example.pk], way=ShownExample.Way.DISCUSSION
    )
    return render(request, "own/discussion.html", values, status=get_form_status(form))


def _warn_of_unknown_names(
    request: HttpRequest, text: str, readers: Mapping[str, Annotator]
) -> None:
    """Warn about @names that do not belong to a reader."""
    # A name may be the end of a sentence.
    names = [name.rstrip(".") for name in re.findall(r"@([\w.-]+)", text)]
    unknown_names = [name for name in names if name.casefold() not in readers]
    if unknown_names:
        warning = gettext("We couldn't notify %(names)s. Choose a name from the list.")
        name_list = ", ".join(f"@{name}" for name in unknown_names)
        messages.warning(request, warning % {"names": name_list})


def _build_comments_url(example: Example) -> str:
    return reverse("own:discussion", args=[example.round.task.code, example.uuid]) + "#comments"


@require_POST
def change_own_comment(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Change, delete or report a comment, or dismiss a report.

    `wish` in the POST is `remove`, `report`, `keep` (dismiss a report), or else the text is
    changed.
    """
    task = find_task(request, code, can_read)
    rows = Comment.objects.select_related("example__round")
    comment_row = get_object_or_404(rows, pk=pk, example__round__task=task)
    comment_row.example.round.task = task
    reader, wish = get_person(request), request.POST.get("wish", "")
    with show_as_message(request):
        # The services decide who may do what, but for reports, which are decided by owners.
        if wish == "remove":
            services.remove_comment(comment=comment_row, actor=reader)
        elif wish == "report":
            services.report_comment(comment=comment_row)
        elif wish == "keep":
            find_task(request, code, can_own)
            services.dismiss_report(comment=comment_row, actor=reader)
        elif (form := CommentForm(request.POST, {})).is_valid():
            text = form.cleaned_data["text"]
            services.change_comment(comment=comment_row, author=get_annotator(reader), text=text)
    return redirect(_build_comments_url(comment_row.example))
