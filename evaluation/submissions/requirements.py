"""The requirements of each kind of submission."""

import re
from collections.abc import Collection
from urllib.parse import urlsplit

from core.text.words import gettext_noop
from evaluation.contract import ENDPOINT_ADAPTERS
from tasks.config.schema import TaskConfig
from tasks.targets.gpus import gpus_problem

HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
COMMIT = re.compile(r"[0-9a-f]{40}")
KINDS = ("directory", "image", "hub", "llm", "predictions", "chat", "endpoint")
PINNED_IMAGE = re.compile(r"[a-z0-9][\w.:/-]*@sha256:[0-9a-f]{64}")


PINNED_HUB_ID = re.compile(f"{HUB_ID.pattern}@{COMMIT.pattern}")


ON_GPU = ("image", "directory", "hub")
"""Kinds of models that may ask for one."""


def gpu_problem(kind: str, gpus: int, site_has: int) -> str:
    """Return why a model gets no GPU; empty when it may have `gpus`, or asks for none."""
    if gpus == 0:
        return ""
    if kind not in ON_GPU:
        return "Only images and folders of weights run on a GPU."
    return gpus_problem(gpus, site_has)


def kinds_of(config: TaskConfig) -> tuple[str, ...]:
    """Return the kinds of submission that a task takes."""
    if config.training_rows:
        return ("rows",)
    return KINDS


def problem_of(
    kind: str, *, source: str, revision: str, adapter: str, has_upload: bool, has_set: bool,
    private_hosts: Collection[str] = (),
) -> tuple[str, str] | None:  # fmt: skip
    """Return (field, sentence) of the first thing that is missing or wrong; None if all is well.

    private_hosts: hosts that may be asked without TLS.
    """
    match kind:
        case "directory" if not has_upload:
            return "upload", gettext_noop(
                "Choose the archive of the model's folder (.zip, .tar or .tar.gz)."
            )
        case "rows" if not has_upload:
            return "upload", gettext_noop("Choose the file with the rows (JSON lines).")
        case "predictions" if not has_upload:
            return "upload", gettext_noop("Choose the file with the predictions (JSON lines).")
        case "predictions" if not has_set:
            return "evaluation_set", gettext_noop("Choose the set that the predictions are for.")
        case "llm" if has_upload:  # its files are checked by a worker
            return None
        case "hub" | "llm":
            return _hub(source, revision)
        case "image" if not has_upload and not PINNED_IMAGE.fullmatch(source):
            return "source", gettext_noop(
                "Upload the image (docker save), or name it with its digest: "
                "registry/name@sha256:… (64 digits), so that it cannot change unseen."
            )
        case "endpoint":
            return _address(source, private_hosts) or _adapter(adapter)
        case "chat":
            return _address(source, private_hosts)
    return None


def _hub(source: str, revision: str) -> tuple[str, str] | None:
    if not HUB_ID.fullmatch(source):
        return "source", gettext_noop(
            "Enter the id of the model on the hub, such as organisation/name."
        )
    if not COMMIT.fullmatch(revision):
        return "revision", gettext_noop(
            "Enter the full commit (40 hexadecimal digits), so that the model cannot change unseen."
        )
    return None


def _address(source: str, private_hosts: Collection[str]) -> tuple[str, str] | None:
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


def _adapter(adapter: str) -> tuple[str, str] | None:
    if adapter not in ENDPOINT_ADAPTERS:
        return "adapter", gettext_noop(
            "An endpoint speaks JSON lines' words (/predict) or dynalab's."
        )
    return None
