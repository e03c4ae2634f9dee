"""Check an installation, and whether the sandbox withstands hostile models."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dynabench.operations.attacks.bench import Breach
from dynabench.operations.soundness.doctor import Verdict, check_media, run_cases, run_checks
from dynabench.operations.soundness.health import Finding
from evaluation.isolation.sandbox.engine import EngineError, find_engine

MARK_BY_RESULT = {True: "ok", False: "BAD", None: "-"}


class Command(BaseCommand):
    help = (
        "Check this installation and run hostile models in the sandbox. Exits with 1 if a "
        "check fails."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--quick", action="store_true", help="skip the hostile models")
        parser.add_argument(
            "--media", action="store_true", help="read every stored file and compare its digest"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        self.is_quiet = options["json"]
        results: list[Finding] = []
        self._report_findings(run_checks(), results)
        has_database = not any(f.what == "database" and f.state == "bad" for f in results)
        # The rows name the files.
        if options["media"] and has_database:
            self._report_findings(check_media(), results)
        verdicts: list[Verdict] = []
        # Without an engine there is no sandbox; a finding says so.
        if not options["quick"] and find_engine():
            results += self._run_hostile(verdicts)
        is_well = all(f.state != "bad" for f in results) and all(
            v.is_ok is not False for v in verdicts
        )
        if options["json"]:
            self.stdout.write(json.dumps(_build_report(results, verdicts, is_well), indent=2))
        if not is_well:
            raise CommandError("Some checks failed. See docs/runbook.md for each line above.")
        self._write_line("All checks passed.")

    def _report_findings(self, findings: Iterable[Finding], results: list[Finding]) -> None:
        for finding in findings:
            results.append(finding)
            self._write_line(f"{finding.state:<5} {finding.what:<14} {finding.message}")

    def _write_line(self, line: str) -> None:
        if not self.is_quiet:
            self.stdout.write(line)

    def _run_hostile(self, verdicts: list[Verdict]) -> list[Finding]:
        """Print a line for each case; return a finding if an error stopped the others."""
        self._write_line("\nHostile models (about a minute)")
        try:
            for verdict in run_cases():
                verdicts.append(verdict)
                case = verdict.case
                self._write_line(
                    f"{MARK_BY_RESULT[verdict.is_ok]:<4} {case.number:>2} {case.title}"
                )
                self._write_line(
                    f"        expected: {case.expected}\n        result:      {verdict.result}"
                )
                if case.covered_by and verdict.is_ok is not None:
                    self._write_line(f"        the rest: covered by {case.covered_by}")
        except (*EngineError, Breach, LookupError) as error:
            self._write_line(str(error))
            return [Finding("hostile models", "bad", str(error))]
        return []


def _build_report(results: list[Finding], verdicts: list[Verdict], is_well: bool) -> dict[str, Any]:
    return {
        "ok": is_well,
        "findings": [finding._asdict() for finding in results],
        "hostile": [
            {
                "number": verdict.case.number,
                "title": verdict.case.title,
                "expected": verdict.case.expected,
                "got": verdict.result,
                "ok": verdict.is_ok,
                "covered_by": verdict.case.covered_by,
            }
            for verdict in verdicts
        ],
    }
