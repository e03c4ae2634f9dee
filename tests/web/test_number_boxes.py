"""A checkbox for a number: unticked where the number is 0."""

from django import forms
from django.db import models
from django.urls import get_resolver

from tasks.models import TargetModel


def model_forms(parent=forms.BaseModelForm):
    for form in parent.__subclasses__():
        yield form
        yield from model_forms(form)


def test_a_box_for_a_number_is_unticked_at_zero():
    assert get_resolver().url_patterns  # loads every page with its forms
    boxes = 0
    for form in model_forms():
        meta = getattr(form, "_meta", None)
        for name, field in form.base_fields.items():
            if not isinstance(field.widget, forms.CheckboxInput) or not (meta and meta.model):
                continue
            stored = {one.name: one for one in meta.model._meta.get_fields()}.get(name)
            if stored is not None and not isinstance(stored, models.BooleanField):
                assert not field.widget.check_test(0), f"{form.__name__}.{name}"
                assert field.widget.check_test(1)
                boxes += 1
    assert boxes, "the forms of targets have one"
    assert TargetModel._meta.get_field("gpus").default == 0
