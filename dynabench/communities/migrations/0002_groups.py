"""Groups of tasks, which superusers kept in the admin, become communities."""

import re

from django.db import migrations

RESERVED = ("new", "proposals")


def found(apps, schema_editor):
    """A community of each group, without owners: administrators run it until they name some.

    It is listed where everybody saw the group, for it had a task that everybody sees.
    """
    community, entry = (apps.get_model("communities", n) for n in ("Community", "CommunityTask"))
    for group in apps.get_model("tasks", "TaskGroup").objects.order_by("pk"):
        base = re.sub(r"[^a-z0-9]+", "-", group.slug.lower()).strip("-")[:36] or "group"
        taken = {*RESERVED, *community.objects.values_list("slug", flat=True)}
        names = (base, *(f"{base}-{number}" for number in range(2, 1000)))
        made = community.objects.create(
            slug=next(name for name in names if name not in taken),
            name=group.name,
            summary=group.summary,
            text=group.description,
            is_listed=group.tasks.filter(is_visible=True).exists(),
        )
        tasks = group.tasks.order_by("pk")
        entry.objects.bulk_create(entry(community=made, task=task, state="in") for task in tasks)


class Migration(migrations.Migration):
    dependencies = [
        ("communities", "0001_initial"),
        ("tasks", "0024_generators_secret"),
    ]

    operations = [migrations.RunPython(found, migrations.RunPython.noop)]
