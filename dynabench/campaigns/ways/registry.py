"""The base class of ways into a campaign: how people arrive, and how they are paid.

`dynabench.campaigns.ways.kinds` has one class per way. Defining a class registers it.
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
"""The width of the database column with a way's name."""
WAYS: dict[str, "Way"] = {}
"""All ways by name. Importing the modules of `dynabench.campaigns.ways.kinds` fills it."""


class Way:
    """A way for people to join a campaign, such as a panel or an invitation.

    A subclass with a name, `class Prolific(Way, name="prolific")`, is registered. Raises TypeError
    if one of PARTS is missing, the name is too long or the name is taken.
    """

    PARTS: ClassVar[tuple[str, ...]] = ("title", "place")

    name: ClassVar[str]
    title: ClassVar[str | Promise]
    """The name that owners see among the choices."""
    place: ClassVar[int]
    """The position among the choices, from 1."""

    panel: ClassVar[Panel | None] = None
    """How the panel's URLs identify people; None if they are people of this site."""
    placeholders: ClassVar[str] = ""
    """The query string that the panel adds to the link, with the panel's placeholders."""
    source: ClassVar[Annotator.Source | None] = None
    """The source of the people, if the panel gives a person the same id in every campaign."""
    needs_completion_code: ClassVar[bool] = False
    """Whether people need a code to prove to the panel that they have finished."""
    approves_after_days: ClassVar[int | None] = None
    """The days until the panel approves undecided submissions; None if it never does."""
    pays_parts_as_bonus: ClassVar[bool] = False
    """Whether people with partial work leave with a code of their own and are paid by a bonus."""
    is_framed: ClassVar[bool] = False
    """Whether the panel frames the campaign's pages and takes a form at the end."""
    invites: ClassVar[bool] = False
    """Whether only people whom the owner invited may take part."""
    takes_accounts: ClassVar[bool] = False
    """Whether everybody with an account of this site may take part."""

    def __init_subclass__(cls, *, name: str = "", **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if name:
            register_member(cls, name, WAYS, noun="way into a campaign", max_chars=MAX_NAME_CHARS)

    @property
    def can_pay(self) -> bool:
        """Return whether the panel has an API for decisions and payments."""
        return type(self).connect is not Way.connect

    def connect(self, campaign: "Campaign", token: str) -> Api | None:
        """Return the panel's API client for an owner's token; None if no API is known."""
        return None


def way_choices() -> list[tuple[str, str | Promise]]:
    """Return the names of all ways with their titles, in order: the choices of a campaign."""
    ways = sorted(WAYS.values(), key=lambda way: way.place)
    return [(way.name, way.title) for way in ways]
