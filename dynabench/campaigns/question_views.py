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
from dynabench.campaigns.rules.question_rows import CHOOSING, Row, rows_of, text_of
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
    """One question; without words it is left out."""

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
        """The choices, each once."""
        lines = with_lf(self.cleaned_data["choices"]).split("\n")
        return tuple(dict.fromkeys(filter(None, map(str.strip, lines))))

    def clean(self) -> dict[str, Any]:
        """Choices belong to questions with choices."""
        said: dict[str, Any] = super().clean() or {}
        if not said.get("words"):
            return said
        if said.get("kind") in CHOOSING and len(said.get("choices", ())) < 2:
            self.add_error("choices", gettext("Enter at least two choices, one a line."))
        if said.get("is_about") and said.get("kind") not in (*CHOOSING, None):
            message = gettext("Questions about the person need choices, so that groups are alike.")
            self.add_error("kind", message)
        return said

    @property
    def row(self) -> Row | None:
        """What was filled in; None: nothing."""
        said = self.cleaned_data
        return Row(**said) if said.get("words") else None


QUESTIONS = forms.formset_factory(QuestionForm, extra=2, max_num=MOST, validate_max=True)


@require_http_methods(["GET", "HEAD", "POST"])
def questions(request: HttpRequest, code: str, slug: str) -> HttpResponse:
    """The questions as rows of a form; saving offers two more."""
    campaign = find_campaign(request, code, slug)
    there = rows_of(campaign.questions)
    values: dict[str, Any] = {"task": campaign.task, "campaign": campaign, "is_yaml": there is None}
    if there is None:
        return render(request, "own/campaign_questions.html", values)
    posted = request.POST if request.method == "POST" else None
    initial = [_initial(row) for row in there]
    rows = QUESTIONS(posted, initial=initial, prefix="questions", form_kwargs=_UNMARKED)
    if rows.is_valid():
        text = text_of(filter(None, (form.row for form in rows.forms)))
        with as_form_error(rows.forms[0], ConfigError):
            read_questionnaire(text)
            change_questions(campaign=campaign, actor=person(request), text=text)
            messages.success(request, gettext("Saved."))
            return redirect("own-campaigns:questions", code, slug)
    status = 422 if request.method == "POST" else 200
    return render(request, "own/campaign_questions.html", {**values, "rows": rows}, status=status)


_UNMARKED = {"use_required_attribute": False}


def _initial(row: Row) -> dict[str, Any]:
    return {**vars(row), "choices": "\n".join(row.choices)}
