"""Whether the site got slower: quick forms of programs, here and at the commit that was accepted.

    python -m bench.check                                # against the commits of bench/ratios.json
    python -m bench.check --programs judging,leaderboard
    python -m bench.check --against v0.2.0
    python -m bench.check --accept                       # these figures are the ones to keep

Each program runs in this work tree and in a worktree of the kept commit, by turns, in pairs. It
ends with 1 where a ratio lost a fifth in the median of the pairs; one that seems to have done so
is measured in more pairs first. See bench/README.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.comparing import ComparedRatio, Run, compare, compute_median_run, is_product_file

ROOT = Path(__file__).resolve().parent.parent
RATIOS = ROOT / "bench" / "ratios.json"
PROGRAMS = ("request_costs",)
"""What is compared unless something else is asked for: all that people wait for."""
PAIR_COUNT, EXTRA_PAIR_COUNT = 3, 2
TIMEOUT_SECONDS = 300
"""After that a run is given up."""


class ProgramFailed(Exception):
    """A program ended with an error, or gave no ratios; its last words."""


def run_git(*arguments: str) -> str:
    """Return what git prints; raises CalledProcessError."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def find_commit(name: str) -> str | None:
    """Return the commit of that name, or None where this clone does not have it."""
    try:
        return run_git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except subprocess.CalledProcessError:
        return None


def list_changed_files(commit: str) -> list[str]:
    """Return the files of the product that differ from those of a commit."""
    changed = run_git("diff", "--name-only", commit).splitlines()
    new = run_git("ls-files", "--others", "--exclude-standard").splitlines()
    return [path for path in (*changed, *new) if is_product_file(path)]


@contextmanager
def open_worktree(commit: str) -> Iterator[Path]:
    """Yield a worktree of a commit, until the end of the block.

    It shares `var/`, where migrated databases are kept by the digest of their migrations.
    """
    (ROOT / "var").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-kept-") as folder:
        tree = Path(folder, "tree")
        run_git("worktree", "add", "--detach", "--force", str(tree), commit)
        try:
            (tree / "var").symlink_to(ROOT / "var")
            yield tree
        finally:
            run_git("worktree", "remove", "--force", str(tree))


def run_program(tree: Path, program: str) -> dict[str, Any]:
    """Return what the quick form of a program finds in a work tree; raises Failed."""
    command = [sys.executable, "-m", f"bench.{program}", "--quick", "--json"]
    env = {**os.environ, "PYTHONPATH": str(tree)}
    try:
        done = subprocess.run(
            command, cwd=tree, env=env, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise ProgramFailed(f"It took more than {TIMEOUT_SECONDS} seconds.") from None
    try:
        found = json.loads(done.stdout)
        if done.returncode == 0 and found["ratios"]:
            return dict(found)
    except (ValueError, KeyError, TypeError):
        pass
    raise ProgramFailed(f"It ended with {done.returncode}: {done.stderr.strip()[-1500:]}")


class Comparison:
    """Pairs of runs of one program, here and in a worktree of the kept commit."""

    def __init__(self, program: str, kept: Path) -> None:
        self.program, self._kept = program, kept
        self._pairs: list[tuple[Run, Run]] = []
        self._better: Mapping[str, Any] = {}
        self.is_broken_before = False

    def measure(self, pairs: int) -> list[ComparedRatio]:
        """Add pairs, and compare all; raises Failed where the program here does."""
        for number in range(pairs):
            order = (self._kept, ROOT) if number % 2 == 0 else (ROOT, self._kept)
            found = {}
            for tree in order:
                print_progress(f"{self.program}: {'now' if tree == ROOT else 'kept'} …")
                try:
                    found[tree] = run_program(tree, self.program)
                except ProgramFailed as failed:
                    if tree == ROOT:
                        raise
                    self.is_broken_before = True
                    print_progress(f"{self.program} does not run at the kept commit. {failed}")
                    return []
            self._better = found[ROOT]["better"]
            self._pairs.append((found[self._kept]["ratios"], found[ROOT]["ratios"]))
        return list(compare(self._pairs, self._better))


def check_program(program: str, kept: Path, entry: Mapping[str, Any] | None) -> bool:
    """Compare one program and print the table; whether nothing is lost."""
    comparison = Comparison(program, kept)
    comparisons = comparison.measure(PAIR_COUNT)
    if any(one.is_lost for one in comparisons):
        print_progress(f"{program}: a fifth seems to be lost; measuring again …")
        comparisons = comparison.measure(EXTRA_PAIR_COUNT)
    if comparison.is_broken_before:
        print_unmeasured_note(program, entry, run_program(ROOT, program))
        return True
    print_table(program, comparisons)
    return not any(one.is_lost for one in comparisons)


def print_unmeasured_note(
    program: str, entry: Mapping[str, Any] | None, found: Mapping[str, Any]
) -> None:
    """Print what the figures are beside the accepted ones, which decides nothing."""
    print(
        f"\nNOTE: {program} could not be measured at the kept commit. The accepted figures are of "
        "another time, perhaps of another machine, so this comparison decides nothing."
    )
    kept = entry["ratios"] if entry else {}
    print_table(program, list(compare([(kept, found["ratios"])], found["better"])))


def print_table(program: str, found: list[ComparedRatio]) -> None:
    """Print a line for each ratio."""
    print(f"\n{program:32}{'kept':>10}{'now':>10}{'left':>8}")
    for one in found:
        said = "   LOST" if one.is_lost else ""
        print(f"{one.name:32}{one.kept:10.3f}{one.now:10.3f}{one.left:8.0%}{said}")


def print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def accept(programs: list[str], known: dict[str, Any]) -> None:
    """Write the medians of some runs here as the figures to keep, with this commit."""
    head = find_commit("HEAD")
    assert head
    changed = {
        *list_changed_files(head),
        *run_git("diff", "--name-only", head, "bench").splitlines(),
    }
    changed -= {"bench/ratios.json"}
    if changed:
        sys.exit(f"Commit first, so that the figures have a commit: {', '.join(sorted(changed))}")
    for program in programs:
        found = []
        for _ in range(PAIR_COUNT):
            print_progress(f"{program} …")
            found.append(run_program(ROOT, program))
        origin = {name: found[-1][name] for name in ("better", "machine", "versions")}
        ratios = compute_median_run([one["ratios"] for one in found])
        known[program] = {"commit": head, "runs": len(found), "ratios": ratios, **origin}
        write_ratios(known)


def write_ratios(known: Mapping[str, Any]) -> None:
    """Write all accepted figures, rounded to four digits."""
    rounded = {
        program: {**one, "ratios": {n: float(f"{v:.4g}") for n, v in one["ratios"].items()}}
        for program, one in sorted(known.items())
    }
    RATIOS.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n")


def check_programs(
    programs: list[str], known: Mapping[str, Any], against: str, *, if_changed: bool
) -> bool:
    """Compare these programs with the commits they are kept by; whether nothing is lost."""
    good = True
    for program in programs:
        entry = known.get(program)
        name = against or (entry["commit"] if entry else "")
        if not name:
            print_progress(f"{program} has no accepted figures yet: python -m bench.check --accept")
            continue
        commit = find_commit(name)
        if commit is None:
            print_progress(f"This clone has no commit {name}: git fetch --unshallow")
            print_unmeasured_note(program, entry, run_program(ROOT, program))
        elif if_changed and not list_changed_files(commit):
            print_progress(f"{program}: no file of the product has changed since {commit[:12]}.")
        else:
            with open_worktree(commit) as kept:
                good &= check_program(program, kept, entry)
    return good


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    said = f"separated by commas; default: {','.join(PROGRAMS)}"
    parser.add_argument("--programs", default=",".join(PROGRAMS), help=said)
    parser.add_argument("--against", default="", metavar="COMMIT", help="instead of the kept one")
    parser.add_argument("--if-changed", action="store_true", help="only where product files differ")
    parser.add_argument("--accept", action="store_true", help="write bench/ratios.json")
    args = parser.parse_args()
    programs = args.programs.split(",")
    known = json.loads(RATIOS.read_text()) if RATIOS.exists() else {}
    try:
        if args.accept:
            accept(programs, known)
        elif not check_programs(programs, known, args.against, if_changed=args.if_changed):
            sys.exit("A fifth or more of what is marked as LOST is gone.")
    except ProgramFailed as failed:
        sys.exit(str(failed))


if __name__ == "__main__":
    main()
