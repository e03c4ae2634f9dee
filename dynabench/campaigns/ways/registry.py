"""What a way into a campaign must say of itself: who comes by it, and who pays them.

`dynabench.campaigns.ways.kinds` has a class for each. All are found by themselves.
"""

from typing import TYPE_CHECKING, ClassVar

from django.utils.functional import Promise

from core.accounts.models import Annotator
from core.registry import register_member
from dynabench.campaigns.ways.panels import Panel
from dynabench.campaigns.ways.paying import Api

if TYPE_CHECKING:
    from dynabench.campaigns.models import Campaign

MAX_NAME_CHARS = 10
"""The width of the column that stores the name of a way."""
WAYS: dict[str, "Way"] = {}
"""All ways by their names; the modules of `dynabench.campaigns.ways.kinds` fill it."""


class Way:
    """A way in which people come to a campaign, such as a panel or an invitation.

    A subclass with a name, `class Prolific(Way, name="prolific")`, registers it; TypeError when one
    of PARTS is missing, the name is too long, or there is such a way already.
    """

    PARTS: ClassVar[tuple[str, ...]] = ("title", "place")

    name: ClassVar[str]
    title: ClassVar[str | Promise]
    """What owners choose."""
    place: ClassVar[int]
    """Its place among the choices, from 1."""

    panel: ClassVar[Panel | None] = None
    """How the address says who comes. None: they are people of this site."""
    placeholders: ClassVar[str] = ""
    """What the panel adds to the campaign's link, with the panel's own placeholders."""
    source: ClassVar[Annotator.Source | None] = None
    """The source of its people, if the panel gives a person the same id in every campaign."""
    needs_completion_code: ClassVar[bool] = False
    """Without the code people could not prove to the panel that they have finished."""
    approves_after_days: ClassVar[int | None] = None
    """Days until the panel approves what nobody decided. None: it never does so."""
    pays_parts_as_bonus: ClassVar[bool] = False
    """People who did a part leave with a code of their own and get their pay as a bonus."""
    is_framed: ClassVar[bool] = False
    """The panel shows the campaign's pages inside its own, and takes a form back."""
    invites: ClassVar[bool] = False
    """Only people whom the owner invited take part."""
    takes_accounts: ClassVar[bool] = False
    """Everybody with an account of this site may take part."""

    def __init_subclass__(cls, *, name: str = "", **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if name:
            register_member(cls, name, WAYS, noun="way into a campaign", max_chars=MAX_NAME_CHARS)

    @property
    def can_pay(self) -> bool:
        """Return whether the panel has an API by which the site decides and pays."""
        return type(self).connect is not Way.connect

    def connect(self, campaign: "Campaign", token: str) -> Api | None:
        """Return the panel's API for an owner's token; None if the panel has none that we know."""
        return None


def way_choices() -> list[tuple[str, str | Promise]]:
    """Return the names of all ways with their titles, in order: the choices of a campaign."""
    ways = sorted(WAYS.values(), key=lambda way: way.place)
    return [(way.name, way.title) for way in ways]
