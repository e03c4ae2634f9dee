"""Forms to submit models that get a prompt: chat models and language models."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evaluation.runs.chat.settings import (
    MAX_COST,
    MAX_SHOTS,
    MAX_TEXT_CHARS,
    SETTING_RANGES,
    ChatSettings,
    make_chat_settings,
    make_plain_template,
)
from evaluation.submissions.forms import SubmitForm
from tasks.models import Task

PROMPT_CHOICES = [
    ("task", gettext_lazy("The task's name and labels, as the task words them")),
    ("bare", gettext_lazy("No instructions, only the format of an answer")),
    ("own", gettext_lazy("My own prompt, below")),
]


def make_number_field(name: str, label: Any, help_text: Any, **options: Any) -> forms.Field:
    """Return a field for a number of the chat settings; an empty field means the default."""
    low, high = SETTING_RANGES[name]
    kind = options.pop("kind", forms.IntegerField)
    bounds = {"min_value": low, "max_value": high, "required": False}
    field: forms.Field = kind(label=label, help_text=help_text, **bounds, **options)
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
        max_length=MAX_TEXT_CHARS,
        widget=forms.Textarea({"rows": 5}),
        help_text=gettext_lazy(
            "The system message. We add the answer format and a note that texts are data."
        ),
    )
    template = forms.CharField(
        label=gettext_lazy("Example template"),
        required=False,
        max_length=MAX_TEXT_CHARS,
        widget=forms.Textarea({"rows": 4}),
    )
    shots = make_number_field(
        "shots",
        gettext_lazy("Examples in the prompt"),
        gettext_lazy("Drawn only from the train split, at most %(n)d.") % {"n": MAX_SHOTS},
    )
    shots_seed = make_number_field("shots_seed", gettext_lazy("Seed for drawing the examples"), "")
    max_tokens = make_number_field(
        "max_tokens",
        gettext_lazy("Maximum tokens per answer"),
        gettext_lazy("Leave empty for 256."),
    )
    stop = forms.CharField(
        label=gettext_lazy("Stop sequences"),
        required=False,
        max_length=1000,
        widget=forms.Textarea({"rows": 2}),
        help_text=gettext_lazy(
            "The model stops before any of these. One per line. Write a line break as \\n."
        ),
    )
    perturbed = forms.BooleanField(
        label=gettext_lazy("Measure robustness and fairness too"),
        required=False,
        help_text=gettext_lazy(
            "Runs the model on perturbed examples too, which needs several times as many calls."
        ),
    )

    def add_fields(self, task: Task) -> None:
        """Fill in the task's default template, and name its fields in the help text."""
        self.task = task
        template = self.fields["template"]
        template.initial = make_plain_template(task.config)
        names = ", ".join(f"{{{name}}}" for name in task.config.ordered_fields)
        template.help_text = _("We replace %(names)s with the example's texts.") % {"names": names}

    def clean(self) -> dict[str, Any]:
        """Require the prompt's text if the custom prompt was chosen."""
        cleaned_data: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned_data.get("prompt") == "own" and not cleaned_data.get("instructions"):
            self.add_error("instructions", _("Write the prompt, or choose another option above."))
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
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `submit_model`, except the file. Call only on a valid form."""
        names = ("name", "source", "revision", "secret", "base", "team")
        values = {name: self.cleaned_data[name] for name in names if name in self.fields}
        return {"kind": self.kind.name, "card": self.card, **values, "chat": self.chat}


class CapForm(forms.Form):
    """A form for the maximum cost of all evaluations of a chat model together."""

    most_cost = forms.FloatField(label=gettext_lazy("Cost cap"), min_value=0, max_value=MAX_COST)
