from django.db import migrations


def rename(apps, schema_editor):
    """On sites that followed the development of 0.3.0, the column was renamed by 0009."""
    table = "annotation_suggestion"
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        columns = [one.name for one in connection.introspection.get_table_description(cursor, table)]
    if "action" in columns:
        schema_editor.execute(f'ALTER TABLE {table} RENAME COLUMN "action" TO deed')


class Migration(migrations.Migration):
    dependencies = [("annotation", "0014_text_vectors")]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
