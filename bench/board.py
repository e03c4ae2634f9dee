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

from bench.boards.plan import Entry, list_entries  # noqa: E402
from bench.boards.rows import DATA, FILES, TASKS, Row, Rows, build_seed_rows, find_file  # noqa: E402
from bench.command import EXIT_UNAVAILABLE, add_origin, build_parser  # noqa: E402
from bench.machine import describe_machine, list_versions  # noqa: E402
from bench.prepared import set_up_site_here  # noqa: E402

MAX_TRAIN_SIZE, TEST_SIZE = 800, 400
QUICK_TRAIN_SIZE, QUICK_TEST_SIZE = 200, 40
SLOW = ("starter-int8", "minilm-int8", "language-model", "frozen")
"""Kinds of models that --quick leaves out."""
SMOKE_TRAIN_SIZE, SMOKE_TEST_SIZE = 12, 8
SMOKE_KINDS = ("majority",)
Answers = Mapping[str, Mapping[str, list[str]]]
"""The labels by model and set, in the order of the set's rows."""


def set_up_site(home: Path) -> None:
    """Set Django up on an empty site; what models need stays in `home`."""
    home.mkdir(parents=True, exist_ok=True)
    os.environ["SUBMISSIONS_PER_DAY"] = "1000"
    set_up_site_here()
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

    def submit(
        self, name: str, training_data: str, answers_by_set: Mapping[str, list[str]]
    ) -> None:
        """A model's answers to every set, checked, scored and published."""
        from evaluation import jobs
        from evaluation.isolation.uploads.chunked import add_file
        from evaluation.models import EvaluationRun
        from evaluation.submissions.cards import ModelCard
        from evaluation.submissions.services import publish_model, submit_model
        from evaluation.test_sets.selectors import select_open_versions

        field = self.task.config.answer_field
        for version in select_open_versions(self.task):
            if (set_name := version.evaluation_set.name) not in answers_by_set:
                continue
            lines = [
                json.dumps({"id": row["uid"], "output": {field: label}}) + "\n"
                for row, label in zip(
                    self.rows.tests[set_name], answers_by_set[set_name], strict=True
                )
            ]
            data = "".join(lines).encode()
            submission = submit_model(
                task=self.task, owner=self.owner, kind="predictions", name=name,
                upload=add_file(self.owner, "answers.jsonl", len(data), io.BytesIO(data)),
                evaluation_set=version, card=ModelCard(trained_on=training_data),
            )  # fmt: skip
            jobs.check_submission(submission.pk)
            submission.refresh_from_db()
            for evaluation_run in EvaluationRun.objects.filter(submission=submission):
                jobs.evaluate_next(evaluation_run.pk)
            if not submission.runs.filter(outcome="ok").exists():
                raise SystemExit(
                    f"{self.code}: {name} has no result on {set_name}: {submission.error}"
                )
        publish_model(submission=submission, actor=self.owner)

    def board(self) -> dict[str, Any]:
        """The public board and the page of rounds, as the site gives them out."""
        from leaderboard.board.matrix import read_matrix
        from leaderboard.board.tables import build_public_table
        from leaderboard.jobs import find_unresampled_runs, renew_boards
        from leaderboard.rounds.matrix import build_rounds, build_rounds_body
        from tasks.selectors import find_opened_rounds
        from validation.statistics.cache import get_all_numbers

        while find_unresampled_runs(self.task).exists():
            renew_boards()
        renew_boards()
        seen = find_opened_rounds([self.task])
        matrix = read_matrix(self.task)
        rounds = build_rounds_body(matrix, build_rounds(matrix, seen, get_all_numbers(seen)))
        return {"board": build_public_table(self.task), "rounds": rounds["rounds"]}


def measure(
    all_rows: Mapping[str, Rows], models: Mapping[str, list[Entry]], home: Path, *, quick: bool
) -> dict[str, Any]:
    """The figures of these tasks with these models, without the texts."""
    from tqdm import tqdm

    from bench.boards.figures import adjust_p_values, build_figures
    from bench.boards.models import Maker
    from core.jobs.queue import silence_queue

    figures_by_task = {}
    with silence_queue(), tqdm(total=2 * sum(map(len, models.values())) + len(all_rows)) as bar:
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
            figures_by_task[task] = build_figures(
                rows, models[task], answers, site.board(), maker.seconds
            )
    adjust_p_values(figures_by_task)
    return figures_by_task


def list_packages() -> tuple[str, ...]:
    """Return the names of the packages on which answers depend."""
    from bench.boards.models import PACKAGES

    return PACKAGES


def add_data_origin(found: dict[str, Any]) -> dict[str, Any]:
    """Each task's figures with what they rest on."""
    about = {
        "machine": describe_machine(),
        "versions": list_versions(*list_packages()),
        "data_sha256": dict(_iterate_digests()),
    }  # fmt: skip
    for each in found.values():
        seconds = sum(one["cpu_seconds"] for one in each["models"])
        each |= about | {"cpu_seconds": round(seconds)}
    return found


def _iterate_digests() -> Iterator[tuple[str, str]]:
    for name in FILES:
        yield name, hashlib.sha256(find_file(name).read_bytes()).hexdigest()


def write_figures(found: dict[str, Any]) -> None:
    """Put these tasks into the shipped figures, and make the plots of all."""
    from bench.boards.figures import adjust_p_values
    from bench.boards.plots import FIGURES, write_plots

    known = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    tasks = {task: one for task in TASKS if (one := found.get(task) or known.get(task))}
    adjust_p_values(tasks)
    FIGURES.write_text(json.dumps(tasks, indent=1, ensure_ascii=False) + "\n")
    write_plots(tasks)


def measure_tasks(args: Namespace, tasks: list[str]) -> dict[str, Any]:
    """Make the site and return the figures of these tasks."""
    if args.smoke:
        with TemporaryDirectory() as folder:
            set_up_site(home := Path(folder))
            rows = build_seed_rows(SMOKE_TRAIN_SIZE, SMOKE_TEST_SIZE)
            one_each = {entry.kind: entry for entry in list_entries([*rows.stages])}
            few = [one_each[kind] for kind in SMOKE_KINDS]
            return measure({"sentiment": rows}, {"sentiment": few}, home, quick=True)
    home = (args.home / "quick" if args.quick else args.home).resolve()
    set_up_site(home)
    sizes = (QUICK_TRAIN_SIZE, QUICK_TEST_SIZE) if args.quick else (MAX_TRAIN_SIZE, TEST_SIZE)
    left_out = {*(SLOW if args.quick else args.without)}
    all_rows = {task: TASKS[task](*sizes) for task in tasks}
    models = {
        task: [one for one in list_entries([*rows.stages]) if not {one.kind, one.name} & left_out]
        for task, rows in all_rows.items()
    }
    return add_data_origin(measure(all_rows, models, home, quick=args.quick))


def main() -> None:
    parser = build_parser(__doc__, quick="a part of one task, fewer models")
    parser.add_argument("--task", choices=TASKS, help="only this task")
    parser.add_argument("--home", type=Path, default=ROOT / "var" / "boards")
    parser.add_argument(
        "--without", action="append", default=[], help="a kind of models or a model to leave out"
    )
    parser.add_argument("--write", action="store_true", help="figures and plots")
    args = parser.parse_args()
    is_small = args.quick or args.smoke
    lacking = [name for name in FILES if not find_file(name).exists()]
    if lacking and not args.smoke:
        said = f"{DATA} lacks {lacking[0]}.jsonl.gz. Set DYNABENCH_DATA to its folder.\n"
        parser.exit(EXIT_UNAVAILABLE, said)
    if args.write and is_small:
        parser.error("a quick run has no figures to ship; leave --write out")
    found = measure_tasks(
        args, ["sentiment"] if args.quick else [args.task] if args.task else [*TASKS]
    )
    if args.write:
        write_figures(found)
    if args.json:
        ratios = {
            f"{task}: {one['model']}": one["accuracy"]["value"]
            for task, each in found.items()
            for one in each["models"]
        }
        results = add_origin({"ratios": ratios, "tasks": found}, *list_packages())
        print(json.dumps(results, indent=2, ensure_ascii=False))
    else:
        for task, each in found.items():
            print(f"\n{task}")
            for one in each["models"]:
                print(f"{one['rank']:>4} ({one['first']} to {one['last']}) {one['model']:28}"
                      f"{one['accuracy']['value']:6.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
