"""The review queue: what stands in it, what an expert decides, and who may not come in."""

import re

import pytest

from annotation.models import Example
from core.accounts.models import Annotator, LogEntry
from core.accounts.people import get_shown_name
from core.accounts.services import get_annotator
from dynabench.manage.selectors import summarise_inputs
from tasks.models import TaskMember
from tests.support.factories import UserFactory
from tests.support.judging import answered, write
from tests.support.policies import rederive
from tests.web.conftest import HTMX
from validation.consensus.consensus import Policy, Vote
from validation.consensus.sampling import is_in_share, is_sampled_for_review
from validation.decisions import review_queue
from validation.decisions.review_queue import Kind, get_review_page
from validation.decisions.services import override_consensus
from validation.models import Consensus, Gold, OwnerDecision, Validation

URL = "/own/nli/review/"


@pytest.fixture(autouse=True)
def reviewer(alice, request):
    """Alice, who reviews."""
    if "nli" in request.fixturenames:
        task = request.getfixturevalue("nli").task
        TaskMember.objects.create(task=task, user=alice, role="reviewer")


KEY = "a secret of the tests"


@pytest.fixture
def no_sample(monkeypatch):
    monkeypatch.setattr(review_queue, "is_sampled_for_review", lambda uuid, secret: False)


@pytest.fixture
def people(db):
    return [get_annotator(UserFactory()) for _ in range(7)]


def judged(round, author, people, *said, number=0):
    """An example with these votes: labels, or verdicts after an exclamation mark."""
    example = write(round, author, number)
    for person, answer in zip(people, said, strict=False):
        kind = {"verdict": answer[1:]} if answer.startswith("!") else {"label": answer}
        Validation.objects.create(example=example, validator=person, **kind)
    rederive(round=round, policy=Policy("plurality", of=len(said)))
    return example


def found(round, kind=Kind.ALL, **options):
    return [item.pk for item in get_review_page([round], kind, **options).items]


def test_disagreements_stand_in_the_queue_and_agreements_do_not(nli, bob, people, no_sample):
    cases = {
        Kind.NO_CONSENSUS: ("neutral", "entailment"),
        Kind.SPLIT: ("neutral", "neutral", "entailment"),
        Kind.FLAGGED: ("!flagged", "!flagged", "neutral", "!flagged", "!flagged"),
    }
    expected = {}
    for number, (kind, votes) in enumerate(cases.items()):
        example = write(nli, bob, number)
        expected[kind] = example.pk
        for person, answer in zip(people, votes, strict=False):
            said = {"verdict": answer[1:]} if answer[0] == "!" else {"label": answer}
            Validation.objects.create(example=example, validator=person, **said)
    agreed, alone, waiting = (write(nli, bob, number) for number in (7, 8, 9))
    for person in people[:3]:
        Validation.objects.create(example=agreed, validator=person, label="neutral")
    Validation.objects.create(example=alone, validator=people[0], label="neutral")
    rederive(round=nli, policy=Policy("plurality"))
    Consensus.objects.create(example=waiting, round=nli, state="undecided", votes=2, still_needed=1)
    Consensus.objects.filter(pk=expected[Kind.NO_CONSENSUS]).update(state="no_consensus")
    assert found(nli) == sorted(expected.values())
    for kind, pk in expected.items():
        assert found(nli, kind) == [pk]


def test_the_sample_is_a_twentieth_of_those_that_are_judged_for_a_share(nli):
    ids = [Example().uuid for _ in range(20_000)]
    for share in (1, 0.1):
        judged = [uuid for uuid in ids if is_in_share(uuid, share, KEY)]
        sampled = sum(is_sampled_for_review(uuid, KEY) for uuid in judged) / len(judged)
        assert 0.03 < sampled < 0.07
    assert [is_sampled_for_review(uuid, KEY) for uuid in ids[:50]] == [
        is_sampled_for_review(uuid, KEY) for uuid in ids[:50]
    ]


def test_pages_follow_one_another_without_gap(nli, bob, people, monkeypatch):
    monkeypatch.setattr(
        review_queue, "is_sampled_for_review", lambda uuid, secret: uuid.int % 2 == 0
    )
    for number in range(12):
        example = write(nli, bob, number)
        Validation.objects.create(example=example, validator=people[0], label="neutral")
    rederive(round=nli, policy=Policy("plurality"))
    wanted = [e.pk for e in Example.objects.order_by("pk") if e.uuid.int % 2 == 0]
    for looked_at in (1, 3, 1000):
        monkeypatch.setattr(review_queue, "MAX_SCANNED_EXAMPLES", looked_at)
        after, pages = 0, []
        while after is not None:
            page = get_review_page([nli], Kind.ALL, after, size=2)
            assert len(page.items) <= 2
            pages += [item.pk for item in page.items]
            after = page.after
        assert pages == wanted


@pytest.fixture
def split(nli, bob, people):
    """An example that two of three found neutral, as its author says."""
    return judged(nli, bob, people, "neutral", "neutral", "entailment")


def test_the_label_stands_apart_from_the_text(as_alice, split):
    """The list has the author's text as its link, and the label in a column of its own."""
    page = as_alice.get(URL)
    for _item, written in page.context["rows"]:
        assert written.answer
        assert written.answer not in written.text
        assert f">{written.answer}</td>" in page.text
    assert summarise_inputs(split.round.task.config, {"label": "neutral"}).answer == ""


def test_an_example_shows_all_that_is_known_and_no_identity(as_alice, split, people, bob):
    answered(split, "entailment")
    panel = Annotator.objects.create(pseudonym="nli:A1WORKERID", source="import")
    Validation.objects.create(
        example=split, validator=panel, verdict="flagged", flag_reason="copied", comment="Seen it"
    )
    page = as_alice.get(f"{URL}{split.uuid}/").text
    assert "Statement 0." in page
    assert "Person" in page  # the context
    assert f"target-{split.pk} said <em>definitely true</em>" in page
    assert get_annotator(bob).pseudonym in page
    assert str(Validation.FlagReason.COPIED.label) in page
    assert "Seen it" in page
    assert people[0].pseudonym in page
    assert get_shown_name(panel) in page
    assert "A1WORKERID" not in page
    assert bob.email not in page
    assert f"<strong>{split.round.task.config.display('label', 'neutral')}</strong>" in page


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "htmx"])
def test_a_decision_counts_and_the_next_example_comes(
    as_alice, alice, nli, bob, people, split, headers
):
    following = judged(nli, bob, people, "neutral", "neutral", "entailment", number=1)
    form = {"answer": "label:entailment", "reason": "Read the passage again."}
    url = f"{URL}{split.uuid}/?kind=split"
    response = as_alice.post(url, form, follow=not headers, **headers)
    assert response.status_code == 200
    heading = re.search("<h1[^>]*>", response.text)[0]
    assert str(following.uuid) in heading
    assert response.context["title"] == "Statement 1."
    assert "autofocus" in heading
    if headers:
        assert response["HX-Push-Url"] == f"{URL}{following.uuid}/?kind=split"
    decision = OwnerDecision.objects.get()
    assert (decision.label, decision.reason) == ("entailment", "Read the passage again.")
    assert (decision.owner, decision.example) == (alice, split)
    consensus = Consensus.objects.get(example=split)
    assert (consensus.label, consensus.decided_by) == ("entailment", "owner")
    assert not consensus.is_verified
    assert found(nli, Kind.SPLIT) == [following.pk]
    assert found(nli, Kind.OWNER) == [split.pk]


def test_the_last_decision_leads_back_to_the_queue(as_alice, split):
    form = {"answer": "verdict:flagged"}
    response = as_alice.post(f"{URL}{split.uuid}/?round=1", form, follow=True)
    assert response.redirect_chain == [(f"{URL}?kind=all&round=1", 302)]
    response = as_alice.post(f"{URL}{split.uuid}/", form, **HTMX)
    assert response["HX-Redirect"] == f"{URL}?kind=all"


def test_withdrawing_a_decision_lets_the_votes_decide(as_alice, alice, split):
    override_consensus(example=split, owner=alice, choice=Vote("entailment"), reason="No.")
    page = as_alice.get(f"{URL}{split.uuid}/").text
    assert "/undecide/" in page
    page = as_alice.post(f"{URL}{split.uuid}/undecide/", follow=True).text
    assert "/undecide/" not in page
    assert OwnerDecision.objects.get().withdrawn_at is not None
    assert Consensus.objects.get().decided_by == "votes"
    again = as_alice.post(f"{URL}{split.uuid}/undecide/", **HTMX)
    assert again.status_code == 409


def test_what_is_wrong_in_the_form_is_said_and_the_text_survives(as_alice, split):
    response = as_alice.post(f"{URL}{split.uuid}/", {"reason": "Because it is so."})
    assert response.status_code == 422
    assert 'id="error-summary"' in response.text
    assert response.context["form"].errors
    assert "Because it is so." in response.text
    assert not OwnerDecision.objects.exists()


def test_an_example_is_withdrawn_with_a_reason(as_alice, alice, split, nli):
    url = f"{URL}{split.uuid}/withdraw/"
    assert 'name="reason"' in as_alice.get(url).text
    response = as_alice.post(url, {"reason": " "})
    assert response.status_code == 422
    assert not LogEntry.objects.filter(action="example.withdrawn").exists()
    assert as_alice.post(url, {"reason": "It names somebody."}).status_code == 302
    split.refresh_from_db()
    assert split.retracted_at is not None
    assert LogEntry.objects.get(action="example.withdrawn").data["reason"] == "It names somebody."
    assert found(nli) == []
    response = as_alice.post(f"{URL}{split.uuid}/", {"answer": "label:neutral"})
    assert response.status_code == 409
    assert not OwnerDecision.objects.exists()


def test_texts_of_a_sensitive_task_are_folded_away(client, alice, hate, bob, people):
    TaskMember.objects.create(task=hate.task, user=alice, role="owner")
    client.force_login(alice)
    inputs = {"text": "Words that hurt.", "label": "hate"}
    example = write(hate, bob, **inputs)
    for person, label in zip(people, ("hate", "hate", "not-hate"), strict=False):
        Validation.objects.create(example=example, validator=person, label=label)
    rederive(round=hate, policy=Policy("plurality"))
    for url in ("/own/hate-speech/review/", f"/own/hate-speech/review/{example.uuid}/"):
        before, _, after = client.get(url).text.partition('<details class="shield">')
        assert "Words that hurt." not in before
        assert "Words that hurt." in after.partition("</details>")[0]
    for url in ("/own/hate-speech/review/", "/own/hate-speech/review/examples/"):
        assert 'href="?show=all"' in client.get(url).text
        assert '<details class="shield">' not in client.get(f"{url}?show=all").text


@pytest.mark.parametrize(("role", "refused"), [(None, 404), ("viewer", 403)])
def test_others_learn_nothing(client, nli, split, role, refused):
    stranger = UserFactory()
    if role:
        TaskMember.objects.create(task=nli.task, user=stranger, role=role)
    client.force_login(stranger)
    one = f"{URL}{split.uuid}/"
    for url in (URL, one, f"{one}next/", f"{one}withdraw/"):
        assert client.get(url).status_code == refused
    for url in (one, f"{one}undecide/", f"{one}gold/", f"{one}withdraw/"):
        data = {"answer": "label:neutral", "reason": "Mine"}
        assert client.post(url, data).status_code == refused
    assert not OwnerDecision.objects.exists()
    assert not Example.objects.filter(retracted_at__isnull=False).exists()


def test_another_tasks_example_is_not_there(as_alice, sentiment, bob, nli):
    example = write(sentiment, bob)
    assert as_alice.get(f"{URL}{example.uuid}/").status_code == 404


def test_a_decided_example_becomes_gold_and_is_none_again(as_alice, alice, split):
    url = f"{URL}{split.uuid}/gold/"
    form = {"explanation": "The passage leaves it open."}
    page = as_alice.post(url, form, follow=True).text
    assert "“The passage leaves it open.”" in page
    gold = Gold.objects.get()
    assert (gold.label, gold.made_by) == ("neutral", alice)
    page = as_alice.post(url, {"gold": "no"}, **HTMX).text
    assert 'name="explanation"' in page  # it can be one again
    assert not Gold.objects.exists()


def test_what_is_not_decided_is_no_gold(as_alice, nli, bob):
    example = write(nli, bob)
    assert 'name="explanation"' not in as_alice.get(f"{URL}{example.uuid}/").text
    response = as_alice.post(f"{URL}{example.uuid}/gold/", **HTMX)
    assert response.status_code == 409
    assert not Gold.objects.exists()
