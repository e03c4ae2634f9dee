"""Studies for tests: two arms with a campaign each, and people who come by the link."""

from datetime import timedelta

from django.test import Client
from django.utils import timezone

from dynabench.campaigns.models import Place
from dynabench.studies import services
from tasks.models import TaskMember
from tasks.services import OFFICIAL_FOLDER
from tests.support.campaigns import YES, open_campaign
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from validation.models import Consensus

CONFIG = (OFFICIAL_FOLDER / "nli" / "task.yaml").read_text()
PLAN = """\
version: 1
study: helped
title: Do suggestions help?
question: Do people with suggestions find more errors?
arms:
  - {name: alone, differs: No help, campaign: arm-alone}
  - {name: helped, differs: Suggestions, campaign: arm-helped}
design: between
outcomes:
  - {name: fooled, measure: fooled, assume: {mean: 0.4}}
  - {name: catches, measure: caught, assume: {mean: 0.3}}
  - {name: right_answers, measure: correct, assume: {mean: 0.5}}
  - name: confidence
    measure: answer
    question: sure_after
    minus: sure_before
    assume: {mean: 0}
hypotheses:
  - {arm: helped, compared_with: alone, outcome: fooled, expected: higher}
  - {arm: helped, compared_with: alone, outcome: confidence, expected: higher}
exclude:
  - {measure: examples, below: 1}
size: {people: 40, each: 2, contexts: 20, effect: 0.4, power: 0.3}
"""


def plan_study(plan_text=PLAN, **campaign):
    """A draft whose arms have an open campaign each, its owner, and the arms' rounds."""
    owner, rounds = UserFactory(), []
    for name in ("alone", "helped"):
        task = TaskFactory(code=name, config_text=CONFIG)
        TaskMember.objects.create(task=task, user=owner, role="owner")
        round = RoundFactory(task=task, state="open")
        for _ in range(8):
            context = ContextFactory(round=round)
            context.metadata = {"key": {"label": "neutral"}}
            context.save()
        # Each person earns nothing and writes nothing that the campaign would wait for.
        more = {"slug": f"arm-{name}", "places": 40, "each": 0, "pay_task": 0} | campaign
        open_campaign(task, **more)
        rounds.append(round)
    study = services.make_study(task=rounds[0].task, actor=owner, plan_text=plan_text)
    return study, owner, rounds


def arrive(study, person):
    """Somebody comes by the study's link, from an address of their own, and agrees."""
    client = Client(REMOTE_ADDR=f"10.1.{person // 250}.{person % 250}")
    page = client.get(f"/s/{study.code}/", {"pid": f"person-{person}"}, follow=True)
    slug = page.request["PATH_INFO"].split("/")[2]
    client.post(f"/c/{slug}/consent/", YES)
    return client, slug


def write_in_study(place, outcomes, answers=None):
    """A person's examples, one for each outcome, on the round's contexts in turn."""
    round = place.campaign.task.rounds.get()
    contexts = list(round.contexts.order_by("pk"))
    now = timezone.now()
    for number, outcome in enumerate(outcomes):
        example = round.examples.create(
            context=contexts[(place.pk + number) % len(contexts)],
            annotator=place.annotator,
            inputs={"hypothesis": f"{number}", "label": "neutral" if number else "entailment"},
            metadata={"sure_after": 5},
            digest=f"{place.pk} {number}",
            outcome=outcome,
            shown_at=now - timedelta(seconds=30),
        )
        if outcome == "fooled":
            Consensus.objects.create(
                example=example, round=round, state="decided", votes=3, still_needed=0,
                is_verified=True, is_validated_error=True,
            )  # fmt: skip
    Place.objects.filter(pk=place.pk).update(answers=answers or {"sure_before": 3})
