"""Checks whether an installation is sound. Each one checks a part and explains the result."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from dynabench.operations.attacks.bench import Bench, Breach
from dynabench.operations.attacks.cases import CASES, Case
from dynabench.operations.soundness import health, outside
from dynabench.operations.soundness.cluster import check_cluster
from dynabench.operations.soundness.health import Finding, State
from evaluation.contract import GIB
from evaluation.dataset_releases.stored_files import find_damages
from evaluation.isolation.sandbox.containers import RUNTIME_IMAGE
from evaluation.isolation.sandbox.engine import find_engine
from evaluation.isolation.sandbox.images import has_image
from evaluation.isolation.sandbox.limits import SPARE_BYTES
from evaluation.isolation.uploads.chunked import count_site_bytes
from tasks.models import Round, TargetModel
from tasks.targets.connect import get_endpoint
from tasks.targets.endpoints.base import EndpointError

ANSWER_SECONDS = 5.0
CONCURRENT_CASES = 2  # hostile models
IMAGE_SCRIPT = settings.BASE_DIR / "scripts" / "runtime_image.sh"
OUTDATED_EXIT_CODE = 3  # its exit status
NO_ENGINE = (
    "No Docker engine responds. Model folders run in a process on this machine, so their "
    "speed and memory can't be compared with those in a sandbox. Submitted images wait for "
    "an engine. The hostile models were skipped."
)


CONNECTIONS_QUERY = """
    SELECT current_setting('max_connections')::int
               - current_setting('superuser_reserved_connections')::int,
           (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
"""


class Verdict(NamedTuple):
    """The result of a hostile case.

    result: what happened. is_ok: None if the case was not run here.
    """

    case: Case
    result: str
    is_ok: bool | None


def run_checks() -> Iterator[Finding]:
    """Yield the results of all checks except the hostile models.

    If the database has problems, checks that need it are left out.
    """
    database = health.check_database()
    if database.state != "bad":
        # It reads tables, so only where the database answers.
        database = check_migrations()
    yield database
    yield health.check_cache()
    yield check_static_files()
    yield from outside.check_configured_services()
    if database.state != "bad":
        yield from check_connections()
        yield check_stored_models()
        yield health.check_queue()
        yield check_targets()
        yield outside.check_contacts()
        yield outside.check_failed_runs()
        yield outside.check_erasure_log()
        yield outside.check_backup()
        yield outside.check_secrets()
    yield from check_disk()
    yield from check_engine()
    yield from check_cluster()


def check_migrations() -> Finding:
    """Check that the database has exactly the migrations of this version."""
    executor = MigrationExecutor(connection)
    pending_migrations = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if pending_migrations:
        names = ", ".join(
            f"{migration.app_label} {migration.name}" for migration, _ in pending_migrations
        )
        return Finding("database", "bad", f"Run manage.py migrate: {names}.")
    if newer_names := find_newer_migrations(executor):
        names = ", ".join(newer_names)
        message = f"A newer release has migrated the database: {names}. Install that release."
        return Finding("database", "note", message)
    return Finding("database", "ok", f"{connection.vendor}, all migrations applied")


def find_newer_migrations(executor: MigrationExecutor) -> list[str]:
    """Return the migrations that the database has and this version lacks because it is older."""
    known_migrations = executor.loader.disk_migrations
    newest_names: dict[str, str] = {}
    for app, name in known_migrations:
        newest_names[app] = max(newest_names.get(app, ""), name)
    newer_names = []
    for app, name in executor.loader.applied_migrations:
        # An older name that is not on disk was squashed; an unknown app is an extension's.
        if (app, name) not in known_migrations and app in newest_names and name > newest_names[app]:
            newer_names.append(f"{app} {name}")
    return sorted(newer_names)


def check_static_files() -> Finding:
    """Check the static files. A missing folder is only a note: other machines may serve the web."""
    finding = health.check_static_files()
    if finding.state == "bad" and not Path(settings.STATIC_ROOT).exists():
        return finding._replace(
            state="note", message=f"{finding.message} Only web processes need it."
        )
    return finding


def check_connections() -> Iterator[Finding]:
    """Check that PostgreSQL accepts as many connections as this machine's processes may open."""
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute(CONNECTIONS_QUERY)
        max_count, used_count = cursor.fetchone()
    needed_count = count_connections_needed(
        web=settings.WEB_CONCURRENCY,
        live_calls=settings.LIVE_CALLS,
        queue=settings.Q_CLUSTER["workers"] + settings.PRACTICE_MODELS,
    )
    message = (
        f"this machine needs up to {needed_count}, the server allows {max_count}, "
        f"{used_count} are in use"
    )
    state: State = "ok" if needed_count <= max_count else "bad"
    yield Finding("connections", state, message)


def count_connections_needed(*, web: int, live_calls: int, queue: int) -> int:
    """Return the number of connections of a machine that runs everything.

    web: the number of web processes. Each has twice `live_calls` threads for pages, `live_calls`
    threads for calls to models, and one that renews attempts. queue: the number of workers; the
    sweeper, the scheduler and the process for short jobs add three. The model server and two
    commands also connect. Each thread keeps one connection.
    """
    return web * (3 * live_calls + 1) + queue + 3 + 1 + 2


def check_stored_models() -> Finding:
    """Check the total size of uploads and models against the limit."""
    stored_gib, limit_gib = count_site_bytes() / GIB, settings.MODELS_BYTES / GIB
    if not limit_gib:
        return Finding("stored models", "ok", f"{stored_gib:.1f} GiB")
    state: State = "ok" if stored_gib < 0.9 * limit_gib else "bad"
    return Finding("stored models", state, f"{stored_gib:.1f} of {limit_gib:g} GiB (MODELS_GIB)")


def check_targets() -> Finding:
    """Check that the targets of open rounds answer."""
    targets = TargetModel.objects.filter(rounds__state=Round.State.OPEN).distinct()
    failures = []
    for target in targets.select_related("task"):
        try:
            # Asks for its version only: no model has to compute.
            get_endpoint(target).info(deadline_seconds=ANSWER_SECONDS)
        except EndpointError as error:
            failures.append(f"{target.name}: {error}")
    if failures:
        return Finding("live targets", "bad", "\n".join(failures))
    return Finding("live targets", "ok", f"{len(targets)} respond")


def check_disk() -> Iterator[Finding]:
    """Check that the home folder is writable, and that there is room for submissions and images."""
    path_by_part = {}
    home = health.check_disk()
    if home.state == "bad":
        yield home
    else:
        path_by_part["home"] = settings.HOME
    docker = find_engine()
    if docker:
        path_by_part["engine's disk"] = Path(docker.root)
    for part_name, path in path_by_part.items():
        if path.exists():  # an engine of another machine has its disk there
            free_gib = shutil.disk_usage(path).free / GIB
            state: State = "ok" if free_gib >= SPARE_BYTES / GIB else "bad"
            yield Finding(part_name, state, f"{free_gib:.1f} GiB free in {path}")


def check_media() -> Iterator[Finding]:
    """Check that every referenced file still has its stored content. Reads all files."""
    faults = list(find_damages())
    for path, row, fault in faults:
        yield Finding("media", "bad", f"{path} of {row} {fault}")
    if not faults:
        yield Finding("media", "ok", "all stored files are present and unchanged")


def check_engine() -> Iterator[Finding]:
    """Check that the container engine responds and has the features that the sandbox needs."""
    docker = find_engine()
    if not docker:
        docker_host = os.environ.get("DOCKER_HOST")
        if docker_host:  # somebody wants one
            yield Finding("engine", "bad", f"DOCKER_HOST is {docker_host}. {NO_ENGINE}")
        else:
            yield Finding("engine", "note", NO_ENGINE)
        return
    yield Finding(
        "engine", "ok", f"Docker {docker.version}, cgroup v{docker.cgroup}, {docker.arch}"
    )
    if docker.has_seccomp:
        yield Finding("seccomp", "ok", "Dynabench's profile is used")
    else:
        yield Finding(
            "seccomp",
            "bad",
            "The engine's kernel doesn't support it, so models could make any system call.",
        )
    if docker.has_runsc:
        yield Finding("runsc", "ok", "submitted models run in gVisor")
    else:
        message = "not installed, so models could exploit flaws in the kernel (docs/operators.md)"
        yield Finding("runsc", "note", message)
    yield check_runtime_image()


def check_runtime_image() -> Finding:
    """Check that the runtime image exists and has the content of this version."""
    if not has_image(RUNTIME_IMAGE):
        message = "Missing, but needed for model folders. Run scripts/runtime_image.sh."
        return Finding("runtime image", "note", message)
    process = subprocess.run([IMAGE_SCRIPT, "--is-current"], capture_output=True, text=True)
    if process.returncode == OUTDATED_EXIT_CODE:
        message = (
            "Built from other sources or pinned versions. Run scripts/runtime_image.sh to "
            "rebuild it."
        )
        return Finding("runtime image", "note", message)
    if process.returncode:
        message = f"Its version could not be checked: {process.stderr.strip()[-300:]}"
        return Finding("runtime image", "note", message)
    return Finding("runtime image", "ok", RUNTIME_IMAGE)


def run_cases() -> Iterator[Verdict]:
    """Run the hostile cases in order on this machine's engine.

    Raises an error in EngineError if the engine fails, Breach if containers are left behind, and
    LookupError if the site has no image to run the cases in.
    """
    with tempfile.TemporaryDirectory(prefix="dynabench-doctor-") as folder:
        with closing(Bench(Path(folder))) as bench, ThreadPoolExecutor(CONCURRENT_CASES) as pool:
            # In their order, two at a time.
            yield from pool.map(lambda case: judge_case(case, bench), CASES)
            # Before `close` removes them.
            leftover_names = bench.list_leftover_containers()
        if leftover_names:
            raise Breach(f"Containers left behind: {', '.join(leftover_names)}")


def judge_case(case: Case, bench: Bench) -> Verdict:
    """Run one case and return its verdict."""
    if not case.script and not case.check:
        return Verdict(case, f"not run here; covered by {case.covered_by}", None)
    try:
        result = case.run(bench)
    except Exception as error:  # a case that breaks is one that failed
        return Verdict(case, f"{type(error).__name__}: {error}", False)
    return Verdict(case, result, True)
