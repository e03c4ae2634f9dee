"""Versions of a target by fingerprint, and which changes of settings make it another model.

A round's targets are fixed once it has opened: their address may change, but not their weights or
how they are asked.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from tasks.contexts.files import context_digest
from tasks.models import TargetModel, TargetVersion

IDENTITY = ("adapter", "source", "revision", "options", "serving")


def note_version(target: TargetModel, fingerprint: Mapping[str, Any]) -> TargetVersion:
    """The version with this fingerprint, created the first time it is seen; no lock.

    A target that sends no digest is identified by the digest of everything it reports.
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
