"""What people say in real annotation tools is what comes in, from every export or from none.

Each file of pinned requirements is installed into an environment of its own, which takes minutes.
"""

import json
import os
import subprocess
import venv
from collections import defaultdict
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Count

from annotation.models import Example
from tests.support.factories import importing
from validation.models import Validation

pytestmark = [
    pytest.mark.skipif("REAL_SERVERS" not in os.environ, reason="installs others' programs"),
]
HERE = Path(__file__).parent
FORMATS = {"potato_1": "potato", "potato_2": "potato"}


def run(path: Path, tool: str, code: str) -> None:
    args = importing(["--from", FORMATS.get(tool, tool), "--task", code, "--create"])
    call_command("import_examples", str(path), *args, stdout=StringIO(), stderr=StringIO())


@pytest.mark.parametrize("requirements", sorted(HERE.glob("tools_*.txt")), ids=lambda p: p.stem)
def test_votes_of_a_tool_come_in_as_people_gave_them(
    db: None, requirements: Path, tmp_path: Path
) -> None:
    tool = requirements.stem.removeprefix("tools_")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "-r", requirements], check=True)
    folder = tmp_path / "project"
    subprocess.run([python, HERE / "annotating_tools.py", tool, folder], check=True)
    said = json.loads((folder / "said.json").read_text())
    wanted = {text.replace("\r\n", "\n"): sorted(labels) for text, labels in said.items()}
    exports = sorted((folder / "read").iterdir())
    assert exports
    for number, export in enumerate(exports):
        code = f"{tool}-{number}".replace("_", "-")
        run(export, tool, code)
        votes = Validation.objects.filter(example__round__task__code=code)
        found = defaultdict(list)
        for example in Example.objects.filter(round__task__code=code):
            mine = votes.filter(example=example).values_list("label", flat=True)
            found[example.inputs["text"]] += mine
        assert {text: sorted(labels) for text, labels in found.items()} == wanted, export.name
        each = votes.values("example", "validator").annotate(votes=Count("pk"))
        assert {one["votes"] for one in each} == {1}
    for export in (folder / "refused").iterdir():
        with pytest.raises(CommandError):
            run(export, tool, "refused")
    assert not Example.objects.filter(round__task__code="refused").exists()
