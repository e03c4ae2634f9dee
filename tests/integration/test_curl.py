"""The commands of docs/api.md as they stand, by curl alone."""

import json
import os
import re
import subprocess

import pytest

from core.accounts.tokens import create_token
from evaluation.isolation.uploads.chunked import assemble_upload
from evaluation.models import EvaluationSet, Submission
from evaluation.test_sets.services import make_version
from tests.support.evaluations import nli_rows
from tests.support.factories import RoundFactory, TaskFactory, UserFactory
from tests.support.live import ROOT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.curl]
SITE = "http://127.0.0.1:8000"


def test_a_file_is_uploaded_in_pieces_and_submitted(live_server, tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "media"
    round = RoundFactory(task=TaskFactory(code="nli"), state="closed")
    one = EvaluationSet.objects.create(
        task=round.task, name="round-1", round=round, source="round", access="scoring",
        may_leave=True,
    )  # fmt: skip
    make_version(one, nli_rows(12), None)
    key = create_token(user=UserFactory(), name="a", scopes=["submit"], days=1)[1]
    sent = b"".join(
        json.dumps({"id": str(n), "output": "a=%&"}).encode() + b"\n" for n in range(40)
    )
    (tmp_path / "answers.jsonl").write_bytes(sent)
    page = (ROOT / "docs" / "api.md").read_text()
    commands = re.search(r"```bash\n(.*?)```", page, re.DOTALL)[1]
    assert SITE in commands
    assert "-b 16M" in commands
    told = commands.replace(SITE, live_server.url).replace("-b 16M", "-b 1000")  # several pieces
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", told], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "DYNABENCH_API_KEY": key},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    made = Submission.objects.get()
    assert (made.kind, made.name, made.evaluation_set.evaluation_set.name) == (
        "predictions", "mine v1", "round-1",
    )  # fmt: skip
    with assemble_upload(made.upload) as path:
        assert path.read_bytes() == sent
