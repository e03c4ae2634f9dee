"""The wheel has every module that the server's check and `dynabench verify` need."""

import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[3]
RUN = (
    "evaluation.isolation.inference.leased",
    "evaluation.isolation.inference.precheck",
    "evaluation.isolation.sandbox.harness.__main__",
    "evaluation.scoring.recompute",
)
PLUGINS = ("tasks.config.field_types", "evaluation.scoring.metrics")
"""Folders whose modules are imported by their folder."""


def test_what_the_check_imports_is_carried():
    rooms = ("core", "serving", "annotation", "evaluation", "tasks", "validation")
    graph = grimp.build_graph(*rooms, cache_dir=None)
    roots = {*RUN, *PLUGINS, *(name for each in PLUGINS for name in graph.find_descendants(each))}
    needed = roots.union(*(graph.find_upstream_modules(name) for name in roots))
    needed |= {package for module in needed for package in _packages(module)}
    wheel = tomllib.loads((ROOT / "dynabench/client/pyproject.toml").read_text())
    carried = wheel["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["server"]
    paths = {ROOT / name for name in carried}
    files = {file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])}
    names = {_module(file) for file in files if file.suffix == ".py"}
    assert names == needed


def _packages(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def _module(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
