"""The forms with which models that get a prompt are submitted: chat and language models."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evaluation.runs.chat.settings import (
    MOST_COST,
    MOST_SHOTS,
    MOST_TEXT_CHARS,
    RANGES,
    ChatSettings,
    make_chat_settings,
    make_plain_template,
)
from evaluation.submissions.forms import SubmitForm
from tasks.models import Task

PROMPT_CHOICES = [
    ("task", gettext_lazy("The task's name and labels, in its own words")),
    ("bare", gettext_lazy("None: only what an answer looks like")),
    ("own", gettext_lazy("My own, below")),
]


def make_number_field(name: str, label: Any, help_text: Any, **more: Any) -> forms.Field:
    """Return a field for a number of the chat settings; an empty field means the default."""
    low, high = RANGES[name]
    kind = more.pop("kind", forms.IntegerField)
    bounds = {"min_value": low, "max_value": high, "required": False}
    field: forms.Field = kind(label=label, help_text=help_text, **bounds, **more)
    return field


class PromptForm(SubmitForm):
    """A form for the name, prompt and examples of a model that gets a prompt."""

    settings: tuple[str, ...] = ("template", "shots", "shots_seed", "max_tokens", "perturbed")
    prompt = forms.ChoiceField(
        label=gettext_lazy("Prompt"),
        choices=PROMPT_CHOICES,
        widget=forms.RadioSelect,
        initial="task",
    )
    instructions = forms.CharField(
        label=gettext_lazy("My own prompt"),
        required=False,
        max_length=MOST_TEXT_CHARS,
        widget=forms.Textarea({"rows": 5}),
        help_text=gettext_lazy(
            "The system message. That texts are data, and what an answer looks like, is added."
        ),
    )
    template = forms.CharField(
        label=gettext_lazy("Template of an example"),
        required=False,
        max_length=MOST_TEXT_CHARS,
        widget=forms.Textarea({"rows": 4}),
    )
    shots = make_number_field(
        "shots",
        gettext_lazy("Examples in the prompt"),
        gettext_lazy("Drawn from the train split alone; at most %(n)d.") % {"n": MOST_SHOTS},
    )
    shots_seed = make_number_field("shots_seed", gettext_lazy("Seed of the draw"), "")
    max_tokens = make_number_field(
        "max_tokens", gettext_lazy("Most tokens of an answer"), gettext_lazy("256 if empty.")
    )
    stop = forms.CharField(
        label=gettext_lazy("Stop before"),
        required=False,
        max_length=1000,
        widget=forms.Textarea({"rows": 2}),
        help_text=gettext_lazy(
            "Texts before which an answer ends, one a line; \\n is a line's end."
        ),
    )
    perturbed = forms.BooleanField(
        label=gettext_lazy("Measure robustness and fairness too"),
        required=False,
        help_text=gettext_lazy("It is asked about perturbed examples, several times as many."),
    )

    def add_fields(self, task: Task) -> None:
        """Fill in what the prompt's fields say of the task."""
        self.task = task
        template = self.fields["template"]
        template.initial = make_plain_template(task.config)
        names = ", ".join(f"{{{name}}}" for name in task.config.ordered_fields)
        template.help_text = _("Each of %(names)s becomes that text.") % {"names": names}

    def clean(self) -> dict[str, Any]:
        """Require the prompt's text if the custom prompt was chosen."""
        cleaned_data: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned_data.get("prompt") == "own" and not cleaned_data.get("instructions"):
            self.add_error("instructions", _("Write the prompt, or choose another one above."))
        return cleaned_data

    @property
    def chat(self) -> ChatSettings:
        """Return the settings of a valid form."""
        values: dict[str, Any] = {}
        for name in self.settings:
            value = self.cleaned_data[name]
            if value not in (None, ""):  # an empty field leaves the default
                values[name] = value
        prompts = {"bare": "", "own": self.cleaned_data["instructions"]}
        values["instructions"] = prompts.get(self.cleaned_data["prompt"])  # None: the task's
        lines = self.cleaned_data["stop"].splitlines()
        values["stop"] = tuple(line.replace("\\n", "\n") for line in lines if line)
        return make_chat_settings(self.task.config, **values)

    @property
    def wanted(self) -> dict[str, Any]:
        """Return the arguments of `submit_model`, except the file. Call only on a valid form."""
        names = ("name", "source", "revision", "secret", "base", "team")
        named = {name: self.cleaned_data[name] for name in names if name in self.fields}
        return {"kind": self.kind.name, "card": self.card, **named, "chat": self.chat}


class CapForm(forms.Form):
    """A form for the maximum cost of all evaluations of a chat model together."""

    most_cost = forms.FloatField(
        label=gettext_lazy("Cap on the cost"), min_value=0, max_value=MOST_COST
    )
