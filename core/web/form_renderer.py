"""How forms look."""

from django.forms.renderers import TemplatesSetting


class FieldRenderer(TemplatesSetting):
    """Renders a field with templates/django/forms/field.html, errors before the control."""

    field_template_name = "django/forms/field.html"
