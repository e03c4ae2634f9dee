"""Restoring a site from a backup. Later erasures are repeated, and no message is sent twice."""

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
from core.accounts.erasure_log import (
    derive_erasure_key,
    get_erasure_name,
    hash_erased_name,
    read_erasure_log,
)
from core.accounts.models import ApiToken, Erasure, User
from core.accounts.sealed import iterate_sealed_columns
from core.data.encryption import UnreadableSecret, decrypt
from core.files.storage.disk import open_scratch_folder
from core.files.storage.stored import list_files, list_folders
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.retention_services import apply_retention
from dynabench.campaigns.ways.registry import WAYS
from dynabench.operations.backups.databases import (
    is_empty_database,
    list_last_migrations,
    load_dump,
)
from dynabench.operations.backups.errors import BackupError
from dynabench.operations.backups.making import (
    DATABASE_NAME,
    KEYS_NAME,
    MEDIA_PREFIX,
    MODELS_PREFIX,
    Backup,
    gunzip_blocks,
)
from dynabench.operations.backups.stores import put_file, read_blocks
from dynabench.people.deletion.services import delete_person, purge_deleted
from evaluation.models import Submission
from evaluation.submissions.services import withdraw_model
from tasks.models import TargetModel

SEPARATELY_REPORTED_MODELS = ("accounts.SiteKey", "campaigns.Campaign")
"""Models whose secrets other lines of the report cover."""
Kind = Erasure.Kind
CHUNK_ROWS = 1000


def find_restoring_mark() -> Path:
    """Return the path of the file that exists while a restoration is unfinished.

    The file contains the digest of the backup's list of files.
    """
    return Path(settings.HOME / "restoring")


def restore(backup: Backup, *, without_log: bool = False) -> list[str]:
    """Restore a backup into this empty site; return lines that the operator must read.

    1. Check that the backup fits, and that this site is empty or partly restored from it.
    2. Restore files, then keys, then the database atomically. An interruption before the last
       step leaves no site that could be served.
    3. Erase again what was erased since the backup, and what is past its retention period.
    4. Report payments, secrets and files that need the operator's attention.

    Continues an interrupted restoration of the same backup. Raises BackupError.
    """
    manifest = backup.manifest
    backup_digest = hashlib.sha256(json.dumps(manifest.files).encode()).hexdigest()
    mark_path = find_restoring_mark()
    is_resumed = mark_path.exists() and mark_path.read_text() == backup_digest
    erasures: Mapping[str, set[str]] = {}
    if not without_log:
        erasures = _read_erasures(manifest.erased)
    _check_compatibility(backup)
    if not is_resumed:
        _check_empty()
        mark_path.write_text(backup_digest)
    if is_empty_database():
        # Files before the rows that name them.
        _restore_files(backup, is_resumed)
        _restore_keys(backup)
        with open_scratch_folder() as folder:
            path = folder / "database"
            with path.open("wb") as file:
                file.writelines(gunzip_blocks(backup.iterate_blocks(DATABASE_NAME)))
            load_dump(path)
    lines = [
        f"{count} erased again: {kind}"
        for kind, count in _repeat_erasures(manifest.erasure_key, erasures)
    ]
    lines.append(f"{purge_deleted()} examples of deleted accounts emptied")
    lines.append(f"{apply_retention()} expired rows emptied")
    lines += _list_stopped_payments(manifest.made_at)
    lines += _list_lost_secrets()
    lines += _list_missing_folders()
    lines += [
        f"already missing when the backup was made: {backup_digest}"
        for backup_digest in manifest.missing
    ]
    mark_path.unlink()  # until here no process serves the site (`dynabench.checks`)
    return lines


def _read_erasures(min_names: int) -> Mapping[str, set[str]]:
    """Return the erased names in the erasure log, by kind.

    min_names: the number of names when the backup was made. Raises BackupError if the log
    cannot be read or has fewer names now.
    """
    remedy = (
        "Data that people deleted since the backup would come back. Set ERASURE_LOG to the "
        "log. If there is no log or nothing was erased, use --without-log."
    )
    try:
        erasures = read_erasure_log()
    except OSError as error:
        raise BackupError(f"The erasure log can't be read: {error}. {remedy}") from None
    name_count = sum(map(len, erasures.values()))
    if name_count < min_names:
        raise BackupError(
            f"The erasure log {settings.ERASURE_LOG} has {name_count} names, but had {min_names} "
            f"when the backup was made. {remedy}"
        )
    return erasures


def _check_compatibility(backup: Backup) -> None:
    if backup.manifest.database != connection.vendor:
        raise BackupError(
            f"The backup is for {backup.manifest.database}, but this site uses "
            f"{connection.vendor}. Restore it to the same kind of database, then run "
            "manage.py move_database."
        )
    if backup.manifest.migrations != list_last_migrations():
        raise BackupError(
            "The backup was made by a different version. Install that version, restore, "
            "then upgrade."
        )


def _check_empty() -> None:
    filled_stores = []
    if _has_files(settings.MODELS_HOME):
        filled_stores.append(str(settings.MODELS_HOME))
    if list_folders("") or list_files(""):
        filled_stores.append("the storage")
    if not is_empty_database():
        filled_stores.append("the database")
    if filled_stores:
        raise BackupError(
            f"The site is not empty. Found data in {', '.join(filled_stores)}. Restore into an "
            "empty database and an empty home folder or bucket."
        )


def _has_files(folder: Path) -> bool:
    return any(path.is_file() for path in folder.rglob("*"))


def _restore_files(backup: Backup, is_resumed: bool) -> None:
    """Restore all files. After an interruption, keep the files that are already right."""
    for name, stored_name in backup.iterate_names(MEDIA_PREFIX):
        if is_resumed and default_storage.exists(stored_name):
            # A file that was cut short by the kill is written again.
            if _compute_digest(stored_name) == backup.manifest.files[name][1]:
                continue
            default_storage.delete(stored_name)
        put_file(default_storage, stored_name, backup.iterate_blocks(name))
    for name, relative_path in backup.iterate_names(MODELS_PREFIX):
        path = settings.MODELS_HOME / relative_path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.writelines(backup.iterate_blocks(name))


def _compute_digest(name: str) -> str:
    digest = hashlib.sha256()
    for block in read_blocks(default_storage, name):
        digest.update(block)
    return digest.hexdigest()


def _restore_keys(backup: Backup) -> None:
    """Write the keys to the files that the site reads, unless the environment sets them.

    Raises BackupError if the environment sets another key than the backup's.
    """
    if KEYS_NAME not in backup.manifest.files:
        return
    keys = json.loads(b"".join(backup.iterate_blocks(KEYS_NAME)))
    key = keys["now"]
    if keys["before"] and not settings.SECRET_KEY_FALLBACKS:
        _write_secret("secret_key_fallbacks", ",".join(keys["before"]))
        settings.SECRET_KEY_FALLBACKS = keys["before"]
    if not (os.environ.get("SECRET_KEY") or os.environ.get("SECRET_KEY_FILE")):
        _write_secret("secret_key", key)
        settings.SECRET_KEY = key
    elif key != settings.SECRET_KEY:
        raise BackupError(
            "SECRET_KEY differs from the key in the backup. Unset it, or set it to that key."
        )


def _write_secret(name: str, text: str) -> None:
    # Readable for its owner before it has any content, and complete before it has its name.
    new_path = settings.HOME / f"{name}.restored"
    new_path.touch(mode=0o600)
    new_path.write_text(text)
    new_path.replace(settings.HOME / name)


def _repeat_erasures(key: str, erasures: Mapping[str, set[str]]) -> Iterator[tuple[str, int]]:
    """Erase again what the log names; yield (kind, number of rows erased).

    key: the erasure key of the backup, in hexadecimal digits.
    """
    # The log is written with keys derived from SECRET_KEY, which may have changed since.
    keys = [bytes.fromhex(key), derive_erasure_key(settings.SECRET_KEY)]
    keys += [derive_erasure_key(former_key) for former_key in settings.SECRET_KEY_FALLBACKS]

    def is_erased(kind: str, name: object) -> bool:
        return any(hash_erased_name(kind, str(name), key) in erasures[kind] for key in keys)

    if Kind.EXAMPLE in erasures:
        # All are compared, in chunks: of what was erased only a keyed hash is known.
        current_examples = Example.objects.filter(retracted_at=None).iterator(CHUNK_ROWS)
        examples = [row for row in current_examples if is_erased(Kind.EXAMPLE, row.uuid)]
        for example in examples:
            withdraw_example(
                example=example, actor=None, reason="It was already withdrawn before the restore."
            )
        yield "examples", len(examples)
    if Kind.SUBMISSION in erasures:
        current_models = Submission.objects.filter(withdrawn_at=None).iterator(CHUNK_ROWS)
        submissions = [row for row in current_models if is_erased(Kind.SUBMISSION, row.pk)]
        for submission in submissions:
            withdraw_model(submission=submission, actor=None)
        yield "models", len(submissions)
    if Kind.TOKEN in erasures:
        token_ids = [row.pk for row in ApiToken.objects.all() if is_erased(Kind.TOKEN, row.digest)]
        ApiToken.objects.filter(pk__in=token_ids).delete()
        yield "tokens", len(token_ids)
    if Kind.PERSON in erasures:
        erased_users = [
            row for row in User.objects.all() if is_erased(Kind.PERSON, get_erasure_name(row))
        ]
        for user in erased_users:
            # They had left before, so they go now, even if they are the last administrator.
            delete_person(user=user, is_repeated=True)
        yield "people", len(erased_users)


def _list_stopped_payments(made_at: str) -> Iterator[str]:
    """Yield a line for each campaign whose payments are stopped, so that nobody is paid twice.

    made_at: when the backup was made, as text.
    """
    ways_that_pay = [way.name for way in WAYS.values() if way.can_pay]
    for campaign in Campaign.objects.exclude(opened_at=None).filter(way__in=ways_that_pay):
        yield (
            f"campaign {campaign.slug} makes no payments until its owner enters the "
            f"panel's token again. First compare the panel's payments since {made_at} with "
            "the campaign's ledger"
        )


def _list_lost_secrets() -> Iterator[str]:
    """Yield a line for each kind of stored secrets that the site's key cannot decrypt."""
    for model, column in iterate_sealed_columns():
        if model._meta.label in SEPARATELY_REPORTED_MODELS:
            continue
        lost_count = 0
        for token in model._default_manager.exclude(**{column: ""}).values_list(column, flat=True):
            try:
                decrypt(token)
            except UnreadableSecret:
                lost_count += 1
        if lost_count:
            yield (
                f"{lost_count} secrets of {model._meta.verbose_name_plural} are lost, "
                "because SECRET_KEY is different. Their owners have to enter them again"
            )
    if is_key_lost():
        yield (
            "the key for address marks is lost, so people who deleted an account count as new "
            "people"
        )
    fallbacks = settings.HOME / "secret_key_fallbacks"
    if fallbacks.exists():
        yield f"former keys are in {fallbacks}. Set SECRET_KEY_FALLBACKS_FILE to this file"
    variables = TargetModel.objects.exclude(secret_env="").values_list("secret_env", flat=True)
    for name in sorted(set(variables) - os.environ.keys()):
        yield f"{name} (a target's secret) is not set in this environment"


def _list_missing_folders() -> Iterator[str]:
    """Yield a line for each target's model folder that is missing on this machine."""
    sources = TargetModel.objects.filter(source__startswith="/").values_list("source", flat=True)
    for source in sorted(set(sources)):
        if not Path(source).exists():
            yield f"{source} (the source of a target) is missing on this machine"
