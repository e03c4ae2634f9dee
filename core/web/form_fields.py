"""Declare a field once, in a page's form, and take it from there into the API's requests.

    class NewTeamSerializer(serializers.Serializer):
        name = request_field(TeamForm, "name", help_text="Leaderboards show it.")

The form says what a value may be: its kind, its limits, its choices, whether it is needed. What the
serializer adds is English text for the API's page, and what differs in a program's request, such as
`required=False` where a change leaves out what stays. `tests/test_doors.py` compares all of them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.core import validators
from rest_framework import serializers

Options = dict[str, Any]
LIMITS = ("max_length", "min_length", "max_value", "min_value")
NULLABLE = (forms.IntegerField, forms.DateField, forms.DateTimeField, forms.UUIDField)
"""Kinds of values that have no empty one of their own; forms return None for a field left empty."""
OF_LIMITS = (
    validators.BaseValidator,
    validators.ProhibitNullCharactersValidator,
    validators.URLValidator,
)
"""Validators that both kinds of fields make of their limits, or have anyway."""


def request_field(form: type[forms.BaseForm], name: str, **differences: Any) -> Any:
    """Return a serializer field that accepts the same values as a form's field.

    If a request leaves the field out, a checkbox is False, and a required field with an initial
    value takes that value. Optional numbers and dates may be null.

    form: a class, whose fields do not depend on a person or a task. differences: options that
    replace the form's. With `required`, the form's default and its rule on empty texts no longer
    apply. `choices` is for values that the form words for a page. Raises TypeError for a kind of
    field that a request cannot have, such as a choice among rows.
    """
    field: forms.Field = form.base_fields[name]  # type: ignore[attr-defined]
    if not isinstance(field, forms.ModelChoiceField):
        for kind, make in KINDS.items():
            if isinstance(field, kind):
                return make(**(_options(field, differences) | differences))
    raise TypeError(f"{form.__name__}.{name}: a request has no {type(field).__name__}.")


def _options(field: forms.Field, differences: Mapping[str, Any]) -> Options:
    """Return what a form's field says as options of a serializer's field."""
    options: Options = {}
    for limit in LIMITS:
        if getattr(field, limit, None) is not None:
            options[limit] = getattr(field, limit)
    if own := [each for each in field.validators if not isinstance(each, OF_LIMITS)]:
        options["validators"] = own
    if isinstance(field, forms.ChoiceField):
        # Without the empty choice with which a page asks for one.
        pairs: Any = field.choices
        options["choices"] = [pair for pair in pairs if pair[0] != ""]
    elif isinstance(field, NULLABLE) and not field.required:
        options["allow_null"] = True
    elif isinstance(field, forms.CharField) and not field.required:
        options["allow_blank"] = not differences.get("required")
    if "required" in differences or "default" in differences:
        return options
    if isinstance(field, forms.BooleanField):
        return options | {"default": bool(field.initial)}
    if field.required and field.initial is not None:
        return options | {"default": field.initial}
    return options | {"required": field.required}


def _list_of_choices(choices: Any, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    return serializers.ListField(child=serializers.ChoiceField(choices), **options)


# The first that fits counts, so a kind stands before the one that it is made of.
KINDS: Mapping[type[forms.Field], Callable[..., Any]] = {
    forms.MultipleChoiceField: _list_of_choices,
    forms.ChoiceField: serializers.ChoiceField,
    forms.FloatField: serializers.FloatField,
    forms.IntegerField: serializers.IntegerField,
    forms.BooleanField: serializers.BooleanField,
    forms.DateTimeField: serializers.DateTimeField,
    forms.DateField: serializers.DateField,
    forms.UUIDField: serializers.UUIDField,
    forms.URLField: serializers.URLField,
    forms.CharField: serializers.CharField,
}
