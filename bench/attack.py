"""What the best known attacks read out of a sealed set, against the bound that is stated.

Attackers submit models to a site of its own, in this process: with many accounts, accounts that are
deleted and made again, other addresses, teams, joint submissions, withdrawn models and workers of
their own. They read what the API shows them, and guess the labels from it. The end is 1 where
somebody learns more than docs/evaluation.md, "Sealed sets", says. See bench/README.md.
"""

import io
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.prepared import set_up_site_here  # noqa: E402

os.environ["EMAIL_VERIFICATION"] = "mandatory"
HOME = set_up_site_here()

import numpy as np  # noqa: E402
from allauth.account.models import EmailAddress  # noqa: E402
from django.core.files.base import ContentFile  # noqa: E402
from django.db.models import F  # noqa: E402
from rest_framework.test import APIClient  # noqa: E402

from bench.command import add_origin, build_parser  # noqa: E402
from bench.guessing import (  # noqa: E402
    Guesser,
    Labels,
    calculate_right_share,
    compute_max_result_bits,
    compute_share_bits,
    list_stated_bounds,
)
from core.accounts.counting import tidy_counted_people  # noqa: E402
from core.accounts.models import User, confirm_address  # noqa: E402
from core.errors import Refused  # noqa: E402
from dynabench.communities.joint_services import submit_jointly  # noqa: E402
from dynabench.communities.models import Community  # noqa: E402
from dynabench.people.deletion.services import delete_person  # noqa: E402
from evaluation.contract import SetRow, Usage  # noqa: E402
from evaluation.isolation.queue.attempt_keys import build_sent_examples  # noqa: E402
from evaluation.isolation.uploads.chunked import add_file  # noqa: E402
from evaluation.jobs import evaluate_next  # noqa: E402
from evaluation.models import EvaluationRun, OwnWorker, Submission, Team  # noqa: E402
from evaluation.runs import execute as executing  # noqa: E402
from evaluation.runs.services import request_runs  # noqa: E402
from evaluation.submissions.own_workers.services import lease_run, submit_answers  # noqa: E402
from evaluation.submissions.services import submit_model, withdraw_model  # noqa: E402
from evaluation.submissions.teams.services import leave_team, make_team  # noqa: E402
from evaluation.submissions.tidying import tidy_submitters  # noqa: E402
from evaluation.test_sets.services import create_set, make_version  # noqa: E402
from evaluation.test_sets.shown_scores import describe_disclosure  # noqa: E402
from tasks.models import Task  # noqa: E402
from tasks.services import OFFICIAL_FOLDER  # noqa: E402
from tests.support.evaluations import ScriptedRunner, without_deltas  # noqa: E402

LABELS = ("not-hate", "hate")
METRICS = ("macro_f1", "accuracy")
DOCUMENTED = (24, 200, 1000, 10_000)
REVISION = "0" * 40
ON_HUB = {"kind": "hub", "source": "attacker/model", "revision": REVISION}
AN_IMAGE = {"kind": "image", "source": f"registry.example/attacker@sha256:{'0' * 64}"}
EXTRA_MODELS = 3
"""Models that an attacker submits after the last one that may be shown."""
COPY_COUNT = 3
"""Accounts, addresses, teams of an attack with several."""
BARS = {  # at most
    "results shown / stated": 1.0,
    "bits / bound": 1.0,
    "bits of the labels guessed / bound": 1.0,
}


@dataclass(frozen=True)
class Turn:
    """Who submits the next model, for which team, and by which door."""

    owner: User
    team: Team | None = None
    way: str = "alone"  # or jointly, own worker


class Site:
    """A task with one sealed set, and what the attackers were shown of it."""

    def __init__(self, name: str, size: int, rng: np.random.Generator) -> None:
        self.name = name
        self.labels = rng.permutation(np.arange(size) % 2).astype(np.int8)
        text = (OFFICIAL_FOLDER / "hate-speech" / "task.yaml").read_text()
        self.task = Task.objects.create(code=name, name=name, config_text=text)
        without_deltas(self.task)
        one = create_set(task=self.task, name="sealed", actor=None, may_leave=True)
        rows = [
            SetRow(f"{name}-{n}", {"prompt": "", "text": f"Post {n} of the set."}, (LABELS[value],))
            for n, value in enumerate(self.labels)
        ]
        self.version = make_version(one, rows, None)
        self.bound = describe_disclosure(self.version)
        self.community = Community.objects.create(slug=name, name=name, is_listed=True)
        self.community.entries.create(task=self.task, state="in")
        self.runner = ScriptedRunner()
        self.day, self.submitted = 1, 0
        self.shown_on: list[int] = []  # the day of each result that was shown
        self._addresses = (f"{name}{n}@example.com" for n in count())

    def sign_up(self, address: str = "") -> User:
        """A new account, whose address is confirmed."""
        user = User.objects.create_user(address or next(self._addresses))
        confirm_address(user)
        return user

    def play(self, turn: Turn, question: Labels) -> float | None:
        """Submit a model that gives these answers; the accuracy that its owner is shown."""
        self.submitted += 1
        submission = self._submitted(turn)
        said = {f"Post {n} of the set.": LABELS[value] for n, value in enumerate(question)}
        self.runner.answer = lambda inputs: said[inputs["text"]]
        setattr(executing, "open_model", lambda *_: nullcontext((None, self.runner)))  # noqa: B010
        for run in request_runs(submission=submission):
            if turn.way == "own worker":
                self._answer_elsewhere(run, turn.owner, question)
            evaluate_next(run.pk)
        shown = self._read(turn.owner, submission)
        if shown is not None:
            self.shown_on.append(self.day)
        return shown

    def _submitted(self, turn: Turn) -> Submission:
        """The model, once the day's quota allows it; its check is passed."""
        while True:
            try:
                submission = self._submit(turn)
                break
            except Refused as refused:
                if refused.code not in ("quota", "joint"):
                    raise
            self.pass_a_day()
        file = ContentFile(b"{}", name="model.tar") if turn.way == "own worker" else ""
        submission.file, submission.state = file, Submission.State.DONE
        submission.save()
        return submission

    def _submit(self, turn: Turn) -> Submission:
        name = f"model {self.submitted}"
        if turn.way == "jointly":
            joint = submit_jointly(community=self.community, owner=turn.owner, name=name, **ON_HUB)
            return joint.submissions.get()
        kind = AN_IMAGE if turn.way == "own worker" else ON_HUB
        return submit_model(task=self.task, owner=turn.owner, name=name, team=turn.team, **kind)

    def pass_a_day(self) -> None:
        """Let a day go by, with what the site does each day."""
        self.day += 1
        Submission.objects.update(queued_at=F("queued_at") - timedelta(hours=25))
        tidy_submitters(500)
        tidy_counted_people(500)

    def _answer_elsewhere(self, run: EvaluationRun, user: User, question: Labels) -> None:
        """Take the run with a machine of one's own, and hand in the answers."""
        OwnWorker.objects.get_or_create(
            task=self.task, user=user, takes_sealed=True, second="nobody"
        )
        workers = list(OwnWorker.objects.filter(task=self.task, user=user))
        leased = lease_run(workers=workers, key="dyna_attack")
        assert leased
        assert leased.lease_token
        ids = build_sent_examples(
            leased.lease_token, Path(HOME, "unused"), len(question)
        ).iterate_ids()
        lines = b"".join(
            json.dumps({"id": one, "output": {"label": LABELS[value]}}).encode() + b"\n"
            for one, value in zip(ids, question, strict=True)
        )
        file = add_file(user, "answers.jsonl", len(lines), io.BytesIO(lines))
        ending = {"outcome": "ok", "sentence": "", "usage": asdict(Usage(1.0))}
        submit_answers(run=leased, user=user, upload=file.pk, runner="docker", ending=ending)

    def _read(self, owner: User, submission: Submission) -> float | None:
        """The accuracy in the API. Raises RuntimeError where that tells more than is counted."""
        client = APIClient(SERVER_NAME="localhost")
        client.force_authenticate(owner)
        rows = client.get(f"/api/v1/models/{submission.pk}/scores/").json()["results"]
        shown = {row["metric"]: row["value"] for row in rows}
        if len(rows) != len(shown) or not shown.keys() <= {*self.bound.metrics}:
            raise RuntimeError(f"More is shown than the bound counts: {sorted(shown)}.")
        return shown.get("accuracy")


# The attacks: each is told whose turn it is, and goes on after each model.


def one_account(site: Site) -> Iterator[Turn]:
    """One account submits model after model."""
    mallory = site.sign_up()
    for _ in range(site.bound.max_results + EXTRA_MODELS):
        yield Turn(mallory)


def withdrawn(site: Site) -> Iterator[Turn]:
    """Each model is withdrawn once its result is known."""
    mallory = site.sign_up()
    for _ in range(site.bound.max_results + EXTRA_MODELS):
        yield Turn(mallory)
        withdraw_model(submission=mallory.submissions.latest("queued_at"), actor=mallory)


def many_accounts(site: Site) -> Iterator[Turn]:
    """People with an address each put their results together."""
    people = [site.sign_up() for _ in range(COPY_COUNT)]
    for _ in range(site.bound.max_results + 1):
        for mallory in people:
            yield Turn(mallory)


def made_again(site: Site) -> Iterator[Turn]:
    """The account is deleted after its last result and made again with the same mailbox."""
    for number in range(COPY_COUNT):
        tag = f"+{number}" if number else ""
        mallory = site.sign_up(f"Again{tag}@{site.name}.example")
        for _ in range(site.bound.max_results + 1 if number == 0 else EXTRA_MODELS):
            yield Turn(mallory)
        delete_person(user=mallory)
        site.pass_a_day()


def other_addresses(site: Site) -> Iterator[Turn]:
    """The account changes to another address before it is deleted, and the first one signs up."""
    first, second = f"first@{site.name}.example", f"second@{site.name}.example"
    mallory = site.sign_up(first)
    for _ in range(site.bound.max_results + 1):
        yield Turn(mallory)
    EmailAddress.objects.create(user=mallory, email=second, verified=True).set_as_primary()
    EmailAddress.objects.get(user=mallory, email=first).remove()
    delete_person(user=mallory)
    for address in (first, second):
        again = site.sign_up(address)
        for _ in range(EXTRA_MODELS):
            yield Turn(again)
        delete_person(user=again)


def many_teams(site: Site) -> Iterator[Turn]:
    """One person makes team after team, submits for it and leaves it."""
    mallory = site.sign_up()
    for number in range(COPY_COUNT):
        team = make_team(actor=mallory, name=f"{site.name} {number}")
        for _ in range(site.bound.max_results // 2 + 1):
            yield Turn(mallory, team)
        leave_team(team=team, user=mallory)


def joint_submissions(site: Site) -> Iterator[Turn]:
    """Every second model comes through a community."""
    mallory = site.sign_up()
    for number in range(site.bound.max_results + EXTRA_MODELS):
        yield Turn(mallory, way="jointly" if number % 2 == 0 else "alone")


def own_workers(site: Site) -> Iterator[Turn]:
    """The task's owner lets a person's machine answer, which it does after each result."""
    mallory = site.sign_up()
    for _ in range(site.bound.max_results + EXTRA_MODELS):
        yield Turn(mallory, way="own worker")


PEOPLE: dict[Callable[[Site], Iterator[Turn]], int] = {
    one_account: 1,
    withdrawn: 1,
    many_accounts: COPY_COUNT,
    made_again: 1,
    other_addresses: 1,
    many_teams: 1,
    joint_submissions: 1,
    own_workers: 1,
}
"""Each attack and how many people take part in it."""


def play_attack(
    attack: Callable[[Site], Iterator[Turn]], size: int, rng: np.random.Generator
) -> dict[str, Any]:
    """What the attackers learn together, and each of them at most."""
    people = PEOPLE[attack]
    site = Site(attack.__name__.replace("_", "-"), size, rng)
    guesser, each = Guesser(size, rng), compute_max_result_bits(size, rng)
    for turn in attack(site):
        question = guesser.next_question()
        accuracy = site.play(turn, question)
        if accuracy is not None:
            guesser.learn(question, accuracy)
    share = calculate_right_share(guesser.guess(), site.labels)
    bound, bits = people * site.bound.max_bits, len(site.shown_on) * each
    busiest = max(Counter(site.shown_on).values())
    return {
        "people": people,
        "submitted": site.submitted,
        "shown": len(site.shown_on),
        "days": site.day,
        "bits a person": bits / people,
        "bits a person and day": busiest * each / people,
        "bound, bits a person": site.bound.max_bits,
        "labels right": share,
        "bits / bound": bits / bound,
        "bits of the labels guessed / bound": compute_share_bits(share, size) / bound,
        "results shown / stated": len(site.shown_on) / (people * site.bound.max_results),
    }


def print_results(results: dict[str, Any]) -> None:
    """What a person can read."""
    print(f"{results['machine']}\n{results['versions']}\n{results['examples']} examples")
    for name, found in results["attacks"].items():
        print(f"\n{name}")
        for what, value in found.items():
            bar = BARS.get(what)
            print(f"  {what:36}{value:10.4g}" + (f"   at most {bar:g}" if bar else ""))


def main() -> None:
    parser = build_parser(__doc__, quick="200 examples, about a minute")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    size, rng = 200 if options.quick else 1000, np.random.default_rng(options.seed)
    chosen = [*PEOPLE]
    if options.smoke:
        size, chosen = 60, [joint_submissions, own_workers]
    attacks = {
        attack.__name__.replace("_", " "): play_attack(attack, size, rng) for attack in chosen
    }
    ratios = {f"{name}: {bar}": attacks[name][bar] for name in attacks for bar in BARS}
    results = {
        "examples": size,
        "ratios": ratios,
        "bars": BARS,
        "attacks": attacks,
        "stated": list_stated_bounds(DOCUMENTED, METRICS),
    }
    results = add_origin(results, "django", "numpy", lower=ratios)
    print(json.dumps(results, indent=2)) if options.json else print_results(results)
    if over := [name for name, value in ratios.items() if value > 1]:
        sys.exit(f"More than the bound: {', '.join(over)}.")


if __name__ == "__main__":
    main()
