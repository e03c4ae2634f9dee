"""What a submission must say of its source, whatever its kind. Pure."""

import re
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import urlsplit

from core.text.words import gettext_noop
from evaluation.contract import ENDPOINT_ADAPTERS
from tasks.targets.gpus import find_gpus_problem

HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
COMMIT = re.compile(r"[0-9a-f]{40}")
PINNED_IMAGE = re.compile(r"[a-z0-9][\w.:/-]*@sha256:[0-9a-f]{64}")
PINNED_HUB_ID = re.compile(f"{HUB_ID.pattern}@{COMMIT.pattern}")
Problem = tuple[str, str]
"""The field that is missing or wrong, and a sentence that says what to do."""


class Sources(NamedTuple):
    """What a submitter entered about the source of a model.

    private_hosts: hosts that may be called without TLS.
    """

    source: str = ""
    revision: str = ""
    adapter: str = ""
    has_upload: bool = False
    has_set: bool = False
    private_hosts: Collection[str] = ()


def find_gpu_problem(may_use: bool, gpus: int, site_has: int) -> str:
    """Return why a model gets no GPUs; empty if it may have `gpus` or requests none.

    may_use: whether its kind can use a GPU. site_has: the number of GPUs of the site.
    """
    if gpus == 0:
        return ""
    if not may_use:
        return "Only images and folders of weights run on a GPU."
    return find_gpus_problem(gpus, site_has)


def find_hub_problem(source: str, revision: str) -> Problem | None:
    """Return the problem with a hub id and its commit; None if they are valid."""
    if not HUB_ID.fullmatch(source):
        return "source", gettext_noop(
            "Enter the id of the model on the hub, such as organisation/name."
        )
    if not COMMIT.fullmatch(revision):
        return "revision", gettext_noop(
            "Enter the full commit (40 hexadecimal digits), so that the model cannot change unseen."
        )
    return None


def find_address_problem(source: str, private_hosts: Collection[str]) -> Problem | None:
    """Return the problem with a server's address; None if the site may call it."""
    try:
        parts = urlsplit(source)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https") or parts.username or parts.fragment:
        return "source", gettext_noop(
            "Enter the address of the endpoint, such as https://example.org/model."
        )
    # On the operator's own network nobody else reads the examples.
    if parts.scheme == "http" and host not in private_hosts:
        return "source", gettext_noop(
            "The address must begin with https://: examples must not be read on the way."
        )
    return None


def find_adapter_problem(adapter: str) -> Problem | None:
    """Return the problem with an endpoint's protocol; None if it is known."""
    if adapter not in ENDPOINT_ADAPTERS:
        return "adapter", gettext_noop(
            "An endpoint speaks JSON lines' words (/predict) or dynalab's."
        )
    return None
