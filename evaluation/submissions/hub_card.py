"""Read the facts that the hub has about a model, to fill in the form."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import httpx
from django.conf import settings
from django.utils.translation import gettext as _

from core.errors import Invalid
from core.outside import ServiceHanging, ThreadSlots
from evaluation.contract import MIB
from evaluation.submissions.requirements import COMMIT_PATTERN, HUB_ID_PATTERN
from serving.hub import RETRY_STATUSES
from tasks.targets.endpoints.answers import expect_object, parse_strict_json
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.client import SHARED_TRANSPORT
from tasks.targets.endpoints.transport import RETRY_IDEMPOTENT

TIMEOUT_SECONDS, MAX_ANSWER_BYTES = 5.0, 4 * MIB
CUTOFF_KEYS = ("trained_until", "training_cutoff", "knowledge_cutoff")  # there is no standard key
ARXIV_TAG = "arxiv:"
HUB_HANGS_MESSAGE = "it answers none of those who wait for it"
_slots = ThreadSlots()  # for threads that wait for the Hub


def fetch_card(source: str, revision: str = "") -> dict[str, str]:
    """Return the model card that the hub has, as values by form field.

    revision: empty for the newest. The hub's API returns the front matter of the model's README
    as `cardData`. Raises Invalid.
    """
    if not HUB_ID_PATTERN.fullmatch(source) or (
        revision and not COMMIT_PATTERN.fullmatch(revision)
    ):
        message = _("Enter the model's ID on the hub, such as organisation/name.")
        raise Invalid(message, field="source")
    address = f"{settings.HUB_ENDPOINT}/api/models/{source}"
    if revision:
        address += f"/revision/{revision}"
    url = httpx.URL(address)
    try:
        with _slots.take_slot():  # a Hub that hangs must not block all threads of the site
            reply = SHARED_TRANSPORT.request(
                "GET", url, seconds=TIMEOUT_SECONDS, max_bytes=MAX_ANSWER_BYTES,
                allowed_hosts=(url.host,), secret=None, payload=None, retry=RETRY_IDEMPOTENT,
            )  # fmt: skip
        if reply.status in RETRY_STATUSES or reply.status >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise EndpointError(f"it answers {reply.status}", "down")
        if reply.status != httpx.codes.OK:
            raise Invalid(_("The hub has no public model with this ID."), field="source")
        return read_card_fields(expect_object(parse_strict_json(reply.body), "The answer"))
    except (EndpointError, ServiceHanging) as error:
        message = _("The hub isn't available right now (%(why)s). Fill in the card yourself.")
        raise Invalid(
            message % {"why": str(error).removeprefix("The target ") or HUB_HANGS_MESSAGE},
            field="source",
        ) from None


def read_card_fields(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the values by form field from any answer of the hub, shortened to fit the fields."""
    card = _ensure_mapping(answer.get("cardData"))
    values = {
        "name": str(answer.get("id", "")).rpartition("/")[2][:100],
        "languages": ", ".join(_list_texts(card.get("language")))[:200],
        "trained_on": ", ".join(_list_texts(card.get("datasets")))[:200],
        "trained_until": next(filter(None, (_parse_day(card.get(key)) for key in CUTOFF_KEYS)), ""),
        "license": ", ".join(_list_texts(card.get("license_name") or card.get("license")))[:100],
    }
    commit = answer.get("sha")
    if isinstance(commit, str) and COMMIT_PATTERN.fullmatch(commit):
        values["revision"] = commit
    if bases := _list_texts(card.get("base_model")):
        values["description"] = f"Base model: {', '.join(bases)}."[:1000]
    papers = [tag for tag in _list_texts(answer.get("tags")) if tag.startswith(ARXIV_TAG)]
    if papers:
        values["paper_url"] = f"https://arxiv.org/abs/{papers[0].removeprefix(ARXIV_TAG)}"[:200]
    total = _ensure_mapping(answer.get("safetensors")).get("total")
    if type(total) is int and 0 < total < 10**15:  # True is also an int
        values["parameters"] = str(total)
    return {name: value for name, value in values.items() if value}


def _ensure_mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    return {}


def _list_texts(value: Any) -> list[str]:
    """Return the texts in a value that is a text or a list; an empty list for other values."""
    values = value
    if not isinstance(value, list):
        values = [value]
    return [text for text in values if isinstance(text, str)]


def _parse_day(value: Any) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError:
        return ""
