"""Is this installation sound? Each check looks at one part and says what it found, in words."""

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
from evaluation.isolation.uploads.chunked import site_bytes
from tasks.models import Round, TargetModel
from tasks.targets.connect import get_endpoint
from tasks.targets.endpoints.base import EndpointError

ANSWER_SECONDS = 5.0
CONCURRENT_CASES = 2  # hostile models
IMAGE_SCRIPT = settings.BASE_DIR / "scripts" / "runtime_image.sh"
OUTDATED_EXIT_CODE = 3  # its exit status
NO_ENGINE = (
    "No Docker engine answers. Model folders are evaluated in a process of this machine, where "
    "throughput and memory cannot be compared with a sandbox's; submitted images wait until an "
    "engine runs here. The hostile models were not run."
)


CONNECTIONS_QUERY = """
    SELECT current_setting('max_connections')::int
               - current_setting('superuser_reserved_connections')::int,
           (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
"""


class Verdict(NamedTuple):
    """The result of a hostile case. is_ok: None if the case was not run here."""

    case: Case
    got: str
    is_ok: bool | None


def run_checks() -> Iterator[Finding]:
    """Yield the results of all checks except the hostile models.

    Leaves out checks that need the database if the database has problems.
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
    """Check that the database's tables are those of this version."""
    executor = MigrationExecutor(connection)
    waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if waiting:
        names = ", ".join(f"{migration.app_label} {migration.name}" for migration, _ in waiting)
        return Finding("database", "bad", f"Run manage.py migrate: {names}.")
    if newer := find_newer_migrations(executor):
        message = f"A newer release has migrated it: {', '.join(newer)}. Install that release."
        return Finding("database", "note", message)
    return Finding("database", "ok", f"{connection.vendor}, all migrations applied")


def find_newer_migrations(executor: MigrationExecutor) -> list[str]:
    """Return the migrations that the database has and this older version lacks."""
    on_disk = executor.loader.disk_migrations
    newest_names: dict[str, str] = {}
    for app, name in on_disk:
        newest_names[app] = max(newest_names.get(app, ""), name)
    newer = []
    for app, name in executor.loader.applied_migrations:
        # An older name that is not on disk was squashed; an unknown app is an extension's.
        if (app, name) not in on_disk and app in newest_names and name > newest_names[app]:
            newer.append(f"{app} {name}")
    return sorted(newer)


def check_static_files() -> Finding:
    """Check the static files. A machine without web processes needs none."""
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
        f"this machine may hold {needed_count}, the server takes {max_count}, "
        f"{used_count} are in use"
    )
    state: State = "ok" if needed_count <= max_count else "bad"
    yield Finding("connections", state, message)


def count_connections_needed(*, web: int, live_calls: int, queue: int) -> int:
    """Return the number of connections of a machine that runs everything.

    web: number of processes, each with twice `live_calls` threads for pages, `live_calls` for
    calls to models and one that renews attempts. queue: number of workers; the sweeper and the
    scheduler add two. The model server and two commands also connect. Each thread keeps one
    connection.
    """
    return web * (3 * live_calls + 1) + queue + 2 + 1 + 2


def check_stored_models() -> Finding:
    """Check the total size of uploads and models against the limit."""
    stored_gib, limit_gib = site_bytes() / GIB, settings.MODELS_BYTES / GIB
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
    return Finding("live targets", "ok", f"{len(targets)} answer")


def check_disk() -> Iterator[Finding]:
    """Check that the home folder is writable and has room for submissions and images."""
    places = {}
    home = health.check_disk()
    if home.state == "bad":
        yield home
    else:
        places["home"] = settings.HOME
    docker = find_engine()
    if docker:
        places["engine's disk"] = Path(docker.root)
    for part_name, place in places.items():
        if place.exists():  # an engine of another machine has its disk there
            free = shutil.disk_usage(place).free / GIB
            state: State = "ok" if free >= SPARE_BYTES / GIB else "bad"
            yield Finding(part_name, state, f"{free:.1f} GiB free in {place}")


def check_media() -> Iterator[Finding]:
    """Check that every referenced file still has its stored content. Reads all files."""
    faults = list(find_damages())
    for path, row, fault in faults:
        yield Finding("media", "bad", f"{path} of {row} {fault}")
    if not faults:
        yield Finding("media", "ok", "every stored file is there and what was stored")


def check_engine() -> Iterator[Finding]:
    """Check that the container engine responds and has the required features."""
    docker = find_engine()
    if not docker:
        named = os.environ.get("DOCKER_HOST")
        if named:  # somebody wants one
            yield Finding("engine", "bad", f"DOCKER_HOST is {named}. {NO_ENGINE}")
        else:
            yield Finding("engine", "note", NO_ENGINE)
        return
    yield Finding(
        "engine", "ok", f"Docker {docker.version}, cgroup v{docker.cgroup}, {docker.arch}"
    )
    if docker.has_seccomp:
        yield Finding("seccomp", "ok", "our own profile is used")
    else:
        yield Finding("seccomp", "bad", "The engine's kernel has none: models could call anything.")
    if docker.has_runsc:
        yield Finding("runsc", "ok", "submitted models run in gVisor")
    else:
        sentence = "not installed: a flaw in the kernel is open to models (docs/operators.md)"
        yield Finding("runsc", "note", sentence)
    yield check_runtime_image()


def check_runtime_image() -> Finding:
    """Check that the runtime image exists and has the content of this version."""
    if not has_image(RUNTIME_IMAGE):
        sentence = "Model folders need it: run scripts/runtime_image.sh."
        return Finding("runtime image", "note", sentence)
    process = subprocess.run([IMAGE_SCRIPT, "--is-current"], capture_output=True, text=True)
    if process.returncode == OUTDATED_EXIT_CODE:
        sentence = (
            "It was built of other sources or pins: run scripts/runtime_image.sh to rebuild it."
        )
        return Finding("runtime image", "note", sentence)
    if process.returncode:
        sentence = f"Whether it is of this version is not known: {process.stderr.strip()[-300:]}"
        return Finding("runtime image", "note", sentence)
    return Finding("runtime image", "ok", RUNTIME_IMAGE)


def run_cases() -> Iterator[Verdict]:
    """Run the hostile cases in order on this machine's engine.

    Raises EngineError, or LookupError if none of our images exists to run them in.
    """
    with tempfile.TemporaryDirectory(prefix="dynabench-doctor-") as folder:
        with closing(Bench(Path(folder))) as bench, ThreadPoolExecutor(CONCURRENT_CASES) as pool:
            # In their order, two at a time.
            yield from pool.map(lambda case: judge_case(case, bench), CASES)
            # Before `close` removes them.
            left = bench.left()
        if left:
            raise Breach(f"These containers were left behind: {', '.join(left)}")


def judge_case(case: Case, bench: Bench) -> Verdict:
    """Run one case and return its verdict."""
    if not case.script and not case.check:
        return Verdict(case, f"not run here; covered by {case.elsewhere}", None)
    try:
        got = case.run(bench)
    except Exception as error:  # a case that breaks is one that failed
        return Verdict(case, f"{type(error).__name__}: {error}", False)
    return Verdict(case, got, True)
