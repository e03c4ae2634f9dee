"""Counts of requests by django-prometheus, only if an operator has enabled metrics."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django_prometheus.middleware import PrometheusAfterMiddleware


class CountRequests(PrometheusAfterMiddleware):  # type: ignore[misc]
    """The middleware of django-prometheus with bounded labels.

    Clients can send any word as the HTTP method, so unknown methods share one label.
    """

    def label_metric(
        self,
        metric: Any,
        request: HttpRequest,
        response: HttpResponse | None = None,
        **labels: str,
    ) -> Any:
        if "method" in labels:
            # One of the known methods, or `<invalid method>`.
            labels["method"] = self._method(request)
        return super().label_metric(metric, request, response, **labels)
