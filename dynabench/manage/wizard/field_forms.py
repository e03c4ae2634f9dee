"""The forms for a field of a task: general settings, settings of its type, and its labels."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dynabench.manage.wizard.step_form import build_text_area
from tasks.config.checks import list_types_for
from tasks.config.components import COLOURS, COMMON_KEYS, FIELD_TYPES, OUTCOMES
from tasks.making.outline import (
    SECTION_PATHS,
    Data,
    find_free_name,
    get_fields,
    get_value,
    list_field_names,
    move_field,
    rename_field,
    set_value,
    tidy_data,
)

# Each says who fills the field in, since a select shows one of them at a time.
PLACE_WORDS = {
    "context": gettext_lazy("Shown to writers"),
    "input": gettext_lazy("Filled in by writers"),
    "output": gettext_lazy("Answered by the model"),
    "create": gettext_lazy("Answered by writers afterwards"),
    "validate": gettext_lazy("Answered by judges"),
}
COLOUR_WORDS = {
    "blue": gettext_lazy("Blue"),
    "teal": gettext_lazy("Teal"),
    "orange": gettext_lazy("Orange"),
    "pink": gettext_lazy("Pink"),
    "olive": gettext_lazy("Olive"),
    "sky": gettext_lazy("Sky"),
}
REFERENCE_TYPES = {
    "span": ("text", "long_text"),
    "spans": ("text", "long_text"),
    "candidates": ("candidates",),
    "prob": ("multiclass",),
}


def _build_integer_field(label: Any, **ends: Any) -> Callable[[], forms.Field]:
    return lambda: forms.IntegerField(label=label, required=False, **ends)


def _build_number_field(label: Any, **ends: Any) -> Callable[[], forms.Field]:
    return lambda: forms.FloatField(label=label, required=False, **ends)


def _build_checkbox(label: Any) -> Callable[[], forms.Field]:
    return lambda: forms.BooleanField(label=label, required=False)


KEY_FIELDS: Mapping[str, Callable[[], forms.Field]] = {
    "placeholder": lambda: forms.CharField(label=_("Placeholder"), required=False),
    "min_length": _build_integer_field(gettext_lazy("Minimum characters"), min_value=0),
    "max_length": _build_integer_field(gettext_lazy("Maximum characters"), min_value=1),
    "counter": _build_checkbox(gettext_lazy("Show a character counter")),
    "reference": lambda: forms.ChoiceField(label=_("Related field"), required=False),
    "rank": _build_checkbox(gettext_lazy("Order all texts, best first")),
    "minimum": _build_number_field(gettext_lazy("Minimum")),
    "maximum": _build_number_field(gettext_lazy("Maximum")),
    "step": _build_number_field(gettext_lazy("Step"), min_value=0),
    "max_turns": _build_integer_field(
        gettext_lazy("Maximum messages per person"), min_value=1, max_value=49
    ),
    "system": lambda: forms.CharField(
        label=_("System prompt"), required=False, widget=build_text_area(4)
    ),
    "single": _build_checkbox(gettext_lazy("The model returns one probability, not one per label")),
    "points": _build_checkbox(gettext_lazy("Writers give each criterion points")),
    "max_criteria": _build_integer_field(
        gettext_lazy("Maximum number of criteria"), min_value=1, max_value=50
    ),
}
"""The form field for each key that only some types of fields have.

Labels have forms of their own.
"""
ROW_KEYS = ("labels", "tags", "colours")
VISIBILITY_CHOICES: Mapping[Any, str] = {True: "yes", False: "no"}
LAST_FIELDS = ("required", "is_answer", "when", "judges_see", "judges_label", "place", "name")


def list_places(kind: str) -> list[str]:
    """Return the places that a field of this type may be in.

    Without a type, return none: such a field only repeats an input.
    """
    if not kind:
        return []
    return [place for place in PLACE_WORDS if _find_section(place) in FIELD_TYPES[kind].sections]


def _find_section(place: str) -> str:
    """Return the name that field types use for a place.

    Questions to authors and questions to judges are both metadata.
    """
    if place in ("create", "validate"):
        return "metadata"
    return place


def list_type_choices(place: str = "") -> list[tuple[str, Any]]:
    """Return (name, title) of the types that a field in this place may have.

    Without a place, return all types.
    """
    type_names = list(FIELD_TYPES)
    if place:
        type_names = list_types_for(_find_section(place))
    kinds = sorted((FIELD_TYPES[name] for name in type_names), key=lambda kind: kind.place)
    return [(kind.name, _(kind.title)) for kind in kinds]


class AddFieldForm(forms.Form):
    """A form that adds a field. The field's other settings have a page of their own."""

    label = forms.CharField(label=gettext_lazy("Label"), max_length=200)
    type = forms.ChoiceField(label=gettext_lazy("Type"))
    # Translators: noun: a person's place in a campaign, or the place of a field
    place = forms.ChoiceField(label=gettext_lazy("Section"), choices=list(PLACE_WORDS.items()))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kinds: Any = self.fields["type"]
        kinds.choices = list_type_choices()

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        kind, place = values.get("type", ""), values.get("place", "")
        if kind and place and place not in list_places(kind):
            places = ", ".join(str(PLACE_WORDS[fitting]) for fitting in list_places(kind))
            words = _("This type of field can't be used here. Choose one of: %(places)s")
            self.add_error("place", words % {"places": places})
        return values

    def write(self, data: Data) -> None:
        """Append the field to its place in `data`."""
        values = self.cleaned_data
        kind, place = FIELD_TYPES[values["type"]], values["place"]
        new_field = {
            "name": find_free_name(data, values["label"]),
            "type": kind.name,
            "label": values["label"],
        }
        # What people write needs a limit; an owner may change it on the next page.
        if place == "input" and kind.is_text:
            new_field |= {"max_length": 300}
        get_fields(data, place).append(new_field)
        tidy_data(data)


def list_first_choices() -> list[dict[str, Any]]:
    """Return the fields that most tasks begin with, as the template shows and sends them.

    values: what AddFieldForm reads.
    """
    choices = [
        (_("A text to read"), _("Text"), "long_text", "context"),
        (_("A text to write"), _("Your text"), "long_text", "input"),
        (_("A label to choose"), _("Label"), "multiclass", "input"),
    ]
    return [
        {
            "title": title,
            "place_words": PLACE_WORDS[place],
            # Translators: name of a button that adds a field, such as: a text to read
            "button": _("Add: %(field)s") % {"field": title},
            "values": {"label": label, "type": kind, "place": place},
        }
        for title, label, kind, place in choices
    ]


def list_conditions(data: Data, place: str, index: int) -> list[tuple[str, Any]]:
    """Return (condition as JSON, words) for the conditions under which the field may be asked.

    The first condition, "", means always. place, index: where the field is.
    """
    choices: list[tuple[dict[str, str], Any]] = []
    if place == "validate":
        verdicts = {"correct": _("judged correct"), "incorrect": _("judged incorrect")}
        verdicts |= {"flagged": _("flagged")}
        for key, words in verdicts.items():
            choices.append(({"verdict": key}, words))
    if place in ("create", "validate"):
        outcome_words = {"fooled": _("the model is fooled"), "not_fooled": _("the model is right")}
        outcome_words |= {
            "undecided": _("the outcome is undecided"),
            "no_model": _("no model answered"),
        }
        for key in OUTCOMES:
            choices.append(({"outcome": key}, outcome_words[key]))
    for field in _find_earlier_fields(data, place, index):
        for label in field.get("labels") or ():
            value = _read_label_value(label)
            words = f"{field.get('label') or field['name']}: {value}"
            choices.append(({"field": field["name"], "equals": value}, words))
    return [("", _("Always"))] + [(json.dumps(condition), words) for condition, words in choices]


def _find_earlier_fields(data: Data, place: str, index: int) -> Iterator[Data]:
    """Yield the single-label fields that people have filled in before this field is asked."""
    earlier_places = {
        "input": ("input",),
        "create": ("input", "create"),
        "validate": ("input", "create", "validate"),
    }
    for earlier_place in earlier_places.get(place, ()):
        fields = get_fields(data, earlier_place)
        if earlier_place == place:
            fields = fields[:index]
        for field in fields:
            if field.get("type") == "multiclass" and field.get("name"):
                yield field


def _read_label_value(label: Any) -> str:
    """Return the value of a label, which is a string or a dictionary."""
    if isinstance(label, dict):
        return str(label["value"])
    return str(label)


class FieldForm(forms.Form):
    """A form for the settings of a field, except its labels and tags."""

    was = forms.CharField(widget=forms.HiddenInput, required=False)
    label = forms.CharField(label=gettext_lazy("Label"), max_length=200, required=False)
    type = forms.ChoiceField(label=gettext_lazy("Type"))
    help = forms.CharField(
        label=gettext_lazy("Help"),
        required=False,
        help_text=gettext_lazy("A sentence below the label."),
    )
    required = forms.BooleanField(label=gettext_lazy("Required"), required=False)
    place = forms.ChoiceField(label=gettext_lazy("Section"))
    is_answer = forms.BooleanField(
        label=gettext_lazy("The model answers this too, and we compare both answers"),
        required=False,
    )
    when = forms.ChoiceField(label=gettext_lazy("Ask when"), required=False)
    judges_see = forms.ChoiceField(
        label=gettext_lazy("Show to judges"),
        required=False,
        choices=[
            ("", gettext_lazy("Only if the model or the judges need it")),
            ("yes", gettext_lazy("Always")),
            ("no", gettext_lazy("Never, because it reveals the writer's claim")),
        ],
    )
    judges_label = forms.CharField(
        label=gettext_lazy("Label for judges"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("Fill this in if the field's label reveals the writer's claim."),
    )
    name = forms.RegexField(
        r"^[A-Za-z][A-Za-z0-9_]{0,59}$",
        label=gettext_lazy("Name in files"),
        help_text=gettext_lazy(
            "Letters, digits and _, starting with a letter. People see the label."
        ),
        error_messages={
            "invalid": gettext_lazy("Use letters, digits and _, and start with a letter.")
        },
    )

    def __init__(self, draft: Data, place: str, index: int, form_data: Any = None) -> None:
        self.field_place, self.index = place, index
        self.field = get_fields(draft, place)[index]
        self.kind = FIELD_TYPES[self.field["type"]]
        outputs = [output.get("name") for output in get_fields(draft, "output")]
        condition = ""
        if self.field.get("when"):
            condition = json.dumps(self.field["when"])
        initial: dict[str, Any] = {
            **self.field,
            "when": condition,
            "was": self.field.get("name", ""),
        }
        initial |= {"required": self.field.get("required", True)}
        initial |= {"judges_see": VISIBILITY_CHOICES.get(self.field.get("judges_see"), "")}
        initial |= {"is_answer": self.field.get("name") in outputs, "place": place}
        super().__init__(form_data, initial=initial)
        for key in self.kind.keys:
            if key in KEY_FIELDS:
                self.fields[key] = KEY_FIELDS[key]()
        if self.row_key:
            self.fields["pasted"] = forms.CharField(
                label=_("Add several"),
                max_length=20_000,
                required=False,
                widget=build_text_area(3),
                help_text=_("One per line."),
            )
        self._set_choices(draft, condition)
        self.order_fields(_list_first_fields(self.fields) + list(LAST_FIELDS))

    def _set_choices(self, draft: Data, condition: str) -> None:
        fields: dict[str, Any] = self.fields
        fields["type"].choices = list_type_choices(self.field_place)
        places = list_places(self.kind.name)
        fields["place"].choices = [(place, PLACE_WORDS[place]) for place in places]
        if self.field_place != "input" or "output" not in self.kind.sections:
            del fields["is_answer"]
        if self.field_place != "input":
            del fields["judges_see"]
            del fields["judges_label"]
        if self.field_place in ("context", "output"):
            del fields["when"]
        else:
            condition_choices = list_conditions(draft, self.field_place, self.index)
            # One that was written by hand, or of a field that is gone.
            if condition and condition not in dict(condition_choices):
                condition_choices.append((condition, condition))
            fields["when"].choices = condition_choices
        if "reference" in fields:
            # A probability is about an answer beside it, all else about a given text.
            place = self.field_place if self.kind.name == "prob" else "context"
            offered_fields = list_field_names(
                draft, place, *REFERENCE_TYPES.get(self.kind.name, ())
            )
            chosen_field = self.field.get("reference")
            if chosen_field and chosen_field not in offered_fields:
                offered_fields = [*offered_fields, chosen_field]
            # Translators: no item in the list
            choices = [("", _("None"))]
            choices += [(name, name) for name in offered_fields]
            fields["reference"].choices = choices

    @property
    def row_key(self) -> str:
        """Return the key whose value is a list of rows: "labels" or "tags"; "" without one."""
        for key in ("labels", "tags"):
            if key in self.kind.keys:
                return key
        return ""

    def write(self, data: Data) -> None:
        """Write the settings into the field at this place and index.

        Raises LookupError if another field is there now.
        """
        values, field = self.cleaned_data, get_fields(data, self.field_place)[self.index]
        # Another window moved or removed it: this place has another field now.
        if field.get("name", "") != values["was"]:
            raise LookupError
        # With all that refers to it.
        if field["name"] != values["name"] and _is_unique_name(data, field["name"]):
            rename_field(data, field["name"], values["name"])
            field = get_fields(data, self.field_place)[self.index]
        field["name"] = values["name"]
        self._write_keys(field)
        if "is_answer" in values and _is_unique_name(data, values["name"]):
            _set_output(data, values["name"], values["is_answer"])
        if values["type"] != field["type"]:
            kept_keys = set(COMMON_KEYS) | set(FIELD_TYPES[values["type"]].keys)
            field["type"] = values["type"]
            # Keys of the former type would be errors.
            for key in field.keys() - kept_keys:
                del field[key]
        self._write_judge_keys(field)
        if values["place"] != self.field_place:
            new_index = len(get_fields(data, values["place"]))
            move_field(data, self.field_place, self.index, values["place"], new_index)
        tidy_data(data)

    def _write_keys(self, field: Data) -> None:
        """Write the general keys, and the keys of the field's type. None removes a key."""
        values = self.cleaned_data
        for key in ["label", "help", *KEY_FIELDS]:
            if key in values:
                value = values[key]
                if value is False:  # a tick that is not set is the default
                    value = None
                set_value(field, (key,), value)
        is_required = None  # the default
        if not values["required"]:
            is_required = False
        set_value(field, ("required",), is_required)
        if "when" in values:
            condition = None
            if values["when"]:
                condition = json.loads(values["when"])
            set_value(field, ("when",), condition)

    def _write_judge_keys(self, field: Data) -> None:
        """Write what judges see of the field. Remove these keys if the field changes its place."""
        values = self.cleaned_data
        judges_see = judges_label = None
        if values["place"] == self.field_place:
            judges_see = {"yes": True, "no": False}.get(values.get("judges_see", ""))
            judges_label = values.get("judges_label")
        set_value(field, ("judges_see",), judges_see)
        set_value(field, ("judges_label",), judges_label)


def _is_unique_name(data: Data, name: str) -> bool:
    """Return whether one field has the name, or only an input and its output.

    If two fields share a name by mistake and one is renamed, references stay with the other.
    """
    places = []
    for place in SECTION_PATHS:
        for field in get_fields(data, place):
            if field.get("name") == name:
                places.append(place)
    return len(places) == 1 or sorted(places) == ["input", "output"]


def _list_first_fields(fields: Mapping[str, Any]) -> list[str]:
    """Return the names of the form's fields that come before LAST_FIELDS, in the page's order."""
    first_names = ["was", "label", "type", "help"]
    fixed_names = {*first_names, *LAST_FIELDS}
    return first_names + [name for name in fields if name not in fixed_names]


def _set_output(data: Data, name: str, is_output: bool) -> None:
    """Add the input to the outputs if `is_output`; otherwise, remove it from them."""
    outputs = get_fields(data, "output")
    same_outputs = [output for output in outputs if output.get("name") == name]
    if is_output and not same_outputs:
        outputs.insert(0, {"name": name})
    elif not is_output and same_outputs:
        outputs.remove(same_outputs[0])


MAX_LABEL_CHARS = 100


class LabelForm(forms.Form):
    """A form for one label, or for one tag. A tag has only a value and a colour."""

    value = forms.CharField(label=gettext_lazy("Label"), max_length=MAX_LABEL_CHARS, required=False)
    colour = forms.ChoiceField(
        label=gettext_lazy("Colour"),
        required=False,
        choices=[("", gettext_lazy("None"))] + [(key, COLOUR_WORDS[key]) for key in COLOURS],
    )
    display = forms.CharField(label=gettext_lazy("Displayed name"), max_length=200, required=False)
    goal = forms.CharField(
        label=gettext_lazy("Wording in the goal"), max_length=200, required=False
    )
    help = forms.CharField(label=gettext_lazy("Definition"), max_length=500, required=False)


# Two empty rows to add labels without JavaScript.
LabelFormSet = forms.formset_factory(LabelForm, extra=2, max_num=200)


def build_label_formset(field: Data, key: str, form_data: Any = None) -> Any:
    """Return the formset for a field's labels or tags, or None if the field has none."""
    if not key:
        return None
    colours = field.get("colours") or {}
    rows = []
    for label in field.get(key) or ():
        row = {"value": label}
        if isinstance(label, dict):
            row = dict(label)
        row["colour"] = colours.get(_read_label_value(label))
        rows.append(row)
    formset = LabelFormSet(form_data, initial=rows, prefix="labels")
    if key == "tags":
        for form in formset.forms:
            for name in ("display", "goal", "help"):
                del form.fields[name]
    return formset


def write_labels(field: Data, key: str, rows: Any, pasted_text: str = "") -> None:
    """Write the labels or tags: the rows that have a value, then the new lines of `pasted_text`."""
    label_rows = [form.cleaned_data for form in rows.forms if form.cleaned_data.get("value")]
    values = {row["value"] for row in label_rows}
    # Once each, in their order.
    lines = dict.fromkeys(line.strip()[:MAX_LABEL_CHARS] for line in pasted_text.splitlines())
    label_rows += [{"value": line} for line in lines if line and line not in values]
    labels: list[Any] = []
    for row in label_rows:
        extra_keys = {k: row[k] for k in ("display", "goal", "help") if row.get(k)}
        if extra_keys:
            labels.append({"value": row["value"], **extra_keys})
        else:
            labels.append(row["value"])  # the short form
    set_value(field, (key,), labels)
    set_value(
        field,
        ("colours",),
        {row["value"]: row["colour"] for row in label_rows if row.get("colour")},
    )


def find_field_title(field: Data) -> str:
    """Return a field's title on pages."""
    return str(field.get("label") or field.get("name") or "")


def describe_type(field: Data) -> str:
    """Return the title of a field's type; "" for a field without a type."""
    kind = FIELD_TYPES.get(get_value(field, ("type",), ""))
    return _(kind.title) if kind else ""
