"""What all programs of `bench/` take and print: sizes, and ratios with their origin."""

import argparse
from collections.abc import Container
from typing import Any

from bench.machine import describe_machine, list_versions

EXIT_UNAVAILABLE = 3
"""A program ends with this where the machine lacks what it needs."""


def build_parser(doc: str | None, *, quick: str) -> argparse.ArgumentParser:
    """Return a parser with --quick, --smoke and --json; quick: what --quick leaves out."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help=quick)
    smoke = "the least that runs, for tests: its figures mean nothing"
    sizes.add_argument("--smoke", action="store_true", help=smoke)
    parser.add_argument("--json", action="store_true", help="print one object")
    return parser


def add_origin(
    results: dict[str, Any], *packages: str, lower: Container[str] = ()
) -> dict[str, Any]:
    """Return results with the better direction of each ratio, the machine, and versions.

    lower: names of the ratios of which less is better.
    """
    better = {name: "lower" if name in lower else "higher" for name in results["ratios"]}
    origin = {"better": better, "machine": describe_machine(), "versions": list_versions(*packages)}
    return {**results, **origin}
