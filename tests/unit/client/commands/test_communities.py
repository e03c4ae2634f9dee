"""`dynabench communities`, and one model for all tasks of a community."""

import io
import tarfile
from pathlib import Path

from dynabench.client.commands import main
from tests.unit.client.commands.conftest import ID, SERVER

WORDS = {"slug": "words", "name": "Words", "summary": "All.", "is_listed": True, "tracks": []}
JOINT = {"id": 7, "models": [{"id": ID, "task": "nli", "state": "queued", "error": ""}]}
COMMIT = "a" * 40


def test_the_list_and_a_board_are_shown(server, capsys):
    server.answers["GET /communities/"] = {"results": [WORDS], "next": None}
    assert main(["communities"]) == 0
    assert "words    Words  All." in capsys.readouterr().out
    line = {
        "rank": "", "name": "", "score": None, "missing": ["qa"],
        "points": [{"task": "nli", "value": 41.25}],
    }  # fmt: skip
    columns = [{"task": "nli"}, {"task": "qa"}]
    server.answers["GET /communities/words/board/"] = {"columns": columns, "lines": [line]}
    assert main(["communities", "words", "--track", "small"]) == 0
    assert server.asked[-1].url.params["track"] == "small"
    out = capsys.readouterr().out
    assert "-     (hidden)  not run  41.2  not run" in out


def test_a_model_goes_to_all_tasks(accepting, capsys):
    accepting.answers["POST /communities/words/submissions/"] = JOINT
    to = ["--community", "words", "--name", "mine", "--track", "small"]
    assert main(["submit", "--hub", f"org/name@{COMMIT}", *to]) == 0
    body = accepting.body("/communities/words/submissions/")
    assert body == {
        "kind": "hub", "name": "mine", "track": "small", "description": "",
        "source": "org/name", "revision": COMMIT,
    }  # fmt: skip
    out, err = capsys.readouterr()
    assert f"{SERVER}/communities/words/submissions/7/" in err
    assert ID in out


def test_a_folder_of_predictions_is_packed_by_its_places(accepting):
    accepting.answers["POST /communities/words/submissions/"] = JOINT
    folder = Path("answers")
    (folder / "nli").mkdir(parents=True)
    (folder / "nli" / "reviews.jsonl").write_text("{}\n")
    (folder / "notes.txt").write_text("Not this.")
    accepting.answers["POST /uploads/"] = {
        "id": "u1", "received": 0, "size": 10**6, "piece_bytes": 10**6,
    }  # fmt: skip
    accepting.answers["PUT /uploads/u1/"] = {"received": 10**6}
    assert main(["submit", "--predictions", "answers", "--community", "words"]) == 0
    sent = next(one.content for one in accepting.asked if one.method == "PUT")
    with tarfile.open(fileobj=io.BytesIO(sent)) as archive:
        assert archive.getnames() == ["nli/reviews.jsonl"]
    assert accepting.body("/communities/words/submissions/")["upload"] == "u1"


def test_what_a_community_does_not_take_is_said(failing):
    for more in (["--chat", "https://x.test"], ["--hub", "a/b@c", "--publish"]):
        code, _ = failing("submit", *more, "--community", "words")
        assert code == 2
