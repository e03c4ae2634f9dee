"""Stored answers are text, also where 0003 was applied before 2026-11-21 and made them JSON."""

from django.db import migrations, models


def to_text(apps, schema_editor):
    model = apps.get_model("accounts", "IdempotentAnswer")
    json = models.JSONField(null=True)
    json.set_attributes_from_name("body")
    json.model = model
    schema_editor.alter_field(model, json, model._meta.get_field("body"))


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_api_tokens")]
    operations = [migrations.RunPython(to_text, migrations.RunPython.noop)]
