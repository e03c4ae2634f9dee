"""The chance with which people were asked, in exports, releases and the API."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json
from math import fsum

import pytest

from annotation.models import Example
from core.accounts.services import get_annotator
from tests.support.factories import UserFactory
from tests.support.gold_items import voted
from tests.support.judging import write
from tests.support.releases import content, lines, released
from tests.support.sampled_rounds import EXAMPLES, sampled  # noqa: F401
from tests.support.task_reports import report
from validation.consensus.consensus import Vote
from validation.decisions.services import derive_round, override_consensus
from validation.models import VoteDraw

COLUMNS = ("people_probability", "people_drawn", "judge_score")


def export(client):
    response = client.get("/own/nli/rounds/1/export.jsonl")
    return [json.loads(line) for line in b"".join(response.streaming_content).splitlines()]


def estimate_catch_rate(rows):
    """A stranger's estimate from exported rows, by docs/statistics.md "Fewer votes"."""
    known = [row for row in rows if row["model_wrong"] is False]
    others = [row for row in rows if row["model_wrong"] is not False]
    drawn = [row for row in others if row["people_drawn"]]
    weights = [1 / row["people_probability"] for row in drawn]
    size = len(known) + fsum(weights)
    catches = fsum(w for w, row in zip(weights, drawn, strict=True) if row["validated"])
    ratio, mean_size = catches / size, size / len(rows)
    # (y - R x) / mean of x, of the drawn; of a known one y is 0.
    differences = [(row["validated"] - ratio) / mean_size for row in drawn]
    judge = [row["judge_score"] for row in drawn]
    total = fsum(weights)
    judge_mean = fsum(w * j for w, j in zip(weights, judge, strict=True)) / total
    mean = fsum(w * d for w, d in zip(weights, differences, strict=True)) / total
    triples = list(zip(weights, judge, differences, strict=True))
    slope = fsum(w * (j - judge_mean) * (d - mean) for w, j, d in triples)
    slope /= fsum(w * (j - judge_mean) ** 2 for w, j, _ in triples)
    expected = [mean + slope * (row["judge_score"] - judge_mean) for row in others]
    expected += [-ratio / mean_size] * len(known)
    misses = [w * (d - mean - slope * (j - judge_mean)) for w, j, d in triples]
    return ratio + (fsum(expected) + fsum(misses)) / len(rows)


def test_a_stranger_recomputes_the_catch_rate_from_an_export(sampled, as_alice):
    rows = export(as_alice)
    assert len(rows) == EXAMPLES + 6
    draws = {str(draw.example.uuid): draw for draw in VoteDraw.objects.select_related("example")}
    for row in rows:
        draw = draws.get(row["uid"])
        found = tuple(row[name] for name in COLUMNS)
        assert found == ((draw.chance, draw.is_drawn, draw.judge_score) if draw else (None,) * 3)
    assert any(row["people_drawn"] is False for row in rows)
    expected = report("nli")["rounds"][0]["vmer"]["value"]
    assert estimate_catch_rate(rows) == pytest.approx(expected, abs=1e-9)


def test_an_owners_choice_is_marked_as_no_part_of_the_sample(sampled, as_alice, alice):
    before = estimate_catch_rate(export(as_alice))
    left_out = Example.objects.filter(vote_draw__is_drawn=False).first()
    override_consensus(example=left_out, owner=alice, choice=Vote("neutral"))
    rows = export(as_alice)
    (row,) = [row for row in rows if row["uid"] == str(left_out.uuid)]
    assert (row["validated"], row["people_drawn"]) == (True, False)
    assert estimate_catch_rate(rows) == pytest.approx(before)


def test_a_release_tells_the_chances_and_how_to_use_them(sampled):
    sampled.state = "closed"
    sampled.save()
    dataset = released(sampled, dev=1, test=1)
    rows = [row for split in ("train", "dev", "test") for row in lines(dataset, split)]
    draws = VoteDraw.objects.in_bulk([draw.pk for draw in VoteDraw.objects.all()])
    by_uid = {str(one.uuid): draws.get(one.pk) for one in Example.objects.all()}
    assert rows
    for row in rows:
        draw = by_uid[row["uid"]]
        assert row["people_probability"] == (draw.chance if draw else None)
    card = content(dataset, "README.md").decode()
    assert all(f"`{name}`" in card for name in COLUMNS)
    assert "add up 1 ÷ `people_probability`" in card


def test_a_card_of_a_round_without_a_sample_explains_no_weights(nli):
    people = [UserFactory() for _ in range(3)]
    for number in range(4):
        voted(write(nli, UserFactory(), number), *[Vote("neutral")] * 3, by=people)
    derive_round(round=nli)
    nli.state = "closed"
    nli.save()
    dataset = released(nli, dev=1, test=1)
    card = content(dataset, "README.md").decode()
    assert "add up 1 ÷ `people_probability`" not in card
    assert {row["people_probability"] for row in lines(dataset, "train")} <= {None}


def test_members_read_the_draw_in_the_api_and_authors_do_not(sampled, as_alice, client):
    found = as_alice.get("/api/v1/tasks/nli/rounds/1/examples/").json()["results"]
    draws = {str(draw.example.uuid): draw for draw in VoteDraw.objects.select_related("example")}
    assert found
    for example in found:
        draw = draws.get(example["id"])
        if draw is None:
            assert example["people_draw"] is None
        else:
            values = example["people_draw"]
            assert (values["chance"], values["is_drawn"]) == (draw.chance, draw.is_drawn)
            assert (values["judge_score"], values["reason"]) == (draw.judge_score, draw.reason)
    own = Example.objects.filter(vote_draw__isnull=False).first()
    client.force_login(own.annotator.user)
    assert get_annotator(own.annotator.user) == own.annotator
    assert client.get(f"/api/v1/examples/{own.uuid}/").json()["people_draw"] is None
    mine = client.get("/api/v1/me/examples/").json()["results"]
    assert {example["people_draw"] for example in mine} == {None}
