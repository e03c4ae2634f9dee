"""What goes with a release for the tools of others: people's words come out as they went in."""

import ast
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from annotation.verdict import outcome
from evaluation.contract import Answer, SetRow
from evaluation.dataset_releases.exporters import (
    SHIPPED_FILES,
    build_instructions,
    dynabench_task,
    make_task_files,
)
from evaluation.dataset_releases.exporters.dynabench_task import (
    compute_macro_f1,
    compute_text_scores,
    iterate_examples,
    list_evaluation_examples,
    load_splits,
    score_choice,
    score_text,
)
from evaluation.scoring.bootstrap import compute_scores
from tasks.config.loading import load_config

OFFICIAL = Path(__file__).parents[3] / "tasks" / "official"
HOSTILE = '{{ 7*7 }} {x} "\'\n!function os.system\n- {% raw %}\\ """ + exec("1") # é'


class Loader(yaml.SafeLoader):
    """Keeps the names of functions as texts."""


Loader.add_constructor("!function", lambda loader, node: node.value)


def config_of(code="nli", **changes):
    text = yaml.safe_load((OFFICIAL / code / "task.yaml").read_text())
    return load_config(yaml.safe_dump(text | {"examples": {}} | changes))


def row(uid, label, context=None, withdrawn=False, **inputs):
    if withdrawn:
        return json.dumps({"uid": uid, "withdrawn": True})
    told = {"context_json": json.dumps(context or {}), "tag": ""}
    told = {"uid": uid, "context": told, "input_json": json.dumps(inputs), "label": label}
    return json.dumps(told | {"withdrawn": False})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "task.json").write_text(make_task_files(config_of(), "nli", 1, 1)["task.json"])
    return tmp_path


def write(folder, split, *rows):
    (folder / f"{split}.jsonl").write_text("".join(f"{line}\n" for line in rows))


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_what_people_wrote_stays_data(text):
    config = config_of(instructions=text)
    files = make_task_files(config, "nli", 3, 2)
    about = json.loads(files["task.json"])
    assert text.strip() in about["instructions"]
    plain = make_task_files(config_of(), "nli", 3, 2)
    assert {name for name in files if files[name] != plain[name]} <= {"task.json"}


def test_python_files_are_the_same_for_every_task():
    for code in ("nli", "qa"):
        files = make_task_files(config_of(code), code, 1, 1)
        assert [files[path.name] for path in SHIPPED_FILES] == [
            path.read_text() for path in SHIPPED_FILES
        ]


@pytest.mark.parametrize(
    ("code", "output", "metrics"),
    [
        ("hate-speech", "multiple_choice", ["accuracy", "macro_f1"]),
        ("qa", "generate_until", ["squad_f1", "exact_match"]),
    ],
)
def test_the_yaml_names_the_task_and_functions_that_exist(code, output, metrics):
    text = make_task_files(config_of(code), code, 4, 2)["dynabench_task.yaml"]
    told = yaml.load(text, Loader)
    assert told["task"] == f"dynabench_{code}_r4"
    assert told["output_type"] == output
    assert told["metadata"] == {"version": 2}
    assert [one["metric"] for one in told["metric_list"]] == metrics
    functions = [line.partition("!function dynabench_task.")[2] for line in text.splitlines()]
    names = [name.split(",")[0] for name in functions if name]
    assert len(names) >= 2
    assert all(callable(getattr(dynabench_task, name)) for name in names)


def test_a_task_that_no_prompt_can_ask_has_no_files():
    picture = [{"name": "premise", "type": "image", "label": "Picture"}]
    assert make_task_files(config_of(context=picture), "nli", 1, 1) == {}
    free = {
        "input": [{"name": "question", "type": "text"}, {"name": "answer", "type": "text"}],
        "output": ["answer"],
        "verdict": {"type": "exact_match", "fields": ["answer"]},
        "metadata": {},
    }
    assert make_task_files(config_of("qa", **free), "qa", 1, 1) == {}


def test_a_model_reads_the_labels_with_their_meaning():
    nli = config_of()
    assert "\n- neutral: The passage leaves it open." in build_instructions(nli)
    label = {"name": "label", "type": "multiclass", "labels": [{"value": "a"}, "b: c"]}
    bare = config_of(input=[{"name": "hypothesis", "type": "text"}, label], instructions=" ")
    assert build_instructions(bare) == (
        "Natural language inference\n\n"
        "Answer with one of these labels and nothing else:\n- a\n- b: c\n\n"
    )
    assert "passage" in build_instructions(config_of("qa"))


def test_examples_are_prompts(folder):
    write(
        folder,
        "test",
        row("1", "neutral", {"premise": HOSTILE}, hypothesis="It\nrains."),
        row("2", "", withdrawn=True),
        row("3", "no label of the task", {"premise": "a"}, hypothesis="b"),
        row("4", "entailment", {"premise": "a"}),
    )
    one, two = iterate_examples(folder, "test")
    assert one["prompt"] == f"premise: {HOSTILE}\nhypothesis: It\nrains.\nlabel:"
    assert (one["uid"], one["choices"][one["target"]]) == ("1", "neutral")
    assert two["prompt"] == "premise: a\nlabel:"
    assert one["instructions"] == build_instructions(config_of())
    assert list(iterate_examples(folder, "train")) == []


def test_answers_in_words_have_no_choices(folder):
    (folder / "task.json").write_text(make_task_files(config_of("qa"), "qa", 1, 1)["task.json"])
    answer = {"text": "Ada", "start": 0, "end": 3}
    write(folder, "dev", row("1", "Ada", {"passage": "Ada."}, question="Who?", answer=answer))
    (doc,) = list_evaluation_examples(folder)
    assert doc["prompt"] == "passage: Ada.\nquestion: Who?\nanswer:"
    assert doc["target"] == "Ada"
    assert "choices" not in doc


def test_a_span_is_read_as_its_words(folder):
    about = json.loads((folder / "task.json").read_text()) | {"fields": ["aspect"]}
    (folder / "task.json").write_text(json.dumps(about))
    write(folder, "test", row("1", "neutral", aspect={"text": "the soup", "start": 0, "end": 8}))
    assert list_evaluation_examples(folder)[0]["prompt"] == "aspect: the soup\nlabel:"


def test_dev_is_evaluated_where_the_labels_of_test_are_private(folder):
    with pytest.raises(FileNotFoundError, match=r"test\.jsonl and dev\.jsonl"):
        list_evaluation_examples(folder)
    write(folder, "dev", row("1", "neutral", {"premise": "a"}, hypothesis="b"))
    assert [doc["uid"] for doc in list_evaluation_examples(folder)] == ["1"]
    write(folder, "test", row("2", "neutral", {"premise": "a"}, hypothesis="b"))
    assert [doc["uid"] for doc in list_evaluation_examples(folder)] == ["2"]


def test_lm_evaluation_harness_gets_data_sets(folder, monkeypatch):
    monkeypatch.setattr(dynabench_task, "__file__", str(folder / "dynabench_task.py"))
    write(folder, "test", row("1", "neutral", {"premise": "a"}, hypothesis="b"))
    found = load_splits(version=1, config_source="a file")
    assert found["evaluated"][0] == list_evaluation_examples(folder)[0]
    assert len(found["train"]) == 0


def test_the_likeliest_label_counts():
    doc = {"target": 1}
    assert score_choice(doc, [(-3.0, False), (-1.0, True)]) == {"accuracy": 1, "macro_f1": (1, 1)}
    assert score_choice(doc, [(-1.0, True), (-3.0, False)]) == {"accuracy": 0, "macro_f1": (1, 0)}


def test_answers_in_words_are_scored_by_squad():
    found = score_text({"target": "the old mill"}, ["An old mill, burned"])
    assert found == {"squad_f1": 0.8, "exact_match": 0.0}


@given(st.text(), st.text())
def test_scores_of_words_are_those_of_the_platform(said, right):
    assert compute_text_scores(said, right) == {
        "squad_f1": outcome.compute_squad_f1(said, right),
        "exact_match": outcome.is_exact_match(said, right),
    }


LABELS = ("a", "b", "c")
answers = st.tuples(st.sampled_from(LABELS), st.sampled_from([*LABELS, None]))


@given(st.lists(answers, min_size=1))
def test_macro_f1_is_that_of_the_platform(pairs):
    rows = (
        (SetRow(str(number), {}, (right,)), said and Answer(said))
        for number, (right, said) in enumerate(pairs)
    )
    (number,) = compute_scores(
        rows, metrics=["macro_f1"], labels=LABELS, slices=(), seed=0, draws=2
    )
    assert compute_macro_f1(pairs) == pytest.approx(number.value)


def test_no_example_has_no_f1():
    assert math.isnan(compute_macro_f1([]))


def test_macro_f1_by_hand():
    # a: one of two right ones is found, and answered twice; b is never answered.
    assert compute_macro_f1([("a", "a"), ("a", None), ("b", "a")]) == pytest.approx((2 / 4 + 0) / 2)


def test_what_is_shipped_needs_nothing_but_python(tmp_path):
    for name, text in make_task_files(config_of("qa"), "qa", 1, 1).items():
        (tmp_path / name).write_text(text)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import answer_reader, dynabench_task as task;"
        "print(task.words.__file__.startswith(sys.argv[1]), 'dynabench' in sys.modules);"
        "print(answer_reader.read_label('“正面。”', ['负面', '正面'], 'label').label);"
        "print(task.compute_text_scores('cafe\\u0301', 'café')['exact_match'])"
    )
    command = [sys.executable, "-I", "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["True", "False", "正面", "1.0"]


def test_the_words_beside_the_file_count(tmp_path, monkeypatch):
    (tmp_path / "dynabench_words.py").write_text("split_answer_words = None\n")
    monkeypatch.setattr(dynabench_task, "__file__", str(tmp_path / "dynabench_task.py"))
    assert dynabench_task._load_words_module().split_answer_words is None


def test_the_shipped_files_find_what_they_import_from_each_other() -> None:
    """No type checker follows these imports, which only work in a release's folder."""
    names_by_module = {}
    for path in SHIPPED_FILES:
        top_level = ast.parse(path.read_text()).body
        names_by_module[path.stem] = {getattr(node, "name", "") for node in top_level}
    imports = [
        (node.module, {alias.name for alias in node.names})
        for path in SHIPPED_FILES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ImportFrom) and node.module in names_by_module
    ]
    assert {module for module, _ in imports} == {"answer_reader", "dynabench_task"}
    for module, names in imports:
        assert names <= names_by_module[module]
