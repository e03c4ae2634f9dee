"""What a service takes at its two doors, a page's form and the API's request, is the same."""

import pytest
from django import forms
from rest_framework import serializers

from core.mail.addresses import AddressField, AddressSerializerField
from core.web.form_fields import LIMIT_NAMES, build_request_field
from tests.support.doors import pairs

APART = {
    ("AttackQuestionSerializer", "text", "CommentForm"): "a program's text is no comment",
    ("NewInvitationSerializer", "role", "LinkForm"): "a link can be passed on: it makes no owner",
    ("NewPostSerializer", "text", "CommunityForm"): "the text of the community's own page",
    ("DutyChangeSerializer", "share", "AmountForm"): "people type percent",
    ("NewDutySerializer", "share", "AssignmentForm"): "people type percent",
    ("NewShortEvaluationSerializer", "evaluation_set", "ShortEvaluationForm"): "a choice of names",
}
"""Fields that differ on purpose, by serializer, name and form."""
OF_ITS_OWN = (serializers.DictField, serializers.BooleanField)


def disagreements(form_field, field):
    """Say how a request's field differs from a form's; less than all may be sent in a request."""
    if field.required and not form_field.required:
        yield "only the request needs it"
    if isinstance(form_field, AddressField):
        if not isinstance(field, AddressSerializerField):
            yield "addresses are read by core/mail/addresses.py"
        return
    is_typed_list = isinstance(field, serializers.ListField) and not values_of(form_field)
    is_of_rows = isinstance(form_field, forms.ModelChoiceField)
    if is_of_rows or is_typed_list or isinstance(field, OF_ITS_OWN):
        return  # a request names rows, and has lists and booleans where people type lines and yes
    is_said = form_field.initial is not None and not callable(form_field.initial)
    if is_said and field.default not in (serializers.empty, form_field.initial):
        yield f"{form_field.initial} at first at the page, {field.default} in requests"
    for limit in LIMIT_NAMES:
        at_page, in_request = getattr(form_field, limit, None), getattr(field, limit, None)
        if at_page != in_request:
            yield f"{limit}: {at_page} at the page, {in_request} in requests"
    at_page, in_request = values_of(form_field), values_of(field)
    if at_page and at_page != in_request:
        yield f"choices: {sorted(at_page)} at the page, {sorted(in_request)} in requests"


def values_of(field):
    """The values of a choice, or of the choices in a list."""
    choices = getattr(getattr(field, "child", field), "choices", ())
    values = choices if isinstance(choices, dict) else [pair[0] for pair in choices]
    return {str(value) for value in values} - {""}


def test_forms_and_requests_of_one_service_agree():
    found, compared = [], set()
    for serializer, form in sorted(pairs(), key=str):
        for name, field in serializer().fields.items():
            key = (serializer.__name__, name, form.__name__)
            if name in form.base_fields and key not in APART:
                compared.add(key)
                for how in disagreements(form.base_fields[name], field):
                    found.append(f"{', '.join(key)}: {how}")
    assert not found, "\n".join([*found, "Declare it once: core/web/form_fields.py."])
    assert len({serializer for serializer, _, _ in compared}) >= 20


class ThingForm(forms.Form):
    name = forms.SlugField(max_length=10)
    words = forms.CharField(required=False, min_length=2)
    kind = forms.TypedChoiceField(choices=[("", "Choose"), ("a", "An a"), ("b", "A b")])
    marks = forms.MultipleChoiceField(choices=[("x", "X")], required=False)
    days = forms.IntegerField(min_value=1, max_value=9, initial=3)
    share = forms.FloatField(required=False, max_value=1)
    until = forms.DateField(required=False)
    is_seen = forms.BooleanField(required=False, initial=True)
    file = forms.FileField()


class Request(serializers.Serializer):
    name = build_request_field(ThingForm, "name")
    words = build_request_field(ThingForm, "words")
    kind = build_request_field(ThingForm, "kind")
    marks = build_request_field(ThingForm, "marks")
    days = build_request_field(ThingForm, "days")
    share = build_request_field(ThingForm, "share")
    until = build_request_field(ThingForm, "until")
    is_seen = build_request_field(ThingForm, "is_seen")
    more = build_request_field(ThingForm, "words", required=True, max_length=4)


FEWEST = {"name": "n", "kind": "a", "more": "more"}


def test_a_request_takes_what_its_form_takes():
    request = Request(data=FEWEST)
    assert request.is_valid(), request.errors
    assert request.validated_data == {**FEWEST, "days": 3, "is_seen": True}
    full = {"words": "", "marks": ["x"], "days": 9, "share": None, "until": None, "is_seen": False}
    request = Request(data=FEWEST | full)
    assert request.is_valid(), request.errors


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", "no slug"), ("name", "a-long-name"), ("name", ""), ("words", "x"), ("kind", ""),
        ("kind", "c"), ("marks", ["y"]), ("days", 10), ("days", 0), ("days", None), ("share", 1.1),
        ("more", ""), ("more", "words"), ("until", "soon"),
    ],
)  # fmt: skip
def test_a_request_refuses_what_its_form_refuses(name, value):
    request = Request(data=FEWEST | {name: value})
    request.is_valid()
    assert set(request.errors) == {name}


def test_a_file_or_a_row_is_no_field_of_a_request():
    with pytest.raises(TypeError, match=r"ThingForm\.file"):
        build_request_field(ThingForm, "file")


@pytest.mark.parametrize(
    ("form_field", "field", "count"),
    [
        (forms.CharField(max_length=5), serializers.CharField(max_length=5), 0),
        (forms.CharField(max_length=5), serializers.CharField(max_length=6), 1),
        (forms.CharField(), serializers.CharField(required=False), 0),
        (forms.CharField(required=False), serializers.CharField(), 1),
        (forms.IntegerField(min_value=0), serializers.IntegerField(), 1),
        (forms.ChoiceField(choices=["ab"]), serializers.ChoiceField(["a", "c"]), 1),
        (
            forms.MultipleChoiceField(choices=[("a", "A")]),
            serializers.ListField(child=serializers.ChoiceField(["a"])),
            0,
        ),
    ],
)
def test_what_a_disagreement_is(form_field, field, count):
    assert len(list(disagreements(form_field, field))) == count
