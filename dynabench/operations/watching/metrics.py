"""`/metrics` for Prometheus: what the web processes counted, and what the rows say."""

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

from core.telemetry.measures import FOLDER, forget_the_dead
from dynabench.operations.watching.facts import Facts, count_facts, find_paused_targets

DATABASE_ERRORS = (DatabaseError, InterfaceError)


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return all metrics in Prometheus format.

    Raises Http404 if metrics are not configured. Responds with 403 to anybody but the monitor.
    """
    if not (settings.METRICS_TOKEN or settings.METRICS_NETWORKS):
        raise Http404
    if not _may_read(request):
        return HttpResponse("A token or a network of METRICS_… is needed.\n", status=403)
    rows = CollectorRegistry()
    rows.register(SiteCollector())
    return HttpResponse(
        generate_latest(_collect_registry()) + generate_latest(rows),
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
    """Return the metrics of all processes of this web server."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return REGISTRY
    # Workers that ended would otherwise count as busy for ever.
    forget_the_dead(Path(folder))
    together = CollectorRegistry()
    MultiProcessCollector(together, folder)  # type: ignore[no-untyped-call]
    return together


class SiteCollector:
    """A collector of metrics from the database and the cache.

    Without a database it only reports that the database is down.
    """

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield each metric with its values. No label identifies a person."""
        try:
            site = count_facts()
        # A figure of its own says so; monitors then do not read a gap as zero.
        except DATABASE_ERRORS:
            site = None
        yield _build_gauge(
            "database_up", "Whether the database answers.", "", {"": site is not None}
        )
        if site:
            yield from _build_metrics(site)


def _build_metrics(site: Facts) -> Iterator[GaugeMetricFamily]:
    """Yield the metrics from the database and the cache."""
    now, paused_ids = timezone.now(), find_paused_targets(site)
    waiting_counts, running_counts, ages = {}, {}, {}
    for kind, job in site.jobs.items():
        waiting_counts[kind], running_counts[kind], ages[kind] = job.waiting, job.running, 0.0
        if job.oldest_at:
            ages[kind] = (now - job.oldest_at).total_seconds()
    # By name, as an alert reads it; of targets of one name one that is paused counts.
    failing = {target.name for target in site.targets if target.pk in paused_ids}
    breakers = {target.name: target.name in failing for target in site.targets}
    success_times = {job: at.timestamp() for job, at in site.successes.items()}
    yield _build_gauge("queue_waiting", "Jobs that could begin.", "kind", waiting_counts)
    yield _build_gauge("queue_running", "Jobs that workers have.", "kind", running_counts)
    yield _build_gauge("queue_oldest_seconds", "How long one has waited at most.", "kind", ages)
    yield _build_gauge(
        "evaluations_ended", "Evaluations of the last hour by outcome.", "outcome", site.ended
    )
    yield _build_gauge("judge_queue", "Examples that need votes.", "task", site.to_judge)
    yield _build_gauge(
        "breaker_open", "1: the target is not asked for a while.", "target", breakers
    )
    yield _build_gauge(  # Prometheus itself calls a server's own label `job`
        "last_success_timestamp_seconds",
        "When a job of the clock ended well.",
        "work",
        success_times,
    )


def _build_gauge(
    name: str, text: str, label: str, values: Mapping[str, float]
) -> GaugeMetricFamily:
    """Return a gauge with a value for each label.

    label: the label's name; empty for a single value without labels.
    """
    labels = [label] if label else []
    family = GaugeMetricFamily(f"dynabench_{name}", text, labels=labels)
    for key, value in values.items():
        label_values = [key] if label else []
        family.add_metric(label_values, value)
    return family
