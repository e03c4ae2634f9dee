"""The owners' page for editing a questionnaire without YAML."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from core.accounts.people import get_person
from core.text.words import normalise_line_ends
from core.web.refusals import show_as_form_error
from dynabench.campaigns.own_views import find_campaign
from dynabench.campaigns.rules.question_rows import (
    CHOICE_KINDS,
    QuestionRow,
    format_questionnaire,
    parse_question_rows,
)
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.services import change_questions
from tasks.config.parsing import ConfigError

QUESTION_KIND_TITLES = {
    "text": _("Short answer"),
    "long_text": _("Long answer"),
    "number": _("Number"),
    "multiclass": _("One choice"),
    "multilabel": _("Several choices"),
}
MAX_QUESTIONS, MAX_QUESTION_CHARS = 50, 500


class QuestionForm(forms.Form):
    """A form for one question. A form without a text is ignored."""

    name = forms.RegexField(
        r"^[A-Za-z][A-Za-z0-9_]*$", max_length=60, required=False, widget=forms.HiddenInput
    )
    words = forms.CharField(
        label=_("Question"),
        max_length=MAX_QUESTION_CHARS,
        required=False,
        help_text=_("Leave empty to remove the question."),
    )
    kind = forms.ChoiceField(label=_("Answer type"), choices=list(QUESTION_KIND_TITLES.items()))
    choices = forms.CharField(
        # Translators: noun: the answers to choose from
        label=_("Choices"),
        max_length=4000,
        required=False,
        help_text=_("One per line."),
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    is_required = forms.BooleanField(label=_("Required"), required=False, initial=True)
    is_about = forms.BooleanField(
        label=_("Question about the person"),
        required=False,
        help_text=_("Always optional. You see answers for groups of ten or more."),
    )

    def clean_choices(self) -> tuple[str, ...]:
        """Return the distinct choices."""
        lines = normalise_line_ends(self.cleaned_data["choices"]).split("\n")
        return tuple(dict.fromkeys(filter(None, map(str.strip, lines))))

    def clean(self) -> dict[str, Any]:
        """Check that questions with choices have at least two.

        Questions about the person must have choices.
        """
        values: dict[str, Any] = super().clean() or {}
        if not values.get("words"):
            return values
        if values.get("kind") in CHOICE_KINDS and len(values.get("choices", ())) < 2:
            self.add_error("choices", gettext("Enter at least two choices, one per line."))
        if values.get("is_about") and values.get("kind") not in (*CHOICE_KINDS, None):
            message = gettext(
                "For a question about the person, choose “One choice” or “Several choices”."
            )
            self.add_error("kind", message)
        return values

    @property
    def row(self) -> QuestionRow | None:
        """Return the question that was filled in; None if the form is empty."""
        values = self.cleaned_data
        return QuestionRow(**values) if values.get("words") else None


QuestionFormSet = forms.formset_factory(
    QuestionForm, extra=2, max_num=MAX_QUESTIONS, validate_max=True
)


@require_http_methods(["GET", "HEAD", "POST"])
def edit_questions(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Show the questions as rows of a form, with two empty rows for more; a POST saves them.

    If rows cannot express the stored YAML, refer to the campaign's form instead.
    """
    campaign = find_campaign(request, code, slug)
    stored_rows = parse_question_rows(campaign.questions)
    values: dict[str, Any] = {"task": campaign.task, "campaign": campaign, "is_yaml": False}
    if stored_rows is None:
        # Rows cannot say what this YAML says: the page refers to the text field.
        return render(request, "own/campaign_questions.html", values | {"is_yaml": True})
    form_data = request.POST if request.method == "POST" else None
    initial = [_build_initial(row) for row in stored_rows]
    rows = QuestionFormSet(
        form_data, initial=initial, prefix="questions", form_kwargs=_FORM_OPTIONS
    )
    if rows.is_valid():
        # Rows without words are left out, which is how a question is removed.
        text = format_questionnaire(filter(None, (form.row for form in rows.forms)))
        with show_as_form_error(rows.forms[0], ConfigError):
            read_questionnaire(text)
            change_questions(campaign=campaign, actor=get_person(request), text=text)
            messages.success(request, gettext("Saved."))
            return redirect("own-campaigns:questions", code, slug)
    status = 422 if request.method == "POST" else 200
    return render(request, "own/campaign_questions.html", {**values, "rows": rows}, status=status)


_FORM_OPTIONS = {"use_required_attribute": False}
"""Arguments of the formset. Empty rows are left out, so browsers must not require their fields."""


def _build_initial(row: QuestionRow) -> dict[str, Any]:
    """Return a question's values as initial values of its form."""
    return {**vars(row), "choices": "\n".join(row.choices)}
