"""Which model answered: the rows of what a target was, by its fingerprint; and what makes another.

A round's targets are fixed once it was opened. So is, then, what a target is: where it lies may
change, its weights and how it is asked may not.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from tasks.contexts.files import context_digest
from tasks.models import TargetModel, TargetVersion

IDENTITY = ("adapter", "source", "revision", "options", "serving")


def note_version(target: TargetModel, fingerprint: Mapping[str, Any]) -> TargetVersion:
    """The row of what answered, made when this fingerprint is seen for the first time; no lock.

    A target that sends no digest of its own is known by the digest of all that it says of itself.
    """
    digest = str(fingerprint.get("digest") or context_digest(dict(fingerprint)))
    return TargetVersion.objects.get_or_create(
        target=target, digest=digest, defaults={"fingerprint": dict(fingerprint)}
    )[0]


def made_another(target: TargetModel, wanted: Mapping[str, Any]) -> list[str]:
    """Which of the wanted settings would make another model of a target; empty: none.

    An address may change, and a folder may lie elsewhere: it keeps its last name.
    """
    before = {name: getattr(target, name) for name in IDENTITY}
    changed = [name for name in IDENTITY if wanted.get(name, before[name]) != before[name]]
    if "source" in changed and _last_name(wanted["source"]) == _last_name(target.source):
        changed.remove("source")
    if bool(wanted.get("url", target.url)) != bool(target.url):
        changed.append("url")
    return changed


def _last_name(source: str) -> str:
    """Of a folder; anything else is its own name."""
    return PurePath(source).name if source.startswith("/") else source
