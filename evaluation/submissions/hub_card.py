"""The facts that a hub has about a model, for the fields of the form."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import httpx
from django.conf import settings
from django.utils.translation import gettext as _

from core.errors import Invalid
from core.outside import Hanging, Places
from evaluation.contract import MIB
from evaluation.submissions.requirements import COMMIT, HUB_ID
from serving.hub import LATER
from tasks.targets.endpoints.answers import expect_object, strict_json
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.client import SHARED_TRANSPORT
from tasks.targets.endpoints.transport import RETRY_IDEMPOTENT

SECONDS, MOST_BYTES = 5.0, 4 * MIB
CUTOFF_KEYS = ("trained_until", "training_cutoff", "knowledge_cutoff")  # no key is agreed upon
ARXIV_TAG = "arxiv:"
HUB_HANGS = "it answers none of those who wait for it"
_places = Places()  # of threads that wait for the hub


def read_card(source: str, revision: str = "") -> dict[str, str]:
    """Return the model card that the hub has, as values by form field.

    revision: empty for the newest. The hub's API returns the front matter of the model's README
    as `cardData`. Raises Invalid.
    """
    if not HUB_ID.fullmatch(source) or (revision and not COMMIT.fullmatch(revision)):
        message = _("Enter the id of the model on the hub, such as organisation/name.")
        raise Invalid(message, field="source")
    address = f"{settings.HUB_ENDPOINT}/api/models/{source}"
    if revision:
        address += f"/revision/{revision}"
    url = httpx.URL(address)
    try:
        with _places.take():  # a hub that hangs must not hold all threads of the site
            reply = SHARED_TRANSPORT.request(
                "GET", url, seconds=SECONDS, max_bytes=MOST_BYTES, allowed=(url.host,),
                secret=None, payload=None, retry=RETRY_IDEMPOTENT,
            )  # fmt: skip
        if reply.status in LATER or reply.status >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise EndpointError(f"it answers {reply.status}", "down")
        if reply.status != httpx.codes.OK:
            raise Invalid(_("The hub has no such model that everybody may read."), field="source")
        return read_card_fields(expect_object(strict_json(reply.body), "The answer"))
    except (EndpointError, Hanging) as error:
        message = _("The hub cannot be asked now (%(why)s). Fill the card in yourself.")
        raise Invalid(
            message % {"why": str(error).removeprefix("The target ") or HUB_HANGS}, field="source"
        ) from None


def read_card_fields(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the values by form field from any answer of the hub, shortened to fit the fields."""
    card = _as_mapping(answer.get("cardData"))
    values = {
        "name": str(answer.get("id", "")).rpartition("/")[2][:100],
        "languages": ", ".join(_list_texts(card.get("language")))[:200],
        "trained_on": ", ".join(_list_texts(card.get("datasets")))[:200],
        "trained_until": next(filter(None, (_parse_day(card.get(key)) for key in CUTOFF_KEYS)), ""),
        "license": ", ".join(_list_texts(card.get("license_name") or card.get("license")))[:100],
    }
    commit = answer.get("sha")
    if isinstance(commit, str) and COMMIT.fullmatch(commit):
        values["revision"] = commit
    if bases := _list_texts(card.get("base_model")):
        values["description"] = f"Base model: {', '.join(bases)}."[:1000]
    papers = [tag for tag in _list_texts(answer.get("tags")) if tag.startswith(ARXIV_TAG)]
    if papers:
        values["paper_url"] = f"https://arxiv.org/abs/{papers[0].removeprefix(ARXIV_TAG)}"[:200]
    total = _as_mapping(answer.get("safetensors")).get("total")
    if type(total) is int and 0 < total < 10**15:  # True is an int, too
        values["parameters"] = str(total)
    return {name: value for name, value in values.items() if value}


def _as_mapping(value: Any) -> Mapping[str, Any]:
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
