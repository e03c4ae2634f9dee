"""Collection at size: import, report, release, the next item and rows to judge, with limits.

    python -m bench.collection --quick                       # 5,000 examples, under a minute
    python -m bench.collection --database postgres --json    # 1,000,000 examples, 3,000,000 votes

The limit of each is what the database itself does with the same rows in the same run: `executemany`
or COPY, an aggregate in one statement, a plain read. Every step runs in a process of its own, so
that its peak memory can be told. The judge cycle over HTTP comes from `bench/judging.py`.
"""

import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from bench.command import add_origin, build_parser
from bench.judging import measure_judge_cycle
from bench.prepared import prepare_site, set_up_site_here
from bench.site import build_environment, open_database
from bench.verdict_page import ROOT

LABELS = ("entailment", "neutral", "contradiction")
TABLES = (  # all that an import fills, in an order in which rows find what they point at
    *("accounts_annotator", "tasks_targetmodel", "tasks_targetversion", "tasks_contextbatch"),
    *("tasks_context", "annotation_example", "annotation_targetoutput"),
    *("validation_validation", "validation_consensus"),
)
# What the report's numbers cannot do without: counts by author, by validator, and votes by example.
BARE_REPORT = (
    """
SELECT e.annotator_id, e.outcome, c.state, c.label, c.is_verified, c.is_validated_error, COUNT(*)
FROM annotation_example e LEFT JOIN validation_consensus c ON c.example_id = e.id
WHERE e.round_id = %s AND e.retracted_at IS NULL
GROUP BY e.annotator_id, e.outcome, c.state, c.label, c.is_verified, c.is_validated_error
""",
    """
SELECT v.validator_id, v.label, v.verdict, COUNT(*)
FROM annotation_example e JOIN validation_validation v ON v.example_id = e.id
WHERE e.round_id = %s AND e.retracted_at IS NULL GROUP BY v.validator_id, v.label, v.verdict
""",
    """
SELECT a, b, c, COUNT(*) FROM (
  SELECT SUM(CASE WHEN v.label = 'entailment' THEN 1 ELSE 0 END) AS a,
    SUM(CASE WHEN v.label = 'neutral' THEN 1 ELSE 0 END) AS b,
    SUM(CASE WHEN v.label = 'contradiction' THEN 1 ELSE 0 END) AS c
  FROM annotation_example e JOIN validation_validation v ON v.example_id = e.id
  WHERE e.round_id = %s AND e.retracted_at IS NULL GROUP BY v.example_id) votes
GROUP BY a, b, c
""",
)
BARS = {  # at least, or at most where the name says so
    "import / raw": 0.3,
    "report / bare, at most": 2.0,
    "export / bare read": 0.3,
    "next item p95 ms, at most": 20.0,
    "10,000 rows to a judge's screen s, at most": 30.0,
    "import MB, at most": 300.0,
    "export MB, at most": 300.0,
}


def generate_lines(examples: int, votes: int, seed: int = 7) -> Iterator[str]:
    """Lines of imported history: 2,000 authors and 500 validators, a context for ten examples."""
    rng = random.Random(seed)
    for number in range(examples):
        truth, model_label = rng.choices(LABELS, k=2)
        votes_cast = [
            {
                "worker": f"v{rng.randrange(500)}",
                "label": truth if right else rng.choice(LABELS),
            }
            for right in rng.choices((True, False), (4, 1), k=votes)
        ]
        author = f"a{number % 2000}"
        yield json.dumps(
            {
                "task": "nli",
                "round": 1,
                "uid": f"u{number}",
                "context": {"premise": f"Shop {number // 10} opened at nine, and people came in."},
                "input": {"hypothesis": f"Customer {number} was inside before the rain began."},
                "author": author,
                "author_label": truth,
                "model_prediction": {"model": "bench", "label": model_label, "probs": None},
                "model_wrong": model_label != truth,
                "validations": votes_cast,
                "metadata": {},
            }
        )  # fmt: skip


# Steps: each in a process of its own, which prints what it found as JSON.


def step_setup() -> dict[str, float]:
    from tasks.models import Task
    from tasks.services import install_official_tasks

    install_official_tasks()
    Task.objects.get(code="nli").rounds.update(state="closed")
    return {}


def step_import(file: str) -> dict[str, float]:
    """Rows a second are those of all tables."""
    from django.core.management import call_command
    from django.db import connection

    before = _count_rows(connection)
    with open(os.devnull, "w") as nowhere:
        seconds = measure_seconds(lambda: call_command("import_examples", file, stderr=nowhere))
    row_count = _count_rows(connection) - before
    return {"rows": row_count, "rows_per_second": row_count / seconds}


def _count_rows(connection: Any) -> int:
    with connection.cursor() as cursor:
        return sum(
            cursor.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in TABLES
        )


def step_raw(empty: str) -> dict[str, float]:
    """The rows that were imported, put into a copy of the database from before."""
    from django.db import connection

    count, seconds = 0, 0.0
    if connection.vendor == "postgresql":
        import psycopg

        with connection.cursor() as source, psycopg.connect(empty) as target:
            target.execute(f"TRUNCATE {', '.join(TABLES)} CASCADE")
            for table in TABLES:
                with tempfile.TemporaryFile() as file:
                    with source.copy(f"COPY {table} TO STDOUT") as out:
                        file.writelines(out)
                    file.seek(0)
                    started = time.perf_counter()
                    with target.cursor() as cursor:
                        with cursor.copy(f"COPY {table} FROM STDIN") as into:
                            while block := file.read(1 << 20):
                                into.write(block)
                        count += cursor.rowcount
                    seconds += time.perf_counter() - started
            seconds += measure_seconds(target.commit)
        return {"rows_per_second": count / seconds}
    import sqlite3

    with closing(sqlite3.connect(empty)) as target, connection.cursor() as source:
        for table in TABLES:
            target.execute(f"DELETE FROM {table}")
        for table in TABLES:
            source.execute(f"SELECT * FROM {table}")
            marks = ", ".join("?" * len(source.description))
            while some := source.fetchmany(10_000):
                insert = f"INSERT INTO {table} VALUES ({marks})"
                seconds += measure_seconds(
                    lambda insert=insert, some=some: target.executemany(insert, some)
                )
                count += len(some)
        seconds += measure_seconds(target.commit)
    return {"rows_per_second": count / seconds}


def step_report() -> dict[str, float]:
    """Medians of three, in turn."""
    from django.db import connection

    from tasks.models import Round
    from validation.statistics.report import build_task_report

    round = Round.objects.select_related("task").get(task__code="nli")

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
    pairs = [
        (
            measure_seconds(lambda: read_counts(round)),
            measure_seconds(lambda: build_task_report([round], code="nli")),
        )
        for _ in range(3)
    ]
    return {
        "bare_seconds": statistics.median(pair[0] for pair in pairs),
        "seconds": statistics.median(pair[1] for pair in pairs),
        "ratio": statistics.median(ours / least for least, ours in pairs),
    }


def read_counts(round: Any) -> None:
    """Run the bare statements of the report."""
    from django.db import connection

    with connection.cursor() as cursor:
        for statement in BARE_REPORT:
            cursor.execute(statement, [round.pk]).fetchall()


def step_export() -> dict[str, float]:
    """The export of all that stands, against reading the same rows; then a release's files."""
    from django.core.management import call_command

    from evaluation.dataset_releases.reading import export_lines
    from evaluation.models import DatasetItem
    from tasks.models import Round

    round = Round.objects.select_related("task").get(task__code="nli")
    count = round.examples.count()
    pairs = [
        (
            measure_seconds(lambda: read_bare(round)),
            measure_seconds(lambda: deque(export_lines(round), maxlen=0)),
        )
        for _ in range(3)
    ]
    with open(os.devnull, "w") as nowhere:
        whole = measure_seconds(lambda: call_command("release_round", "nli", 1, stdout=nowhere))
    return {
        "rows_per_second": count / statistics.median(ours for _, ours in pairs),
        "bare_rows_per_second": count / statistics.median(bare for bare, _ in pairs),
        "ratio": statistics.median(bare / ours for bare, ours in pairs),
        "released": DatasetItem.objects.count(),
        "release_seconds": whole,
    }


def read_bare(round: Any) -> None:
    """Read the rows that an export is made of: examples with their contexts, answers and votes."""
    from annotation.models import Example, TargetOutput
    from evaluation.dataset_releases.rows import COLUMNS
    from validation.models import Validation

    of_round = {"example__round": round}
    for query in (
        Example.objects.filter(round=round, retracted_at__isnull=True)
        .order_by("pk")
        .values_list(*COLUMNS, "inputs", "metadata", "context__fields", "context__digest"),
        TargetOutput.objects.filter(**of_round).values_list(
            "example_id", "version_id", "output", "prob", "fooled"
        ),
        Validation.objects.filter(**of_round).values_list(
            "example_id", "label", "verdict", "validator_id"
        ),
    ):
        deque(query.iterator(chunk_size=2000), maxlen=0)


def step_next(each: int = 25, alone: int = 100) -> dict[str, float]:
    """Twenty people judge in turn where all examples are queued; then one who has judged many.

    each: how many votes the twenty give; alone: how many that one gives.
    """
    from datetime import timedelta

    from django.conf import settings
    from django.db import connection
    from django.utils import timezone

    from annotation.models import Example
    from core.accounts.models import Annotator
    from tasks.models import Round
    from validation.bulk_insert import Table
    from validation.consensus.consensus import Vote
    from validation.consensus.sampling import compute_order_key
    from validation.judging.services import cast_validation, lease_next
    from validation.models import JudgeLease, QueueItem, Validation

    Round.objects.filter(task__code="nli").update(state="closed")
    round = Round.objects.select_related("task").get(task__code="nli")
    columns = ("example_id", "round_id", "author_id", "still_needed", "free", "key")
    examples = Example.objects.filter(round=round).values_list("pk", "annotator_id", "uuid")
    Table(QueueItem, columns).insert(
        (pk, round.pk, author, 1 + pk % 3, 1 + pk % 3, compute_order_key(uuid, settings.SECRET_KEY))
        for pk, author, uuid in list(examples)  # COPY leaves the connection to nothing else
    )
    with connection.cursor() as cursor:  # as autovacuum does soon after so many rows
        cursor.execute("ANALYZE")

    def vote_on(lease: JudgeLease | None) -> None:
        assert lease
        earlier = lease.leased_at - timedelta(seconds=5)  # they read it, which nobody waits for
        JudgeLease.objects.filter(pk=lease.pk).update(leased_at=earlier)
        vote = Vote(label="neutral")
        cast_validation(validator=lease.validator, example=lease.example, vote=vote)

    people = Annotator.objects.bulk_create(Annotator() for _ in range(20))
    latencies = []
    for _ in range(each):
        for person in people:
            started = time.perf_counter()
            lease = lease_next(validator=person, task=round.task)
            latencies.append(time.perf_counter() - started)
            vote_on(lease)
    (lone,) = Annotator.objects.bulk_create([Annotator()])
    places = QueueItem.objects.filter(round=round).order_by("still_needed", "key")
    many = max(1, round.examples.count() // 50)  # 20,000 of a million
    judged = list(places.values_list("pk", flat=True)[:many])
    Table(Validation, ("example_id", "validator_id", "label", "verdict", "is_imported")).insert(
        (pk, lone.pk, "neutral", "", False) for pk in judged
    )
    now = timezone.now()
    JudgeLease.objects.create(
        validator=lone, example_id=judged[-1], takes_place=False, leased_at=now, until=now
    )
    then = []
    for _ in range(alone):
        started = time.perf_counter()
        lease = lease_next(validator=lone, task=round.task)
        then.append(time.perf_counter() - started)
        vote_on(lease)
    return {
        **_compute_percentiles(latencies),
        "judged_before": len(judged),
        **{f"then {name}": value for name, value in _compute_percentiles(then).items()},
    }


def step_rows(count: int = 10_000) -> dict[str, float]:
    """So many rows that nobody judged come in, and a judge sees the first one."""
    from django.core.management import call_command
    from django.test import Client

    from core.accounts.models import User, confirm_address
    from tasks.models import Task, TaskMember
    from validation.models import QueueItem

    owner, person = (User.objects.create_user(f"{one}@example.org") for one in ("owner", "judge"))
    confirm_address(person)
    client = Client(SERVER_NAME="localhost")
    client.force_login(person)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file, open(os.devnull, "w") as none:
        for number in range(count):
            file.write(json.dumps({"text": f"Would you pass me the salt, number {number}?"}) + "\n")
        file.flush()
        options = ("--task", "tone", "--create", "--judge", "--labels", "rude,polite")
        told = {"stdout": none, "stderr": none, "owner": owner.email}
        imported = measure_seconds(
            lambda: call_command("import_examples", file.name, *options, **told)
        )
    task = Task.objects.get(code="tone")
    TaskMember.objects.create(task=task, user=person, role="judge")
    first = measure_seconds(lambda: _check_page(client.get("/t/tone/judge/")))
    assert QueueItem.objects.filter(round__task=task).count() == count
    return {"import_seconds": imported, "first_item_seconds": first, "seconds": imported + first}


def _check_page(page: Any) -> None:
    assert page.status_code == 200
    assert b"pass me the salt" in page.content


def _compute_percentiles(seconds: list[float]) -> dict[str, float]:
    steps = statistics.quantiles(seconds, n=20)
    return {"p50_ms": 1000 * steps[9], "p95_ms": 1000 * steps[-1]}


def measure_seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _read_peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# The run


def run_step(env: dict[str, str], name: str, *arguments: str) -> dict[str, float]:
    """What a step found, with its peak memory."""
    command = [sys.executable, "-m", "bench.collection", "--step", name, *arguments]
    process = subprocess.run(
        command, cwd=ROOT, env=env, check=True, stdout=subprocess.PIPE, text=True
    )
    found = json.loads(process.stdout.splitlines()[-1])
    print(name, {key: round(value, 3) for key, value in found.items()}, file=sys.stderr)
    return dict(found)


def copy_database(url: str, home: Path) -> str:
    """A copy of the database as it is, as the raw drivers name it."""
    if url.startswith("sqlite"):
        shutil.copy(url.removeprefix("sqlite:///"), home / "raw.sqlite3")
        return str(home / "raw.sqlite3")
    import psycopg

    server, _, name = url.rpartition("/")
    with psycopg.connect(f"{server}/template1", autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS bench_raw")
        admin.execute(f'CREATE DATABASE bench_raw TEMPLATE "{name}"')
    return f"{server}/bench_raw"


def measure_collection_here(examples: int, votes: int) -> dict[str, Any]:
    """Every step's figures, in this process and on a database of its own."""
    home = set_up_site_here()
    results: dict[str, Any] = {"setup": step_setup()}
    file = write_history(home, examples, votes)
    steps = {
        "import": partial(step_import, str(file)),
        "report": step_report,
        "export": step_export,
        "next": partial(step_next, 1, 3),
        "rows": partial(step_rows, 3),
    }
    empty = copy_database(f"sqlite:///{home}/bench.sqlite3", home)
    for name, work in steps.items():
        with redirect_stdout(sys.stderr):
            results[name] = {**work(), "peak_MB": _read_peak_mb()}
    results["raw"] = step_raw(empty)
    return add_ratios(results)


def write_history(home: Path, examples: int, votes: int) -> Path:
    """Write the file that is imported."""
    file = home / "history.jsonl"
    with file.open("w") as lines:
        lines.writelines(f"{line}\n" for line in generate_lines(examples, votes))
    return file


def measure_collection(kind: str, examples: int, votes: int) -> dict[str, Any]:
    """Every step's figures."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(open_database(kind, home))
        env = build_environment(home, url)
        prepare_site(env)
        run_step(env, "setup")
        empty = copy_database(url, home)
        file = write_history(home, examples, votes)
        figures = {"import": run_step(env, "import", str(file)), "raw": run_step(env, "raw", empty)}
        for name in ("report", "export", "next", "rows"):
            figures[name] = run_step(env, name)
    return add_ratios(figures)


def add_ratios(found: dict[str, Any]) -> dict[str, Any]:
    """Add the ratios to what the steps found."""
    ratios = {
        "import / raw": found["import"]["rows_per_second"] / found["raw"]["rows_per_second"],
        "report / bare, at most": found["report"]["ratio"],
        "export / bare read": found["export"]["ratio"],
        "next item p95 ms, at most": found["next"]["p95_ms"],
        "10,000 rows to a judge's screen s, at most": found["rows"]["seconds"],
        "import MB, at most": found["import"]["peak_MB"],
        "export MB, at most": found["export"]["peak_MB"],
    }
    return {"ratios": ratios, **found}


def main() -> None:
    parser = build_parser(__doc__, quick="5,000 examples, short rounds")
    parser.add_argument("--examples", type=int, default=1_000_000)
    parser.add_argument("--votes", type=int, default=3, help="of each example")
    parser.add_argument("--database", default="sqlite", help="sqlite, postgres or an address")
    parser.add_argument("--processes", type=int, default=2, help="web processes of the judge cycle")
    parser.add_argument("--step", nargs="+", help=SUPPRESS)
    options = parser.parse_args()
    if options.step:
        import django

        django.setup()
        name, *arguments = options.step
        results = globals()[f"step_{name}"](*arguments)
        print(json.dumps({**results, "peak_MB": _read_peak_mb()}))
        return
    examples = 60 if options.smoke else 5000 if options.quick else options.examples
    if options.smoke:  # the judge cycle has a smoke form of its own
        results = measure_collection_here(examples, options.votes)
    else:
        results = measure_collection(options.database, examples, options.votes)
        seconds, rounds = (1.0, 2) if options.quick else (5.0, 5)
        results["judging"] = measure_judge_cycle(
            options.database, seconds, rounds, options.processes
        )
        results["ratios"] |= results["judging"].pop("ratios")
    results |= {"examples": examples, "votes": examples * options.votes}
    rates = {"import / raw", "export / bare read"}
    lower = results["ratios"].keys() - rates
    results = add_origin(results, "django", "psycopg", "gunicorn", lower=lower)
    if options.json:
        print(json.dumps(results, indent=1))
        return
    for name, value in results["ratios"].items():
        print(f"{name:42} {value:10.3f}   wanted {BARS.get(name, 4.0)}")


if __name__ == "__main__":
    main()
