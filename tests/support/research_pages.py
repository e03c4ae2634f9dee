"""Tasks that fill the pages for researchers: rulers, adversaries, studies, samples, bonuses.

Each function makes a world, and returns the person who sees its pages, and their paths by name.
"""

from dataclasses import asdict
from datetime import timedelta

from allauth.account.models import EmailAddress
from django.test import Client
from django.utils import timezone

from annotation.models import Example
from core.accounts.models import User
from dynabench.adversaries.models import AdversaryRun, AdversaryTry
from dynabench.adversaries.services import create_adversary
from dynabench.campaigns.models import Place
from dynabench.mixed_rounds.services import set_arm_shares
from evaluation.models import EvaluationRun, ItemProperty, LeakTrial, ShortEvaluation, Submission
from evaluation.runs.chat.settings import make_chat_settings
from evaluation.runs.item_services import refresh_item_properties
from leaderboard.board.services import store_first_models
from tasks.models import Round, TargetModel, TaskMember
from tests.support.adversaries import (
    SCRIPT,
    make_adversary,
    options_of,
    run_to_its_end,
    sentiment_round,
)
from tests.support.campaigns import open_campaign, take_part
from tests.support.chat_models import PRICES
from tests.support.containers import with_image
from tests.support.evaluations import accepted_model
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.judged_rounds import finish_round
from tests.support.judging import write_many
from tests.support.mixed_rounds import DRAFT
from tests.support.rulers import let_answer, make_ruler, make_sets
from tests.support.study_drafts import begin, send, work_off, write_case_file
from tests.support.talks import opened
from tests.support.weak_spots import write_against_target
from tests.support.writing_aids import generator
from validation.consensus.consensus import Vote
from validation.consensus.vote_draws import DrawRule
from validation.decisions.services import override_consensus
from validation.judging.draw_services import change_draw
from validation.judging.judge_models import ask_judge_models

ARMS = ("people", "helped", "drafts")
Pages = tuple[User, dict[str, str]]


def own(task, user=None) -> User:
    """Make somebody the task's owner and return them."""
    user = user or UserFactory()
    TaskMember.objects.create(task=task, user=user, role=TaskMember.Role.OWNER)
    return user


def make_ruled_task() -> Pages:
    """A task whose 24 models are on a ruler, with properties of items, leaks and estimates."""
    task = TaskFactory(code="nli", name="Natural language inference")
    owner = own(task)
    held, first, second = make_sets(task, size=24)
    models = let_answer(task, [held, first, second], 20, harder=0.8)
    let_answer(task, [held, first], 1, first=20)
    make_ruler(task, owner, answers_public=True)
    now = timezone.now()
    Round.objects.filter(task=task).update(closed_at=now - timedelta(days=90))
    for place, model in enumerate(Submission.objects.filter(task=task).order_by("name")):
        moment = now - timedelta(days=80 - 3 * place)
        Submission.objects.filter(pk=model.pk).update(queued_at=moment)
    refresh_item_properties(first)
    items = ItemProperty.objects.filter(fit__version=first)
    items.filter(position=3).update(has_drifted=True, drift=1.4, drift_error=0.3)
    items.filter(position=9).update(has_drifted=True, drift=-1.2, drift_error=0.3)
    items.filter(position=5).update(label_may_be_wrong=True)
    judged = {"votes": 5, "people_wrong": 0.2, "people_wrong_low": 0.04, "people_wrong_high": 0.6}
    ambiguous = {"ambiguity": 0.3, "ambiguity_low": 0.1, "ambiguity_high": 0.5}
    items.filter(position__lt=16).update(**judged, **ambiguous)
    try_leaks(models, first, held)
    chat = estimate_in_short(task, owner, first)
    store_first_models(task=task)
    return owner, {
        "ruler": "/own/nli/ruler/",
        "one-ruler": "/t/nli/leaderboard/?ruler=1",
        "rounds-worn": "/t/nli/leaderboard/rounds/",
        "items-drifted": "/own/nli/evaluation-sets/round-1/v1/items/?order=drifted",
        "leaks": "/t/nli/leaderboard/training-dates/",
        "model-leak": f"/m/{models[1].pk}/",
        "model-short": f"/m/{chat.pk}/",
        "short": f"/m/{chat.pk}/short/",
    }


def try_leaks(models, released, held) -> None:
    """Store a trial with a leak, one without, and one of too few examples."""
    run_of = {
        (run.submission_id, run.version_id): run for run in EvaluationRun.objects.order_by("pk")
    }
    numbers = [(0.18, 0.04, 60.0), (0.01, 0.03, 60.0), (None, None, None)]
    for model, (difference, error, freedom) in zip(models[1:], numbers, strict=False):
        LeakTrial.objects.create(
            round=released.evaluation_set.round,
            submission=model,
            released_run=run_of[model.pk, released.pk],
            held_run=run_of[model.pk, held.pk],
            released_n=240,
            held_n=60,
            released_authors=40,
            held_authors=12,
            earlier_models=5,
            difference=difference,
            error=error,
            degrees_of_freedom=freedom,
        )


def estimate_in_short(task, owner, version) -> Submission:
    """A paid chat model with a finished, a waiting and a failed short evaluation."""
    settings = make_chat_settings(task.config, model="m", short_only=True, most_cost=1.0, **PRICES)
    model = accepted_model(task, owner, name="paid model", kind="chat", chat=asdict(settings))
    version.evaluation_set.may_leave = True
    version.evaluation_set.save(update_fields=["may_leave"])
    shared = {"submission": model, "version": version, "half_width": 0.05, "seed": 1}
    ShortEvaluation.objects.create(
        **shared, most_questions=60, most_cost=1, state="done", outcome="ok", stop_reason="width",
        value=0.62, low=0.57, high=0.67, asked=20, unanswered=1, lost=1, spent=0.022,
    )  # fmt: skip
    ShortEvaluation.objects.create(**shared, most_questions=60)
    return model


def make_attacked_task() -> Pages:
    """A sentiment task with adversaries and people in a mixed round, and weak spots."""
    round, owner = sentiment_round()
    task = round.task
    task.name = "Sentiment"
    task.save(update_fields=["name"])
    generator(task, output={task.config.text_field: DRAFT})
    target = write_against_target(round)
    target.options = SCRIPT
    target.save(update_fields=["options"])
    written = list(round.examples.order_by("pk"))
    for place, example in enumerate(written):
        example.support = {"arm": ARMS[place % 3], "arm_probability": 0.25}
    Example.objects.bulk_update(written, ["support"])
    search = make_adversary(round, owner, name="Typos", is_nightly=True)
    run_to_its_end(search, owner)
    container = with_image(make_adversary(round, owner, "container", name="My container"), owner)
    AdversaryRun.objects.create(
        adversary=container, round=round, number=1, state="failed", ended_by="gone", calls=12,
        image=container.images.get(), log="Traceback (most recent call last):\nKeyError: 'text'",
    )  # fmt: skip
    writer = TargetModel.objects.create(
        task=task, name="writer", adapter="openai_chat", url="http://127.0.0.1:1/v1",
        options={"model": "m"},
    )  # fmt: skip
    model = make_adversary(round, owner, "language_model", name="Writer", model=writer.name)
    write_about_weak_spots(model, round)
    set_arm_shares(
        round=round, actor=owner, shares={"people": 1, "helped": 1, "drafts": 1, "machines": 1}
    )
    for example in list(search.annotator.examples.all()):
        choice = Vote(label=example.inputs["label"])
        override_consensus(example=example, owner=owner, choice=choice, reason="It is clear.")
    own_pages = "/own/sentiment"
    return owner, {
        "adversaries": f"{own_pages}/adversaries/",
        "adversary": f"{own_pages}/adversaries/{search.pk}/",
        "adversary-form": f"{own_pages}/adversaries/new/language_model/",
        "container": f"{own_pages}/adversaries/{container.pk}/",
        "image": f"{own_pages}/adversaries/{container.pk}/image/",
        "spots": f"{own_pages}/adversaries/{model.pk}/",
        "weak-spots": f"{own_pages}/weak-spots/?model=weak",
        "challenge": f"{own_pages}/weak-spots/challenge/?sentence=Write+about+soup.",
        "arms": f"{own_pages}/rounds/1/arms/",
    }


def write_about_weak_spots(adversary, round) -> None:
    """Store a run that wrote about two weak spots."""
    spots = ["soup, waiter", "dinner, menu"]
    run = AdversaryRun.objects.create(
        adversary=adversary, round=round, number=1, state="done", ended_by="finished", calls=40,
        examples=2, tokens=12345, cost=0.04, weak_spots=spots,
    )  # fmt: skip
    for number in range(6):
        AdversaryTry.objects.create(
            run=run, adversary=adversary, round=round, digest=str(number), label="positive",
            text=f"The {spots[number % 2]} was better than I feared, number {number}.",
            step=f"irony · {spots[number % 2]}, 1", is_offered=True, state="answered",
            is_fooled=number % 3 == 0, chance=0.2 + number / 10,
        )  # fmt: skip


def make_talk_task() -> Pages:
    """A task of conversations, whose adversary has had two."""
    round, _client = opened()
    owner = round.task.members.get().user
    TargetModel.objects.create(
        task=round.task, name="writer", adapter="openai_chat", url="http://127.0.0.1:1/v1",
        options={"model": "m"},
    )  # fmt: skip
    adversary = create_adversary(
        task=round.task,
        actor=owner,
        kind="language_model",
        name="Talker",
        options=options_of("language_model", model="writer"),
    )
    run = AdversaryRun.objects.create(
        adversary=adversary, round=round, number=1, state="done", ended_by="finished", calls=4,
        examples=1,
    )  # fmt: skip
    for talk in range(2):
        previous = None
        for turn, (said, reply) in enumerate(
            [("When did it close?", "It closed in 1931."), ("Are you sure?", "No: in 1941.")]
        ):
            previous = AdversaryTry.objects.create(
                run=run, adversary=adversary, round=round, digest=f"{talk}-{turn}", label="wrong",
                text=said, step=f"doubt, turn {turn + 1}", is_offered=True, previous=previous,
                state="stored" if turn else "answered", is_fooled=bool(turn),
                outputs=[{"name": "scripted", "output": {"reply": reply}, "prob": None}],
            )  # fmt: skip
    return owner, {"talks": f"/own/talks/adversaries/{adversary.pk}/"}


def make_voted_task() -> Pages:
    """Five rounds with votes: a forecast, a sample that a judge model helps with, a bonus."""
    task = TaskFactory(code="nli", name="Natural language inference")
    owner = own(task)
    rounds = [
        finish_round(task, number, catches, owner) for number, catches in enumerate((7, 6, 6, 5), 1)
    ]
    last = RoundFactory(task=task, number=5)
    ContextFactory(round=last)
    author = UserFactory()
    write_many(last, author, ["fooled"] * 24 + ["not_fooled"] * 16)
    unsure = {"contains": "1", "label": "neutral", "prob": {"neutral": 0.5, "entailment": 0.5}}
    judge = TargetModel.objects.create(
        task=task, name="judge", adapter="scripted", url="http://scripted.test",
        options={"label": "neutral", "prob": {"neutral": 1.0}, "rules": [unsure]},
    )  # fmt: skip
    change_draw(round=last, owner=owner, rule=DrawRule(judge.pk))
    ask_judge_models()
    campaign = open_campaign(
        task, name="Spring study", opened_at=timezone.now(), each=9, pay_bonus=100,
        information_bonus=True, fee_percent=10,
    )  # fmt: skip
    take_part(campaign)
    rounds[0].examples.update(annotator=Place.objects.get().annotator)
    draft = open_campaign(task, slug="next", name="Autumn study", state="draft", pay_bonus=0)
    own_pages = "/own/nli"
    return owner, {
        "own-rounds": f"{own_pages}/rounds/",
        "sample": f"{own_pages}/rounds/5/sample/",
        "bonus": f"{own_pages}/campaigns/study/bonus/",
        "bonus-none": f"{own_pages}/campaigns/next/bonus/",
        "campaign": f"{own_pages}/campaigns/study/",
        "campaign-pay": f"{own_pages}/campaigns/{draft.slug}/change/pay/",
    }


def make_study() -> Pages:
    """Drafts of a study, empty and with cases and power, a study, and its pilot."""
    owner = UserFactory()
    EmailAddress.objects.create(user=owner, email=owner.email, primary=True, verified=True)
    client = Client()
    client.force_login(owner)
    _new, new_url = begin(client)
    draft, url = begin(client)
    title = "Do people reason better with a model?"
    send(client, draft, cases=write_case_file(), title=title)
    send(client, draft, "power")
    work_off()
    study_url = send(client, draft, "create").url
    client.post(f"{study_url}pilot/", {"do": "start"})
    work_off()
    rehearsal = client.get(study_url).context["rehearsal"]
    return owner, {
        "designs": "/new/study/",
        "draft-new": new_url,
        "draft": url,
        "study": study_url,
        "pilot": f"/own/{rehearsal.task.code}/studies/{rehearsal.code}/",
        "studies": "/".join(study_url.split("/")[:-2]) + "/",
        "study-yaml-new": "/".join(study_url.split("/")[:-2]) + "/new/",
    }


WORLDS = (make_ruled_task, make_attacked_task, make_talk_task, make_voted_task, make_study)
