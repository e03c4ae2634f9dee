"""API view of the approved versions of a task's custom metrics."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers

from core.web.api import Pages
from evaluation.judges.custom_metrics.selectors import IS_PUBLIC
from evaluation.models import CustomMetric
from tasks.access import find_task


class CustomMetricSerializer(serializers.ModelSerializer[CustomMetric]):
    """An approved version of a custom metric."""

    metric: Any = serializers.CharField(
        source="key", help_text="The name of its scores: custom:NAME:VERSION."
    )
    version: Any = serializers.IntegerField(source="number")

    class Meta:
        model = CustomMetric
        fields = read_only_fields = (
            *("metric", "name", "version", "about", "higher_is_better", "review"),
            *("source", "digest", "decided_at"),
        )


@extend_schema_view(get=extend_schema(operation_id="custom_metrics_list"))
class CustomMetrics(generics.ListAPIView[CustomMetric]):
    """List the approved versions of a task's custom metrics, with their files."""

    is_public = True
    serializer_class = CustomMetricSerializer
    pagination_class = Pages
    queryset = CustomMetric.objects.none()

    def get_queryset(self) -> QuerySet[CustomMetric]:
        # Everybody who sees the task, because its boards show the numbers of these files.
        task = find_task(self.request, self.kwargs["code"])
        return task.custom_metrics.filter(IS_PUBLIC)
