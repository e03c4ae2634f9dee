"""The owners' page on which a questionnaire is put together without YAML."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from core.accounts.people import person
from core.text.words import with_lf
from core.web.refusals import as_form_error
from dynabench.campaigns.own_views import find_campaign
from dynabench.campaigns.rules.question_rows import (
    CHOICE_KINDS,
    Row,
    format_questionnaire,
    parse_question_rows,
)
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.services import change_questions
from tasks.config.parsing import ConfigError

KINDS = {
    "text": _("a short answer"),
    "long_text": _("a long answer"),
    "number": _("a number"),
    "multiclass": _("one of the choices"),
    "multilabel": _("any of the choices"),
}
MOST, LONGEST = 50, 500


class QuestionForm(forms.Form):
    """A form for one question. A form without a text is ignored."""

    name = forms.RegexField(
        r"^[A-Za-z][A-Za-z0-9_]*$", max_length=60, required=False, widget=forms.HiddenInput
    )
    words = forms.CharField(
        label=_("Question"),
        max_length=LONGEST,
        required=False,
        help_text=_("Leave empty to remove the question."),
    )
    kind = forms.ChoiceField(label=_("People answer with"), choices=list(KINDS.items()))
    choices = forms.CharField(
        # Translators: noun: the answers to choose from
        label=_("Choices"),
        max_length=4000,
        required=False,
        help_text=_("One a line."),
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    is_required = forms.BooleanField(label=_("People must answer"), required=False, initial=True)
    is_about = forms.BooleanField(
        label=_("About the person"),
        required=False,
        help_text=_("Nobody must answer. You read groups of ten people or more."),
    )

    def clean_choices(self) -> tuple[str, ...]:
        """Return the distinct choices."""
        lines = with_lf(self.cleaned_data["choices"]).split("\n")
        return tuple(dict.fromkeys(filter(None, map(str.strip, lines))))

    def clean(self) -> dict[str, Any]:
        """Check that each question that needs choices has some.

        Questions about the person always need them.
        """
        values: dict[str, Any] = super().clean() or {}
        if not values.get("words"):
            return values
        if values.get("kind") in CHOICE_KINDS and len(values.get("choices", ())) < 2:
            self.add_error("choices", gettext("Enter at least two choices, one a line."))
        if values.get("is_about") and values.get("kind") not in (*CHOICE_KINDS, None):
            message = gettext("Questions about the person need choices, so that groups are alike.")
            self.add_error("kind", message)
        return values

    @property
    def row(self) -> Row | None:
        """Return the question that was filled in; None if the form is empty."""
        values = self.cleaned_data
        return Row(**values) if values.get("words") else None


QUESTIONS = forms.formset_factory(QuestionForm, extra=2, max_num=MOST, validate_max=True)


@require_http_methods(["GET", "HEAD", "POST"])
def questions(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """Show and save the questions as rows of a form, with two empty rows for more."""
    campaign = find_campaign(request, code, slug)
    stored_rows = parse_question_rows(campaign.questions)
    values: dict[str, Any] = {"task": campaign.task, "campaign": campaign, "is_yaml": False}
    if stored_rows is None:
        # Rows cannot say what this YAML says: the page refers to the text field.
        return render(request, "own/campaign_questions.html", values | {"is_yaml": True})
    posted = request.POST if request.method == "POST" else None
    initial = [_build_initial(row) for row in stored_rows]
    rows = QUESTIONS(posted, initial=initial, prefix="questions", form_kwargs=_UNMARKED)
    if rows.is_valid():
        # Rows without words are left out, which is how a question is removed.
        text = format_questionnaire(filter(None, (form.row for form in rows.forms)))
        with as_form_error(rows.forms[0], ConfigError):
            read_questionnaire(text)
            change_questions(campaign=campaign, actor=person(request), text=text)
            messages.success(request, gettext("Saved."))
            return redirect("own-campaigns:questions", code, slug)
    status = 422 if request.method == "POST" else 200
    return render(request, "own/campaign_questions.html", {**values, "rows": rows}, status=status)


_UNMARKED = {"use_required_attribute": False}
"""An empty row is left out, so that browsers must not demand its fields."""


def _build_initial(row: Row) -> dict[str, Any]:
    """Return a question's values as initial values of its form."""
    return {**vars(row), "choices": "\n".join(row.choices)}
