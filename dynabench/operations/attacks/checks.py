"""Further checks of hostile cases, and the cases that are not a single run.

Each raises Breach with a description of what was seen. The cases return such a description.
"""

import dataclasses
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from contextlib import closing, suppress
from typing import Any

from django.conf import settings
from django.template import Context, Engine

from dynabench.operations.attacks.bench import BENCH_LIMITS, Bench, Breach, HostileRun, expect_that
from evaluation.contract import MIB, Answer, Outcome, Usage
from evaluation.isolation.inference.exchange import PROBABILITY_DIGITS, SentExamples
from evaluation.isolation.sandbox.containers import (
    NAME_PREFIX,
    SANDBOX_LABEL,
    OwnContainer,
    list_own_containers,
    remove_container,
)
from evaluation.isolation.sandbox.engine import connect_to_engine
from evaluation.isolation.sandbox.images import (
    ImageRefused,
    find_image_problems,
    inspect_image,
    load_image,
    pull_image,
)
from evaluation.isolation.sandbox.logs import REMOVED_LINE_TEXT, redact_log
from evaluation.isolation.sandbox.usage import ResourceSample, RunMeasurements
from evaluation.isolation.uploads.archives import ArchiveLimits, ArchiveRefused, check_archive
from tasks.targets.endpoints.base import EndpointConfig, EndpointError
from tasks.targets.endpoints.registry import build_endpoint

GOOD_SCRIPT = "answer_all()"
SLOW_SCRIPT = "import time\ntime.sleep(60)"


def check_memory_warning(hostile_run: HostileRun) -> None:
    """Check that a warning mentions the memory of a child process that was killed."""
    expect_that(
        any("memory" in warning for warning in hostile_run.ending.warnings), hostile_run.ending
    )


def check_log_is_cut(hostile_run: HostileRun) -> None:
    """Check that the log is bounded and that its first line says so."""
    log = hostile_run.ending.log
    # With room for the line that says so.
    expect_that(len(log) < BENCH_LIMITS.log_bytes + 100, len(log))
    expect_that("were not kept" in log.splitlines()[0], log[:100])


def check_log_is_redacted(hostile_run: HostileRun) -> None:
    """Check that the owners' log contains the examples and the submitter's log does not."""
    redacted_log = redact_log(hostile_run.ending.log, texts=hostile_run.texts)
    expect_that(hostile_run.texts[-1] in hostile_run.ending.log, hostile_run.ending.log)
    expect_that(REMOVED_LINE_TEXT in redacted_log, redacted_log)
    expect_that(not any(text in redacted_log for text in hostile_run.texts), redacted_log)


def check_log_is_inert(hostile_run: HostileRun) -> None:
    """Check that the log contains nothing that a terminal or a page would interpret."""
    page = (
        Engine()
        .from_string("<pre>{{ log }}</pre>")
        .render(Context({"log": hostile_run.ending.log}))
    )
    expect_that("\x1b" not in page and "\u202e" not in page, page)
    expect_that("<script>" not in page and "{{ settings }}" in page, page)


def check_few_digits(hostile_run: HostileRun) -> None:
    """Check that probabilities have few digits, so that they cannot smuggle out data."""
    prob = next(answer for answer in hostile_run.answers.iterate_in_order() if answer).prob
    expect_that(
        prob
        == {
            "yes": round(0.123456789, PROBABILITY_DIGITS),
            "no": round(0.876543211, PROBABILITY_DIGITS),
        },
        prob,
    )


def _check_good_run(bench: Bench, script: str, image: str) -> None:
    """Check that a model in this image answers every example and logs nothing."""
    hostile_run = bench.run(f"{script}\n{GOOD_SCRIPT}", image=image)
    expect_that(
        hostile_run.ending.outcome == Outcome.OK and not hostile_run.ending.log, hostile_run.ending
    )


def check_volumes(bench: Bench) -> str:
    """Check that an image with volumes is refused, and that the volumes are read-only if it runs.

    Docker would otherwise mount a writable disk of the host there.
    """
    image = bench.build_image("VOLUME /data /more")
    reasons = find_image_problems(inspect_image(image))
    expect_that(any("/data, /more" in reason for reason in reasons), reasons)
    script = "for place in ('/data/x', '/more/x'):\n    try: open(place, 'w')\n"
    _check_good_run(bench, f"{script}    except OSError: continue\n    breach(place)", image)
    return "refused; when it is run anyway: read-only"


def check_fresh_ids(bench: Bench) -> str:
    """Check that two runs on one set share no example id and have different orders."""
    rows = [{"text": str(number)} for number in range(1000)]
    runs = [SentExamples(bench.folder / f"sent-{number}") for number in range(2)]
    for run in runs:
        run.write(rows, ["text"], lambda share, message: None)
    first, second = _read_rows(runs[0]), _read_rows(runs[1])
    shared_ids = {row["id"] for row in first} & {row["id"] for row in second}
    expect_that(not shared_ids, shared_ids)
    same_count = sum(a["inputs"] == b["inputs"] for a, b in zip(first, second, strict=True))
    expect_that(same_count < 50, same_count)
    return f"no id twice; {same_count} of 1000 at the same place"


def _read_rows(run: SentExamples) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run.path.open()]


def check_random_answers(bench: Bench) -> str:
    """Check that a model that answers at random gives different answers in two runs."""
    script = "import random\nfor example in examples: answer(example, random.choice(['yes', 'no']))"
    first, second = bench.run(script), bench.run(script)
    expect_that(
        first.ending.outcome == second.ending.outcome == Outcome.OK, (first.ending, second.ending)
    )
    difference_count = sum(a != b for a, b in zip(first.labels, second.labels, strict=True))
    expect_that(difference_count, first.labels)
    return f"{difference_count} of {len(first.labels)} answers differ"


def check_no_stored_times(bench: Bench) -> str:
    """Check that no times are stored per answer, only sums per run."""
    names = {field.name for field in dataclasses.fields(Answer)}
    expect_that(names == {"value", "prob", "logprob", "tokens"}, names)
    sums = [field.name for field in dataclasses.fields(Usage) if "seconds" in field.name]
    return f"kept of an answer: {', '.join(sorted(names))}; of the run: {', '.join(sums)}"


def check_archives(bench: Bench) -> str:
    """Check that hostile archives are refused before anything is written."""
    bomb_path, escaping_path = bench.folder / "bomb.zip", bench.folder / "up.tar"
    crowded_path = bench.folder / "many.tar"
    with zipfile.ZipFile(bomb_path, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("weights.safetensors", bytes(32 * MIB))
    with tarfile.open(escaping_path, "w") as tar:
        tar.addfile(tarfile.TarInfo("../../etc/cron.d/x"))
    with tarfile.open(crowded_path, "w") as tar:
        for number in range(1001):
            tar.addfile(tarfile.TarInfo(f"{number}"))
    for path in (bomb_path, escaping_path, crowded_path):
        try:
            check_archive(path, ArchiveLimits(members=1000))
        except ArchiveRefused:
            continue
        raise Breach(f"{path.name} was accepted")
    return "3 of 3 refused"


def check_moved_tag(bench: Bench) -> str:
    """Check that a run identifies an image by its id, and that a tag is not pulled."""
    checked_image = bench.build_image("ENV VERSION=checked")
    other_image = bench.build_image("ENV VERSION=other")
    tag = f"dynabench-hostile:{bench.token}"
    with closing(connect_to_engine()) as client:
        for image in (checked_image, other_image):
            client.images.get(image).tag(tag)
        expect_that(inspect_image(tag).id == other_image, tag)
    # The id that was checked still runs the image that was checked.
    _check_good_run(
        bench, "import os\nif os.environ['VERSION'] != 'checked': breach('moved')", checked_image
    )
    try:
        pull_image(tag)
    except ImageRefused:
        return "ok: the image that was checked; a tag alone is refused"
    raise Breach("a tag was pulled")


def check_odd_images(bench: Bench) -> str:
    """Check that handmade images of another architecture or of excessive size are refused.

    Such images cannot be built here.
    """
    archive = bench.folder / "odd.tar"
    archive.write_bytes(
        _build_image_archive({"architecture": "s390x", "os": "linux", "config": {}})
    )
    image_id = load_image(archive)
    try:
        facts = inspect_image(image_id)
        expect_that(len(find_image_problems(facts)) == 2, find_image_problems(facts))
    finally:
        with closing(connect_to_engine()) as client:
            client.images.remove(image_id, force=True)
    reasons = find_image_problems(facts._replace(size=20 * 10**9))
    expect_that(len(reasons) == 3, reasons)
    return "3 of 3 refused"


def _build_image_archive(config: dict[str, Any]) -> bytes:
    """Return an archive in the format of `docker save` for an image with one empty layer."""
    layer = io.BytesIO()
    tarfile.open(fileobj=layer, mode="w").close()
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{digest}"]}
    # The name that loading it must not give it: other people's models run in that image.
    names = ["dynabench-runtime:latest"]
    manifest = [{"Config": "config.json", "RepoTags": names, "Layers": ["layer.tar"]}]
    files = {
        "config.json": json.dumps({**config, "rootfs": rootfs}).encode(),
        "layer.tar": layer.getvalue(),
        "manifest.json": json.dumps(manifest).encode(),
    }
    archive_buffer = io.BytesIO()
    with tarfile.open(fileobj=archive_buffer, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return archive_buffer.getvalue()


def check_spoofed_label(bench: Bench) -> str:
    """Check that an image's label does not make a container the site's own.

    The label that the site sets on a container wins.
    """
    stolen_key, own_key = bench.create_key(), bench.create_key()
    image = bench.build_image(f"LABEL {SANDBOX_LABEL}={stolen_key}")
    with closing(connect_to_engine()) as client:
        stranger = client.containers.create(image, network_mode="none")
        try:
            expect_that(not list_own_containers(stolen_key), list_own_containers(stolen_key))
        finally:
            stranger.remove()
    own_containers: list[OwnContainer] = []
    script = f"import time\ntime.sleep(1.5)\n{GOOD_SCRIPT}"
    bench.run(
        script,
        image=image,
        key=own_key,
        beat=lambda: own_containers.extend(list_own_containers(own_key)),
    )
    expect_that(own_containers, "our own container was not found")
    return "the stranger is not listed, our run is"


WORKER_SCRIPT = """
import sys
from pathlib import Path
from evaluation.isolation.sandbox.containers import DockerRunner
from evaluation.contract import Runnable
from dynabench.operations.attacks.bench import BENCH_LIMITS
ending = DockerRunner(sys.argv[1]).run(Runnable(image=sys.argv[2]), Path(sys.argv[3]), BENCH_LIMITS,
    take=lambda line: None, beat=lambda: print("beat", flush=True))
print(ending.outcome, flush=True)
"""


def _start_worker(*arguments: str, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", WORKER_SCRIPT, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=settings.BASE_DIR,
        env={**os.environ, **environment},
    )


def check_killed_worker(bench: Bench) -> str:
    """Check that a container left by a killed worker is found by its name and removed."""
    key = bench.create_key()
    with _start_worker(key, bench.image, str(bench.write_inputs(SLOW_SCRIPT))) as worker:
        assert worker.stdout is not None
        # Killed only once its container runs.
        while not any(container.is_running for container in list_own_containers(key)):
            line = worker.stdout.readline()
            if line != "beat\n":
                raise Breach(f"The worker ended: {line}{worker.stdout.read()}")
        worker.kill()
    expect_that(
        [container.name for container in list_own_containers(key)] == [NAME_PREFIX + key],
        list_own_containers(key),
    )
    remove_container(NAME_PREFIX + key)
    remove_container(NAME_PREFIX + key)  # again does no harm
    expect_that(not list_own_containers(key), list_own_containers(key))
    return "left behind, found and removed"


class _CancelledError(Exception):
    """Raised if somebody cancelled the run."""


def check_cancellation(bench: Bench) -> str:
    """Check that an exception of `beat` ends the model and propagates."""
    # At the third beat, when the model runs.
    beats = iter(range(3))

    def beat() -> None:
        if next(beats, None) is None:
            raise _CancelledError

    with suppress(_CancelledError):
        hostile_run = bench.run(SLOW_SCRIPT, beat=beat)
        raise Breach(f"it went on: {hostile_run.ending}")
    return "cancelled"


def check_engine_down(bench: Bench) -> str:
    """Check that a run without an engine at its URL ends with the outcome "infrastructure"."""
    missing_socket = f"unix://{bench.folder}/nowhere.sock"
    with _start_worker(
        bench.create_key(), bench.image, "examples", DOCKER_HOST=missing_socket
    ) as worker:
        output, _ = worker.communicate()
    expect_that(output.split()[-1:] == [Outcome.INFRASTRUCTURE], output)
    return "infrastructure"


def check_private_endpoints(bench: Bench) -> str:
    """Check that addresses of the machine, its network and its cloud provider are refused."""
    hosts = ("127.0.0.1", "169.254.169.254", "10.0.0.1", "[::1]", "0.0.0.0")  # noqa: S104
    for host in hosts:
        config = EndpointConfig(url=f"http://{host}/", fields=("text",), output="label")
        try:
            build_endpoint("http", config).predict([{"text": "x"}], deadline_seconds=3)
        except EndpointError as error:
            expect_that(error.reason == "misconfigured", error)
            continue
        raise Breach(f"{host} was asked")
    return f"{len(hosts)} of {len(hosts)} refused"


def check_early_answers(bench: Bench) -> str:
    """Check that the throughput of a model includes the time before its first answer.

    This model computes for 99 processor seconds until its first answer, then gives 39 in one
    second.
    """
    measurements = RunMeasurements(started_at=0.0)
    measurements.record_sample(ResourceSample(99.0, MIB), 99.0)
    measurements.record_answers(1, 99.0)
    measurements.record_answers(39, 100.0)
    measurements.record_sample(ResourceSample(100.0, MIB), 100.0)
    usage, warning = measurements.compute_usage(100.0, is_trusted=False)
    expect_that(usage.examples_per_second == 0.4 and warning, usage)
    return "40 answers in 100 s: 0.4 a second"
