"""An example is withdrawn whatever was said of it, once, and somebody answers for it."""

from annotation.moderation import withdraw_example
from core.accounts.models import LogEntry
from tests.support.judging import write
from validation.consensus.consensus import Vote
from validation.judging.queue import read_round_numbers
from validation.judging.services import cast_validation, lease_next


def test_a_judged_example_leaves_the_numbers_and_is_logged_once(nli, alice, bob):
    example = write(nli, bob)
    assert lease_next(validator=alice.annotator, task=nli.task)
    cast_validation(validator=alice.annotator, example=example, vote=Vote("neutral"))
    withdraw_example(example=example, actor=alice, reason="It names a person.")
    first = withdraw_example(example=example, actor=bob, reason="again").retracted_at
    example.refresh_from_db()
    assert example.retracted_at == first is not None
    assert read_round_numbers(nli)[nli.pk]["collected"] == 0
    entry = LogEntry.objects.get(action="example.withdrawn")
    assert (entry.actor, entry.target) == (alice, str(example.uuid))
    assert entry.data == {"reason": "It names a person."}


def test_a_withdrawn_example_is_not_handed_out(nli, alice, bob):
    withdraw_example(example=write(nli, bob), actor=None, reason="")
    assert lease_next(validator=alice.annotator, task=nli.task) is None
