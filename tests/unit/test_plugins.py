"""Metrics, field types, formats and adversaries of others, as `pip install` leaves them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = '''
from tasks.config.field_types.texts import Text
from tasks.formats.snli import FORMAT as SNLI
from dataclasses import replace

from dynabench.adversaries.kinds.base import AdversaryKind
from evaluation.scoring.metrics.base import Mean


class Shout(Mean):
    """The share of answers in capitals."""

    name = "shout"
    title = "Shout"

    def compute_statistic(self, value, row):
        return float(value is not None and str(value).isupper())


class Proverb(Text, name="proverb"):
    """A proverb."""


class Echo(AdversaryKind, name="echo"):
    """Asks nothing."""

    title, summary, place, settings = "Echo", "Asks nothing.", 9, ()

    def plan_attacks(self, settings, labels, rng):
        return []


OTHER = replace(SNLI, title="Other")
WRONG = 5
'''
SHOW = """
import django; django.setup()
from evaluation.scoring.metrics import METRICS
from tasks.config.components import FIELD_TYPES
from tasks.config import schema, field_types
from tasks.formats import FORMATS
from dynabench.adversaries.kinds import KINDS
print("echo" in KINDS)
print("shout" in METRICS, "shout" in schema.METRIC_NAMES)
print("proverb" in FIELD_TYPES, "other" in FORMATS)
"""
GROUPS = {
    "dynabench.metrics": "shout = plug:Shout",
    "dynabench.field_types": "proverb = plug:Proverb",
    "dynabench.formats": "other = plug:OTHER",
    "dynabench.adversaries": "echo = plug:Echo",
}


def install(folder, groups):
    """Write a package with entry points as an installer does."""
    (folder / "plug.py").write_text(MODULE)
    metadata = folder / "plug-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n")
    lines = [f"[{group}]\n{line}\n" for group, line in groups.items()]
    (metadata / "entry_points.txt").write_text("\n".join(lines))


def show(folder):
    env = {**os.environ, "PYTHONPATH": str(folder), "DJANGO_SETTINGS_MODULE": "dynabench.settings"}
    return subprocess.run(
        [sys.executable, "-c", SHOW], cwd=ROOT, env=env, capture_output=True, text=True
    )


def test_what_an_installed_package_offers_is_there(tmp_path):
    install(tmp_path, GROUPS)
    done = show(tmp_path)
    assert done.stdout.split() == ["True"] * 5, done.stderr


@pytest.mark.parametrize(
    ("group", "line"),
    [
        ("dynabench.metrics", "shout = plug:Missing"),
        ("dynabench.metrics", "shout = plug:WRONG"),
        ("dynabench.field_types", "proverb = plug:Shout"),
        ("dynabench.adversaries", "echo = plug:Shout"),
        ("dynabench.formats", "other = nowhere:OTHER"),
        ("dynabench.formats", "snli = plug:OTHER"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(tmp_path, group, line):
    install(tmp_path, {group: line})
    done = show(tmp_path)
    assert done.returncode != 0
    last_line = done.stderr.strip().splitlines()[-1]
    assert "PluginError" in last_line
    assert line.split(" = ")[0] in last_line
