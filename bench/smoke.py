"""Run the smoke form of programs of `bench/`, to see that they run at all.

    python -m bench.smoke                # all
    python -m bench.smoke arena board    # these

Each program runs in a copy of one process that has loaded what is common, so all together take
seconds. Prints one object: by program what it printed, its exit code, and processor seconds.
"""

import argparse
import json
import os
import resource
import runpy
import sys
import tempfile
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
NO_PROGRAMS = {"load", "peers", "check", "smoke"}
"""Files that start but measure nothing by themselves: serving.py starts the first two."""


def list_programs() -> list[str]:
    """Return the names of all files of `bench/` that can be started, less PARTS."""
    found = {file.stem for file in FOLDER.glob("*.py") if '"__main__"' in file.read_text()}
    return sorted(found - NO_PROGRAMS)


def run_copy(program: str) -> dict[str, Any]:
    """Return what the smoke form of a program printed, and how it ended."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        child = os.fork()
        if not child:
            os._exit(_run_program(program, out.fileno(), errors.fileno()))
        _, status = os.waitpid(child, 0)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        out.seek(0)
        errors.seek(0)
        return {
            "exit": os.waitstatus_to_exitcode(status),
            "printed": out.read().decode(errors="replace"),
            "said": errors.read().decode(errors="replace")[-3000:],
            "cpu_seconds": used,
        }


def _run_program(program: str, out: int, errors: int) -> int:
    """Run the program in this process, which is a copy; return how it ends."""
    os.dup2(out, 1)
    os.dup2(errors, 2)
    sys.argv = [program, "--smoke", "--json"]
    code: Any = 0
    try:
        runpy.run_module(f"bench.{program}", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:  # the copy must not go on as the first process
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return code or 0


def warm_up() -> None:
    """Load what the programs have in common, and start no thread."""
    os.environ |= {"OMP_NUM_THREADS": "1", "EMAIL_VERIFICATION": "mandatory"}
    from bench.prepared import begin_with_official_tasks, set_up_site_here

    set_up_site_here()
    begin_with_official_tasks()
    from django.test import Client

    Client(SERVER_NAME="localhost").get("/")  # addresses and templates are read
    import scipy.stats  # noqa: F401
    import torch  # noqa: F401
    import transformers  # noqa: F401


def run_smoke_forms(names: Iterable[str]) -> dict[str, Any]:
    """Return what each of the programs printed."""
    warm_up()
    results = {}
    for name in names:
        results[name] = run_copy(name)
        used = results[name]["cpu_seconds"]
        print(f"{name:20} {used:6.1f} s, ended with {results[name]['exit']}", file=sys.stderr)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", help="default: all")
    print(json.dumps(run_smoke_forms(parser.parse_args().programs or list_programs())))


if __name__ == "__main__":
    main()
