"""A released round, evaluated by the tools of others: lm-evaluation-harness, Inspect, datasets.

Both tools run as a researcher runs them, on a tiny model and without a network. Their numbers are
held against ours on the same answers.
"""

import json
import os
import subprocess
import sys
from itertools import cycle, islice
from pathlib import Path

import pytest
import yaml
from django.utils import timezone

from annotation.models import Example
from core.accounts.models import Annotator
from evaluation.contract import Answer
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.services import request_release
from evaluation.isolation.inference.elsewhere import iterate_answer_lines
from evaluation.jobs import build_dataset
from evaluation.scoring.bootstrap import compute_scores
from evaluation.test_sets.selectors import read_set_rows
from evaluation.test_sets.source_services import make_release_version
from tasks.models import Round
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory
from validation.decisions.consensus_rows import derive_consensus
from validation.models import Validation

pytestmark = pytest.mark.nightly("harnesses")
LABELS = ("it's {{ 7*7 }}", '"no"\\n', "{% raw %} maybe")
"""Labels that would be run, cut or lost wherever they were not taken as data."""
RULES = "Say {{ cycler.__init__ }} or {name!r}.\n\n!function os.system\n- 'a\": &b *c\n```"
PASSAGE = "Ada built the mill in 1840. The mill burned down. Ada left Tarn in 1850."
SPANS = ("the mill", "Ada", "in 1850", "1840")
LM_EVAL = """
from functools import partialmethod
from lm_eval.__main__ import cli_evaluate
from lm_eval.tasks import TaskManager
# It would read thousands of tasks that come with it, which takes ten seconds.
TaskManager.__init__ = partialmethod(TaskManager.__init__, include_defaults=False)
cli_evaluate()
"""
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def nli_round() -> Round:
    task = TaskFactory(code="nli")
    text = yaml.safe_load(task.config_text)
    text |= {"instructions": RULES, "examples": {}}
    next(c for c in text["input"] if c["name"] == "label")["labels"] = list(LABELS)
    task.config_text = yaml.safe_dump(text)
    task.save(update_fields=["config_text"])
    round = RoundFactory(task=task, state="closed")
    ContextFactory.create_batch(3, round=round)
    return round


def qa_round() -> Round:
    round = RoundFactory(task=TaskFactory(code="qa"), number=2, state="closed")
    ContextFactory(round=round, fields={"passage": PASSAGE})
    return round


def span(text: str) -> dict[str, object]:
    return {"text": text, "start": PASSAGE.index(text), "end": PASSAGE.index(text) + len(text)}


def words(number: int) -> str:
    """Some of the passage, so that a model of few words sees a difference."""
    return " ".join(PASSAGE.split()[: 1 + number % 15])


def write(round: Round, people: list[Annotator], answers: list[object]) -> None:
    """Three examples by each of the people but the last three, who confirm them."""
    is_nli = round.task.code == "nli"
    written, answer = ("hypothesis", "label") if is_nli else ("question", "answer")
    contexts = list(round.contexts.all())
    for number, value in enumerate(islice(cycle(answers), 3 * len(people[3:]))):
        example = Example.objects.create(
            round=round,
            uid=f"e{number}",  # the same rows in each run, so the same answers of the model
            context=contexts[number % len(contexts)],
            annotator=people[3 + number // 3],
            inputs={written: f"Who is {{{{ {number} }}}} {words(number)}?", answer: value},
            digest=str(number),
            outcome="fooled",
            shown_at=timezone.now(),
        )
        vote = {"label": value} if is_nli else {"verdict": "correct"}
        for who in people[:3]:
            Validation.objects.create(
                example=example, validator=who, author_id=example.annotator_id, **vote
            )
        derive_consensus(example, list(example.validations.all()))


@pytest.fixture
def releases(db, settings, tmp_path):
    """A released round of two tasks: (dataset, its folder) by the task's code."""
    settings.MEDIA_ROOT = tmp_path / "media"
    names = [Annotator(pseudonym=f"w-{number}") for number in range(15)]
    people = list(Annotator.objects.bulk_create(names))
    found = {}
    for round, answers in ((nli_round(), [*LABELS]), (qa_round(), [span(s) for s in SPANS])):
        write(round, people, answers)
        dataset = request_release(round=round, options=Options(dev=6, test=12), actor=None)
        build_dataset(dataset.pk)
        dataset.refresh_from_db()
        assert dataset.state == "done", dataset.error
        found[round.task.code] = dataset, tmp_path / "media" / "releases" / str(dataset)
    return found


@pytest.fixture
def model(tmp_path):
    """A GPT-2 with random weights, two layers and few words: enough to say labels and answers."""
    import torch
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    words = ["<end>", "<unknown>", *dict.fromkeys(PASSAGE.split())]
    known = {word: number for number, word in enumerate(words)}
    pieces = Tokenizer(models.WordLevel(known, unk_token="<unknown>"))
    pieces.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    pieces.add_tokens([AddedToken(label, normalized=False) for label in LABELS])
    tokens = PreTrainedTokenizerFast(
        tokenizer_object=pieces, eos_token="<end>", unk_token="<unknown>"
    )
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokens), n_positions=1024, n_embd=32, n_layer=2, n_head=2,
        initializer_range=0.5, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    folder = tmp_path / "model"
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokens.save_pretrained(folder)
    return folder


def run(*arguments: object, folder: Path) -> None:
    """A tool as a researcher runs it, in a folder of its own and without a network."""
    done = subprocess.run(
        [Path(sys.executable).parent / str(arguments[0]), *map(str, arguments[1:])],
        cwd=folder,
        env={**os.environ, **OFFLINE, "HF_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def ours(dataset, said: dict[str, str | None]) -> dict[str, float | None]:
    """Our metrics of the answers by uid, over the set on which the platform evaluates models."""
    rows = list(read_set_rows(make_release_version(dataset)))
    assert len(rows) == 12
    assert {row.uid for row in rows} == said.keys()
    config = dataset.round.task.config
    is_nli = dataset.round.task.code == "nli"
    numbers = compute_scores(
        ((row, None if (v := said[row.uid]) is None else Answer(v)) for row in rows),
        metrics=("accuracy", "macro_f1") if is_nli else ("squad_f1", "exact_match"),
        labels=[label.value for label in config.get_labels(config.answer_field)] or None,
        slices=(),
        seed=0,
    )
    return {number.metric: number.value for number in numbers}


def test_lm_evaluation_harness_finds_our_numbers(releases, model, tmp_path):
    run(
        sys.executable, "-c", LM_EVAL, "--model", "hf", "--model_args", f"pretrained={model}",
        "--tasks",
        "dynabench_nli_r1,dynabench_qa_r2", "--include_path", tmp_path / "media", "--output_path",
        "out", "--log_samples", "--device", "cpu", "--batch_size", "12", "--num_fewshot", "1",
        folder=tmp_path,
    )  # fmt: skip
    (told,) = (json.loads(path.read_text()) for path in tmp_path.glob("out/*/results_*.json"))
    for code, name in (("nli", "dynabench_nli_r1"), ("qa", "dynabench_qa_r2")):
        (path,) = tmp_path.glob(f"out/*/samples_{name}_*.jsonl")
        samples = [json.loads(line) for line in path.read_text().splitlines()]
        said = {sample["doc"]["uid"]: chosen(sample) for sample in samples}
        assert len(set(said.values())) > 1
        assert len(samples) == len(said)
        for metric, value in ours(releases[code][0], said).items():
            assert told["results"][name][f"{metric},none"] == pytest.approx(value)
        assert taken_in(releases[code][0], path) == said
        read = samples[0]["arguments"]["gen_args_0"]["arg_0"]
        assert (RULES in read) == (code == "nli")
        assert read.count("Answer with") == 1
        assert read.count(f"\n{'label' if code == 'nli' else 'answer'}:") == 2


def chosen(sample):
    """The answer that lm-evaluation-harness counted."""
    answers = sample["filtered_resps"]
    if "choices" not in sample["doc"]:
        return answers[0]
    assert sample["doc"]["choices"] == list(LABELS)
    return LABELS[max(range(3), key=lambda number: float(answers[number][0]))]


def taken_in(dataset, path):
    """The answers by uid of a file that is submitted as predictions."""
    config = dataset.round.task.config
    lines = [json.loads(line) for line in iterate_answer_lines(config, path)]
    return {line["id"]: line["output"] and line["output"][config.answer_field] for line in lines}


def test_inspect_finds_our_numbers(releases, model, tmp_path):
    from inspect_ai.log import read_eval_log

    _, nli = releases["nli"]
    _, qa = releases["qa"]
    here = (qa / "inspect_task.py").relative_to(tmp_path)
    run(
        "inspect", "eval", f"{nli}/inspect_task.py@dynabench", here, "--model", "hf/local",
        "-M", f"model_path={model}", "--max-tokens", "8", "--log-format", "eval", "--display",
        "plain",
        folder=tmp_path,
    )  # fmt: skip
    paths = sorted(tmp_path.glob("logs/*.eval"))
    logs = [json.loads(read_eval_log(str(path)).model_dump_json()) for path in paths]
    assert [log["eval"]["dataset"]["name"] for log in logs] == [
        "dynabench_nli_r1",
        "dynabench_qa_r2",
    ]
    for log, path, (dataset, _) in zip(logs, paths, releases.values(), strict=True):
        assert log["status"] == "success"
        scores = [(one["id"], *one["scores"].values()) for one in log["samples"]]
        said = {uid: found.get("answer") for uid, found in scores}
        assert len(set(said.values())) > 1
        assert taken_in(dataset, path) == {uid: value or None for uid, value in said.items()}
        numbers = ours(dataset, said)
        assert inspected(log) == pytest.approx({name: numbers[name] for name in inspected(log)})
        assert len(inspected(log)) == 2
    assert RULES in logs[0]["samples"][0]["input"]
    assert {one["target"] for one in logs[0]["samples"]} == set(LABELS)


def inspected(log):
    """Inspect's numbers: of labels by metric, of answers in words the mean of each score."""
    if log["eval"]["task"] == "dynabench_nli_r1":
        metrics = log["results"]["scores"][0]["metrics"]
        return {name: metrics[name]["value"] for name in ("accuracy", "macro_f1")}
    return {one["name"]: one["metrics"]["mean"]["value"] for one in log["results"]["scores"]}


def test_the_library_datasets_loads_the_folder(releases, tmp_path):
    from datasets import load_dataset

    for _, folder in releases.values():
        loaded = load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
        names = {"train": "train", "validation": "dev", "test": "test"}
        assert loaded.keys() == names.keys()
        for name, split in names.items():
            lines = (folder / f"{split}.jsonl").read_text().splitlines()
            assert loaded[name]["uid"] == [json.loads(line)["uid"] for line in lines]
