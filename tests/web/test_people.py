"""The ranking of people: who is in it, who sees it, in which order."""

import csv
import io

import pytest

from annotation.attempts.services import retract_example
from core.accounts.models import Annotator
from core.accounts.services import get_annotator
from tests.support.factories import TaskFactory, UserFactory
from tests.support.judging import decide_many, write, write_many
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus

URL = "/t/nli/people/"


def join(user):
    Annotator.objects.filter(user=user).update(in_ranking=True)
    user.annotator.refresh_from_db()
    return user.annotator


def tries(round, user, outcomes, verified=None):
    """Examples with these outcomes; the first `verified` of them are found valid."""
    found = write_many(round, user, outcomes)[:verified]
    decide_many(found, ["neutral"] * len(found), UserFactory())


def main_part(client):
    """The page without its header, which names whoever reads it."""
    return client.get(URL).text.partition('id="main"')[2]


def lines(client, url=URL):
    """The rows of the table as the CSV file has them."""
    return list(csv.reader(io.StringIO(client.get(url + "people.csv").text)))[1:]


def test_the_switch_is_on_the_account_page(as_alice, alice, nli):
    tries(nli, alice, ["fooled"])
    assert 'id="not-in-ranking"' in as_alice.get(URL).text
    assert 'name="on" value="1"' in as_alice.get("/account/").text
    response = as_alice.post("/account/ranking/", {"on": "1"}, follow=True)
    assert response.context["user"].annotator.in_ranking
    assert f"{get_annotator(alice)} (you)" in as_alice.get(URL).text
    as_alice.post("/account/ranking/", {"on": "0"})
    assert not Annotator.objects.filter(in_ranking=True).exists()
    assert as_alice.get("/account/ranking/").status_code == 405


def test_people_join_where_they_meet_the_ranking(as_alice, alice, nli):
    tries(nli, alice, ["fooled"])
    assert 'id="join-ranking"' in as_alice.get(URL).text
    joined = as_alice.post("/account/ranking/", {"on": "1", "next": URL})
    assert joined.headers["Location"] == URL
    assert 'id="join-ranking"' not in as_alice.get(URL).text
    elsewhere = as_alice.post("/account/ranking/", {"on": "1", "next": "https://evil.test/"})
    assert elsewhere.headers["Location"] == "/account/"


def test_only_those_who_chose_it_are_seen_and_see(as_alice, alice, bob, nli):
    carol = UserFactory()
    for user in (alice, bob, carol):
        tries(nli, user, ["fooled", "not_fooled"])
    join(bob)
    page = main_part(as_alice)
    assert not any(str(get_annotator(user)) in page for user in (alice, bob, carol))
    assert lines(as_alice) == []
    join(alice)
    assert {line[1] for line in lines(as_alice)} == {str(get_annotator(u)) for u in (alice, bob)}
    assert str(get_annotator(carol)) not in as_alice.get(URL).text
    assert alice.email not in main_part(as_alice)


def test_one_rate_orders_and_ties_share_a_rank(as_alice, alice, bob, nli):
    steady, even, other, lucky = (UserFactory() for _ in range(4))
    for user in (alice, bob, steady, even, other, lucky):
        join(user)
    tries(nli, lucky, ["fooled"])
    tries(nli, steady, ["fooled"] * 6 + ["not_fooled"] * 4)
    for user in (even, other):
        tries(nli, user, ["fooled"] * 2 + ["not_fooled"] * 2)
    tries(nli, alice, ["fooled"] * 4, verified=1)  # what is not found valid is a try
    tries(nli, bob, ["not_fooled"] * 3)
    found = [(rank, name, fooled, n) for rank, name, _, _, _, fooled, n in lines(as_alice)]
    names = sorted(str(get_annotator(user)) for user in (even, other))
    assert found == [
        ("1", str(get_annotator(steady)), "6", "10"),
        ("2", str(get_annotator(lucky)), "1", "1"),
        ("3=", names[0], "2", "4"),
        ("3=", names[1], "2", "4"),
        ("5", str(get_annotator(alice)), "1", "4"),
        ("6", str(get_annotator(bob)), "0", "3"),
    ]


def test_taking_back_what_failed_does_not_help(as_alice, alice, nli):
    join(alice)
    tries(nli, alice, ["fooled"])
    failed = write(nli, alice, 1, outcome="not_fooled")
    before = lines(as_alice)
    retract_example(example=failed)
    assert lines(as_alice) == before
    assert before[0][2] == "0.5000"


def test_what_no_model_answered_is_no_try(as_alice, alice, nli):
    join(alice)
    write(nli, alice, outcome="no_model")
    assert not as_alice.get(URL).context["places"]


def test_the_first_ten_and_neighbours(as_alice, alice, nli):
    for number in range(20):
        user = UserFactory()
        join(user)
        tries(nli, user, ["fooled"] * (25 - number) + ["not_fooled"] * number)
    join(alice)
    tries(nli, alice, ["fooled"] * 9 + ["not_fooled"] * 17)  # the 18th
    ranks = [line[0] for line in lines(as_alice)]
    assert ranks[:10] == [str(n) for n in range(1, 11)]
    assert len(ranks) == 10 + 7
    assert "…" in as_alice.get(URL).text


def test_sensitive_and_hidden_tasks_and_paid_people_have_none(as_alice, alice, nli, hate):
    assert as_alice.get("/t/hate-speech/people/").status_code == 404
    assert 'href="/t/hate-speech/people/"' not in as_alice.get("/t/hate-speech/").text
    assert as_alice.get("/t/hate-speech/people/people.csv").status_code == 404
    me = join(alice)
    tries(nli, alice, ["fooled"])
    Annotator.objects.update(source="prolific")
    assert as_alice.get(URL).status_code == 404
    Annotator.objects.filter(pk=me.pk).update(source="site")
    other = join(UserFactory())
    tries(nli, other.user, ["fooled"])
    Annotator.objects.filter(pk=other.pk).update(source="prolific")
    assert [line[1] for line in lines(as_alice)] == [me.pseudonym]
    TaskFactory._meta.model.objects.filter(code="nli").update(is_visible=False)
    assert as_alice.get(URL).status_code == 404


def test_the_team_counts_different_passages(as_alice, alice, bob, nli):
    contexts = list(nli.contexts.all())
    for number, context in enumerate([contexts[0], contexts[0], contexts[1]]):
        example = write(nli, alice, number)
        example.context = context
        example.save()
        override_consensus(example=example, owner=bob, choice=Vote(label="neutral"))
    assert '<progress max="10" value="2"' in as_alice.get(URL).text


@pytest.mark.parametrize("path", ["", "people.csv"])
def test_signed_out_people_sign_in_first(client, nli, path):
    assert "/accounts/login/" in client.get(URL + path).url
