"""`dynabench verify`: a stranger recomputes what pages say, from what anybody may download."""

# ruff: noqa: F811  (fixtures are named where they are used)

import gzip
import hashlib
import json

import pytest
from django.core.files.base import ContentFile

from dynabench.client.commands import main
from evaluation.models import Dataset, EvaluationRun, EvaluationSet
from leaderboard.board.tables import compute_table_digest
from leaderboard.models import Snapshot
from tasks.models import Task
from tests.support.board_of_two import board  # noqa: F401
from tests.support.releases import _own_storage, closed, people, released  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)
SNAPSHOT = "/t/nli/leaderboard/snapshots/1/"


def verified(live_server, capsys, path=SNAPSHOT, *more):
    """The exit code, and the report."""
    code = main(["verify", f"{live_server.url}{path}", "--json", *more])
    out = capsys.readouterr().out
    return code, json.loads(out) if out else None


def test_a_stranger_recomputes_each_cell(board, live_server, capsys, tmp_path):
    code, report = verified(live_server, capsys, SNAPSHOT, "--to", str(tmp_path / "kept"))
    assert (code, report["ok"]) == (0, True)
    assert report["cells"]["equal"] == 4  # two models, two metrics
    assert "sealed" not in json.dumps(list((tmp_path / "kept").iterdir()), default=str)
    assert main(["verify", f"{live_server.url}{SNAPSHOT}", "--intervals"]) == 0
    assert "4 of " in capsys.readouterr().out


def test_a_changed_answer_shows(board, live_server, capsys):
    run = EvaluationRun.objects.filter(version=board).first()
    before = gzip.decompress(run.predictions.read())
    lines = before.replace(b'"contradiction"', b'"entailment"', 1)
    assert lines != before
    run.predictions.save("changed.jsonl.gz", ContentFile(gzip.compress(lines)))
    code, report = verified(live_server, capsys)
    assert code == 1
    differences = report["differences"]
    assert {(each["set"], each["model"]) for each in differences} == {
        ("round-1", run.submission.name)
    }


def test_an_interval_is_resampled_where_it_is_asked_for(board, live_server, capsys):
    snapshot = Snapshot.objects.get()
    snapshot.table["rows"][0]["sets"]["round-1"]["macro_f1"]["low"] -= 5
    snapshot.sha256 = compute_table_digest(snapshot.table)
    snapshot.save()
    assert verified(live_server, capsys)[0] == 0
    code, report = verified(live_server, capsys, SNAPSHOT, "--intervals")
    assert code == 1
    assert [each["metric"] for each in report["differences"]] == ["macro_f1"]


def test_a_forged_table_shows(board, live_server, capsys):
    snapshot = Snapshot.objects.get()
    snapshot.table["rows"][0]["sets"]["round-1"]["accuracy"]["value"] += 1
    snapshot.save()
    code, report = verified(live_server, capsys)
    assert code == 1
    assert "digest" in json.dumps(report)
    assert "accuracy" in json.dumps(report)


@pytest.mark.parametrize("secret", ["private_test", "hidden", "stays", "task"])
def test_labels_and_answers_leave_only_where_a_release_has_them(board, client, secret):
    base = "/api/v1/tasks/nli/leaderboard/snapshots/1/evidence/"
    addresses = [f"{base}round-1/{part}/" for part in ("labels", "answers")]
    assert [client.get(address).status_code for address in addresses] == [200, 200]
    for part in ("labels", "answers"):
        assert client.get(f"{base}sealed/{part}/").status_code == 404
    if secret == "private_test":
        Dataset.objects.update(options={"private_test": True})
    elif secret == "hidden":
        EvaluationSet.objects.update(access=EvaluationSet.Access.HIDDEN)
    elif secret == "stays":
        EvaluationSet.objects.update(may_leave=False)
    else:
        Task.objects.update(is_visible=False)
    assert [client.get(address).status_code for address in addresses] == [404, 404]
    if secret != "task":
        sets = client.get(base).json()["sets"]
        assert [each["is_public"] for each in sets] == [False] * len(sets)


def test_a_table_of_which_nothing_is_recomputed_is_not_verified(board, live_server, capsys):
    EvaluationSet.objects.update(may_leave=False)
    code, report = verified(live_server, capsys)
    assert code == 1
    assert (report["ok"], report["cells"].get("equal", 0)) == (False, 0)


def test_a_withdrawn_model_takes_its_answers_along(board, client):
    base = "/api/v1/tasks/nli/leaderboard/snapshots/1/evidence/round-1/answers/"
    before = len(b"".join(client.get(base).streaming_content).splitlines())
    model = EvaluationRun.objects.filter(version=board).first().submission
    model.withdrawn_at = model.queued_at
    model.save()
    after = len(b"".join(client.get(base).streaming_content).splitlines())
    assert before - after == 1 + board.size


@pytest.mark.parametrize("path", ["/", "/t/nli/leaderboard/", "/t/nli/rounds/x/data/"])
def test_an_address_that_shows_no_such_numbers_is_refused(live_server, path, capsys):
    assert main(["verify", f"{live_server.url}{path}"]) == 2
    assert main(["verify", "nli"]) == 2


def test_digests_of_a_release_are_recomputed(closed, live_server, capsys, tmp_path):
    released(closed)
    path = "/t/nli/rounds/1/data/"
    code, report = verified(live_server, capsys, path, "--to", str(tmp_path))
    assert (code, report["ok"]) == (0, True)
    assert report["files"] > 10
    [folder] = [each for each in tmp_path.iterdir() if each.is_dir() and "round1" in each.name]
    sums = folder / "SHA256SUMS"
    assert report["sha256"] == hashlib.sha256(sums.read_bytes()).hexdigest()
