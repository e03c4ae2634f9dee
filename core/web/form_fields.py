"""Declare a field once, in a page's form, and reuse it in the API's requests.

    class NewTeamSerializer(serializers.Serializer):
        name = build_request_field(TeamForm, "name", help_text="Leaderboards show it.")

The form defines the valid values: kind, limits, choices, and whether a value is required. The
serializer adds English text for the API's page. It also adds options that apply only to programs,
such as `required=False` if a request may leave the field out. A test compares all pairs of fields.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.core import validators
from rest_framework import serializers

Options = dict[str, Any]
LIMIT_NAMES = ("max_length", "min_length", "max_value", "min_value")
NULLABLE_FIELDS = (forms.IntegerField, forms.DateField, forms.DateTimeField, forms.UUIDField)
"""Form fields whose kinds have no empty value. If left empty, they return None."""
DERIVED_VALIDATORS = (
    validators.BaseValidator,
    validators.ProhibitNullCharactersValidator,
    validators.URLValidator,
)
"""Validators that fields of both kinds create from their limits, or have by default."""


def build_request_field(form: type[forms.BaseForm], name: str, **differences: Any) -> Any:
    """Return a serializer field that accepts the same values as a form's field.

    If a request leaves the field out, a checkbox is False, and a required field with an initial
    value takes that value. Optional numbers and dates may be null.

    form: a class whose fields do not depend on a person or a task. differences: options that
    replace the form's. With `required`, the form's default and its rule on empty texts no longer
    apply. Use `choices` if the form's words for the values are meant for a page. Raises TypeError
    for a kind of field that a request cannot have, such as a choice among rows.
    """
    field: forms.Field = form.base_fields[name]  # type: ignore[attr-defined]
    if not isinstance(field, forms.ModelChoiceField):
        for form_field_class, build_field in FIELD_CLASSES.items():
            if isinstance(field, form_field_class):
                return build_field(**(_build_options(field, differences) | differences))
    raise TypeError(f"{form.__name__}.{name}: a request has no {type(field).__name__}.")


def _build_options(field: forms.Field, differences: Mapping[str, Any]) -> Options:
    """Return the options of a serializer field that correspond to a form's field."""
    options: Options = {}
    for limit in LIMIT_NAMES:
        if getattr(field, limit, None) is not None:
            options[limit] = getattr(field, limit)
    if own_validators := [
        validator for validator in field.validators if not isinstance(validator, DERIVED_VALIDATORS)
    ]:
        options["validators"] = own_validators
    if isinstance(field, forms.ChoiceField):
        # Without the empty choice with which a page asks for one.
        pairs: Any = field.choices
        options["choices"] = [pair for pair in pairs if pair[0] != ""]
    elif isinstance(field, NULLABLE_FIELDS) and not field.required:
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


def _build_multiple_choice_field(
    choices: Any, **options: Any
) -> serializers.Field[Any, Any, Any, Any]:
    return serializers.ListField(child=serializers.ChoiceField(choices), **options)


# The first that fits counts, so a kind stands before the one that it is made of.
FIELD_CLASSES: Mapping[type[forms.Field], Callable[..., Any]] = {
    forms.MultipleChoiceField: _build_multiple_choice_field,
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
