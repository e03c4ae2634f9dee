"""Render the fields of forms."""

from django.forms.renderers import TemplatesSetting


class FieldRenderer(TemplatesSetting):
    """A form renderer with our field template, which shows errors before the control."""

    field_template_name = "django/forms/field.html"
