from django.db import migrations


def let_go(apps, schema_editor):
    """Nothing holds tasks that were in a group when they are deleted; 0.2.0 still reads which were."""
    through = apps.get_model("tasks", "TaskGroup").tasks.through
    connection, table = schema_editor.connection, through._meta.db_table
    if connection.vendor == "sqlite":  # such a site stops for an upgrade
        through.objects.all().delete()
        return
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, table)
    for name, about in found.items():
        if about["foreign_key"]:
            schema_editor.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')


class Migration(migrations.Migration):
    """The tables stay while 0.2.0 serves: DROP TABLE IF EXISTS is for a later release."""

    dependencies = [
        ("tasks", "0025_no_invitations"),
        ("communities", "0002_groups"),
    ]

    operations = [
        migrations.RunPython(let_go, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="TaskGroup")]
        ),
    ]
