"""Prolific's API, v1: submissions, their approval, and bonuses, which are set up and then paid."""

import json
from collections.abc import Sequence
from typing import Any

from dynabench.campaigns.rules.pay import units
from dynabench.campaigns.ways.panels import Arrival
from dynabench.campaigns.ways.paying import Bonus, PanelRefused, PanelUnclear
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.client import SHARED
from tasks.targets.endpoints.transport import Retry, parse_url

SECONDS = 20.0
ANSWER_BYTES = 2**20
NO_RETRY = Retry(lost=False, statuses=frozenset())
WORDS = {"AWAITING REVIEW": "waiting", "APPROVED": "approved", "REJECTED": "rejected"}


class Prolific:
    """One study, asked with its researcher's token."""

    knows_keys = False

    def __init__(self, url: str, token: str, study: str, currency: str, hosts: list[str]) -> None:
        self._url, self._token, self._hosts = url.rstrip("/"), token, tuple(hosts)
        self._study, self._currency = study, currency

    def status(self, arrival: Arrival) -> str:
        """As `Api.status`."""
        said = str(self._submission(arrival).get("status", ""))
        return WORDS.get(said, said)

    def decide(self, arrival: Arrival, *, approve: bool, reason: str) -> None:
        """As `Api.decide`; Prolific asks for reasons of 100 characters or more."""
        told: dict[str, Any] = {"action": "APPROVE"}
        if not approve:
            told = {"action": "REJECT", "message": reason, "rejection_category": "OTHER"}
        self._ask("POST", f"/api/v1/submissions/{arrival.session}/transition/", told)

    def bonuses(self, arrival: Arrival) -> int:
        """As `Api.bonuses`."""
        return sum(map(int, self._submission(arrival).get("bonus_payments") or ()))

    def set_up(self, bonuses: Sequence[Bonus]) -> str:
        """As `Api.set_up`: a line for each person."""
        lines = [f"{one.arrival.id},{units(one.amount, self._currency)}" for one in bonuses]
        told = {"study_id": self._study, "csv_bonuses": "\n".join(lines)}
        prepared = str(self._ask("POST", "/api/v1/submissions/bonus-payments/", told).get("id", ""))
        if not prepared.isalnum():
            raise PanelUnclear("Prolific named no payment.")
        return prepared

    def pay(self, prepared: str, bonuses: Sequence[Bonus], reason: str) -> None:
        """As `Api.pay`."""
        self._ask("POST", f"/api/v1/bulk-bonus-payments/{prepared}/pay/", {})

    def _submission(self, arrival: Arrival) -> dict[str, Any]:
        return self._ask("GET", f"/api/v1/submissions/{arrival.session}/", None)

    def _ask(self, method: str, path: str, payload: Any) -> dict[str, Any]:
        try:
            reply = SHARED.request(
                method,
                parse_url(self._url + path),
                seconds=SECONDS,
                max_bytes=ANSWER_BYTES,
                allowed=self._hosts,
                secret=None,
                payload=payload,
                retry=NO_RETRY,
                headers=[(b"Authorization", f"Token {self._token}".encode())],
            )
        except EndpointError as error:
            raise PanelUnclear(f"Prolific did not answer ({error.reason}).") from None
        if 400 <= reply.status < 500:
            raise PanelRefused(f"Prolific refused ({reply.status}): {_said(reply.body)}")
        if not 200 <= reply.status < 300:
            raise PanelUnclear(f"Prolific answered {reply.status}.")
        try:
            found = json.loads(reply.body or b"{}")
        except ValueError:
            raise PanelUnclear("Prolific's answer cannot be read.") from None
        return found if isinstance(found, dict) else {}


def _said(body: bytes) -> str:
    """The beginning of an error's text."""
    return body.decode(errors="replace")[:200]
