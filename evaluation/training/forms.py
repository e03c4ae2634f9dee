"""The forms of the training pages."""

from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evaluation.dataset_releases.reading import find_latest_datasets
from evaluation.training.services import (
    MAX_WEIGHT,
    ROWS,
    SEED,
    find_bases,
    find_default_base,
    find_file_name,
    find_free_name,
    find_uploaded_trainings,
    has_seed,
)
from tasks.models import Task
from tasks.selectors import PLANNED_STATES

ENCODER_FIELD = "encoder"


class TrainingForm(forms.Form):
    """A form for the rows, the base model and the options of a training run."""

    are_all_optional = True
    """Every field has a value from the start, or needs none."""

    seed = forms.IntegerField(
        label=gettext_lazy("Random seed"), initial=0, min_value=0, max_value=2**31 - 1
    )
    epochs = forms.IntegerField(
        label=gettext_lazy("Maximum epochs"), required=False, min_value=1, max_value=100
    )

    def __init__(self, task: Task, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data)
        rounds = list(task.rounds.all())
        dataset_by_round = find_latest_datasets(rounds)
        sources: dict[str, str] = {}
        if has_seed(task):
            sources[SEED] = _("Seed rows")
        for run in find_uploaded_trainings(task):
            file = find_file_name(run) or _("an uploaded file")
            title = _("Rows from %(file)s (used to train %(target)s)")
            sources[f"{ROWS}{run.pk}"] = title % {"file": file, "target": run.target}
        for round in rounds:
            if round.pk in dataset_by_round:
                sources[f"round{round.number}"] = _("Round %(number)d") % {"number": round.number}
        self.unreleased = [round.number for round in rounds if round.pk not in dataset_by_round]
        # A field for each source, so the form's fields depend on the task.
        for name, title in sources.items():
            self.fields[f"weight_{name}"] = forms.FloatField(
                label=title,
                initial=1,
                required=False,
                min_value=0,
                max_value=MAX_WEIGHT,
            )
        self._targets = find_bases(task)
        self._add_base(find_default_base(task))
        self.order_fields([*(f"weight_{name}" for name in sources), "base"])

    def _add_base(self, default: tuple[str, str]) -> None:
        choices = [(ENCODER_FIELD, _("The encoder of the starter models"))]
        initial = ENCODER_FIELD
        for target in self._targets:
            choices.append((str(target.pk), target.name))
            if initial == ENCODER_FIELD and (target.source, target.revision) == default:
                initial = str(target.pk)
        self.fields["base"] = forms.ChoiceField(
            label=_("Start from"), choices=choices, initial=initial
        )

    @property
    def weight_fields(self) -> list[forms.BoundField]:
        """Return the fields with the weights of the rows."""
        return [field for field in self if field.name.startswith("weight_")]

    @property
    def option_fields(self) -> list[forms.BoundField]:
        """Return the fields of the base model and the options."""
        return [field for field in self if not field.name.startswith("weight_")]

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `request_training`. Call only on a valid form."""
        values = self.cleaned_data
        source = revision = ""  # the encoder
        for target in self._targets:
            if str(target.pk) == values["base"]:
                source, revision = target.source, target.revision
        return {
            "weights": dict(self._read_weights()),
            "base": source,
            "revision": revision,
            "seed": values["seed"],
            "epochs": values["epochs"],
        }

    def _read_weights(self) -> Iterator[tuple[str, float]]:
        for name, value in self.cleaned_data.items():
            if name.startswith("weight_") and value:
                yield name.removeprefix("weight_"), value


class RegisterForm(forms.Form):
    """A form that makes a trained model a target: the round that it joins, and its name."""

    def __init__(self, task: Task, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data)
        rounds = list(task.rounds.all())
        prepared_numbers = [each.number for each in rounds if each.state in PLANNED_STATES]
        new_number = max((each.number for each in rounds), default=0) + 1
        choices = []
        for number in prepared_numbers:
            choices.append((number, _("Round %(number)d") % {"number": number}))
        choices.append((new_number, _("Round %(number)d, a new draft") % {"number": new_number}))
        self.fields["number"] = forms.TypedChoiceField(
            label=_("Round"),
            choices=choices,
            coerce=int,
        )
        self.fields["name"] = forms.SlugField(
            label=_("Model name"),
            max_length=60,
            initial=find_free_name(task, (prepared_numbers or [new_number])[0]),
            help_text=_("Letters, numbers and hyphens. The name must be new in this task."),
        )
