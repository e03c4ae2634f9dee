"""A client for Prolific's API v1: submissions, their approval, and bonuses in two steps."""

import json
from collections.abc import Sequence
from typing import Any

from core.text.money import format_units
from dynabench.campaigns.ways.panels import Arrival
from dynabench.campaigns.ways.paying import Bonus, PanelRefused, PanelUnclear
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.client import SHARED_TRANSPORT
from tasks.targets.endpoints.transport import RetryPolicy, parse_url

TIMEOUT_SECONDS = 20.0
MAX_ANSWER_BYTES = 2**20
NO_RETRY = RetryPolicy(on_lost_connection=False, statuses=frozenset())
STATUS_WORDS = {"AWAITING REVIEW": "waiting", "APPROVED": "approved", "REJECTED": "rejected"}


class Prolific:
    """An API client for a study at Prolific, with its researcher's token."""

    knows_keys = False

    def __init__(self, url: str, token: str, study: str, currency: str, hosts: list[str]) -> None:
        """Store the study and its token, without connecting.

        hosts: private hosts to which the site may connect.
        """
        self._url, self._token, self._hosts = url.rstrip("/"), token, tuple(hosts)
        self._study, self._currency = study, currency

    def get_status(self, arrival: Arrival) -> str:
        """Return the status of a submission. See `Api.get_status`."""
        status = str(self._fetch_submission(arrival).get("status", ""))
        return STATUS_WORDS.get(status, status)

    def decide_submission(self, arrival: Arrival, *, approve: bool, reason: str) -> None:
        """Approve or reject a submission. See `Api.decide_submission`.

        Prolific requires reasons of at least 100 characters.
        """
        body: dict[str, Any] = {"action": "APPROVE"}
        if not approve:
            body = {"action": "REJECT", "message": reason, "rejection_category": "OTHER"}
        self._ask("POST", f"/api/v1/submissions/{arrival.session}/transition/", body)

    def get_bonus_sum(self, arrival: Arrival) -> int:
        """Return the sum of bonuses. See `Api.get_bonus_sum`."""
        return sum(map(int, self._fetch_submission(arrival).get("bonus_payments") or ()))

    def prepare_bonuses(self, bonuses: Sequence[Bonus]) -> str:
        """Prepare bonuses, one line per person. See `Api.prepare_bonuses`."""
        lines = [
            f"{bonus.arrival.id},{format_units(bonus.amount, self._currency)}" for bonus in bonuses
        ]
        body = {"study_id": self._study, "csv_bonuses": "\n".join(lines)}
        preparation_id = str(
            self._ask("POST", "/api/v1/submissions/bonus-payments/", body).get("id", "")
        )
        # It becomes a part of the address by which money moves.
        if not preparation_id.isalnum():
            raise PanelUnclear("Prolific returned no payment ID.")
        return preparation_id

    def pay_bonuses(self, preparation_id: str, bonuses: Sequence[Bonus], reason: str) -> None:
        """Pay the prepared bonuses. See `Api.pay_bonuses`."""
        self._ask("POST", f"/api/v1/bulk-bonus-payments/{preparation_id}/pay/", {})

    def _fetch_submission(self, arrival: Arrival) -> dict[str, Any]:
        """Return the submission of an arrival from Prolific's API."""
        return self._ask("GET", f"/api/v1/submissions/{arrival.session}/", None)

    def _ask(self, method: str, path: str, payload: Any) -> dict[str, Any]:
        """Call the API and return its answer. Raises PanelRefused or PanelUnclear."""
        # No retries: whether a call may be sent again is the caller's to decide.
        try:
            reply = SHARED_TRANSPORT.request(
                method,
                parse_url(self._url + path),
                seconds=TIMEOUT_SECONDS,
                max_bytes=MAX_ANSWER_BYTES,
                allowed_hosts=self._hosts,
                secret=None,
                payload=payload,
                retry=NO_RETRY,
                headers=[(b"Authorization", f"Token {self._token}".encode())],
            )
        except EndpointError as error:
            raise PanelUnclear(f"Prolific did not answer ({error.reason}).") from None
        # Prolific has understood and refused: nothing has happened there.
        if 400 <= reply.status < 500:
            raise PanelRefused(f"Prolific refused ({reply.status}): {_shorten_error(reply.body)}")
        # A failure in between may come after the money has moved.
        if not 200 <= reply.status < 300:
            raise PanelUnclear(f"Prolific answered {reply.status}.")
        try:
            answer = json.loads(reply.body or b"{}")
        except ValueError:
            raise PanelUnclear("Prolific sent an unreadable response.") from None
        return answer if isinstance(answer, dict) else {}


def _shorten_error(body: bytes) -> str:
    """Return the beginning of an error response's text."""
    return body.decode(errors="replace")[:200]
