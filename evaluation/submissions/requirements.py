"""Check what submissions of any kind say about their source. Pure."""

import re
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import urlsplit

from core.text.words import gettext_noop
from evaluation.contract import ENDPOINT_ADAPTERS
from tasks.targets.gpus import find_gpu_count_problem

HUB_ID_PATTERN = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
COMMIT_PATTERN = re.compile(r"[0-9a-f]{40}")
PINNED_IMAGE_PATTERN = re.compile(r"[a-z0-9][\w.:/-]*@sha256:[0-9a-f]{64}")
PINNED_HUB_ID_PATTERN = re.compile(f"{HUB_ID_PATTERN.pattern}@{COMMIT_PATTERN.pattern}")
Problem = tuple[str, str]
"""A field that is missing or wrong, and a sentence that says what to do."""


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


def find_gpu_problem(may_use: bool, gpus: int, site_gpu_count: int) -> str:
    """Return why a model gets no GPUs; empty if it may have `gpus` or requests none.

    may_use: whether its kind can use a GPU. site_gpu_count: the number of GPUs of the site.
    """
    if gpus == 0:
        return ""
    if not may_use:
        return "Only images and folders of weights run on a GPU."
    return find_gpu_count_problem(gpus, site_gpu_count)


def find_hub_problem(source: str, revision: str) -> Problem | None:
    """Return the problem with a hub id and its commit; None if they are valid."""
    if not HUB_ID_PATTERN.fullmatch(source):
        return "source", gettext_noop("Enter the model's ID on the hub, such as organisation/name.")
    if not COMMIT_PATTERN.fullmatch(revision):
        return "revision", gettext_noop(
            "Enter the full commit (40 hexadecimal digits), so that the model can't change later."
        )
    return None


def find_address_problem(source: str, private_hosts: Collection[str]) -> Problem | None:
    """Return the problem with a server's address; None if the site may call it."""
    try:
        url = urlsplit(source)
        host, _ = url.hostname or "", url.port
    except ValueError:
        host = ""
    if not host or url.scheme not in ("http", "https") or url.username or url.fragment:
        return "source", gettext_noop(
            "Enter the endpoint's URL, such as https://example.org/model."
        )
    # On the operator's own network nobody else reads the examples.
    if url.scheme == "http" and host not in private_hosts:
        return "source", gettext_noop(
            "Use a URL that starts with https://, so that no one can read the examples on the way."
        )
    return None


def find_adapter_problem(adapter: str) -> Problem | None:
    """Return the problem with an endpoint's protocol; None if it is known."""
    if adapter not in ENDPOINT_ADAPTERS:
        return "adapter", gettext_noop(
            "Choose our JSON format (/predict) or the dynalab format for the endpoint."
        )
    return None
