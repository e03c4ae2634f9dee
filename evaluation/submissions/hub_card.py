"""What a hub says of a model, for the fields of the form with which it is submitted."""

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
from tasks.targets.endpoints.answers import members, strict_json
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.client import SHARED
from tasks.targets.endpoints.transport import IDEMPOTENT

SECONDS, MOST_BYTES = 5.0, 4 * MIB
UNTIL = ("trained_until", "training_cutoff", "knowledge_cutoff")  # no key is agreed upon
ARXIV = "arxiv:"
HANGS = "it answers none of those who wait for it"
_places = Places()  # of threads that wait for the hub


def read_card(source: str, revision: str = "") -> dict[str, str]:
    """Return values that the hub knows of a model, by the form's fields.

    revision: empty for the newest. The hub's API has the front matter of the model's README as
    `cardData`. Raises Invalid.
    """
    if not HUB_ID.fullmatch(source) or (revision and not COMMIT.fullmatch(revision)):
        message = _("Enter the id of the model on the hub, such as organisation/name.")
        raise Invalid(message, field="source")
    place = f"/revision/{revision}" if revision else ""
    url = httpx.URL(f"{settings.HUB_ENDPOINT}/api/models/{source}{place}")
    try:
        with _places.take():
            reply = SHARED.request(
                "GET", url, seconds=SECONDS, max_bytes=MOST_BYTES, allowed=(url.host,),
                secret=None, payload=None, retry=IDEMPOTENT,
            )  # fmt: skip
        if reply.status in LATER or reply.status >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise EndpointError(f"it answers {reply.status}", "down")
        if reply.status != httpx.codes.OK:
            raise Invalid(_("The hub has no such model that everybody may read."), field="source")
        return fields_of(members(strict_json(reply.body), "The answer"))
    except (EndpointError, Hanging) as error:
        message = _("The hub cannot be asked now (%(why)s). Fill the card in yourself.")
        raise Invalid(
            message % {"why": str(error).removeprefix("The target ") or HANGS}, field="source"
        ) from None


def fields_of(told: Mapping[str, Any]) -> dict[str, str]:
    """Return the values in an answer about a model, whatever it contains, cut to fit the fields."""
    card = told.get("cardData")
    card = card if isinstance(card, Mapping) else {}
    weights = told.get("safetensors")
    total = weights.get("total") if isinstance(weights, Mapping) else None
    bases, licence = _texts(card.get("base_model")), card.get("license_name") or card.get("license")
    papers = [tag for tag in _texts(told.get("tags")) if tag.startswith(ARXIV)]
    paper = f"https://arxiv.org/abs/{papers[0].removeprefix(ARXIV)}" if papers else ""
    commit = told.get("sha")
    found = {
        "name": str(told.get("id", "")).rpartition("/")[2][:100],
        "revision": commit if isinstance(commit, str) and COMMIT.fullmatch(commit) else "",
        "description": f"Base model: {', '.join(bases)}."[:1000] if bases else "",
        "languages": ", ".join(_texts(card.get("language")))[:200],
        "trained_on": ", ".join(_texts(card.get("datasets")))[:200],
        "trained_until": next(filter(None, (_day(card.get(key)) for key in UNTIL)), ""),
        "license": ", ".join(_texts(licence))[:100],
        "paper_url": paper[:200],
        "parameters": str(total) if type(total) is int and 0 < total < 10**15 else "",
    }
    return {name: value for name, value in found.items() if value}


def _texts(value: Any) -> list[str]:
    """Return the texts of a value that is a text or a list."""
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]


def _day(value: Any) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError:
        return ""
