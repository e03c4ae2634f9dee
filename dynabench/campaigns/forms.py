"""Forms of a campaign: the owner's plan, and what people state before they begin."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import get_language_info, gettext
from django.utils.translation import gettext_lazy as _

from annotation.writing.forms import ComponentForm
from core.mail.addresses import is_address
from dynabench.campaigns.before.tour import find_named_items
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.rules.pay import format_units, get_decimals
from dynabench.campaigns.rules.questionnaire import Questionnaire
from dynabench.campaigns.rules.tour import list_placeholders, parse_tour
from tasks.config.components import Component
from tasks.config.values import build_missing_message
from tasks.models import Task

LABELS = {
    "name": _("Name"),
    "slug": _("Address"),
    "kind": _("People"),
    "rounds": _("In these rounds"),
    "way": _("They come by"),
    "places": _("How many people"),
    "each": _("Examples or judgements of each"),
    "minutes": _("Minutes a person has"),
    "opens_at": _("Opens at"),
    "closes_at": _("Closes at"),
    "languages": _("Languages that people must speak"),
    "minimum_age": _("Minimum age"),
    "currency": _("Currency"),
    "pay_task": _("Pay for the task"),
    "pay_accepted": _("Pay for an accepted example"),
    "pay_bonus": _("Bonus for a catch"),
    "novel_bonus": _("A bonus shrinks for what was found before"),
    "hourly": _("Least pay for an hour"),
    "fee_percent": _("The panel's fee, in percent"),
    "tax_percent": _("Tax on pay and fee, in percent"),
    "budget": _("Budget"),
    "machine_hour": _("Price of a machine's hour"),
    "completion_url": _("Completion address"),
    "code_done": _("Completion code"),
    "code_screened": _("Code for people who are screened out"),
    "code_returned": _("Code for people who leave"),
    "study": _("The panel's id of the study"),
    "id_days": _("Days that the panel's ids are kept"),
    "approval_days": _("Days after which the panel approves by itself"),
    "help_text": _("Help"),
    "tour": _("Guided tour"),
    "test_items": _("Gold items of the test"),
    "test_right": _("So many right answers pass"),
    "test_tries": _("Tries"),
    "test_hours": _("Hours between two tries"),
    "pay_test": _("Pay for a test that was not passed"),
    "questions": _("Questionnaire"),
    "requires": _("Whose test people must have passed"),
    "own_rules": _("Rules of your own"),
    "pauses_itself": _("Pause whom the evidence or a rule proposes, without asking me"),
    "ethics": _("Ethics statement"),
}
HELP_TEXTS: dict[str, Any] = {
    "rounds": _("Work in others is not offered and does not count. None: whatever is open."),
    "approval_days": _("You are warned before. Empty: 21 on Prolific, 30 on Mechanical Turk."),
    "slug": _("The last part of the link: lower-case letters, digits and hyphens."),
    "minutes": _("Then the place is free again. Who submits later is paid, too."),
    "closes_at": _("UTC. Empty: until you close it."),
    "pay_task": _("In the currency above, such as 1.50."),
    "novel_bonus": _(
        "The more it is like a verified one in words or meaning, down to nothing for a copy."
    ),
    "hourly": _("You are warned while the median person earns less."),
    **dict.fromkeys(("requires", "pauses_itself"), ""),  # the labels say it
    "budget": _("With fee, tax and every bonus that can be earned. Empty: none."),
    "machine_hour": _(
        "For what the site's models and evaluations cost. Empty: unknown. "
        "Prices of tokens count as in this currency."
    ),
    "completion_url": _("Where the panel wants people back; {code} stands for the code."),
    "id_days": _("After the campaign was closed. Then they are deleted."),
    "help_text": _("Markdown; addresses where people find help, by country."),
    "questions": _(
        "Leave this empty and save: the campaign's page then has a form for questions. Or write "
        "YAML: `questions` and `about`, lists of fields as in a task's configuration. You read the "
        "answers to `questions` by pseudonym; those to `about`, which nobody must give, in groups "
        "of ten people or more."
    ),
    "tour": _(
        "Markdown; a line of three hyphens begins the next step, a line {item} shows an item of "
        "the task, {item ID} or {context ID} this one."
    ),
    "test_items": _("0: no test. Nobody meets an item twice: the task needs so many for each try."),
    "ethics": _("Markdown: who approved the study, and whom people may ask."),
    "own_rules": _(
        "One a line, such as: agreement below chance + 0.2 after 20. You decide about whom they "
        "name, unless you tick the next box."
    ),
}
PARTS = {
    _("The work"): (
        *("name", "slug", "kind", "rounds", "places", "each", "minutes", "opens_at", "closes_at"),
    ),
    _("Who may take part"): ("way", "languages", "minimum_age", "requires"),
    _("Texts"): ("ethics", "consent", "help_text"),
    _("Before the work"): (
        *("questions", "tour", "test_items", "test_right", "test_tries", "test_hours", "pay_test"),
    ),
    _("Pay"): (
        *("currency", "pay_task", "pay_accepted", "pay_bonus", "novel_bonus", "hourly"),
        *("fee_percent", "tax_percent", "budget", "machine_hour"),
    ),
    _("The panel"): (
        *("completion_url", "code_done", "code_screened", "code_returned"),
        *("study", "token", "id_days", "approval_days"),
    ),
    _("Quality"): ("own_rules", "pauses_itself"),
}
"""The fields under their headings."""
MONEY_FIELDS = (
    "pay_task",
    "pay_accepted",
    "pay_bonus",
    "hourly",
    "budget",
    "machine_hour",
    "pay_test",
)
"""Stored in the currency's smallest unit, written in the currency."""
OPEN_PARTS = ("name", "consent", "currency")
"""Fields whose parts of the form are open at first: what every campaign must say."""
MAX_MONEY = 2**31 - 1  # what the database keeps
NO_ANSWER_CHOICE = ("", _("rather not say"))
MAX_MINUTES = 366 * 24 * 60
# The form in which browsers send a time; Django makes a copy for each field.
LOCAL_TIME_INPUT = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
AGREEMENT_ERRORS = {"required": _("Tick this box to take part, or leave the study.")}


class CampaignForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form for a campaign's plan, which the services then store."""

    consent = forms.CharField(
        label=_("Consent text"), max_length=20_000,
        help_text=_("Markdown, in the task's language. Another text asks everybody again."),
        widget=forms.Textarea(attrs={"rows": 10}),
    )  # fmt: skip
    completion_url = forms.URLField(
        label=LABELS["completion_url"], help_text=HELP_TEXTS["completion_url"], required=False,
        max_length=500, assume_scheme="https",
    )  # fmt: skip
    minutes = forms.IntegerField(
        label=LABELS["minutes"], help_text=HELP_TEXTS["minutes"], min_value=1,
        max_value=MAX_MINUTES, initial=60,
    )  # fmt: skip
    token = forms.CharField(
        label=_("The panel's API token"), max_length=500, required=False,
        help_text=_("Stored encrypted and never shown. Empty: the one that is there stays."),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )  # fmt: skip

    def __init__(self, *args: Any, task: Task, tasks: QuerySet[Task], **kwargs: Any) -> None:
        """Offer the task's rounds. tasks: those whose test the campaign may require."""
        super().__init__(*args, **kwargs)
        self.task = task
        self.fields["requires"].queryset = tasks  # type: ignore[attr-defined]
        for name in ("questions", "own_rules"):
            # Errors name lines, so leading empty lines must stay.
            self.fields[name].strip = False  # type: ignore[attr-defined]
        self.fields["rounds"].queryset = task.rounds.select_related("task")  # type: ignore[attr-defined]
        if task.config.kind == "arena":
            del self.fields["rounds"]
        for name in MONEY_FIELDS:
            self._write_in_currency(name)

    def _write_in_currency(self, name: str) -> None:
        """Make a field accept an amount in major units of the currency, with decimals."""
        is_required = self.fields[name].required
        self.fields[name] = forms.DecimalField(
            label=LABELS[name],
            help_text=HELP_TEXTS.get(name, ""),
            required=is_required,
            min_value=0,
            widget=forms.NumberInput(attrs={"step": "any", "min": "0"}),
        )
        amount = self.initial.get(name, getattr(self.instance, name))
        if amount is not None:
            self.initial[name] = format_units(amount, self.instance.currency or "EUR")

    @property
    def parts(self) -> list[tuple[str, list[forms.BoundField], bool]]:
        """Return (heading, fields, whether it is initially open) for each part of the form."""
        parts = []
        for title, names in PARTS.items():
            fields = [self[name] for name in names if name in self.fields]
            is_open = any(field.name in OPEN_PARTS or field.errors for field in fields)
            parts.append((str(title), fields, is_open))
        return parts

    class Meta:
        model = Campaign
        fields = list(LABELS)
        labels = LABELS
        help_texts = HELP_TEXTS
        widgets = {
            "rounds": forms.CheckboxSelectMultiple,
            "ethics": forms.Textarea(attrs={"rows": 5}),
            "help_text": forms.Textarea(attrs={"rows": 4}),
            "tour": forms.Textarea(attrs={"rows": 6}),
            "questions": forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
            "own_rules": forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
            "opens_at": LOCAL_TIME_INPUT,
            "closes_at": LOCAL_TIME_INPUT,
        }

    def clean_tour(self) -> str:
        """Check that participants may see all items that the tour names."""
        text: str = self.cleaned_data["tour"]
        named = [place for place in list_placeholders(parse_tour(text)) if place.name]
        showable = find_named_items(self.task, named)
        hidden = [place.name for place in named if place not in showable]
        if hidden:
            message = gettext(
                "Nobody may see %(wrong)s here: name a row of a release's training split, a gold "
                "item or a context of this task."
            )
            raise forms.ValidationError(message % {"wrong": ", ".join(hidden)})
        return text

    def clean_currency(self) -> str:
        """Return the currency code in upper case, as in ISO 4217."""
        code: str = self.cleaned_data["currency"].upper()
        if not (len(code) == 3 and code.isascii() and code.isalpha()):
            raise forms.ValidationError(gettext("Write three letters, such as EUR."))
        return code

    def clean_completion_url(self) -> str:
        """Check that the address begins with https://."""
        url: str = self.cleaned_data["completion_url"]
        if url and not url.startswith("https://"):
            raise forms.ValidationError(gettext("Begin with https://."))
        return url

    def clean(self) -> dict[str, Any]:
        """Check that the campaign ends after it begins and that its test can be passed.

        Converts amounts to the currency's smallest unit.
        """
        values: dict[str, Any] = super().clean() or {}
        if "currency" in values:
            for name in MONEY_FIELDS:
                self._count_smallest_units(name, values)
        if (values.get("test_right") or 0) > (values.get("test_items") or 0):
            self.add_error("test_right", gettext("The test has not so many items."))
        opens, closes = values.get("opens_at"), values.get("closes_at")
        if closes and closes <= max(opens or closes, timezone.now()):
            self.add_error("closes_at", gettext("Choose a time after it opens that lies ahead."))
        return values

    def _count_smallest_units(self, name: str, values: dict[str, Any]) -> None:
        """Convert an amount to the currency's smallest unit, in which it is stored."""
        if values.get(name) is None:
            return
        places = get_decimals(values["currency"])
        amount = values[name].scaleb(places)
        if amount != int(amount):
            message = gettext("Use at most %(places)d digits after the point.")
            self.add_error(name, message % {"places": places})
        elif amount > MAX_MONEY:
            self.add_error(name, gettext("This is more than a campaign can cost."))
        else:
            values[name] = int(amount)


class ConsentForm(forms.Form):
    """A form for a participant's consent, age and languages, before anything is stored."""

    agree = forms.BooleanField(
        label=_("I have read this, and I take part of my own will"), error_messages=AGREEMENT_ERRORS
    )
    age = forms.BooleanField(error_messages=AGREEMENT_ERRORS)
    speaks = forms.BooleanField(error_messages=AGREEMENT_ERRORS)
    number = forms.IntegerField(widget=forms.HiddenInput, min_value=1, max_value=10**6)

    def __init__(self, campaign: Campaign, data: Any = None) -> None:
        """Ask for the campaign's minimum age and languages."""
        newest = campaign.consents.first()
        super().__init__(data, initial={"number": newest.number if newest else 0})
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


def get_language_name(tag: str) -> str:
    """Return a language tag's name in the page's language; other words unchanged."""
    try:
        return str(get_language_info(tag.lower())["name_translated"])
    except KeyError:
        return tag


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
        label=_("E-mail addresses"), max_length=4000,
        help_text=_("One a line; each gets a link of its own. No address is stored."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )  # fmt: skip

    def clean_addresses(self) -> list[str]:
        """Return the distinct addresses; an error lists the invalid ones."""
        text: str = self.cleaned_data["addresses"].replace(",", " ")
        addresses = list(dict.fromkeys(text.lower().split()))
        invalid_addresses = [address for address in addresses if not is_address(address)]
        if invalid_addresses:
            message = gettext("These are no e-mail addresses: %(wrong)s")
            raise forms.ValidationError(message % {"wrong": ", ".join(invalid_addresses)})
        return addresses


class PlaceForm(forms.Form):
    """A form for an owner's decision about one participant, with its reason."""

    reason = forms.CharField(
        label=_("Reason or answer"), max_length=500, required=False,
        help_text=_("The person reads it."), widget=forms.Textarea(attrs={"rows": 3}),
    )  # fmt: skip
    to = forms.ChoiceField(
        choices=[(step, step) for step in ("approve", "reject", "pause", "answer", "lift")],
        widget=forms.HiddenInput,
    )


class PaidForm(forms.Form):
    """A form by which an owner confirms that all money owed was paid elsewhere."""

    cause = forms.CharField(
        label=_("Reference of the payment"), max_length=80,
        help_text=_("Such as the bank's number. It stands in the ledger with each row."),
    )  # fmt: skip
