"""API view of the properties of an evaluation set's items."""

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers

from core.web.api import Pages
from evaluation.models import EvaluationSetVersion, ItemProperty
from evaluation.test_sets.items import find_fit, select_items
from tasks.access import find_task_and_editor, require_permission
from tasks.permissions import can_read


class ItemPropertiesSerializer(serializers.ModelSerializer[ItemProperty]):
    """How hard an item is, how well it tells models apart, and how people answer it.

    null: too few answers or votes tell it. Standard errors are of the models' ability's scale.
    drift: how much easier (above 0) or harder the item is for later models of the same ability.
    """

    example = serializers.UUIDField(
        source="example.uuid",
        default=None,
        allow_null=True,
        help_text="null: nobody wrote it on this site.",
    )

    class Meta:
        model = ItemProperty
        fields = (
            *("uid", "example", "right_share", "difficulty", "difficulty_error", "discrimination"),
            *("discrimination_error", "label_may_be_wrong", "drift", "drift_error"),
            *("has_drifted", "votes", "people_wrong"),
            *("people_wrong_low", "people_wrong_high", "ambiguity", "ambiguity_low"),
            "ambiguity_high",
        )


@extend_schema_view(get=extend_schema(operation_id="evaluation_set_items_list"))
class EvaluationSetItems(generics.ListAPIView[ItemProperty]):
    """List the properties of a version's examples, in their order.

    The list is empty before 20 models have answered. Task editors who may read labels only.
    """

    serializer_class = ItemPropertiesSerializer
    pagination_class = Pages
    queryset = ItemProperty.objects.none()

    def get_queryset(self) -> QuerySet[ItemProperty]:
        task, editor = find_task_and_editor(self.request, self.kwargs["code"])
        # A label that may be wrong tells something of the right one.
        require_permission(editor, task, can_read)
        versions = EvaluationSetVersion.objects.filter(
            evaluation_set__task=task, evaluation_set__name=self.kwargs["name"]
        )
        version = get_object_or_404(versions, version=self.kwargs["version"])
        fit = find_fit(version)
        return select_items(fit, "set") if fit else ItemProperty.objects.none()
