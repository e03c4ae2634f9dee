"""The title of an arena's chart: its finding in words, derived from the numbers."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from leaderboard.board.findings import describe_tie


def describe_arena(names: Sequence[str], ranks: Sequence[int | None]) -> str:
    """Return a sentence that names the one or two models with the first rank, or counts more.

    names, ranks: those of all models, in the order of the ranking.
    """
    # Ranks are shared where the data cannot tell models apart.
    leaders = [name for name, rank in zip(names, ranks, strict=True) if rank == 1]
    if not leaders:
        return _("No model has a rank yet")
    if len(leaders) == 1:
        return _("People prefer %(model)s") % {"model": leaders[0]}
    return describe_tie(leaders)
