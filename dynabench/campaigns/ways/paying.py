"""What a panel's API can do for a campaign's pay; two adapters, and what may go wrong."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from dynabench.campaigns.ways.panels import Arrival


class PanelRefused(Exception):
    """The refusal of a panel: nothing happened there. The message is for the owner."""


class PanelUnclear(Exception):
    """The lack of a clear answer of a panel: the call may have been carried out."""


class Bonus(NamedTuple):
    """Money for one person; key: the same for every try, so that a panel may know it again."""

    arrival: Arrival
    amount: int
    key: str


class Api(Protocol):
    """A panel's API. Each call raises PanelRefused or PanelUnclear."""

    knows_keys: bool
    """Whether a bonus that is sent again with its key is paid once."""

    def status(self, arrival: Arrival) -> str:
        """Return waiting, approved, rejected or another word of the panel's."""

    def decide(self, arrival: Arrival, *, approve: bool, reason: str) -> None:
        """Approve what somebody submitted, or reject it with a reason."""

    def bonuses(self, arrival: Arrival) -> int:
        """Return the sum of the bonuses that somebody got for this, in the smallest unit."""

    def set_up(self, bonuses: Sequence[Bonus]) -> str:
        """Prepare a payment, which moves no money; return its id at the panel, or ""."""

    def pay(self, prepared: str, bonuses: Sequence[Bonus], reason: str) -> None:
        """Pay what was prepared."""
