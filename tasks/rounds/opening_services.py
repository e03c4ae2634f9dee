"""Open rounds as soon as their targets have finished loading."""

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.jobs.keeper import announce_job
from core.periodic import register_minutely
from tasks.models import Round
from tasks.rounds.states import NEXT_STATES, TargetsLoading, set_round_state

State = Round.State
MAX_WAIT = timedelta(hours=1)
"""The maximum time for which a round waits for its targets."""


def request_round_state(*, round: Round, state: str, actor: User | None) -> Round:
    """Set the state like `set_round_state`, but defer opening while targets are loading.

    The request to open is stored in the round, so any process of the site can complete it. Call it
    outside transactions. Raises RoundError.
    """
    try:
        return set_round_state(round=round, state=state, actor=actor)
    except TargetsLoading:
        return _store_opening_request(round, actor)


@transaction.atomic
def _store_opening_request(round: Round, actor: User | None) -> Round:
    """Record that the round is to be opened; return the round. Locks the round.

    Does nothing if the round can no longer be opened.
    """
    locked_round = Round.objects.select_for_update(of=("self",)).get(pk=round.pk)
    # Another owner may have moved the round by now; then there is nothing to wait for.
    if State.OPEN in NEXT_STATES[locked_round.state]:
        # The time of the first request stays, since MAX_WAIT is counted from it.
        locked_round.opening_since = locked_round.opening_since or timezone.now()
        locked_round.opening_note = ""
        locked_round.save(update_fields=["opening_since", "opening_note"])
        log(actor, "round.opening_requested", locked_round)
    return locked_round


def cancel_opening(*, round: Round, actor: User | None) -> None:
    """Cancel the opening of a round that waits for its targets. Locks the round."""
    _end_waiting(round, None, "", actor)


@transaction.atomic
def _end_waiting(
    round: Round, waiting_since: datetime | None, note: str, actor: User | None
) -> None:
    """Stop waiting to open a round. Locks the round.

    waiting_since: when the wait began; None ends any wait. If another wait has begun since then,
    nothing changes. note: why the round was not opened.
    """
    locked_round = Round.objects.select_for_update(of=("self",)).get(pk=round.pk)
    # `waiting_since` names the waiting that this call is about: a newer one is left alone.
    if locked_round.opening_since is None or waiting_since not in (
        None,
        locked_round.opening_since,
    ):
        return
    locked_round.opening_since, locked_round.opening_note = None, note[:500]
    locked_round.save(update_fields=["opening_since", "opening_note"])
    log(actor, "round.opening_ended", locked_round, reason=note)


@register_minutely(
    counts="rounds opened", why="Owners opened them while their targets were still being loaded."
)
def open_waiting_rounds() -> int:
    """Open the rounds whose targets have finished loading; return how many.

    If a round cannot be opened for another reason, or has waited for MAX_WAIT, it stops waiting,
    and its page shows the reason.
    """
    opened_count = 0
    # 1. Take each round that waits. Its row says so, whichever process began the waiting.
    for round in Round.objects.filter(opening_since__isnull=False).select_related("task"):
        since = round.opening_since
        assert since is not None
        # 2. Tell the keeper that this process works, since asking targets takes long.
        announce_job()
        try:
            # 3. Try to open it, which asks its targets.
            set_round_state(round=round, state=State.OPEN, actor=None, waiting_since=since)
            opened_count += 1
        except TargetsLoading:
            # 4. Still loading: try again at the next run, unless it took too long.
            if timezone.now() - since > MAX_WAIT:
                _end_waiting(
                    round,
                    since,
                    _("The round's models were still loading after an hour. Open the round again."),
                    None,
                )
        except Refused as error:
            # 5. Refused for another reason: trying again would not help, so the page shows why.
            _end_waiting(round, since, str(error), None)
    return opened_count
