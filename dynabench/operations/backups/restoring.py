"""A site restored from a backup: later erasures are repeated, and no message is sent twice."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import connection

from annotation.models import Example
from annotation.moderation import withdraw_example
from core.accounts.counting import is_key_lost
from core.accounts.erasures import erasure_key, keyed, name_of, read_log
from core.accounts.models import ApiToken, Erasure, User
from core.accounts.sealed import sealed_columns
from core.data.encryption import Unreadable, decrypt
from core.files.storage.disk import scratch
from core.files.storage.stored import files_in, folders_in
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.retention_services import apply_retention
from dynabench.campaigns.ways.registry import WAYS
from dynabench.operations.backups.databases import (
    is_empty_database,
    list_last_migrations,
    load_dump,
)
from dynabench.operations.backups.errors import BackupError
from dynabench.operations.backups.services import (
    DATABASE,
    KEYS,
    MEDIA,
    MODELS,
    Backup,
    gunzip_blocks,
)
from dynabench.operations.backups.stores import put_file, read_blocks
from dynabench.people.deletion.services import delete_person, purge_deleted
from evaluation.models import Submission
from evaluation.submissions.services import withdraw_model
from tasks.models import TargetModel

SEPARATELY_REPORTED_MODELS = ("accounts.SiteKey", "campaigns.Campaign")
"""Models of whose secrets another line tells."""
Kind = Erasure.Kind
CHUNK_ROWS = 1000


def find_restoring_mark() -> Path:
    """Return the path of the file that exists while a restoration is unfinished.

    The file's text identifies the backup.
    """
    return Path(settings.HOME / "restoring")


def restore(backup: Backup, *, without_log: bool = False) -> list[str]:
    """Restore a backup into this empty site; return lines that the operator must read.

    1. Check that the backup fits, and that this site is empty or partly restored from it.
    2. Restore files, then keys, then the database atomically. An interruption before the last
       step leaves no site that could be served.
    3. Erase again what was erased since the backup, and what its age demands.
    4. Report payments, secrets and files that need the operator's attention.

    Continues an interrupted restoration of the same backup. Raises BackupError.
    """
    manifest = backup.manifest
    name = hashlib.sha256(json.dumps(manifest.files).encode()).hexdigest()
    mark = find_restoring_mark()
    is_going_on = mark.exists() and mark.read_text() == name
    erasures: Mapping[str, set[str]] = {}
    if not without_log:
        erasures = _read_erasures(manifest.erased)
    _check_fits(backup)
    if not is_going_on:
        _check_empty()
        mark.write_text(name)
    if is_empty_database():
        # Files before the rows that name them.
        _restore_files(backup, is_going_on)
        _restore_key(backup)
        with scratch() as folder:
            path = folder / "database"
            with path.open("wb") as file:
                file.writelines(gunzip_blocks(backup.blocks(DATABASE)))
            load_dump(path)
    lines = [
        f"{count} erased again: {kind}" for kind, count in _erase(manifest.erasure_key, erasures)
    ]
    lines.append(f"{purge_deleted()} examples of people who left were emptied")
    lines.append(f"{apply_retention()} rows were emptied by their age")
    lines += _list_stopped_payments(manifest.made_at)
    lines += _list_lost_secrets()
    lines += _list_missing_folders()
    lines += [f"missing since before the backup: {name}" for name in manifest.missing]
    mark.unlink()  # until here no process serves the site (`dynabench.checks`)
    return lines


def _read_erasures(at_least: int) -> Mapping[str, set[str]]:
    """Return the names in the erasure log by kind.

    at_least: the number of names when the backup was made. Raises BackupError, also if the log now
    has fewer names.
    """
    cure = (
        "What people deleted since the backup would come back. Name the log in ERASURE_LOG; if "
        "there is none or nobody was erased, give --without-log."
    )
    try:
        erasures = read_log()
    except OSError as error:
        raise BackupError(f"The log of erasures cannot be read: {error}. {cure}") from None
    names = sum(map(len, erasures.values()))
    if names < at_least:
        raise BackupError(
            f"The log of erasures, {settings.ERASURE_LOG}, holds {names} names, and {at_least} "
            f"when the backup was made. {cure}"
        )
    return erasures


def _check_fits(backup: Backup) -> None:
    if backup.manifest.database != connection.vendor:
        raise BackupError(
            f"The backup is of {backup.manifest.database}, this site of {connection.vendor}. "
            "Restore it on the same kind, then move it: manage.py move_database."
        )
    if backup.manifest.migrations != list_last_migrations():
        raise BackupError(
            "The backup was made by another version. Install that one, restore, then upgrade."
        )


def _check_empty() -> None:
    places = []
    if _has_files(settings.MODELS_HOME):
        places.append(str(settings.MODELS_HOME))
    if folders_in("") or files_in(""):
        places.append("the storage")
    if not is_empty_database():
        places.append("the database")
    if places:
        raise BackupError(
            f"The site is not empty: there is something in {', '.join(places)}. Restore into an "
            "empty database and an empty home folder or bucket."
        )


def _has_files(folder: Path) -> bool:
    return any(path.is_file() for path in folder.rglob("*"))


def _restore_files(backup: Backup, is_going_on: bool) -> None:
    """Restore each file under its name; verify files left by an interrupted restoration."""
    for name, stored_name in backup.names(MEDIA):
        if is_going_on and default_storage.exists(stored_name):
            # A file that was cut short by the kill is written again.
            if _compute_digest(stored_name) == backup.manifest.files[name][1]:
                continue
            default_storage.delete(stored_name)
        put_file(default_storage, stored_name, backup.blocks(name))
    for name, relative in backup.names(MODELS):
        path = settings.MODELS_HOME / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.writelines(backup.blocks(name))


def _compute_digest(name: str) -> str:
    digest = hashlib.sha256()
    for block in read_blocks(default_storage, name):
        digest.update(block)
    return digest.hexdigest()


def _restore_key(backup: Backup) -> None:
    """Write the key to where the site reads it, unless the environment sets one."""
    if KEYS not in backup.manifest.files:
        return
    keys = json.loads(b"".join(backup.blocks(KEYS)))
    key = keys["now"]
    if keys["before"] and not settings.SECRET_KEY_FALLBACKS:
        _keep_secret("secret_key_fallbacks", ",".join(keys["before"]))
        settings.SECRET_KEY_FALLBACKS = keys["before"]
    if not (os.environ.get("SECRET_KEY") or os.environ.get("SECRET_KEY_FILE")):
        _keep_secret("secret_key", key)
        settings.SECRET_KEY = key
    elif key != settings.SECRET_KEY:
        raise BackupError("SECRET_KEY is not the one in the backup. Unset it, or set that one.")


def _keep_secret(name: str, text: str) -> None:
    # Readable for its owner before it has any content, and complete before it has its name.
    new_path = settings.HOME / f"{name}.restored"
    new_path.touch(mode=0o600)
    new_path.write_text(text)
    new_path.replace(settings.HOME / name)


def _erase(key: str, erasures: Mapping[str, set[str]]) -> Iterator[tuple[str, int]]:
    """Erase what the log names; yield (kind, number of rows found)."""
    # The log is written with keys derived from SECRET_KEY, which may have changed since.
    keys = [bytes.fromhex(key), erasure_key(settings.SECRET_KEY)]
    keys += [erasure_key(former) for former in settings.SECRET_KEY_FALLBACKS]

    def is_erased(kind: str, name: object) -> bool:
        return any(keyed(kind, str(name), key) in erasures[kind] for key in keys)

    if Kind.EXAMPLE in erasures:
        standing = Example.objects.filter(retracted_at=None).iterator(CHUNK_ROWS)
        examples = [row for row in standing if is_erased(Kind.EXAMPLE, row.uuid)]
        for example in examples:
            withdraw_example(example=example, actor=None, reason="It was withdrawn before.")
        yield "examples", len(examples)
    if Kind.SUBMISSION in erasures:
        models = Submission.objects.filter(withdrawn_at=None).iterator(CHUNK_ROWS)
        submissions = [row for row in models if is_erased(Kind.SUBMISSION, row.pk)]
        for submission in submissions:
            withdraw_model(submission=submission, actor=None)
        yield "models", len(submissions)
    if Kind.TOKEN in erasures:
        tokens = [t.pk for t in ApiToken.objects.all() if is_erased(Kind.TOKEN, t.digest)]
        ApiToken.objects.filter(pk__in=tokens).delete()
        yield "tokens", len(tokens)
    if Kind.PERSON in erasures:
        people = [row for row in User.objects.all() if is_erased(Kind.PERSON, name_of(row))]
        for user in people:
            # They had left before, so they go now, even if they are the last administrator.
            delete_person(user=user, is_repeated=True)
        yield "people", len(people)


def _list_stopped_payments(made_at: str) -> Iterator[str]:
    """Yield a line for each campaign whose payments were stopped to avoid paying twice."""
    ways_that_pay = [way.name for way in WAYS.values() if way.can_pay]
    for campaign in Campaign.objects.exclude(opened_at=None).filter(way__in=ways_that_pay):
        yield (
            f"campaign {campaign.slug} pays nobody until its owner gives the panel's token again: "
            f"compare what the panel paid since {made_at} with its ledger before"
        )


def _list_lost_secrets() -> Iterator[str]:
    """Yield a line for stored secrets that the site's key cannot decrypt."""
    for model, column in sealed_columns():
        if model._meta.label in SEPARATELY_REPORTED_MODELS:
            continue
        lost_count = 0
        for token in model._default_manager.exclude(**{column: ""}).values_list(column, flat=True):
            try:
                decrypt(token)
            except Unreadable:
                lost_count += 1
        if lost_count:
            yield (
                f"{lost_count} secrets of {model._meta.verbose_name_plural} are lost, as "
                "SECRET_KEY is another one: their people have to enter them again"
            )
    if is_key_lost():
        yield "the key of address marks is lost: whoever deleted an account counts as a new person"
    fallbacks = settings.HOME / "secret_key_fallbacks"
    if fallbacks.exists():
        yield f"former keys are in {fallbacks}: name it in SECRET_KEY_FALLBACKS_FILE"
    variables = TargetModel.objects.exclude(secret_env="").values_list("secret_env", flat=True)
    for name in sorted(set(variables) - os.environ.keys()):
        yield f"{name}, a target's secret, is not set in this environment"


def _list_missing_folders() -> Iterator[str]:
    """Yield a line for each missing model folder of a target outside the home folder."""
    sources = TargetModel.objects.filter(source__startswith="/").values_list("source", flat=True)
    for source in sorted(set(sources)):
        if not Path(source).exists():
            yield f"{source}, from which a target is served, is not on this machine"
