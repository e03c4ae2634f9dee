"""The owners' page of a task's configuration: edit, check, preview and save it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.models import LogEntry
from core.accounts.people import get_person
from core.accounts.services import get_annotator
from core.errors import Invalid
from core.text.docs import build_anchor
from core.text.words import normalise_line_ends
from core.web.form_subjects import build_field_name, find_form_subject, rename_field
from core.web.htmx import get_form_status, render_page
from core.web.lists import list_page
from dynabench.manage.access import find_owned_task
from dynabench.manage.config_rows import list_setting_rows
from dynabench.manage.preview import build_judge_values, build_write_values, render_in_frame
from tasks.config.loading import check_config
from tasks.config.parsing import ConfigError, Problem
from tasks.config_changes import (
    STALE_MESSAGE,
    StaleConfig,
    build_diff,
    check_change,
    find_fixed_parts,
    hash_text,
)
from tasks.making.draft_services import delete_drafts_of_task
from tasks.models import Task
from tasks.permissions import can_edit
from tasks.services import save_config

PAGE_SIZE = 10

TEMPLATE_NAME = "own/config.html"


class ConfigForm(forms.Form):
    """A form for editing a configuration.

    base: the digest of the stored text from which the editing began.
    """

    text = forms.CharField(
        strip=False, label=_("Configuration"),
        error_messages={"required": _("Enter a configuration")},
        widget=forms.Textarea(attrs={"rows": 28, "wrap": "off", "spellcheck": "false"}),
        help_text=_("YAML"),
    )  # fmt: skip
    base = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, data: Mapping[str, Any] | None = None, **options: Any) -> None:
        """Build the form, and find the base that the text was edited from.

        The base is part of the text field's name, or else in the hidden field `base`.
        """
        self.original_base: str = (options.get("initial") or {}).get("base", "")
        if data is not None:
            self.original_base = find_form_subject(data, "text") or data.get("base", "")
            # A text made from an older version keeps its own name, so a browser that restores it
            # after a crash cannot put it into the form of a newer one.
            data = rename_field(data, "text", self.add_prefix("text"))
            data["base"] = self.original_base
        super().__init__(data, **options)

    def add_prefix(self, field_name: str) -> str:
        """Return the field's name in HTML. The name of the text field contains the base, if any."""
        contains_base = field_name == "text" and self.original_base
        if contains_base:
            return build_field_name(field_name, self.original_base)
        return field_name

    @property
    def typed_text(self) -> str | None:
        """Return the submitted text, or None if no text was submitted."""
        text: str | None = self.data.get(self.add_prefix("text"))
        if text is None:
            return None
        return normalise_line_ends(text)

    def copy_with_base(self, base: str) -> "ConfigForm":
        """Return a form with the same text and errors, as if `base` were the text that was edited.

        base: the digest of that text.
        """
        # Bound to data of its own: `self` still says what it was made from.
        form = ConfigForm({"text": self.typed_text, "base": base})
        for field, errors in self.errors.items():
            form.add_error(field, errors)
        return form

    def clean_text(self) -> str:
        """Return the text with LF line endings."""
        return normalise_line_ends(self.cleaned_data["text"])


@dataclass(frozen=True)
class ProblemLine:
    """A problem in a configuration, with the line of the text.

    is_first: whether it is the first problem in its line; that one gets the anchor.
    """

    problem: Problem
    line: str
    is_first: bool

    @property
    def anchor(self) -> str:
        """Return the anchor of the section about the problem's key in the guide."""
        return build_anchor(self.problem.path)

    @property
    def caret(self) -> str:
        """Return a caret that points at the problem's column."""
        return " " * (self.problem.column - 1) + "^"


def list_problem_lines(problems: Sequence[Problem], text: str) -> list[ProblemLine]:
    """Return the problems with their lines, in the order of the text."""
    lines = text.split("\n")
    problem_lines: list[ProblemLine] = []
    seen_numbers: set[int] = set()
    for problem in sorted(problems, key=lambda problem: (problem.line, problem.column)):
        line = ""  # a problem of the end of the text is behind the last line
        if problem.line <= len(lines):
            line = lines[problem.line - 1]
        problem_lines.append(ProblemLine(problem, line, problem.line not in seen_numbers))
        seen_numbers.add(problem.line)
    return problem_lines


def describe_problem_counts(problems: Sequence[Problem]) -> str:
    """Return the number of errors and warnings as text.

    >>> describe_problem_counts([])
    'No problems'
    """
    severities = [problem.severity for problem in problems]
    errors, warnings = severities.count("error"), severities.count("warning")
    phrases = []
    if errors:
        phrase = ngettext("%(number)d error", "%(number)d errors", errors)
        phrases.append(phrase % {"number": errors})
    if warnings:
        phrase = ngettext("%(number)d warning", "%(number)d warnings", warnings)
        phrases.append(phrase % {"number": warnings})
    return ", ".join(phrases) or gettext("No problems")


@require_http_methods(["GET", "POST"])
def show_config(request: HttpRequest, code: str) -> HttpResponse:
    """Show the editor of the configuration, then a review of the changes; finally, save them."""
    task = find_owned_task(request, code, can_edit)
    step = request.POST.get("step", "review")
    form = ConfigForm(request.POST or None)
    if request.method == "GET" or step == "edit" or not form.is_valid():
        status = 200
        if step != "edit":  # who goes back to the editor has read the errors
            status = get_form_status(form)
        return _show_editor(request, task, form, status=status)
    text, base = form.cleaned_data["text"], form.cleaned_data["base"]
    # Compared as text: a comment that changes is a change.
    if text == task.config_text:
        return _show_editor(
            request, task, form, message=gettext_noop("You haven't changed anything.")
        )
    if step == "save":
        return _save_config(request, task, form)
    # Without a base, as from a script, the person takes what is stored now.
    if base not in ("", hash_text(task.config_text)):
        return _show_editor(request, task, form, message=STALE_MESSAGE, status=409)
    parsed_config, problems = check_change(task, text)
    if parsed_config is None:
        return _show_editor(request, task, form, problems, status=422)
    values = {
        "task": task,
        "form": form,
        "problems": list_problem_lines(problems, text),
        "base": base,
    }
    values["diff"] = build_diff(task.config_text, text).splitlines()[2:]  # without the file names
    return render(request, "own/config_review.html", values)


def _save_config(request: HttpRequest, task: Task, form: ConfigForm) -> HttpResponse:
    text, base = form.cleaned_data["text"], form.cleaned_data["base"]
    try:
        save_config(task=task, text=text, base=base, actor=get_person(request))
        # A draft of the steps began as the former text, and would take it back.
        delete_drafts_of_task(task=task, owner=get_person(request))
    except ConfigError as error:
        return _show_editor(request, task, form, error.problems, status=422)
    except StaleConfig:
        return _show_editor(request, task, form, message=STALE_MESSAGE, status=409)
    except Invalid as error:
        form.add_error("text", str(error))
        return _show_editor(request, task, form, status=422)
    messages.success(request, gettext("Configuration saved."))
    return redirect("own:config", code=task.code)


def _show_editor(
    request: HttpRequest,
    task: Task,
    form: ConfigForm,
    problems: Sequence[Problem] | None = None,
    message: str = "",
    status: int = 200,
) -> HttpResponse:
    text = form.typed_text
    if text is None:
        text = task.config_text
    if problems is None:
        problems = check_change(task, text)[1]
    fixed_reason, fixed_parts = find_fixed_parts(task)
    base = form.data.get("base")
    if message == STALE_MESSAGE:
        # A person who has read that the text was changed elsewhere may save over it.
        base = hash_text(task.config_text)
    initial = {"text": text, "base": base or hash_text(task.config_text)}
    entries = LogEntry.objects.filter(action="task.changed", target=str(task))
    values: dict[str, Any] = {
        "task": task,
        "form": ConfigForm(initial=initial),
        "is_typed": form.typed_text is not None,
        "said": gettext(message),
        "why": fixed_reason,
        "fixed": fixed_parts,
        "errors": form.errors.get("text", []),
        "page": list_page(request, entries.select_related("actor__annotator"), size=PAGE_SIZE),
        "rows": list_setting_rows(task.config_text),
        "problems": list_problem_lines(problems, text),
        "counted": describe_problem_counts(problems),
        "has_errors": any(problem.severity == "error" for problem in problems),
    }
    return render_page(request, TEMPLATE_NAME, values, block_name="problems", status=status)


@require_POST
def check_posted_config(request: HttpRequest, code: str) -> HttpResponse:
    """Show the problems of the submitted text without storing it."""
    task = find_owned_task(request, code, can_edit)
    form = ConfigForm(request.POST)
    form.is_valid()  # fills its errors; a text with errors is what this page is for
    return _show_editor(request, task, form)


@xframe_options_sameorigin
@require_http_methods(["GET", "POST"])
def preview_config(request: HttpRequest, code: str) -> HttpResponse:
    """Show the write or the judge page as the stored text, or the text being edited, defines it."""
    task = find_owned_task(request, code, can_edit)
    typed_text = ConfigForm(request.POST).typed_text
    if typed_text is not None:
        task.config_text = typed_text  # never saved
    parsed_config = check_config(task.config_text)[0]
    values: dict[str, Any] = {"task": task, "page": ""}
    if parsed_config:
        task.name = parsed_config.name
        if request.POST.get("page") == "judge":
            values = {
                **build_judge_values(task, get_annotator(get_person(request))),
                "page": "judge",
            }
        else:
            values = {**build_write_values(task), "page": "write"}
    return render_in_frame(request, values)
