"""Criteria of an example, from the configuration to the release."""

import json

import pytest

from annotation.models import Assignment, Example, TargetOutput
from dynabench.people.export import export_person
from tasks.config.loading import load_config
from tasks.models import Round
from tasks.rounds.loop import RoundError
from tasks.rounds.states import set_round_state
from tests.support import criteria, talks
from tests.support.criteria import CRITERIA, judge, number, open_task, write
from tests.support.factories import ContextFactory, UserFactory, scripted_target
from tests.support.field_walk import released
from tests.support.writing import ok, signed_in
from tests.web.conftest import HTMX
from validation.consensus.consensus import Policy
from validation.decisions.consensus_rows import derive_consensus_of_all
from validation.decisions.replay import replay_policy
from validation.models import Consensus, Validation


@pytest.fixture
def advice(db, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return open_task()


def test_criteria_go_from_the_page_to_the_release(advice, alice):
    round, _ = advice
    author = signed_in(alice)
    page = write(author)
    example = Example.objects.get()
    assert example.inputs["checks"] == CRITERIA
    assert example.outcome == "undecided"
    assert page.text.count('name="criterion-') == 6  # met and not met, for three

    # The author says which are met: 3 of 5 points are enough here.
    answer = f"/attempt/{example.uuid}/answer/"
    incomplete = author.post(answer, number("met", "not_met"))
    assert incomplete.status_code == 422
    assert Example.objects.get().outcome == "undecided"
    page = ok(author.post(answer, number("not_met", "met", "not_met"), follow=True))
    example.refresh_from_db()
    assert (example.outcome, example.decided_by) == ("fooled", "author")
    output = TargetOutput.objects.get()
    assert (output.score, output.fooled) == (0.4, True)
    assert output.judgements == ["not_met", "met", "not_met"]
    assert 'id="criteria-said"' in page.text

    # Two people judge each, blind; the model's answer is there, the author's judgements are not.
    judges = [signed_in(UserFactory()) for _ in range(3)]
    page = ok(judges[0].get("/t/advice/judge/"))
    assert page.text.count('name="criterion-') == 9
    assert criteria.REPLY in page.text
    assert "criteria-said" not in page.text
    ok(judge(judges[0], example, "not_met", "met", "not_met"))
    consensus = Consensus.objects.get()
    assert (consensus.state, consensus.still_needed) == ("undecided", 1)
    ok(judge(judges[1], example, "met", "met", "not_met"))
    ok(judge(judges[2], example, "not_met", "cannot_tell", "not_met"))
    consensus.refresh_from_db()
    assert consensus.judgements == ["not_met", "met", "not_met"]
    assert (consensus.state, consensus.verdict, consensus.score) == ("decided", "incorrect", 0.4)
    assert consensus.is_verified
    assert consensus.is_validated_error
    votes = list(Validation.objects.order_by("pk").values_list("verdict", flat=True))
    assert votes == ["incorrect", "correct", "incorrect"]

    # The release has each criterion with what everybody said of it.
    round.state = "closed"
    round.save()
    row, card = released(round)
    assert row["criteria_score"] == 0.4
    first = row["criteria"][0]
    assert (first["text"], first["points"], first["author"]) == ("Names a dose", 3, "not_met")
    assert (first["consensus"], first["met"], first["not_met"]) == ("not_met", 1, 2)
    assert [kind for _, kind, _ in first["judgements"]] == ["user"] * 3
    assert {name for *_, name in first["judgements"]} == {name for *_, name in row["validations"]}
    assert row["criteria"][1]["cannot_tell"] == 1
    assert "`criteria`" in card
    with round.datasets.get().files.get(name="benchmark_card.json").file.open() as file:
        methodology = json.loads(file.read())["benchmark_card"]["methodology"]
    assert len(methodology["validation"]) == 6
    assert "`checks` in `input_json`" in card


def claim(author, example, *judgements):
    """What the author says on the page."""
    return ok(author.post(f"/attempt/{example.uuid}/answer/", number(*judgements), follow=True))


@pytest.fixture
def judged(advice, alice):
    """An example that three people have judged, and its round's owner."""
    round, owner = advice
    author = signed_in(alice)
    write(author)
    example = Example.objects.get()
    claim(author, example, "not_met", "met", "not_met")
    for judgements in (
        ("not_met", "met", "not_met"),
        ("met", "met", "not_met"),
        ("not_met", "cannot_tell", "not_met"),
    ):
        ok(judge(signed_in(UserFactory()), example, *judgements))
    return round, example, signed_in(owner)


def test_its_numbers_are_on_pages_and_in_the_api(judged):
    _, example, as_owner = judged
    review = ok(as_owner.get(f"/own/advice/review/{example.uuid}/"))
    rows = [(row.text, row.points, list(row.counts)) for row in review.context["criteria"]]
    assert rows[0] == ("Names a dose", 3, [1, 2, 0])
    assert rows[1] == ("Sends them to a doctor", 2, [2, 0, 1])
    assert 'id="criteria"' in review.text
    for path in ("/t/advice/data/", "/own/advice/"):
        assert 'data-tile="criteria-agreement"' in ok(as_owner.get(path)).text
    (numbers,) = ok(as_owner.get("/api/v1/tasks/advice/statistics/")).json()["rounds"]
    assert (numbers["criteria_judged"], numbers["criteria_decided"]) == (3, 3)
    assert numbers["criteria_judgements"] == 9
    met, score = numbers["criteria_met_share"], numbers["criteria_score"]
    assert (met["value"], met["n"]) == (0.5, 2)  # the third has negative points
    assert (score["value"], score["n"]) == (0.4, 1)
    assert numbers["criteria_unclear_share"]["value"] == pytest.approx(1 / 9)
    assert numbers["criteria_author_share"]["value"] == 1
    assert numbers["criteria_krippendorff_alpha"] is not None
    (row,) = ok(as_owner.get("/t/advice/numbers.json")).json()["rounds"]
    assert row["criteria_score"]["value"] == 0.4


def test_members_read_each_judgement_in_the_api_and_strangers_none(judged, alice, client):
    _, example, as_owner = judged
    address = "/api/v1/tasks/advice/rounds/1"
    votes = ok(as_owner.get(f"{address}/validations/")).json()["results"]
    assert sorted(vote["criteria"][0] for vote in votes) == ["met", "not_met", "not_met"]
    (found,) = ok(as_owner.get(f"{address}/examples/")).json()["results"]
    assert found["consensus"]["criteria"] == ["not_met", "met", "not_met"]
    assert found["consensus"]["score"] == 0.4
    assert found["answers"][0]["criteria"] == ["not_met", "met", "not_met"]
    for stranger in (client, signed_in(UserFactory())):
        for path in ("validations", "examples"):
            assert stranger.get(f"{address}/{path}/").status_code in (401, 403, 404)
        assert stranger.get(f"/own/advice/review/{example.uuid}/").status_code in (302, 403, 404)


def test_programs_write_answer_and_judge_by_the_same_rules(advice, alice):
    round, _ = advice
    task = round.task
    task.config_text = criteria.build_text(programs={"write": True, "judge": True})
    task.save()
    author = signed_in(alice)
    start = {"want": "current"}
    url = "/api/v1/tasks/advice/assignment/"
    assignment = author.post(url, start, content_type="application/json").json()["id"]
    inputs = {
        "question": "What helps?",
        "checks": ["Names a dose", {"text": "Is kind", "points": 2}],
    }
    address = f"/api/v1/assignments/{assignment}/examples/"
    wrong = author.post(
        address, {"inputs": inputs | {"checks": ["a"] * 11}}, content_type="application/json"
    )
    assert wrong.status_code == 422
    assert "checks" in wrong.text
    made = author.post(address, {"inputs": inputs}, content_type="application/json")
    assert made.status_code == 201, made.text
    example = Example.objects.get()
    assert example.inputs["checks"][0] == {"text": "Names a dose", "points": 1}
    answer = f"/api/v1/examples/{example.uuid}/answer/"
    for body, field in (
        ({"model_right": True}, "model_right"),
        ({"criteria": ["met"]}, "criteria"),
        ({"criteria": ["met", "cannot_tell"]}, "criteria"),
        ({}, "criteria"),
    ):
        refused = author.post(answer, body, content_type="application/json")
        assert refused.status_code == 422, refused.text
        assert field in refused.text
    body = {"criteria": ["met", "not_met"]}
    ok(author.post(answer, body, content_type="application/json"))
    example.refresh_from_db()
    assert example.outcome == "fooled"

    bob = signed_in(UserFactory())
    item = bob.post("/api/v1/tasks/advice/judging/next/", content_type="application/json").json()
    assert item["criteria"] == ["Names a dose", "Is kind"]
    assert [choice["vote"] for choice in item["choices"]] == ["verdict:flagged"]
    assert "checks" not in item["inputs"]
    address = f"/api/v1/examples/{example.uuid}/validations/"
    for body in (
        {"vote": "verdict:correct"},
        {"criteria": ["met"]},
        {"criteria": ["met", "maybe"]},
        {"criteria": ["met", "met"], "vote": "verdict:correct"},
        {},
    ):
        refused = bob.post(address, body, content_type="application/json")
        assert refused.status_code == 422, refused.text
    assert not Validation.objects.exists()
    body = {"criteria": ["met", "cannot_tell"]}
    made = bob.post(address, body, content_type="application/json")
    assert made.status_code == 201, made.text
    assert (made.json()["vote"], made.json()["criteria"]) == (
        "verdict:cannot_tell",
        ["met", "cannot_tell"],
    )


def test_the_field_shows_two_criteria_in_place_of_help_below_it(advice, alice):
    page = signed_in(alice).get("/t/advice/write/").content.decode()
    examples = [
        area.partition('placeholder="')[2].partition('"')[0] for area in page.split("<textarea")
    ]
    lines = "".join(examples).strip().splitlines()
    assert len(lines) == 2
    assert all(" = " in line for line in lines)


def test_a_hostile_author_is_told_what_is_wrong_and_stores_nothing(advice, alice):
    author = signed_in(alice)
    ok(author.get("/t/advice/write/"))
    for lines in (
        "\n".join(f"c{place}" for place in range(10_000)),
        "Names a dose\nnames  a  DOSE",
        " \n ",
        "Recommends an antibiotic = -5",
        "x" * 501,
        "Names a dose = 99",
    ):
        page = author.post("/t/advice/write/", _form(lines))
        assert page.status_code == 422
        assert 'id="id_checks_error"' in page.text
    assert not Example.objects.exists()


def _form(lines):
    return {
        "assignment": Assignment.objects.get().pk,
        "goal": "",
        "question": "What helps?",
        "checks": lines,
        "attempt_key": criteria.KEY,
    }


def test_markup_in_a_criterion_is_shown_as_it_was_typed(advice, alice):
    author = signed_in(alice)
    page = write(author, lines="<script>alert(1)</script> & <b>bold</b>")
    example = Example.objects.get()
    assert example.inputs["checks"][0]["text"] == "<script>alert(1)</script> & <b>bold</b>"
    pages = [page, ok(signed_in(UserFactory()).get("/t/advice/judge/"))]
    claim(author, example, "not_met")
    pages.append(ok(author.get(f"/attempt/{example.uuid}/")))
    for one in pages:
        assert "<script>alert" not in one.text
        assert "<b>bold" not in one.text
    assert "&lt;b&gt;bold" in pages[-1].text


def test_judges_see_neither_points_nor_what_the_author_said(advice, alice):
    author = signed_in(alice)
    write(author)
    example = Example.objects.get()
    claim(author, example, "not_met", "met", "not_met")
    page = ok(signed_in(UserFactory()).get("/t/advice/judge/"))
    assert "Names a dose" in page.text
    assert "Names a dose (3" not in page.text
    assert "checked" not in page.text.partition('id="criteria-vote"')[2].partition("</form>")[0]


def test_a_judge_leaves_no_criterion_out_and_may_flag_the_whole(advice, alice):
    author = signed_in(alice)
    write(author)
    example = Example.objects.get()
    claim(author, example, "not_met", "met", "not_met")
    client = signed_in(UserFactory())
    ok(client.get("/t/advice/judge/"))
    incomplete = judge(client, example, "met", "met")
    assert incomplete.status_code == 422
    assert 'id="id_criterion-3_error"' in incomplete.text
    assert incomplete.text.count(" checked") == 2  # what was answered stays
    assert not Validation.objects.exists()
    flag = {"example": example.uuid, "flag_reason": "unclear", "flag_comment": ""}
    ok(client.post("/t/advice/judge/flag/", flag, follow=True))
    assert Validation.objects.get().verdict == "flagged"
    assert Validation.objects.get().judgements is None


def test_a_round_of_criteria_has_exactly_one_model(advice):
    round, _ = advice
    Round.objects.filter(pk=round.pk).update(state="released")
    second = Round.objects.create(task=round.task, number=2)
    ContextFactory(round=second, fields={"topic": "A cough."})
    with pytest.raises(RoundError):
        set_round_state(round=second, state="open", actor=None)
    scripted_target(second, name="one", output={"reply": "a"})
    scripted_target(second, name="two", output={"reply": "a"})
    with pytest.raises(RoundError):
        set_round_state(round=second, state="open", actor=None)


def test_a_person_gets_their_own_judgements(judged):
    _, example, _ = judged
    author = json.loads("".join(export_person(example.annotator.user, example.annotator)))
    (written,) = author["examples"]
    assert written["answers"][0]["judgements"] == ["not_met", "met", "not_met"]
    assert written["judged"]["score"] == 0.4
    voter = Validation.objects.order_by("pk")[2].validator
    (vote,) = json.loads("".join(export_person(voter.user, voter)))["judgements"]
    assert vote["judgements"] == ["not_met", "cannot_tell", "not_met"]


def test_another_policy_decides_each_criterion_again(judged):
    round, *_ = judged
    (found,) = replay_policy(round, Policy("at-least", 2, 3))
    assert (found.decision.verdict, found.status.is_verified) == ("incorrect", True)
    (found,) = replay_policy(round, Policy(needed=3))
    assert found.decision.state == "undecided"
    before = Consensus.objects.get().judgements
    derive_consensus_of_all([Example.objects.select_related("round__task").get()])
    assert Consensus.objects.get().judgements == before


def test_a_conversation_can_have_criteria(db, alice, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    config = talks.CONFIG | {
        "input": [talks.CONFIG["input"][0], criteria.FIELD],
        "verdict": {"type": "criteria", "field": "checks", "score": "all"},
        "validation": {"corrections": True, "votes": {"needed": 1}},
    }
    talks.opened(config)
    assert load_config(json.dumps(config)).model_fields == ("passage", "talk")
    author = signed_in(alice)
    ok(talks.say(author, "When did it close?", **HTMX))
    ok(author.get(talks.URL))
    sent = {name: talks.hidden(author, name) for name in ("attempt_key", "assignment")}
    ok(author.post(talks.URL, sent | {"goal": "", "talk": 1, "checks": "Says 1941"}, **HTMX))
    example = Example.objects.get()
    assert example.outcome == "undecided"
    claim(author, example, "not_met")
    example.refresh_from_db()
    assert example.outcome == "fooled"
    page = ok(signed_in(UserFactory()).get("/t/talks/judge/"))
    assert page.text.count('name="criterion-1"') == 3
    assert "When did it close?" in page.text
