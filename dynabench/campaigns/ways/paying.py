"""The interface of a panel's API for decisions and payments, and the errors that it raises."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from dynabench.campaigns.ways.panels import Arrival


class PanelRefused(Exception):
    """Raised if a panel refused a request and did nothing. The message is for the owner."""


class PanelUnclear(Exception):
    """Raised if a panel gave no clear answer, so that the call may have been carried out."""


class Bonus(NamedTuple):
    """A bonus for one person. key: an idempotency key, the same for every try."""

    arrival: Arrival
    amount: int
    key: str


class Api(Protocol):
    """A client for a panel's API. Each call may raise PanelRefused or PanelUnclear."""

    knows_keys: bool
    """Whether a bonus that is sent repeatedly with the same key is paid only once."""

    def get_status(self, arrival: Arrival) -> str:
        """Return a submission's status: waiting, approved, rejected or the panel's own word."""

    def decide_submission(self, arrival: Arrival, *, approve: bool, reason: str) -> None:
        """Approve a submission, or reject it. reason: the reason of a rejection."""

    def get_bonus_sum(self, arrival: Arrival) -> int:
        """Return the sum of bonuses paid for this participation, in the smallest unit."""

    def prepare_bonuses(self, bonuses: Sequence[Bonus]) -> str:
        """Prepare a payment without moving money; return its id at the panel, or ""."""

    def pay_bonuses(self, preparation_id: str, bonuses: Sequence[Bonus], reason: str) -> None:
        """Pay the bonuses. preparation_id: the result of `prepare_bonuses`."""
