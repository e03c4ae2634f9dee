"""Boards of many models for sentiment, NLI and hate speech, from an empty site to their figures.

    python bench/board.py                   # all three: trains what is missing, then makes the site
    python bench/board.py --quick           # a part of one task, under a minute
    python bench/board.py --write           # also bench/boards.json and the plots of docs/boards.md
    python bench/board.py --write --task nli    # of one task; those of the others stay
    python bench/board.py --json            # print the figures as one object

Weights and answers stay in HOME (default var/boards), so that a run that was broken off goes on.
The site is made again each time, on SQLite: rounds are imported, their sets opened, every model
submitted as files of predictions, evaluated, published and ranked, by the product's own services.
The data (DYNABENCH_DATA, else ../shared/data) is other people's: figures alone leave HOME. See
bench/README.md.
"""

import hashlib
import io
import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.boards.plan import Entry, entries  # noqa: E402
from bench.boards.rows import DATA, FILES, TASKS, Row, Rows, file_of, seeds  # noqa: E402
from bench.command import LACKS, parser_of, with_origin  # noqa: E402
from bench.machine import machine, versions  # noqa: E402
from bench.prepared import site_here  # noqa: E402

MOST_TRAIN, TESTED = 800, 400
QUICK_TRAIN, QUICK_TESTED = 200, 40
SLOW = ("starter-int8", "minilm-int8", "language-model", "frozen")
"""Kinds of models that --quick leaves out."""
SMOKE_TRAIN, SMOKE_TESTED = 12, 8
SMOKE_KINDS = ("majority",)
Answers = Mapping[str, Mapping[str, list[str]]]
"""The labels by model and set, in the order of the set's rows."""


def start(home: Path) -> None:
    """Set Django up on an empty site; what models need stays in `home`."""
    home.mkdir(parents=True, exist_ok=True)
    os.environ["SUBMISSIONS_PER_DAY"] = "1000"
    site_here()
    from django.conf import settings

    settings.SUBMISSIONS_PER_DAY = 1000  # where the site was set up before


class Site:
    """One task of the site: its owner, rounds, sets and models."""

    def __init__(self, rows: Rows, home: Path, *, quick: bool) -> None:
        from core.accounts.models import User, confirm_address
        from tasks.config.loading import load_config

        self.rows, self.home, self.quick = rows, home, quick
        self.code = f"{rows.task}-board"
        official = ROOT / "tasks" / "official" / rows.task / "task.yaml"
        self.config = load_config(official.read_text())
        self.owner = User.objects.filter(email="board@example.com").first()
        if self.owner is None:
            self.owner = User.objects.create_superuser("board@example.com", None)
            confirm_address(self.owner)

    def make(self) -> None:
        """The task, its rounds with what people said, and its sets, all opened."""
        import yaml

        from evaluation.test_sets.services import change_set
        from evaluation.test_sets.source_services import make_missing_versions
        from tasks.config.loading import dump_config
        from tasks.services import create_task

        config = {
            **yaml.safe_load(dump_config(self.config)),
            "metrics": {"main": "accuracy"},
            "leaderboard": {"weights": {"accuracy": 1, "throughput": 0, "memory": 0}},
        }
        if self.quick:
            few = {"n": 1, "reason": "A quick run."}
            config["leaderboard"]["min_examples"] = few
        self.task, _ = create_task(code=self.code, config_text=json.dumps(config), actor=self.owner)
        for name, rows in self.rows.tests.items():
            self._store(name, rows)
        make_missing_versions()
        for one in self.task.evaluation_sets.all():
            change_set(
                evaluation_set=one, actor=self.owner, description="", access="scoring",
                may_leave=True, answers_public=True,
            )  # fmt: skip

    def _store(self, name: str, rows: list[Row]) -> None:
        """As a closed round where people voted, else as a set of its own."""
        from django.core.management import call_command

        file = self.home / f"{self.code}-{name}.jsonl"
        file.write_text("".join(f"{json.dumps(row['line'])}\n" for row in rows))
        with redirect_stdout(io.StringIO()):
            if name.startswith("round-"):
                call_command(
                    "import_examples", str(file), f"--task={self.code}",
                    f"--policy={self.rows.policy}", stderr=io.StringIO(),
                )  # fmt: skip
            else:
                call_command(
                    "add_evaluation_set", self.code, str(file), name=name, may_leave=True,
                    answers_public=True,
                )  # fmt: skip

    def submit(self, name: str, about: str, said: Mapping[str, list[str]]) -> None:
        """A model's answers to every set, checked, scored and published."""
        from evaluation import jobs
        from evaluation.isolation.uploads.chunked import add_file
        from evaluation.models import EvaluationRun
        from evaluation.submissions.cards import ModelCard
        from evaluation.submissions.services import publish_model, submit_model
        from evaluation.test_sets.selectors import select_open_versions

        field = self.task.config.answer_field
        for version in select_open_versions(self.task):
            if (of := version.evaluation_set.name) not in said:
                continue
            lines = [
                json.dumps({"id": row["uid"], "output": {field: label}}) + "\n"
                for row, label in zip(self.rows.tests[of], said[of], strict=True)
            ]
            data = "".join(lines).encode()
            made = submit_model(
                task=self.task, owner=self.owner, kind="predictions", name=name,
                upload=add_file(self.owner, "answers.jsonl", len(data), io.BytesIO(data)),
                evaluation_set=version, card=ModelCard(trained_on=about),
            )  # fmt: skip
            jobs.check_submission(made.pk)
            made.refresh_from_db()
            for run in EvaluationRun.objects.filter(submission=made):
                jobs.evaluate_next(run.pk)
            if not made.runs.filter(outcome="ok").exists():
                raise SystemExit(f"{self.code}: {name} has no result on {of}: {made.error}")
        publish_model(submission=made, actor=self.owner)

    def board(self) -> dict[str, Any]:
        """The public board and the page of rounds, as the site gives them out."""
        from leaderboard.board.matrix import score_matrix
        from leaderboard.board.tables import build_public_table
        from leaderboard.jobs import find_unresampled, renew_boards
        from leaderboard.rounds.matrix import build_rounds, build_rounds_body
        from tasks.selectors import find_opened_rounds
        from validation.statistics.cache import all_numbers

        while find_unresampled(self.task).exists():
            renew_boards()
        renew_boards()
        seen = find_opened_rounds([self.task])
        matrix = score_matrix(self.task)
        rounds = build_rounds_body(matrix, build_rounds(matrix, seen, all_numbers(seen)))
        return {"board": build_public_table(self.task), "rounds": rounds["rounds"]}


def measure(
    all_rows: Mapping[str, Rows], models: Mapping[str, list[Entry]], home: Path, *, quick: bool
) -> dict[str, Any]:
    """The figures of these tasks with these models, without the texts."""
    from tqdm import tqdm

    from bench.boards.figures import adjust, figures
    from bench.boards.models import Maker
    from core.jobs.queue import silence

    found = {}
    with silence(), tqdm(total=2 * sum(map(len, models.values())) + len(all_rows)) as bar:
        for task, rows in all_rows.items():
            site = Site(rows, home, quick=quick)
            tell = lambda said: bar.set_postfix_str(said[:50])  # noqa: E731
            maker = Maker(site.config, rows, home, quick, tell)
            answers = {}
            for entry in models[task]:
                bar.set_description(f"{task}: {entry.name}")
                answers[entry.name] = maker.answers_of(entry)
                bar.update()
            bar.set_description(f"{task}: the site")
            site.make()
            bar.update()
            for entry in models[task]:
                site.submit(entry.name, entry.trained_on, answers[entry.name])
                bar.update()
            found[task] = figures(rows, models[task], answers, site.board(), maker.seconds)
    adjust(found)
    return found


def packages() -> tuple[str, ...]:
    """Return the names of the packages on which answers depend."""
    from bench.boards.models import PACKAGES

    return PACKAGES


def with_data(found: dict[str, Any]) -> dict[str, Any]:
    """Each task's figures with what they rest on."""
    about = {
        "machine": machine(), "versions": versions(*packages()), "data_sha256": dict(_digests())
    }  # fmt: skip
    for each in found.values():
        seconds = sum(one["cpu_seconds"] for one in each["models"])
        each |= about | {"cpu_seconds": round(seconds)}
    return found


def _digests() -> Iterator[tuple[str, str]]:
    for name in FILES:
        yield name, hashlib.sha256(file_of(name).read_bytes()).hexdigest()


def write(found: dict[str, Any]) -> None:
    """Put these tasks into the shipped figures, and make the plots of all."""
    from bench.boards.figures import adjust
    from bench.boards.plots import FIGURES, write_plots

    known = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    tasks = {task: one for task in TASKS if (one := found.get(task) or known.get(task))}
    adjust(tasks)
    FIGURES.write_text(json.dumps(tasks, indent=1, ensure_ascii=False) + "\n")
    write_plots(tasks)


def run(given: Namespace, tasks: list[str]) -> dict[str, Any]:
    """Make the site and return the figures of these tasks."""
    if given.smoke:
        with TemporaryDirectory() as folder:
            start(home := Path(folder))
            rows = seeds(SMOKE_TRAIN, SMOKE_TESTED)
            one_each = {entry.kind: entry for entry in entries([*rows.stages])}
            few = [one_each[kind] for kind in SMOKE_KINDS]
            return measure({"sentiment": rows}, {"sentiment": few}, home, quick=True)
    home = (given.home / "quick" if given.quick else given.home).resolve()
    start(home)
    sizes = (QUICK_TRAIN, QUICK_TESTED) if given.quick else (MOST_TRAIN, TESTED)
    left_out = {*(SLOW if given.quick else given.without)}
    all_rows = {task: TASKS[task](*sizes) for task in tasks}
    models = {
        task: [one for one in entries([*rows.stages]) if not {one.kind, one.name} & left_out]
        for task, rows in all_rows.items()
    }
    return with_data(measure(all_rows, models, home, quick=given.quick))


def main() -> None:
    parser = parser_of(__doc__, quick="a part of one task, fewer models")
    parser.add_argument("--task", choices=TASKS, help="only this task")
    parser.add_argument("--home", type=Path, default=ROOT / "var" / "boards")
    parser.add_argument(
        "--without", action="append", default=[], help="a kind of models or a model to leave out"
    )
    parser.add_argument("--write", action="store_true", help="figures and plots")
    given = parser.parse_args()
    is_small = given.quick or given.smoke
    lacking = [name for name in FILES if not file_of(name).exists()]
    if lacking and not given.smoke:
        said = f"{DATA} lacks {lacking[0]}.jsonl.gz. Set DYNABENCH_DATA to its folder.\n"
        parser.exit(LACKS, said)
    if given.write and is_small:
        parser.error("a quick run has no figures to ship; leave --write out")
    found = run(given, ["sentiment"] if given.quick else [given.task] if given.task else [*TASKS])
    if given.write:
        write(found)
    if given.json:
        ratios = {
            f"{task}: {one['model']}": one["accuracy"]["value"]
            for task, each in found.items()
            for one in each["models"]
        }
        results = with_origin({"ratios": ratios, "tasks": found}, *packages())
        print(json.dumps(results, indent=2, ensure_ascii=False))
    else:
        for task, each in found.items():
            print(f"\n{task}")
            for one in each["models"]:
                print(f"{one['rank']:>4} ({one['first']} to {one['last']}) {one['model']:28}"
                      f"{one['accuracy']['value']:6.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
