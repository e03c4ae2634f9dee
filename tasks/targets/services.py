"""Store targets and generators."""

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.data.encryption import encrypt
from core.data.rows import save_changed_fields
from core.errors import Invalid, Refused
from tasks.contexts.files import hash_context
from tasks.models import (
    Generator,
    ModelUse,
    Round,
    TargetFailure,
    TargetModel,
    TargetVersion,
    Task,
)
from tasks.permissions import list_fixed_settings
from tasks.targets.contact_services import UNKNOWN_CONTACT
from tasks.targets.endpoints.chat_options import SPENDING_OPTIONS
from tasks.targets.sources import check_allowed_folder

IDENTITY_FIELDS = (
    "adapter",
    "source",
    "revision",
    "options",
    "serving",
)  # of a model: an address may change
DEPENDENT_MODELS = (TargetVersion, TargetFailure, ModelUse)
"""Tables whose rows are deleted with a target."""

ADDRESS_FIELDS = ("adapter", "url", "options", "secret_env")
"""Settings that decide where and how a target's secret is sent."""
REQUEST_FIELDS = {"sealed_secret"}.union(ADDRESS_FIELDS, IDENTITY_FIELDS)
"""Settings whose change makes the last contact obsolete."""


@transaction.atomic
def add_target(*, task: Task, actor: User, fields: Mapping[str, Any]) -> TargetModel:
    """Register a target with checked settings. Takes no lock: names are unique in a task.

    Raises Refused.
    """
    # 1. Refuse settings that only administrators may choose, such as the name of a secret.
    _check_settings(actor, None, fields, "target")
    checked_fields = check_allowed_folder(actor, task, fields)
    # 2. Encrypt the secret, if there is one.
    values = _seal_secret(TargetModel(), checked_fields)
    # 3. Store it. The unique name decides between two editors who add one of the same name.
    target, is_created = task.targets.get_or_create(name=fields["name"], defaults=values)
    if not is_created:
        message = _("Another model of this task has this name. Choose another.")
        raise Invalid(message, field="name")
    log(actor, "target.registered", target, fields=sorted(fields))
    return target


@transaction.atomic
def change_target(*, target: TargetModel, actor: User, fields: Mapping[str, Any]) -> TargetModel:
    """Change a target's settings, which the form has checked. Raises Refused.

    `secret` is stored encrypted. It is deleted if the target's URL or adapter settings
    change and the secret is not given again: otherwise an editor could send it elsewhere. Locks
    the target, so that the URL does not change while the secret is stored.
    """
    locked_target = _lock_target(target)
    _check_settings(actor, locked_target, fields, "target")
    checked_fields = check_allowed_folder(
        actor, target.task, fields, old_source=locked_target.source
    )
    changed_target, log_details = store_target_changes(target, checked_fields)
    log(actor, "target.changed", changed_target, **log_details)
    return changed_target


@transaction.atomic
def delete_target(*, target: TargetModel, actor: User) -> None:
    """Delete a target that nothing uses. Locks it, so that no round adds it at the same time.

    Raises Refused if a round, an answer or anything else refers to it.
    """
    # Without `no_key`, so that whoever stores a row that refers to the target waits, too.
    locked_target = TargetModel.objects.select_for_update(of=("self",)).get(pk=target.pk)
    # Every table that names targets, also those of later rooms, which this one does not know.
    for relation in TargetModel._meta.related_objects:
        rows = relation.related_model._base_manager.filter(**{relation.field.name: locked_target})
        # What only describes the target goes with it. Anything else is a record of what it
        # answered.
        if relation.related_model not in DEPENDENT_MODELS and rows.exists():
            message = _(
                "You can't delete %(target)s, because it has been used and its answers must stay."
            )
            raise Refused(message % {"target": target.name}, code="target")
    log(actor, "target.deleted", locked_target)
    locked_target.delete()


def _lock_target(target: TargetModel) -> TargetModel:
    # `no_key`, so that answers that refer to the target can be stored meanwhile.
    return TargetModel.objects.select_for_update(of=("self",), no_key=True).get(pk=target.pk)


def store_target_changes(
    target: TargetModel, fields: Mapping[str, Any]
) -> tuple[TargetModel, dict[str, Any]]:
    """Store new settings of a target, and return it and what to log.

    Locks the target, as opening a round does. Raises Refused if a round was opened with the target
    and the settings would make it another model.
    """
    locked_target = _lock_target(target)
    check_same_model(locked_target, fields)
    # Addresses are logged in full, so that everybody who owns the task sees where texts went.
    has_moved = fields.get("url", locked_target.url) != locked_target.url
    url_change = {}
    if has_moved:
        url_change = {"url": {"before": locked_target.url, "after": fields["url"]}}
    changes = _seal_secret(locked_target, fields)
    changed_names = save_changed_fields(locked_target, changes)
    _clear_contact(locked_target, changed_names)
    return locked_target, {"fields": changed_names, **url_change}


def _clear_contact(row: TargetModel | Generator, changed_names: Iterable[str]) -> None:
    """Delete the last contact if a changed setting affects how the model is called."""
    if not set(changed_names).isdisjoint(REQUEST_FIELDS):
        # Otherwise pages would show that the new address answers.
        save_changed_fields(row, UNKNOWN_CONTACT)


def _seal_secret(target: TargetModel | Generator, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with `secret` encrypted as `sealed_secret`.

    Without a new secret, the old one is cleared if the URL or the adapter's settings change.
    """
    settings = {}
    for name, value in fields.items():
        if name != "secret":
            settings[name] = value
    if "secret" in fields:
        return {**settings, "sealed_secret": encrypt(fields["secret"])}
    # An editor who does not know the secret could otherwise have it sent to an address of their
    # own.
    if any(
        settings.get(name, getattr(target, name)) != getattr(target, name)
        for name in ADDRESS_FIELDS
    ):
        settings["sealed_secret"] = ""
    return settings


def check_same_model(target: TargetModel, fields: Mapping[str, Any]) -> None:
    """Raise Refused if the settings would make a target of an opened round another model.

    Otherwise the round's examples, written against one model, would be shown with another.
    """
    changed_names = _find_identity_changes(target, fields)
    if not changed_names:
        return
    # Rounds of imported history are released without ever having been open here.
    opened_condition = Q(opened_at__isnull=False) | Q(state=Round.State.RELEASED)
    if round := target.rounds.filter(opened_condition).order_by("number").first():
        message = _(
            "Round %(number)d was opened with %(target)s, so you can't change its %(names)s. Add "
            "the new model under another name."
        )
        values = {"number": round.number, "target": target.name, "names": ", ".join(changed_names)}
        raise Refused(message % values, code="target")


def _find_identity_changes(target: TargetModel, fields: Mapping[str, Any]) -> list[str]:
    """Return the names of the new settings that would make the target another model.

    A URL may change, and a folder may move if it keeps its name.
    """
    old_values = {name: getattr(target, name) for name in IDENTITY_FIELDS}
    changed_names = []
    for name in IDENTITY_FIELDS:
        if _strip_spending(name, fields.get(name, old_values[name])) != _strip_spending(
            name, old_values[name]
        ):
            changed_names.append(name)
    # A folder that was moved keeps its last name, and is still the same model.
    if "source" in changed_names and _get_last_name(fields["source"]) == _get_last_name(
        target.source
    ):
        changed_names.remove("source")
    # From our own server to an address, or back: nobody can tell whether it is the same model.
    if bool(fields.get("url", target.url)) != bool(target.url):
        changed_names.append("url")
    return changed_names


def _strip_spending(name: str, value: Any) -> Any:
    """Return a setting's value. Prices and budgets, which do not affect answers, are omitted."""
    if name != "options":
        return value
    kept_options = dict(value)
    for key in SPENDING_OPTIONS:
        kept_options.pop(key, None)
    return kept_options


def _get_last_name(source: str) -> str:
    """Return the last component of a folder's path; other sources unchanged."""
    if source.startswith("/"):
        return PurePath(source).name
    return source


def note_version(target: TargetModel, fingerprint: Mapping[str, Any]) -> TargetVersion:
    """Return the version with this fingerprint, created if it is new. Takes no lock.

    A target that sends no digest is identified by the hash of everything it reports.
    """
    # One row a version, also when two calls see it first at once: the digest is unique.
    digest = str(fingerprint.get("digest") or hash_context(dict(fingerprint)))
    return TargetVersion.objects.get_or_create(
        target=target, digest=digest, defaults={"fingerprint": dict(fingerprint)}
    )[0]


@transaction.atomic
def set_generator(*, task: Task, actor: User, fields: Mapping[str, Any]) -> Generator:
    """Create the task's generator or change its settings, which the form has checked.

    For `secret`, see `change_target`. Locks the task. Raises Refused.
    """
    # A task has one generator, so its own row is locked, which may not exist yet.
    Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    generator = Generator.objects.filter(task=task).first()
    # Compared with an empty one where there is none yet, so that everything counts as changed.
    old_generator = generator or Generator(task=task)
    settings = _seal_secret(old_generator, fields)
    changes = {}
    for name, value in settings.items():
        if getattr(old_generator, name) != value:
            changes[name] = value
    _check_settings(actor, generator, changes, "generator")
    if generator is None:
        new_generator = Generator.objects.create(task=task, **settings)
        log(actor, "generator.registered", new_generator, fields=sorted(changes))
        return new_generator
    changed_names = save_changed_fields(generator, changes)
    _clear_contact(generator, changed_names)
    log(actor, "generator.changed", generator, fields=changed_names)
    return generator


@transaction.atomic
def remove_generator(*, task: Task, actor: User) -> None:
    """Delete the task's generator if it has one. Takes no lock."""
    if Generator.objects.filter(task=task).delete()[0]:
        log(actor, "generator.removed", task)


def _check_settings(
    actor: User, target: TargetModel | Generator | None, fields: Mapping[str, Any], code: str
) -> None:
    if fixed_names := [name for name in list_fixed_settings(actor, target) if name in fields]:
        message = _(
            "You can't set %(names)s here. Names are permanent, and only administrators can "
            "link a secret to a URL."
        )
        raise Refused(message % {"names": ", ".join(fixed_names)}, code=code)
