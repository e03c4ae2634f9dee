"""`/metrics` for Prometheus: what the web processes counted, and figures from the database."""

import os
import secrets
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, InterfaceError
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

from core.telemetry.measures import FOLDER_VARIABLE, delete_dead_gauges
from dynabench.operations.watching.facts import Facts, count_facts, find_paused_targets

DATABASE_ERRORS = (DatabaseError, InterfaceError)


@login_not_required
@require_safe
def show_metrics(request: HttpRequest) -> HttpResponse:
    """Return all metrics in Prometheus format.

    Raises Http404 if metrics are not configured. Anybody but the monitor gets status 403.
    """
    if not (settings.METRICS_TOKEN or settings.METRICS_NETWORKS):
        raise Http404
    if not _may_read(request):
        return HttpResponse("A token or a network of METRICS_… is needed.\n", status=403)
    site_registry = CollectorRegistry()
    site_registry.register(SiteCollector())
    return HttpResponse(
        generate_latest(_collect_registry()) + generate_latest(site_registry),
        content_type=CONTENT_TYPE_LATEST,
    )


def _may_read(request: HttpRequest) -> bool:
    token_sent = request.headers.get("Authorization", "").removeprefix("Bearer ")
    token = settings.METRICS_TOKEN
    # In constant time, so that nobody guesses it byte by byte.
    if token and secrets.compare_digest(token_sent.encode(), token.encode()):
        return True
    address = ip_address(get_adapter().get_client_ip(request) or "0.0.0.0")  # noqa: S104
    return any(address in network for network in settings.METRICS_NETWORKS)


def _collect_registry() -> CollectorRegistry:
    """Return the registry with the metrics of all processes of this web server."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return REGISTRY
    # Workers that ended would otherwise count as busy for ever.
    delete_dead_gauges(Path(folder))
    shared_registry = CollectorRegistry()
    MultiProcessCollector(shared_registry, folder)  # type: ignore[no-untyped-call]
    return shared_registry


class SiteCollector:
    """A collector of metrics from the database and the cache.

    Without a database it only reports that the database is down.
    """

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield each metric with its values. No label identifies a person."""
        try:
            facts = count_facts()
        # A figure of its own says so; monitors then do not read a gap as zero.
        except DATABASE_ERRORS:
            facts = None
        yield _build_gauge(
            "database_up", "Whether the database responds.", "", {"": facts is not None}
        )
        if facts:
            yield from _build_metrics(facts)


def _build_metrics(facts: Facts) -> Iterator[GaugeMetricFamily]:
    """Yield the metrics that follow from the facts and the cache."""
    now, paused_ids = timezone.now(), find_paused_targets(facts)
    waiting_counts, running_counts, ages = {}, {}, {}
    for kind, job in facts.jobs.items():
        waiting_counts[kind], running_counts[kind], ages[kind] = job.waiting, job.running, 0.0
        if job.oldest_at:
            ages[kind] = (now - job.oldest_at).total_seconds()
    # By name, as an alert reads it; of targets of one name one that is paused counts.
    failing_names = {target.name for target in facts.targets if target.pk in paused_ids}
    breakers = {target.name: target.name in failing_names for target in facts.targets}
    success_times = {job: at.timestamp() for job, at in facts.successes.items()}
    yield _build_gauge("queue_waiting", "Jobs ready to start.", "kind", waiting_counts)
    yield _build_gauge("queue_running", "Running jobs.", "kind", running_counts)
    yield _build_gauge(
        "queue_oldest_seconds", "Seconds that the oldest job has waited.", "kind", ages
    )
    yield _build_gauge(
        "evaluations_ended", "Evaluations in the last hour, by outcome.", "outcome", facts.ended
    )
    yield _build_gauge("judge_queue", "Examples waiting for votes.", "task", facts.to_judge)
    yield _build_gauge(
        "breaker_open", "1 if requests to the target are paused.", "target", breakers
    )
    yield _build_gauge(  # Prometheus itself calls a server's own label `job`
        "last_success_timestamp_seconds",
        "When a scheduled job last succeeded.",
        "work",
        success_times,
    )


def _build_gauge(
    name: str, text: str, label: str, values: Mapping[str, float]
) -> GaugeMetricFamily:
    """Return a gauge metric with one value per label value.

    text: the help text. label: the label's name; "" for a single value without a label.
    """
    labels = [label] if label else []
    family = GaugeMetricFamily(f"dynabench_{name}", text, labels=labels)
    for key, value in values.items():
        label_values = [key] if label else []
        family.add_metric(label_values, value)
    return family
