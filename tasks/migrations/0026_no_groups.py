from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("tasks", "0025_no_invitations"),
        ("communities", "0002_groups"),
    ]

    operations = [migrations.DeleteModel(name="TaskGroup")]
