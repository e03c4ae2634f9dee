"""Forms about campaigns: the owner's plan, and what people state before they begin."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.rules.writing_conditions import ASK, HIDDEN, PASTE_OFF
from annotation.writing.forms import ComponentForm
from core.mail.addresses import is_mail_address
from core.text.languages import get_language_name
from core.text.money import format_units, get_decimals
from core.web.money_input import MoneyInput
from dynabench.campaigns.before.tour import find_named_items
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.plan import (
    PLAN_STEPS,
    MissingPart,
    PlannedCost,
    PlanStep,
    estimate_typed_cost,
    list_missing_parts,
    list_plan_steps,
)
from dynabench.campaigns.rules.questionnaire import Questionnaire
from dynabench.campaigns.rules.tour import list_placeholders, parse_tour
from tasks.config.components import Component
from tasks.config.values import build_missing_message
from tasks.models import Round, Task

LABELS = {
    "name": _("Name"),
    "slug": _("URL name"),
    "kind": _("Kind of work"),
    "rounds": _("Rounds"),
    "way": _("Recruitment"),
    "places": _("Participants"),
    "each": _("Examples or judgements per person"),
    "minutes": _("Time limit in minutes"),
    "opens_at": _("Opens at (UTC)"),
    "closes_at": _("Closes at (UTC)"),
    "languages": _("Required languages"),
    "minimum_age": _("Minimum age"),
    "currency": _("Currency"),
    "pay_task": _("Base pay"),
    "pay_accepted": _("Pay per accepted example"),
    "pay_bonus": _("Bonus per catch"),
    "novel_bonus": _("Reduce the bonus for repeated catches"),
    "information_bonus": _("Pay the bonus by information"),
    "hourly": _("Minimum hourly pay"),
    "fee_percent": _("Panel fee (percent)"),
    "tax_percent": _("Tax on pay and fee (percent)"),
    "budget": _("Budget"),
    "machine_hour": _("Price per machine hour"),
    "completion_url": _("Completion URL"),
    "code_done": _("Completion code"),
    "code_screened": _("Code for screened-out people"),
    "code_returned": _("Code for people who leave"),
    "study": _("Panel's study ID"),
    "id_days": _("Days to keep panel IDs"),
    "approval_days": _("Days until automatic approval"),
    "help_text": _("Help contacts"),
    "tour": _("Guided tour"),
    "test_items": _("Gold items in the test"),
    "test_right": _("Correct answers needed to pass"),
    "test_tries": _("Maximum attempts at the test"),
    "test_hours": _("Hours between attempts"),
    "pay_test": _("Pay for a failed test"),
    "questions": _("Questionnaire"),
    "requires": _("Required test"),
    "own_rules": _("Rules for flagging people"),
    "pauses_itself": _("Pause flagged people automatically"),
    "deterrents": _("Checks for machine-written text"),
    "ethics": _("Ethics statement"),
}
HELP_TEXTS: dict[str, Any] = {
    "rounds": _("Only work in these rounds counts. Leave empty for all open rounds."),
    "approval_days": _(
        "We warn you before the panel approves. Leave empty for 21 days "
        "(Prolific) or 30 days (Mechanical Turk)."
    ),
    "slug": _("Lowercase letters, numbers, hyphens: my-study"),
    "minutes": _("After this time, someone else can take the place. We still pay for late work."),
    "closes_at": _("Leave empty to close the campaign yourself."),
    "novel_bonus": _("The closer a catch is to an earlier one, the smaller its bonus."),
    "information_bonus": _("Full for catches that people agree on and every model gets wrong."),
    "hourly": _("We warn you while median earnings are lower."),
    **dict.fromkeys(("requires", "pauses_itself"), ""),  # the labels say it
    "budget": _("Covers fees, tax and all possible bonuses. Leave empty for no limit."),
    "machine_hour": _(
        "Used to calculate what this site's models and evaluations cost. Leave "
        "empty if unknown. We read token prices as amounts in the campaign's "
        "currency."
    ),
    "completion_url": _(
        "The panel's URL for people who finish. We replace {code} with the completion code."
    ),
    "id_days": _("Counted from the day the campaign closes. After that, we delete the IDs."),
    "help_text": _("Markdown. List help lines by country."),
    "questions": _(
        "Leave this empty to use a form on the campaign's page. Or write YAML with two lists "
        "of fields, `questions` and `about`. You see answers to `questions` by pseudonym. "
        "Answers to `about` are optional, and you see them for groups of ten or more."
    ),
    "tour": _(
        "Markdown. Start each new step with a line of three hyphens. Write {item} to show an item"
        " of the task, or {item ID} or {context ID} to show a specific one."
    ),
    "test_items": _("Enter 0 for no test. Each attempt uses new items, so mark enough gold items."),
    "ethics": _("Markdown. Name who approved the study and whom people can contact."),
    "own_rules": _(
        "One per line, for example: agreement below chance + 0.2 after 20. "
        "You review flagged people, unless you tick the next box."
    ),
}
DETERRENT_CHOICES = [
    # Translators: a check for machine-written text
    (PASTE_OFF, _("Switch pasting off")),
    # Translators: a check for machine-written text
    (ASK, _("Ask afterwards whether a model wrote any of it")),
    # Translators: a check for machine-written text
    (HIDDEN, _("Add an instruction that only programs read")),
]
MONEY_FIELDS = (
    "pay_task",
    "pay_accepted",
    "pay_bonus",
    "hourly",
    "budget",
    "machine_hour",
    "pay_test",
)
"""Fields that are stored in the currency's smallest unit and typed in major units."""
MAX_MONEY = 2**31 - 1  # what the database keeps
# Questions about the person are optional, and a list must say so.
NO_ANSWER_CHOICE = ("", _("prefer not to say"))
MAX_MINUTES = 366 * 24 * 60
# The form in which browsers send a time; Django makes a copy for each field.
LOCAL_TIME_INPUT = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
MIDDLE_INPUT = forms.TextInput(attrs={"class": "middle-field"})
AGREEMENT_ERRORS = {"required": _("Tick this box to take part, or leave the study.")}


class CampaignForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form for one step of a campaign's plan, which the services then store."""

    consent = forms.CharField(
        label=_("Consent text"), max_length=20_000,
        help_text=_(
            "Markdown, in the task's language. If you change it, everyone must consent again."
        ),
        widget=forms.Textarea(attrs={"rows": 8}),
    )  # fmt: skip
    completion_url = forms.URLField(
        label=LABELS["completion_url"], help_text=HELP_TEXTS["completion_url"], required=False,
        max_length=500, assume_scheme="https",
    )  # fmt: skip
    minutes = forms.IntegerField(
        label=LABELS["minutes"], help_text=HELP_TEXTS["minutes"], min_value=1,
        max_value=MAX_MINUTES, initial=60,
    )  # fmt: skip
    deterrents = forms.MultipleChoiceField(
        label=LABELS["deterrents"], required=False, choices=DETERRENT_CHOICES,
        widget=forms.CheckboxSelectMultiple,
        help_text=_(
            "For each text, one of these or none is drawn at random. You see an estimated share of "
            "all texts, never a verdict on a person. Tell people in the consent text."
        ),
    )  # fmt: skip
    token = forms.CharField(
        label=_("Panel API token"), max_length=500, required=False,
        help_text=_("Stored encrypted and never shown. Leave empty to keep the current one."),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )  # fmt: skip

    def __init__(
        self, *args: Any, task: Task, tasks: QuerySet[Task], step: str, **kwargs: Any
    ) -> None:
        """Offer the fields of a step, and the task's rounds.

        tasks: the tasks whose test the campaign may require. step: a key of PLAN_STEPS.
        """
        super().__init__(*args, **kwargs)
        self.task, self.step = task, step
        if self.instance.task_id is None:
            self.instance.task = task  # never saved: the services create the campaign
        self.fields["requires"].queryset = tasks  # type: ignore[attr-defined]
        self.fields["requires"].empty_label = _("No test")  # type: ignore[attr-defined]
        for name in ("questions", "own_rules"):
            # Errors name lines, so leading empty lines must stay.
            self.fields[name].strip = False  # type: ignore[attr-defined]
        self.fields["rounds"].queryset = task.rounds.select_related("task")  # type: ignore[attr-defined]
        self.fields["rounds"].label_from_instance = _name_round  # type: ignore[attr-defined]
        # A draft may lack its text. A text that people may have read can't be emptied.
        self.fields["consent"].required = bool(self.initial.get("consent"))
        if task.config.kind == "arena":
            del self.fields["rounds"]
        for name in MONEY_FIELDS:
            self._use_major_units(name)
        _title, step_fields = PLAN_STEPS[step]
        for name in self.fields.keys() - set(step_fields):
            del self.fields[name]
        self.order_fields(step_fields)

    def _use_major_units(self, name: str) -> None:
        """Make a field accept an amount in major units of the currency, with decimals."""
        is_required = self.fields[name].required
        # The stored currency; a page that estimates the cost renews it while people type.
        currency = self.instance.currency or "EUR"
        self.fields[name] = forms.DecimalField(
            label=LABELS[name],
            help_text=HELP_TEXTS.get(name, ""),
            required=is_required,
            min_value=0,
            widget=MoneyInput(currency),
        )
        amount = self.initial.get(name, getattr(self.instance, name))
        if amount is not None:
            self.initial[name] = format_units(amount, currency)

    @cached_property
    def steps(self) -> list[PlanStep]:
        """Return all steps of the plan."""
        return list_plan_steps(self.typed_campaign, self.missing_parts, self.step)

    @property
    def current_step(self) -> PlanStep:
        """Return the step that the form shows."""
        return next(step for step in self.steps if step.name == self.step)

    @cached_property
    def typed_campaign(self) -> Campaign:
        """Return the campaign with the form's valid values."""
        # Puts them into the instance. It cleans once, so what the services refused stays an error.
        self.is_valid()
        return self.instance  # type: ignore[no-any-return]

    @cached_property
    def cost(self) -> PlannedCost | None:
        """Return the most that the plan can cost; None while one of its numbers is invalid."""
        return estimate_typed_cost(self, self.typed_campaign)

    @cached_property
    def missing_parts(self) -> list[MissingPart]:
        """Return what the plan lacks before the campaign can open."""
        return list_missing_parts(self.typed_campaign, self)

    class Meta:
        model = Campaign
        fields = list(LABELS)
        labels = LABELS
        help_texts = HELP_TEXTS
        widgets = {
            "rounds": forms.CheckboxSelectMultiple,
            "currency": forms.TextInput(attrs={"class": "narrow-field"}),
            "languages": MIDDLE_INPUT,
            "code_done": MIDDLE_INPUT,
            "code_screened": MIDDLE_INPUT,
            "code_returned": MIDDLE_INPUT,
            "study": MIDDLE_INPUT,
            "ethics": forms.Textarea(attrs={"rows": 4}),
            "help_text": forms.Textarea(attrs={"rows": 3}),
            "tour": forms.Textarea(attrs={"rows": 4}),
            "questions": forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
            "own_rules": forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
            "opens_at": LOCAL_TIME_INPUT,
            "closes_at": LOCAL_TIME_INPUT,
        }

    def clean_tour(self) -> str:
        """Return the tour's text.

        Raises ValidationError if participants may not see an item in it.
        """
        text: str = self.cleaned_data["tour"]
        named_placeholders = [
            placeholder for placeholder in list_placeholders(parse_tour(text)) if placeholder.name
        ]
        showable_items = find_named_items(self.task, named_placeholders)
        hidden_names = [
            placeholder.name
            for placeholder in named_placeholders
            if placeholder not in showable_items
        ]
        if hidden_names:
            message = gettext(
                "Participants can't see %(wrong)s here. Use training rows of a release, gold "
                "items or texts of this task."
            )
            raise forms.ValidationError(message % {"wrong": ", ".join(hidden_names)})
        return text

    def clean_currency(self) -> str:
        """Return the currency code in upper case.

        Raises ValidationError unless it is three letters.
        """
        code: str = self.cleaned_data["currency"].upper()
        if not (len(code) == 3 and code.isascii() and code.isalpha()):
            raise forms.ValidationError(
                gettext("Enter a three-letter currency code, for example EUR.")
            )
        return code

    def clean_completion_url(self) -> str:
        """Return the URL. Raises ValidationError unless it is empty or begins with https://."""
        url: str = self.cleaned_data["completion_url"]
        if url and not url.startswith("https://"):
            raise forms.ValidationError(gettext("Enter a URL that begins with https://."))
        return url

    def clean(self) -> dict[str, Any]:
        """Check that the campaign ends after it begins and that its test can be passed.

        Converts amounts to the currency's smallest unit.
        """
        values: dict[str, Any] = super().clean() or {}
        if "currency" in values:
            for name in MONEY_FIELDS:
                self._convert_to_smallest_units(name, values)
        if (values.get("test_right") or 0) > (values.get("test_items") or 0):
            self.add_error(
                "test_right", gettext("Enter a number up to the number of gold items in the test.")
            )
        opens_at, closes_at = values.get("opens_at"), values.get("closes_at")
        if closes_at and closes_at <= max(opens_at or closes_at, timezone.now()):
            self.add_error(
                "closes_at", gettext("Choose a time in the future, after the campaign opens.")
            )
        return values

    def _convert_to_smallest_units(self, name: str, values: dict[str, Any]) -> None:
        """Convert an amount to the currency's smallest unit, or add an error to its field."""
        if values.get(name) is None:
            return
        decimals = get_decimals(values["currency"])
        amount = values[name].scaleb(decimals)
        if amount != int(amount):
            message = gettext("Use at most %(places)d decimal places.")
            self.add_error(name, message % {"places": decimals})
        elif amount > MAX_MONEY:
            self.add_error(name, gettext("This amount is too large. Enter a smaller one."))
        else:
            values[name] = int(amount)


def _name_round(round: Round) -> str:
    """Return a round's name among the choices, without the task, which the page names."""
    return gettext("Round %(number)d") % {"number": round.number}


class ConsentForm(forms.Form):
    """A form for a participant's consent, age and languages, before anything is stored."""

    agree = forms.BooleanField(
        label=_("I have read this, and I take part voluntarily"), error_messages=AGREEMENT_ERRORS
    )
    age = forms.BooleanField(error_messages=AGREEMENT_ERRORS)
    speaks = forms.BooleanField(error_messages=AGREEMENT_ERRORS)
    number = forms.IntegerField(widget=forms.HiddenInput, min_value=1, max_value=10**6)

    def __init__(self, campaign: Campaign, data: Any = None) -> None:
        """Ask for the campaign's minimum age and languages.

        data: what was submitted, if anything.
        """
        newest_consent = campaign.consents.first()
        super().__init__(data, initial={"number": newest_consent.number if newest_consent else 0})
        age = gettext("I am %(age)d years old or older") % {"age": campaign.minimum_age}
        self.fields["age"].label = age
        if campaign.languages:
            label = gettext("I speak %(languages)s well") % {"languages": name_languages(campaign)}
            self.fields["speaks"].label = label
        else:
            del self.fields["speaks"]


def name_languages(campaign: Campaign) -> str:
    """Return the names of the languages that a campaign requires."""
    tags = [part.strip() for part in campaign.languages.replace(";", ",").split(",")]
    return ", ".join(get_language_name(tag) for tag in tags if tag)


class QuestionnaireForm(ComponentForm):
    """A form for a study's questions, followed by optional ones about the person."""

    prefix = "q"

    def __init__(self, questionnaire: Questionnaire, data: Any = None) -> None:
        """Build the fields; questions about the person may be left unanswered."""
        super().__init__(questionnaire.fields, data)
        self.questionnaire = questionnaire
        for question in questionnaire.about:
            if question.kind.is_list(question):
                continue
            field: Any = self.fields[question.name]
            # In place of the empty choice, which asks people to choose.
            field.choices = [NO_ANSWER_CHOICE] + [pair for pair in field.choices if pair[0]]

    def clean(self) -> dict[str, Any]:
        """Check that each required question is answered."""
        super().clean()
        for question in self.questionnaire.questions:
            name = question.name
            if question.required and name not in self.inputs and name not in self.errors:
                self.add_error(name, build_missing_message(question))
        return self.cleaned_data

    @property
    def answers(self) -> dict[str, Any]:
        """Return the answers to the questions, by name."""
        return self._collect_answers(self.questionnaire.questions)

    @property
    def about(self) -> dict[str, Any]:
        """Return the answers about the person, by question name."""
        return self._collect_answers(self.questionnaire.about)

    def _collect_answers(self, questions: Sequence[Component]) -> dict[str, Any]:
        """Return the non-empty answers to these questions, by question name."""
        names = [question.name for question in questions]
        return {name: self.inputs[name] for name in names if name in self.inputs}


class OpenForm(forms.Form):
    """A form for the name with which the owner signs the ethics statement."""

    ethics_name = forms.CharField(label=_("Your name"), max_length=100)


class InviteForm(forms.Form):
    """A form for the email addresses to invite."""

    addresses = forms.CharField(
        label=_("Email addresses"), max_length=4000,
        help_text=_(
            "One address per line. Each person gets their own link. We don't store addresses."
        ),
        widget=forms.Textarea(attrs={"rows": 4}),
    )  # fmt: skip

    def clean_addresses(self) -> list[str]:
        """Return the distinct addresses; an error lists the invalid ones."""
        text: str = self.cleaned_data["addresses"].replace(",", " ")
        addresses = list(dict.fromkeys(text.lower().split()))
        invalid_addresses = [address for address in addresses if not is_mail_address(address)]
        if invalid_addresses:
            message = gettext("Check these email addresses: %(wrong)s")
            raise forms.ValidationError(message % {"wrong": ", ".join(invalid_addresses)})
        return addresses


class PlaceForm(forms.Form):
    """A form for an owner's decision about one participant, with its reason."""

    reason = forms.CharField(
        label=_("Reason or answer"), max_length=500, required=False,
        help_text=_("Shown to the person."), widget=forms.Textarea(attrs={"rows": 3}),
    )  # fmt: skip
    to = forms.ChoiceField(
        choices=[(step, step) for step in ("approve", "reject", "pause", "answer", "lift")],
        widget=forms.HiddenInput,
    )


class ExternalPaymentForm(forms.Form):
    """A form by which an owner confirms that all money owed was paid elsewhere."""

    cause = forms.CharField(
        label=_("Payment reference"), max_length=80,
        help_text=_("For example, the bank's reference number. We add it to each ledger row."),
    )  # fmt: skip
