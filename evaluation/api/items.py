"""API views of the properties of an evaluation set's items, and of its languages."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import Example
from core.web.api import Pages
from evaluation.models import EvaluationSetVersion, ItemFit, ItemLanguage, ItemProperty
from evaluation.test_sets.items import find_fit, select_items
from tasks.access import find_task, find_task_and_editor, require_permission
from tasks.permissions import can_read, can_review


class ItemPropertiesSerializer(serializers.ModelSerializer[ItemProperty]):
    """How hard an item is, how well it tells models apart, and how people answer it.

    null: too few answers or votes tell it. Standard errors are of the models' ability's scale.
    drift: how much easier (above 0) or harder the item is for later models of the same ability.
    translation_shift: how much easier (above 0) or harder it is than its translation in the
    reference language.
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
            "uid", "example", "right_share", "difficulty", "difficulty_error", "discrimination",
            "discrimination_error", "label_may_be_wrong", "drift", "drift_error", "has_drifted",
            "language", "translation_shift", "translation_shift_error",
            "differs_from_translation", "votes", "people_wrong", "people_wrong_low",
            "people_wrong_high", "ambiguity", "ambiguity_low", "ambiguity_high",
        )  # fmt: skip


class RoundItemSerializer(serializers.Serializer[Any]):
    """How hard and how ambiguous an example of a round is; null: too few votes or answers say so.

    The properties from `difficulty` on are those of its last test set.
    """

    example = serializers.UUIDField()
    models = serializers.IntegerField(help_text="That were asked when it was written.")
    models_right = serializers.IntegerField()
    votes = serializers.IntegerField(help_text="Of people, without reports.")
    people_wrong = serializers.FloatField(
        allow_null=True, help_text="The chance that a person doesn't answer as the author."
    )
    people_wrong_low = serializers.FloatField(allow_null=True)
    people_wrong_high = serializers.FloatField(allow_null=True)
    ambiguity = serializers.FloatField(
        allow_null=True, help_text="The chance that two people disagree."
    )
    ambiguity_low = serializers.FloatField(allow_null=True)
    ambiguity_high = serializers.FloatField(allow_null=True)
    difficulty = serializers.FloatField(allow_null=True)
    difficulty_error = serializers.FloatField(allow_null=True)
    discrimination = serializers.FloatField(allow_null=True)
    discrimination_error = serializers.FloatField(allow_null=True)
    label_may_be_wrong = serializers.BooleanField(
        allow_null=True, help_text="null: no test set with it has been estimated yet."
    )


@extend_schema_view(get=extend_schema(operation_id="rounds_items_list"))
class RoundItems(generics.ListAPIView[Example]):
    """List the properties of a round's examples, oldest first, as soon as they are judged.

    The round needs no test set. Withdrawn examples are left out. Reviewers of the task only.
    """

    serializer_class = RoundItemSerializer
    pagination_class = Pages
    queryset = Example.objects.none()

    def get_queryset(self) -> QuerySet[Example]:
        self.task = find_task(self.request, self.kwargs["code"], can_review)
        round = get_object_or_404(self.task.rounds, number=self.kwargs["number"])
        return Example.objects.filter(round=round, retracted_at__isnull=True)

    def paginate_queryset(self, queryset: Any) -> Any:
        """Return the properties of a page of examples."""
        # Imported on use, because it loads scipy.
        from evaluation.runs.round_items import describe_round_items

        examples = super().paginate_queryset(queryset) or ()
        return describe_round_items(self.task.config, examples)


@extend_schema_view(get=extend_schema(operation_id="evaluation_set_items_list"))
class EvaluationSetItems(generics.ListAPIView[ItemProperty]):
    """List the properties of a version's examples, in their order.

    The list is empty before 20 models have answered. Task editors who may read labels only.
    """

    serializer_class = ItemPropertiesSerializer
    pagination_class = Pages
    queryset = ItemProperty.objects.none()

    def get_queryset(self) -> QuerySet[ItemProperty]:
        fit = find_readable_fit(self.request, **self.kwargs)
        return select_items(fit, "set") if fit else ItemProperty.objects.none()


class ItemLanguageSerializer(serializers.ModelSerializer[ItemLanguage]):
    """How a language's examples differ from those of the reference language for models.

    shift, low, high: of the logit of a right answer, above 0 if the language is easier, with a 95%
    interval. pair_count: translations that were compared; 0: other examples.
    """

    class Meta:
        model = ItemLanguage
        fields = (
            "language", "reference", "item_count", "pair_count", "right_share",
            "reference_share", "shift", "low", "high", "p_value",
        )  # fmt: skip


class SetLanguagesSerializer(serializers.Serializer[Any]):
    """The languages of a version's examples."""

    why_not = serializers.CharField(
        source="why_no_languages",
        help_text="one_language, too_few_items or too_few_models; empty: they are compared, or "
        "too few models have answered anything.",
    )
    languages = ItemLanguageSerializer(many=True)


class EvaluationSetLanguages(APIView):
    @extend_schema(operation_id="evaluation_set_languages_get", responses=SetLanguagesSerializer)
    def get(self, request: Request, code: str, name: str, version: int) -> Response:
        """Compare the languages of a version's examples, those that are surest to differ first.

        Task editors who may read labels only.
        """
        fit = find_readable_fit(request, code=code, name=name, version=version)
        # Without an estimate nothing is refused yet, so there is no reason either.
        languages = list(fit.languages.all()) if fit else []
        why_not = fit.why_no_languages if fit else ""
        values = {"why_no_languages": why_not, "languages": languages}
        return Response(SetLanguagesSerializer(values).data)


def find_readable_fit(request: Request, code: str, name: str, version: int) -> ItemFit | None:
    """Return the estimate of a version's items, or None before there is one.

    Raises 404, and 403 for editors who may not read labels.
    """
    task, editor = find_task_and_editor(request, code)
    # A label that may be wrong tells something of the right one.
    require_permission(editor, task, can_read)
    versions = EvaluationSetVersion.objects.filter(
        evaluation_set__task=task, evaluation_set__name=name
    )
    return find_fit(get_object_or_404(versions, version=version))
