"""The command that makes evaluation sets of files; also of data that others have published."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from evaluation.models import EvaluationSet, EvaluationSetVersion
from evaluation.test_sets.parsing import NO_ANSWER_REASON
from evaluation.test_sets.selectors import read_set_rows
from evaluation.test_sets.source_services import make_control_version
from tests.support.factories import TaskFactory

ROW = {"uid": "u1", "text": "The soup was warm.", "label": "positive"}
# Bytes that reading 25,000 rows and writing a version of them may take beyond what is imported.
# Some 90 MiB are enough for any number of such rows; to keep the texts would take 200 MB more.
MEMORY = 100 * 2**20


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def task(db):
    return TaskFactory(code="sentiment", is_official=True)


@pytest.fixture
def file(tmp_path):
    def make(*rows):
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        return path

    return make


def add(code, path, *options):
    out, err = StringIO(), StringIO()
    try:
        call_command("add_evaluation_set", code, path, *options, stdout=out, stderr=err)
    except CommandError as error:
        return "", f"{err.getvalue()}{error}"
    return out.getvalue(), err.getvalue()


@pytest.mark.own_process
def test_a_file_makes_a_set_and_then_its_versions(task, file):
    path = file(ROW, ROW | {"uid": "u2", "label": "negative"})
    out, err = add("sentiment", path, "--name", "reviews", "--access", "hidden", "--may-leave")
    assert (out, err) == ("sentiment/reviews v1: 2 examples.\n", "")
    one = EvaluationSet.objects.get()
    assert (one.access, one.may_leave, one.source) == ("hidden", True, "upload")
    assert "v1" in add("sentiment", path, "--name", "reviews")[0]  # the same file adds nothing
    assert add("sentiment", file(ROW), "--name", "reviews")[0].startswith("sentiment/reviews v2")
    assert EvaluationSet.objects.get() == one


def test_wrong_lines_are_named_and_nothing_is_stored(task, file):
    path = file(ROW, {"text": "x"}, ROW | {"uid": "u3", "label": "good"})
    _, err = add("sentiment", path, "--name", "reviews")
    assert f"{path}:2: `label` is missing" in err
    assert f"{path}:3: `label`" in err
    assert not EvaluationSet.objects.exists()
    out, err = add("sentiment", path, "--name", "reviews", "--skip-bad")
    assert "v1: 1 example." in out
    assert f"{path}:3:" in err


@pytest.mark.parametrize(
    ("code", "name", "words"),
    [
        ("nothing", "a", "no task 'nothing'. Tasks: sentiment"),
        ("sentiment", "a b", "letters a-z"),
        ("sentiment", "control", "choose another"),
        ("sentiment", "round-1", "Choose another"),
    ],
)
def test_names_that_are_refused(code, name, words, task, file):
    make_control_version(task)
    _, err = add(code, file(ROW), "--name", name)
    assert words in err


def test_files_that_cannot_be_read(task, tmp_path):
    assert "No such file" in add("sentiment", tmp_path / "none.jsonl", "--name", "a")[1]
    (tmp_path / "a.txt").write_text("x")
    assert "name the file .jsonl" in add("sentiment", tmp_path / "a.txt", "--name", "a")[1]
    (tmp_path / "b.jsonl").write_text("\n")
    assert "no example" in add("sentiment", tmp_path / "b.jsonl", "--name", "a")[1]
    assert not EvaluationSet.objects.exists()


REAL = {  # file: task, examples
    "dynasent-r1-test": ("sentiment", 3600),
    "dynasent-r2-dev": ("sentiment", 720),
    "anli-dev-sample": ("nli", 900),
    "train/nli-cad-test": ("nli", 2000),
    "train/hate-hatemojibuild-dev": ("hate-speech", 591),
    "train/qa-aqa-bert-dev": ("qa", 3390),
}


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_published_data_is_read(name, data, db):
    code, size = REAL[name]
    TaskFactory(code=code)
    out, err = add(code, data / f"{name}.jsonl.gz", "--name", "real")
    assert (out, err) == (f"{code}/real v1: {size} examples.\n", "")


@pytest.mark.data
def test_the_right_answer_of_published_data_is_the_released_one(data, task):
    """DynaSent's gold label has three of five votes, as our rule for the task wants."""
    import gzip

    path = data / "dynasent-r1-dev.jsonl.gz"
    add("sentiment", path, "--name", "real")
    gold = {row.uid: row.gold for row in read_set_rows(EvaluationSetVersion.objects.get())}
    with gzip.open(path) as lines:
        rows = [json.loads(line) for line in lines]
    assert gold == {row["uid"]: (row["metadata"]["gold_label"],) for row in rows}


@pytest.mark.data
def test_what_its_validators_disagree_about_is_left_out(data, task):
    path = data / "dynasent-sst-dev.jsonl.gz"
    _, err = add("sentiment", path, "--name", "real")
    assert f"{path}:5: `label`" in err  # the label “mixed”, which this task does not have
    out, _ = add("sentiment", path, "--name", "real", "--skip-bad")
    assert out == f"sentiment/real v1: 929 examples; 64 left out: {NO_ANSWER_REASON}.\n"


CODE = """
import re, sys
from pathlib import Path
import django
django.setup()
import pyarrow.parquet
from evaluation.test_sets.parsing import SetFile
from evaluation.test_sets.writing import _write_file
from tasks.config.loading import load_config
from tasks.services import OFFICIAL_FOLDER

def peak():  # not of getrusage, which starts at the parent's
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) * 1024

folder = Path(sys.argv[1])
config = load_config((OFFICIAL_FOLDER / "sentiment" / "task.yaml").read_text())
before = peak()
written, _, _ = _write_file(SetFile(folder / sys.argv[2], sys.argv[2], config), folder)
print(written.size, peak() - before)
"""


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_memory_follows_the_uids_and_not_the_texts(ending, tmp_path):
    """15,000 rows with 120 MB of texts, in a process whose peak is not this one's."""
    import pyarrow as pa
    import pyarrow.parquet

    rows, path = 15_000, tmp_path / f"rows.{ending}"
    texts = [f"{number} {'word ' * 1_600}" for number in range(rows)]
    if ending == "jsonl":
        with path.open("w") as file:
            file.writelines(f'{{"text": "{text}", "label": "neutral"}}\n' for text in texts)
    else:
        pa.parquet.write_table(pa.table({"text": texts, "label": ["neutral"] * rows}), path)
    done = subprocess.run(
        [sys.executable, "-c", CODE, tmp_path, path.name],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    size, used = map(int, done.stdout.split())
    assert size == rows
    assert used < MEMORY
