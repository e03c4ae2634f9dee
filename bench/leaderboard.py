"""The leaderboard at size: its page against a bare aggregate, and how soon weights are answered.

    python -m bench.leaderboard --quick                      # 200 models × 10 sets, under a minute
    python -m bench.leaderboard --database postgres --json   # 1,000 models × 20 sets × 5 metrics

The numbers are drawn by a seed and written to a throw-away database. Requests go through Django's
test client: all middleware, no network. See bench/README.md.
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.command import add_origin, build_parser
from bench.prepared import prepare_site, set_up_site_here
from bench.site import build_environment, open_database
from bench.verdict_page import ROOT

SET_SIZE = 1000  # examples of a set
SCORES = {
    "plain": ("accuracy", "worst_group", "group_gap"),
    "fairness": ("consistency",),
    "robustness": ("worst_kind", "worst_kind_drop", "consistency"),
}
"""Of a run over all examples, by suite."""
RESAMPLED = ("accuracy", "worst_group", "worst_kind")
BARS = {  # at most
    "page / (bare aggregate + template)": 2.5,
    "weight change p95, ms": 100.0,
    "one ruler p95, ms": 100.0,
}


def fill_board(task: Any, models: range, sets: int) -> None:
    """Published models with runs, scores, two slices and resamples on each set."""
    import numpy as np
    from django.utils import timezone

    from evaluation.models import (
        EvaluationRun,
        EvaluationSet,
        EvaluationSetVersion,
        Score,
        Submission,
    )
    from leaderboard.models import Resample

    rng, noise = random.Random(models.start), np.random.default_rng(models.start)
    shared = 0.01 * np.random.default_rng(7).standard_normal((len(RESAMPLED), 200))
    versions = []
    for number in range(sets):
        evaluation_set, _ = EvaluationSet.objects.get_or_create(
            task=task, name=f"set-{number}", defaults={"answers_public": True}
        )
        version, _ = EvaluationSetVersion.objects.get_or_create(
            evaluation_set=evaluation_set,
            version=1,
            defaults={"sha256": f"{number:064x}", "size": SET_SIZE},
        )
        versions.append(version)
    now = timezone.now()
    for number in models:
        skill = rng.gauss(0.7, 0.05)
        submission = Submission.objects.create(
            task=task, name=f"Model {number}", kind="directory", state="done", is_published=True
        )
        usage = {
            "examples_per_second": rng.uniform(5, 50),
            "peak_bytes": rng.randrange(2**30, 2**33),
            "mean_bytes": 2**30,
        }
        runs = [
            EvaluationRun(
                submission=submission, version=version, suite=suite, state="done", outcome="ok",
                runner="docker", usage=usage, finished_at=now,
            )
            for version in versions
            for suite in SCORES
        ]  # fmt: skip
        scores, resamples = [], []
        for run in runs:
            for metric in SCORES[run.suite]:
                value = min(0.99, max(0.01, skill + rng.gauss(0, 0.02)))
                results = {"value": value, "low": value - 0.03, "high": value + 0.03, "n": SET_SIZE}
                parts = ("", "tag=a", "tag=b") if metric == "accuracy" else ("",)
                scores += [Score(run=run, metric=metric, slice=part, **results) for part in parts]
                if metric in RESAMPLED:
                    common = shared[RESAMPLED.index(metric)]
                    drawn = value + common + 0.01 * noise.standard_normal(200)
                    values = drawn.astype("<f4").tobytes()
                    resamples.append(Resample(run=run, metric=metric, values=values))
        EvaluationRun.objects.bulk_create(runs)
        Score.objects.bulk_create(scores)
        Resample.objects.bulk_create(resamples)


def fill_ruler(task: Any) -> None:
    """A ruler on which every model has an expected score for every set."""
    from evaluation.models import ExpectedScore, Ruler, RulerLink, RulerStanding, Submission
    from evaluation.test_sets.selectors import select_newest_versions

    ruler = Ruler.objects.create(task=task, version=1, anchor_count=100, seed=1, state="done")
    links = RulerLink.objects.bulk_create(
        RulerLink(ruler=ruler, version=version, model_count=200, value=0.7, item_error=0.01,
                  half_width=0.05)
        for version in select_newest_versions(task)
    )  # fmt: skip
    rng, ends = random.Random(2), {"low": 0.6, "high": 0.8}
    standings = RulerStanding.objects.bulk_create(
        RulerStanding(ruler=ruler, submission=model, answers=b"", value=rng.random(), **ends)
        for model in Submission.objects.filter(task=task)
    )
    ExpectedScore.objects.bulk_create(
        ExpectedScore(standing=standing, link=link, value=0.7, **ends)
        for standing in standings
        for link in links
    )


def measure_milliseconds(call: Callable[[], Any], times: int) -> list[float]:
    """How long each call took."""
    found = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        found.append(1000 * (time.perf_counter() - started))
    return found


def query_means(task: Any) -> list[Any]:
    """The least that a page could ask the database: each metric's mean for each model."""
    from django.db.models import Avg

    from evaluation.models import Score

    rows = Score.objects.filter(
        run__submission__task=task, run__submission__is_published=True, run__outcome="ok",
        slice="", kind="",
    )  # fmt: skip
    groups = rows.order_by().values_list(
        "run__submission", "run__submission__name", "run__suite", "metric"
    )
    return list(groups.annotate(Avg("value")))


def make_empty_board() -> Any:
    """A task with five metrics and no models, in a database that is empty."""
    import dynabench.wsgi  # noqa: F401 - sets Django up as web processes do
    from tasks.models import Task
    from tasks.services import install_official_tasks

    install_official_tasks()
    task = Task.objects.get(code="nli")
    task.config_text = task.config_text.replace("also: [macro_f1]", "also: []")
    task.save()
    assert len(task.config.metrics.names) == 5
    return task


def count_queries(get: Callable[..., Any]) -> list[int]:
    """How many a cold page needs, and a warm one."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from leaderboard.board import matrix

    matrix._read_numbers.cache_clear()
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            get()
        counts.append(len(captured))
    return counts


def read_context(get: Callable[..., Any]) -> dict[str, Any]:
    """All that the page's template was given."""
    from django.test.utils import setup_test_environment, teardown_test_environment

    setup_test_environment()
    contexts = get().context  # also of the charts, which are templates of their own
    shown: dict[str, Any] = next(one for one in contexts if "matrix" in one).flatten()
    teardown_test_environment()
    return {name: value for name, value in shown.items() if name != "block"}


def measure_board(models: int, sets: int, times: int) -> dict[str, Any]:
    """All figures, in a process whose database is empty."""
    task = make_empty_board()
    from django.db import connection, transaction
    from django.template.loader import render_to_string
    from django.test import Client
    from django.urls import reverse

    from leaderboard.board import matrix, ranked
    from leaderboard.board.opening import choose_opening_weights
    from leaderboard.board.services import freeze_rates

    client, address = Client(SERVER_NAME="localhost"), reverse("leaderboard:board", args=["nli"])

    def get(**options: Any) -> Any:
        answer = client.get(address, **options)
        assert answer.status_code == 200
        return answer

    with transaction.atomic():
        fill_board(task, range(10), 2)
    freeze_rates(task=task)
    few = count_queries(get)
    with transaction.atomic():
        fill_board(task, range(10, models), sets)
        fill_ruler(task)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    many = count_queries(get)
    rng = random.Random(1)

    sliders = [f"w_{name}" for name in task.config.metrics.names]
    sliders += [f"d_set-{number}" for number in range(sets)]
    weights = dict.fromkeys(sliders, 4)

    def weigh() -> None:
        """Somebody moves one slider further."""
        weights[rng.choice(sliders)] = rng.randrange(1, 9)
        get(data=weights, HTTP_HX_REQUEST="true")

    def cold() -> None:
        matrix._read_numbers.cache_clear()
        get()

    shown, numbers = read_context(get), matrix.read_matrix(task)
    weighting = choose_opening_weights(task, numbers)
    results = {
        "aggregate": measure_milliseconds(lambda: query_means(task), times),
        "template": measure_milliseconds(
            lambda: render_to_string("leaderboard/board.html", shown), times
        ),
        "page": measure_milliseconds(get, times),
        "cold page": measure_milliseconds(cold, max(3, times // 10)),
        "weight change": measure_milliseconds(weigh, times),
        "one ruler": measure_milliseconds(lambda: get(data={"ruler": "1"}), times),
        "read_matrix": measure_milliseconds(lambda: matrix.read_matrix(task), times),
        "ranked": measure_milliseconds(
            lambda: ranked.rank_board(numbers, weighting, "robust"), times
        ),
    }
    return {
        "queries": {"10 models": few, f"{models} models": many},
        "ms": {
            name: {
                "p50": statistics.median(each),
                "p95": statistics.quantiles(each, n=20, method="inclusive")[-1],
            }
            for name, each in results.items()
        },
    }


def measure(kind: str, models: int, sets: int, times: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, open_database(kind, Path(folder)) as url:
        env = build_environment(Path(folder), url)
        prepare_site(env)
        sizes = [str(number) for number in (models, sets, times)]
        done = subprocess.run(
            [sys.executable, "-m", "bench.leaderboard", "--step", *sizes],
            cwd=ROOT, env=env, check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {"database": kind}


def add_ratios(found: dict[str, Any], models: int, sets: int) -> dict[str, Any]:
    """Add the ratios to what `step` found."""
    ms, few = found["ms"], found["queries"]["10 models"]
    found["ratios"] = {
        "page / (bare aggregate + template)": ms["page"]["p50"]
        / (ms["aggregate"]["p50"] + ms["template"]["p50"]),
        "cold page / (bare aggregate + template)": ms["cold page"]["p50"]
        / (ms["aggregate"]["p50"] + ms["template"]["p50"]),
        "queries, many / few": found["queries"][f"{models} models"][1] / few[1],
    }
    return found | {"models": models, "sets": sets, "metrics": 5}


def main() -> None:
    parser = build_parser(__doc__, quick="200 models, 10 sets, 40 requests")
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--times", type=int, default=100, help="requests of each kind")
    parser.add_argument("--database", default="sqlite", help="sqlite, postgres or an address")
    parser.add_argument("--step", type=int, nargs=3, help=SUPPRESS)
    args = parser.parse_args()
    if args.step:
        print(json.dumps(measure_board(*args.step)))
        return
    sizes = (200, 10, 40) if args.quick else (args.models, args.sets, args.times)
    if args.smoke:
        sizes = (12, 2, 2)
        set_up_site_here()
        found = measure_board(*sizes)
    else:
        found = measure(args.database, *sizes)
    results = add_ratios(found, *sizes[:2])
    results = add_origin(results, "django", "psycopg", "numpy", lower=results["ratios"])
    if args.json:
        print(json.dumps(results, indent=2))
        return
    for name, each in results["ms"].items():
        print(f"{name:16} p50 {each['p50']:8.1f} ms  p95 {each['p95']:8.1f} ms")
    for name, ratio in results["ratios"].items():
        print(f"{name:44} {ratio:6.2f}")
    print(f"queries of a cold and a warm page: {results['queries']}\nwanted at most: {BARS}")


if __name__ == "__main__":
    main()
