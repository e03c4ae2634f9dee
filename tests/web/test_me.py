"""One's own work: what became of it, and nobody else's."""

import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone

from annotation.attempts.services import retract_example
from annotation.context_picking.services import pass_gate
from annotation.models import Example
from annotation.writing.page import build_result_panel
from core.accounts.services import get_annotator
from dynabench.people.work import PAGE_SIZE
from leaderboard.models import WeeklyGoal
from leaderboard.people.activity import (
    count_weeks,
    count_work_of_week,
    read_goals,
    sum_work_by_week,
)
from leaderboard.people.goals import WEEK, find_monday
from tests.support.factories import RoundFactory, TaskFactory, UserFactory
from tests.support.judging import answered, decide_many, judge, write, write_many
from tests.web.conftest import HTMX
from validation.consensus.consensus import Vote
from validation.consensus.sampling import is_judged
from validation.decisions.filter_forms import FilterForm
from validation.decisions.services import override_consensus
from validation.judging.queue import UNDO_TIME
from validation.judging.queue_services import fill_queue
from validation.models import Validation

URL = "/me/"


def decide(client, *labels, code="nli"):
    """Let other people judge what is there, each with a label."""
    for label in labels:
        client.force_login(UserFactory())
        judge(client, f"label:{label}", f"/t/{code}/judge/", **HTMX)


def row(client, url=URL):
    """The table of one's examples."""
    text = client.get(url).text
    return text[text.index('id="mine"') : text.index('id="judged"')]


def test_an_example_waits_and_then_is_valid(client, alice, nli):
    answered(write(nli, alice))
    client.force_login(alice)
    first = row(client)
    assert "Statement 0." in first
    assert ">waiting</span>" in first
    assert "data-judges" not in first
    assert "(target-" in first
    decide(client, "neutral", "entailment")
    client.force_login(alice)
    assert "2 of 4" in row(client)
    assert "chose" not in row(client)  # nobody's vote is told before it is decided
    decide(client, "neutral", "neutral")
    client.force_login(alice)
    done = row(client)
    assert ">confirmed</span>" in done
    assert re.search("3 of 4 .* neither", done)
    assert re.search("1 of 4 .* definitely true", done)
    assert points(client) == ["4"]
    assert points_today(client) == "4"


def test_what_people_disagree_with_costs_a_point_but_no_day(client, alice, nli):
    write(nli, alice)
    decide(client, "entailment", "entailment", "entailment")
    client.force_login(alice)
    assert 'class="chip held"' in row(client)
    assert points(client) == ["-1"]
    assert points_today(client) == "0"


def points(client):
    """Points of the examples shown, newest first."""
    return re.findall(r'class="points"[^>]*>\s*(-?[\d.]+)', row(client))


def points_today(client):
    """The tile with the points of the day."""
    return re.search("Points today</dt><dd><strong>([^<]*)<", client.get(URL).text)[1]


def test_a_copy_earns_as_if_it_had_not_fooled(as_alice, alice, bob, nli):
    owner = UserFactory()
    theirs = write(nli, bob, hypothesis="Nobody waits for the ferry.", label="neutral")
    texts = ["Jonas owns a small boat.", "Jonas owns a small boat!", "Nobody waits for the ferry"]
    for number, text in enumerate(texts):
        example = write(nli, alice, number, hypothesis=text, label="neutral")
        if number == 2:
            Example.objects.filter(pk=example.pk).update(resembles=theirs)
        override_consensus(example=example, owner=owner, choice=Vote(label="neutral"))
    assert points(as_alice) == ["1", "1", "4"]


def test_tries_that_did_not_fool_do_not_make_the_next_a_copy(as_alice, alice, nli):
    owner = UserFactory()
    for number, outcome in enumerate(["not_fooled", "fooled"]):
        inputs = {"hypothesis": "Jonas owns a boat" + "." * number, "label": "neutral"}
        example = write(nli, alice, number, outcome=outcome, **inputs)
        override_consensus(example=example, owner=owner, choice=Vote(label="neutral"))
    assert points(as_alice) == ["4", "1"]


def test_a_rare_label_is_worth_more(as_alice, alice, bob, nli):
    owner = UserFactory()
    for number in range(5):
        example = write(nli, bob, number)
        override_consensus(example=example, owner=owner, choice=Vote(label="neutral"))
    rare = write(nli, alice, outcome="not_fooled", hypothesis="It is.", label="entailment")
    override_consensus(example=rare, owner=owner, choice=Vote(label="entailment"))
    assert points(as_alice) == ["1.5"]  # one of six where two would be its share


def test_comments_come_without_names(client, alice, nli):
    example = write(nli, alice)
    for number in range(3):
        judge_ = UserFactory()
        client.force_login(judge_)
        client.get("/t/nli/judge/")
        reason = {"flag_reason": "other", "flag_comment": f"No sense {number}."}
        client.post("/t/nli/judge/flag/", {"example": example.uuid, **reason}, **HTMX)
    client.force_login(alice)
    text = row(client)
    assert "3 of 3" in text
    assert all(f"No sense {number}." in text for number in range(3))
    names = Validation.objects.values_list("validator__pseudonym", flat=True)
    assert not any(name in text for name in names)


def test_the_owner_may_say_why(client, alice, bob, nli):
    example = write(nli, alice)
    reason = "The passage never says when."
    override_consensus(example=example, owner=bob, choice=Vote(label="entailment"), reason=reason)
    client.force_login(alice)
    text = row(client)
    assert re.search(f"definitely true. {reason}", text)
    assert str(get_annotator(bob)) not in text
    assert bob.email not in text


def test_a_task_can_hide_its_models_here_too(as_alice, alice, nli):
    nli.show_target_name = False
    nli.save()
    answered(write(nli, alice))
    assert "(Model A)" in row(as_alice)
    assert "target-" not in row(as_alice)


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "htmx"])
@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", {"Waits", "Valid", "Wrong", "Gone", "Soup"}),
        ("?status=waiting", {"Waits", "Soup"}),
        ("?status=valid", {"Valid"}),
        ("?status=not-agreed", {"Wrong"}),
        ("?status=removed", {"Gone"}),
        ("?task=sentiment", {"Soup"}),
        ("?task=nli&status=waiting", {"Waits"}),
    ],
)
def test_filters(as_alice, alice, bob, nli, sentiment, query, shown, headers):
    texts = ("Waits", "Valid", "Wrong", "Gone")
    made = {
        text: write(nli, alice, n, hypothesis=f"{text} it.", label="neutral")
        for n, text in enumerate(texts)
    }
    override_consensus(example=made["Valid"], owner=bob, choice=Vote(label="neutral"))
    override_consensus(example=made["Wrong"], owner=bob, choice=Vote(label="entailment"))
    retract_example(example=made["Gone"])
    write(sentiment, alice, text="Soup it.", label="negative")
    response = as_alice.get(URL + query, **headers)
    # The card of the newest catch stands above the list, whatever the filter.
    listed = response.text.partition('id="mine"')[2] or response.text
    found = {text for text in (*texts, "Soup") if f"{text} it." in listed}
    assert found == shown
    assert ("<html" in response.text) == (not headers)
    if headers:
        assert f'innerHTML:#status">{len(shown)} example' in response.text


def test_pages_are_short(as_alice, alice, nli):
    write_many(nli, alice, ["fooled"] * (PAGE_SIZE + 5))
    text = row(as_alice)
    assert text.count("Statement ") == PAGE_SIZE
    assert f"Statement {PAGE_SIZE + 4}." in text
    oldest = min(nli.examples.order_by("-pk")[:PAGE_SIZE], key=lambda example: example.pk)
    assert f"after={oldest.pk}" in text
    older = row(as_alice, f"{URL}?after={oldest.pk}")
    assert older.count("Statement ") == 5
    assert "after-next" not in older


def test_only_ones_own(as_alice, alice, bob, nli):
    write(nli, bob)
    assert "Statement 0." not in as_alice.get(URL).text


def test_sensitive_text_is_folded_away_and_no_game(as_alice, alice, hate):
    write(hate, alice, text="They are here.", label="not-hate")
    text = row(as_alice)
    shield = text.index('<details class="shield">')
    assert shield < text.index("They are here.") < text.index("</details>", shield)
    page = as_alice.get(URL).text
    assert "/t/hate-speech/people/" not in page
    as_alice.post("/me/goal/", {"amount": 5})
    assert "0 of 5 this week" in as_alice.get(URL).text


def judged_with_others(me, round, count):
    """`count` decided examples that `me` judged as two others did."""
    author, *others = (get_annotator(UserFactory()) for _ in range(3))
    labels = [("neutral", "entailment", "contradiction")[n % 3] for n in range(count)]
    examples = write_many(round, author.user, ["fooled"] * count)
    Validation.objects.bulk_create(
        Validation(example=example, validator=validator, author=author, label=label)
        for example, label in zip(examples, labels, strict=True)
        for validator in (me, *others)
    )
    decide_many(examples, labels, author.user)
    Validation.objects.update(created_at=timezone.now() - UNDO_TIME - timedelta(seconds=1))


def test_agreement_is_told_in_total_and_late(as_alice, alice, nli):
    me = get_annotator(alice)
    judged_with_others(me, nli, 9)
    page = as_alice.get(URL).text
    assert "100.0%" in page
    assert '<td class="number">3</td>' in page  # points for each judgement
    assert "Statement" not in page
    recent = me.validations.order_by("pk")[:2].values("pk")
    Validation.objects.filter(pk__in=list(recent.values_list("pk", flat=True))).update(
        created_at=timezone.now()
    )
    page = as_alice.get(URL).text  # what can still be taken back is not compared
    assert "100.0%" not in page
    assert 'id="too-few-judged"' in page


def badges(client):
    text = client.get(URL).text
    shown = text[text.index('id="badges"') :]
    return {*re.findall('<li class="earned">.*?<strong>([^<]*)<', shown, re.DOTALL)}


def test_badges_are_for_variety_and_care(as_alice, alice, bob, nli):
    assert badges(as_alice) == set()
    owner = UserFactory()
    for number, label in enumerate(("neutral", "entailment", "contradiction")):
        example = write(nli, alice, number, hypothesis=f"It is {number}.", label=label)
        answered(example)
        override_consensus(example=example, owner=owner, choice=Vote(label=label))
        earned = badges(as_alice)
        assert "First catch" in earned
        assert ("Every label" in earned) == (number == 2)
        assert ("Two models" in earned) == (number > 0)
    judged_with_others(get_annotator(alice), RoundFactoryWithContext("nli-2"), 30)
    assert "Careful judge" in badges(as_alice)
    flagged = write(nli, bob, 9)
    Validation.objects.create(example=flagged, validator=get_annotator(alice), verdict="flagged")
    assert "Good eye" not in badges(as_alice)
    override_consensus(example=flagged, owner=owner, choice=Vote(verdict="flagged"))
    assert badges(as_alice) == {
        "First catch", "Every label", "Two models", "Careful judge", "Good eye"
    }  # fmt: skip


def test_of_the_badges_to_earn_one_is_next(as_alice, alice, nli):
    page = as_alice.get(URL)
    assert page.text.count('class="badge-mark"') == 1
    assert page.context["game"].next_badge.reached == 0
    example = write(nli, alice, label="neutral")
    override_consensus(example=example, owner=UserFactory(), choice=Vote(label="neutral"))
    game = as_alice.get(URL).context["game"]
    assert (game.next_badge.reached, game.next_badge.needed) == (1, 3)  # one label of three
    found = [*game.earned_badges, game.next_badge, *game.later_badges]
    assert {badge.name for badge in found} == {badge.name for badge in game.badges}


def test_the_task_with_the_newest_example_is_offered_while_it_is_open(as_alice, alice, bob, nli):
    def offered():
        page = as_alice.get(URL)
        assert ('id="write-another"' in page.text) is bool(page.context["to_write"])
        return page.context["to_write"]

    write(nli, bob)
    assert offered() is None
    write(nli, alice, 1)
    assert offered() == nli.task
    nli.state = "closed"
    nli.save()
    assert offered() is None


def RoundFactoryWithContext(code):
    """An open NLI round of another task."""
    from tests.support.factories import ContextFactory

    text = TaskFactory.build(code="nli").config_text
    return ContextFactory(round=RoundFactory(task=TaskFactory(code=code, config_text=text))).round


def test_no_badge_comes_from_a_sensitive_task(as_alice, alice, hate, bob):
    for number, label in enumerate(("hate", "not-hate")):
        example = write(hate, alice, number, text=f"They {number}.", label=label)
        override_consensus(example=example, owner=bob, choice=Vote(label=label))
    assert badges(as_alice) == set()


def test_ten_is_the_goal_until_one_is_set(as_alice, alice, nli):
    write(nli, alice)
    page = as_alice.get(URL)
    game = page.context["game"]
    assert (game.goal, game.is_default, game.share) == (10, True, 10)
    assert 'stroke-dasharray="10 100"' in page.text
    assert as_alice.get("/").context["steps"].goal == 10
    as_alice.post("/me/goal/", {"amount": 0})
    paused = as_alice.get(URL)
    assert 'id="week-paused"' in paused.text
    assert not paused.context["game"].is_default


def test_a_weekly_goal_and_its_pause(as_alice, alice, nli):
    this_week = find_monday(timezone.now().date())
    assert "of 2 this week" not in as_alice.get(URL).text
    response = as_alice.post("/me/goal/", {"amount": 2}, follow=True)
    assert response.status_code == 200
    write(nli, alice)
    WeeklyGoal.objects.update(week=this_week - WEEK)
    assert "1 of 2 this week" in as_alice.get(URL).text
    write(nli, alice, 1)
    assert 'id="weeks-in-a-row"' in as_alice.get(URL).text
    assert as_alice.get(URL).context["game"].week_streak == 1
    as_alice.post("/me/goal/", {"amount": 0})
    assert as_alice.get(URL).context["game"].goal == 0
    as_alice.post("/me/goal/", {"amount": 3})
    amounts = dict(get_annotator(alice).weekly_goals.values_list("week", "amount"))
    assert amounts == {this_week - WEEK: 2, this_week: 3}


@pytest.mark.parametrize("amount", ["", "-1", "501", "many"])
def test_a_goal_that_is_none_is_a_problem(as_alice, amount):
    response = as_alice.post("/me/goal/", {"amount": amount})
    assert response.status_code == 422
    assert 'id="error-summary"' in response.text
    assert "<title>Error: " in response.text
    assert f'value="{amount}"' in response.text or not amount
    assert not WeeklyGoal.objects.exists()


def test_paid_people_see_no_game(as_alice, alice, nli):
    me = get_annotator(alice)
    me.source = "prolific"
    me.save()
    write(nli, alice)
    page = as_alice.get(URL).text
    assert "Badges" not in page
    assert "Your week" not in page
    assert "/people/" not in page
    assert as_alice.post("/me/goal/", {"amount": 2}).status_code == 404
    assert 'id="switch-ranking"' not in as_alice.get("/account/").text


def test_today_counts_time_between_what_was_sent(as_alice, alice, nli):
    now = timezone.now().replace(hour=12)
    first, second = write(nli, alice), write(nli, alice, 1)
    for example, minutes in ((first, 20), (second, 8)):
        example.created_at = now - timedelta(minutes=minutes)
        example.save()
    pass_gate(annotator=get_annotator(alice), task=nli.task)
    today = as_alice.get(URL).context["today"]
    assert (today.tries, today.judged, today.minutes) == (2, 0, 12)


def test_signed_out_people_sign_in_first(client, db):
    for path in ("", "goal/", "data/", "data/download/", "data/delete/"):
        assert "/accounts/login/" in client.get(URL + path).url


@pytest.mark.parametrize(("share", "said"), [(0.2, "1 in 5"), (0.3, "30%"), (0, ""), (1, "")])
def test_only_what_is_or_will_be_in_the_queue_waits_for_judges(as_alice, alice, nli, share, said):
    task, config = nli.task, nli.task.config_text
    task.config_text = re.sub(r"judge_not_fooled: [\d.]+", f"judge_not_fooled: {share}", config)
    task.save()
    made = write_many(nli, alice, ["fooled"] * 2 + ["not_fooled"] * 30)
    kept = [one for one in made if not is_judged(one.uuid, one.outcome, share, settings.SECRET_KEY)]
    for _ in range(2):  # before anybody judged, and after
        counts = dict(re.findall(r"\?status=([\w-]+)#[^>]*>[^<]* (\d+)</a>", row(as_alice)))
        assert counts["waiting"] == str(32 - len(kept))
        assert counts.get("kept", "0") == str(len(kept))
        filters = {state: FilterForm(task, {"state": state}) for state in ("waiting", "kept")}
        assert all(one.is_valid() for one in filters.values())
        assert [*filters["kept"].select_examples()] == kept
        assert filters["waiting"].select_examples().count() == 32 - len(kept)
        shown = row(as_alice, f"{URL}?status=kept")
        words = re.findall(r'<span class="chip [^"]*">([^<]*)</span>', shown)
        assert len(words) == min(PAGE_SIZE, len(kept))
        assert all(said in one for one in words)
        fill_queue(round=nli)
    for one in (made[0], *kept[:1]):
        panel = build_result_panel(one)
        assert ('class="dots' in render_to_string("annotation/result/_votes.html", panel)) == (
            one == made[0]
        )
        assert bool(panel["kept_words"]) == (one != made[0])
        assert one == made[0] or said in panel["kept_words"]


def test_the_former_address_of_the_tasks_that_one_runs_leads_to_manage(as_alice):
    assert as_alice.get("/me/tasks/").url == "/manage/"


def test_what_was_decided_since_the_last_visit_is_new(as_alice, alice, bob, nli):
    example = write(nli, alice)
    answered(example)
    override_consensus(example=example, owner=bob, choice=Vote(label="neutral"))
    write(nli, alice, 1)
    for _view in range(2):  # of one visit
        news = as_alice.get(URL).context["news"]
        assert [(one.example, one.status_class) for one in news] == [(example, "fooled")]
    now = timezone.now()
    session = as_alice.session
    session["work-visit"]["last"] = (now - timedelta(hours=1)).isoformat()
    session.save()
    example.consensus.decided_at = now - timedelta(hours=2)
    example.consensus.save()
    assert as_alice.get(URL).context["news"] == []


def test_who_works_in_sensitive_tasks_alone_has_no_week_and_no_badge(as_alice, alice, nli):
    write(nli, alice)
    assert as_alice.get(URL).context["has_week"]
    task = nli.task
    warning = "content_warning: {text: Rude}"
    task.config_text = task.config_text.replace("content_warning: null", warning)
    task.save()
    assert not as_alice.get(URL).context["has_week"]


def test_a_week_is_counted_alike_at_once_and_among_others(
    as_alice, alice, bob, nli, django_assert_num_queries
):
    week, me = find_monday(timezone.now().date()), alice.annotator
    for number in range(3):
        write(nli, alice, number)
    retract_example(example=Example.objects.first())
    write_many(nli, bob, ["fooled"] * 2)
    judge(as_alice, "label:neutral")
    Example.objects.filter(pk=Example.objects.filter(annotator=me).last().pk).update(
        created_at=timezone.now() - WEEK
    )
    for begins, amount in ((week, 5), (week - WEEK, 3)):
        WeeklyGoal.objects.create(annotator=me, week=begins, amount=amount)
    for tasks in ([nli.task.pk], []):
        by_week = sum_work_by_week(count_weeks(me), tasks)
        with django_assert_num_queries(1):
            found = count_work_of_week(me, tasks, week)
        assert found == (by_week.get(week, 0), read_goals(me))
    assert count_work_of_week(me, [nli.task.pk], week)[0] == 2  # one written, one judged


def test_before_the_first_example_open_tasks_are_offered(as_alice, alice, nli, hate):
    """Not those whose texts may upset; afterwards there is one's own work instead."""
    page = as_alice.get(URL)
    assert [card.task.code for card in page.context["start"]] == ["nli"]
    assert 'id="start"' in page.text
    write(nli, alice)
    page = as_alice.get(URL)
    assert not page.context["start"]
    assert 'id="start"' not in page.text
