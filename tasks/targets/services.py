"""Writes about targets and generators."""

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.data.encryption import encrypt
from core.data.rows import changed_fields
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
from tasks.targets.endpoints.openai_chat import SPENDING_OPTIONS
from tasks.targets.sources import with_allowed_folder

IDENTITY_FIELDS = (
    "adapter",
    "source",
    "revision",
    "options",
    "serving",
)  # of a model: an address may change
DEPENDENT_MODELS = (TargetVersion, TargetFailure, ModelUse)
"""What goes with a target."""

ADDRESS_FIELDS = ("adapter", "url", "options", "secret_env")
"""Where a target's secret goes, and how."""
REQUEST_FIELDS = {"sealed_secret"}.union(ADDRESS_FIELDS, IDENTITY_FIELDS)
"""Settings whose change makes what is known of the last contact out of date."""


@transaction.atomic
def add_target(*, task: Task, actor: User, fields: Mapping[str, Any]) -> TargetModel:
    """Register a target with checked settings. Takes no lock: names are unique in a task.

    Raises Refused.
    """
    # 1. Refuse settings that only administrators may choose, such as the name of a secret.
    _check_settings(actor, None, fields, "target")
    checked = with_allowed_folder(actor, task, fields)
    # 2. Encrypt the secret, if there is one.
    values = _seal_secret(TargetModel(), checked)
    # 3. Store it. The unique name decides between two editors who add one of the same name.
    target, created = task.targets.get_or_create(name=fields["name"], defaults=values)
    if not created:
        message = _("Another target of this task has this name. Choose another one.")
        raise Invalid(message, field="name")
    log(actor, "target.registered", target, fields=sorted(fields))
    return target


@transaction.atomic
def change_target(*, target: TargetModel, actor: User, fields: Mapping[str, Any]) -> TargetModel:
    """Change a target's settings, which the form has checked. Raises Refused.

    `secret` is stored encrypted. It is deleted if the target's address or the way of asking
    changes and the secret is not given again: otherwise an editor could send it elsewhere. Locks
    the target, so that the address does not change while the secret is stored.
    """
    locked = _lock_target(target)
    _check_settings(actor, locked, fields, "target")
    checked = with_allowed_folder(actor, target.task, fields, old_source=locked.source)
    changed, noted = store_target_changes(target, checked)
    log(actor, "target.changed", changed, **noted)
    return changed


@transaction.atomic
def delete_target(*, target: TargetModel, actor: User) -> None:
    """Delete a target that nothing uses. Locks it, so that no round adds it meanwhile.

    Raises Refused if a round, an answer or anything else refers to it.
    """
    locked_target = TargetModel.objects.select_for_update(of=("self",)).get(pk=target.pk)
    # Every table that names targets, also those of later rooms, which this one does not know.
    for relation in TargetModel._meta.related_objects:
        rows = relation.related_model._base_manager.filter(**{relation.field.name: locked_target})
        # What only describes the target goes with it. Anything else is a record of what it
        # answered.
        if relation.related_model not in DEPENDENT_MODELS and rows.exists():
            message = _("%(target)s is in use, or was. It stays, for what it answered.")
            raise Refused(message % {"target": target.name}, code="target")
    log(actor, "target.deleted", locked_target)
    locked_target.delete()


def _lock_target(target: TargetModel) -> TargetModel:
    return TargetModel.objects.select_for_update(of=("self",), no_key=True).get(pk=target.pk)


def store_target_changes(
    target: TargetModel, fields: Mapping[str, Any]
) -> tuple[TargetModel, dict[str, Any]]:
    """Store other settings of the target; return it and what to log. Locks it, as opening does.

    Raises Refused if a round was opened with the target and this would make it another model.
    """
    locked_target = _lock_target(target)
    check_same_model(locked_target, fields)
    # Addresses are logged in full, so that everybody who owns the task sees where texts went.
    moved = fields.get("url", locked_target.url) != locked_target.url
    url_change = {}
    if moved:
        url_change = {"url": {"before": locked_target.url, "after": fields["url"]}}
    changes = _seal_secret(locked_target, fields)
    changed_names = changed_fields(locked_target, changes)
    _forget_contact(locked_target, changed_names)
    return locked_target, {"fields": changed_names, **url_change}


def _forget_contact(row: TargetModel | Generator, changed_names: Iterable[str]) -> None:
    """Delete the last contact if a changed setting affects how the model is asked."""
    if not set(changed_names).isdisjoint(REQUEST_FIELDS):
        # Otherwise pages would show that the new address answers.
        changed_fields(row, UNKNOWN_CONTACT)


def _seal_secret(target: TargetModel | Generator, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with an encrypted secret.

    Without a new secret, the old one is cleared if the address or the way of asking changes.
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
    """Raise Refused if a round was opened with the target and these settings make it another model.

    Otherwise the round's examples, written against one model, would be shown with another.
    """
    another = _find_identity_changes(target, fields)
    if not another:
        return
    # Rounds of imported history are released without ever having been open here.
    opened = Q(opened_at__isnull=False) | Q(state=Round.State.RELEASED)
    if round := target.rounds.filter(opened).order_by("number").first():
        words = _(
            "Round %(number)d was opened with %(target)s, so its %(names)s cannot change. Register "
            "the other model under another name."
        )
        values = {"number": round.number, "target": target.name, "names": ", ".join(another)}
        raise Refused(words % values, code="target")


def _find_identity_changes(target: TargetModel, fields: Mapping[str, Any]) -> list[str]:
    """Return the names of the new settings that would make the target another model.

    An address may change, and a folder may move as long as it keeps its last name.
    """
    old_values = {name: getattr(target, name) for name in IDENTITY_FIELDS}
    changed_names = []
    for n in IDENTITY_FIELDS:
        if _strip_spending(n, fields.get(n, old_values[n])) != _strip_spending(n, old_values[n]):
            changed_names.append(n)
    # A folder that was moved keeps its last name, and is still the same model.
    if "source" in changed_names and _last_name(fields["source"]) == _last_name(target.source):
        changed_names.remove("source")
    # From our own server to an address, or back: nobody can tell whether it is the same model.
    if bool(fields.get("url", target.url)) != bool(target.url):
        changed_names.append("url")
    return changed_names


def _strip_spending(name: str, value: Any) -> Any:
    """Return a setting without prices and budgets, which do not affect answers."""
    if name != "options":
        return value
    kept_options = dict(value)
    for key in SPENDING_OPTIONS:
        kept_options.pop(key, None)
    return kept_options


def _last_name(source: str) -> str:
    """Return the last component of a folder's path; other sources unchanged."""
    if source.startswith("/"):
        return PurePath(source).name
    return source


def note_version(target: TargetModel, fingerprint: Mapping[str, Any]) -> TargetVersion:
    """Return the version with this fingerprint, created if it is new. Takes no lock.

    A target that sends no digest is identified by the digest of everything it reports.
    """
    # One row a version, also when two calls see it first at once: the digest is unique.
    digest = str(fingerprint.get("digest") or hash_context(dict(fingerprint)))
    return TargetVersion.objects.get_or_create(
        target=target, digest=digest, defaults={"fingerprint": dict(fingerprint)}
    )[0]


@transaction.atomic
def set_generator(*, task: Task, actor: User, fields: Mapping[str, Any]) -> Generator:
    """Create the task's generator or change its settings, which the form has checked.

    `secret` is treated as in `change_target`. Locks the task. Raises Refused.
    """
    # A task has one generator, so its own row is locked, which may not exist yet.
    Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    generator = Generator.objects.filter(task=task).first()
    # Compared with an empty one where there is none yet, so that everything counts as changed.
    old_generator = generator or Generator(task=task)
    settings = _seal_secret(old_generator, fields)
    changes = {}
    for name, v in settings.items():
        if getattr(old_generator, name) != v:
            changes[name] = v
    _check_settings(actor, generator, changes, "generator")
    if generator is None:
        new_generator = Generator.objects.create(task=task, **settings)
        log(actor, "generator.registered", new_generator, fields=sorted(changes))
        return new_generator
    changed = changed_fields(generator, changes)
    _forget_contact(generator, changed)
    log(actor, "generator.changed", generator, fields=changed)
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
        words = _(
            "You cannot set %(names)s: a name stays, and only an administrator ties a secret to an "
            "address."
        )
        raise Refused(words % {"names": ", ".join(fixed_names)}, code=code)
