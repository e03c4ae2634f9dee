"""The API's addresses of communities: the list, one with its tasks and news, its board, and models
that are submitted to all of its tasks.
"""

from typing import Any

from django.db.models import Prefetch, QuerySet
from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import (
    OpenApiParameter,
    extend_schema,
    extend_schema_field,
    extend_schema_view,
)
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken, User
from core.accounts.people import get_person
from core.web.api import (
    LateChoiceField,
    NewestFirst,
    Pages,
    build_weights_parameter,
    check_query,
    read,
)
from core.web.form_fields import build_request_field
from dynabench.communities.board import WEIGHT_PREFIX, build_board
from dynabench.communities.forms import CommunityForm, JointForm
from dynabench.communities.joint_services import (
    JointPart,
    list_joint_kind_names,
    list_joint_kinds,
    list_parts,
    submit_jointly,
)
from dynabench.communities.models import Community, JointSubmission, Post
from dynabench.communities.permissions import find_visible_communities
from dynabench.communities.rules import BoardLine
from dynabench.communities.selectors import list_visible_entries
from dynabench.communities.services import change_community, check_can_manage
from evaluation.api.models import find_upload
from evaluation.models import Submission
from tasks.selectors import find_visible_tasks


class CommunitySerializer(serializers.ModelSerializer[Community]):
    """A community in the list of communities."""

    tracks = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = Community
        fields = ("slug", "name", "summary", "is_listed", "tracks", "made_at")


class PostSerializer(serializers.ModelSerializer[Post]):
    """A news item of a community."""

    class Meta:
        model = Post
        fields = ("id", "title", "text", "posted_at")


class CommunityTaskSerializer(serializers.Serializer[Any]):
    """A task of a community."""

    code = serializers.CharField(source="task.code")
    name = serializers.CharField(source="task.name")
    weight = serializers.FloatField(help_text="Default weight on the board across tasks.")


class JointFileSerializer(serializers.Serializer[Any]):
    """A file that an archive of predictions or of training data must contain."""

    kind = serializers.ChoiceField(["predictions", "rows"])
    place = serializers.CharField(help_text="File name in the archive.")
    task = serializers.CharField()
    evaluation_set = serializers.CharField(
        help_text="Test set of the predictions. Otherwise empty."
    )


class WholeCommunitySerializer(CommunitySerializer):
    """A community with its text, and with the tasks and news that the reader may see."""

    tasks = CommunityTaskSerializer(many=True)
    news = PostSerializer(many=True)
    files = JointFileSerializer(many=True, help_text="Which files a joint submission must contain.")

    class Meta(CommunitySerializer.Meta):
        fields = (*CommunitySerializer.Meta.fields, "text", "tasks", "news", "files")  # type: ignore[assignment]


class CommunityChangeSerializer(serializers.Serializer[Any]):
    """The fields of a community to change; omitted fields stay as they are."""

    name = build_request_field(CommunityForm, "name", required=False)
    summary = build_request_field(CommunityForm, "summary")
    text = build_request_field(CommunityForm, "text", help_text="Markdown.")
    is_listed = build_request_field(CommunityForm, "is_listed", required=False)
    tracks = serializers.ListField(child=serializers.CharField(), required=False)


class PointsSerializer(serializers.Serializer[Any]):
    """A model's points in a task."""

    task = serializers.CharField()
    model = serializers.CharField(help_text="ID of its submission.")
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class CommunityLineSerializer(serializers.Serializer[Any]):
    """A model's row on the board. It has no rank if it lacks results in tasks that count."""

    rank = serializers.CharField(help_text="Ranks with = are shared. Empty: no rank.")
    first = serializers.IntegerField(allow_null=True)
    last = serializers.IntegerField(allow_null=True)
    name = serializers.CharField(help_text="Empty: hidden.")
    owner = serializers.CharField()
    track = serializers.CharField()
    score = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    missing = serializers.ListField(child=serializers.CharField())
    points = PointsSerializer(many=True)


class CommunityColumnSerializer(serializers.Serializer[Any]):
    """A task's column on the board."""

    task = serializers.CharField()
    metric = serializers.CharField()
    floor = serializers.FloatField(help_text="Share in percent. No points.")
    weight = serializers.FloatField()


class CommunityBoardSerializer(serializers.Serializer[Any]):
    """The leaderboard across a community's tasks."""

    columns = CommunityColumnSerializer(many=True)
    lines = CommunityLineSerializer(many=True)


class NewJointSerializer(serializers.Serializer[Any]):
    """A new submission of one model to all tasks of a community."""

    kind = LateChoiceField(list_joint_kind_names)
    name = build_request_field(JointForm, "name")
    upload = serializers.UUIDField(required=False, allow_null=True, help_text="For archives.")
    source = build_request_field(JointForm, "source")
    revision = build_request_field(JointForm, "revision")
    track = serializers.CharField(max_length=60, required=False, allow_blank=True)
    description = build_request_field(JointForm, "description")


class JointModelSerializer(serializers.Serializer[Any]):
    """The submission of a jointly submitted model to one task."""

    id = serializers.UUIDField()
    task = serializers.CharField(source="task.code")
    state = serializers.CharField()
    error = serializers.CharField()


class JointSerializer(serializers.ModelSerializer[JointSubmission]):
    """A joint submission, with its submission to each task."""

    models = serializers.SerializerMethodField()

    class Meta:
        model = JointSubmission
        fields = ("id", "name", "track", "made_at", "models")

    @extend_schema_field(JointModelSerializer(many=True))
    def get_models(self, joint: JointSubmission) -> Any:
        """Return the submissions to tasks that the owner may still see.

        `_select_own_submissions` has prefetched them.
        """
        return JointModelSerializer(joint.submissions.all(), many=True).data


def _select_own_submissions(owner: User) -> QuerySet[JointSubmission]:
    """Return the user's joint submissions, with the submissions to tasks that they may see."""
    visible_submissions = Submission.objects.filter(
        task__in=find_visible_tasks(owner)
    ).select_related("task")
    # A log may have megabytes, and the list shows none.
    models = Prefetch("submissions", visible_submissions.defer("log").order_by("task__code"))
    return JointSubmission.objects.filter(owner=owner).prefetch_related(models)


def find_visible_community(request: Request, slug: str) -> Community:
    """Return the community, if the person may see it. Raises Http404."""
    return get_object_or_404(find_visible_communities(request.user), slug=slug)


class CommunityPages(Pages):
    """A pagination of communities, ordered by slug."""

    ordering = "slug"


@extend_schema_view(get=extend_schema(operation_id="communities_list"))
class CommunityList(generics.ListAPIView[Community]):
    """The communities that the caller may see."""

    is_public = True
    serializer_class = CommunitySerializer
    pagination_class = CommunityPages
    queryset = Community.objects.none()

    def get_queryset(self) -> QuerySet[Community]:
        """Return the communities that the person may see."""
        return find_visible_communities(self.request.user)


class CommunityView(APIView):
    is_public = True
    write_scope = ApiToken.Scope.OWN

    @extend_schema(operation_id="communities_get", responses=WholeCommunitySerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Return a community with tasks, news and the files that a joint archive must contain."""
        return self._build_response(find_visible_community(request, slug))

    @write("communities_change", CommunityChangeSerializer, WholeCommunitySerializer)
    def patch(self, request: Request, slug: str) -> Response:
        """Change a community's texts, visibility and tracks. Owners only."""
        community, actor = find_visible_community(request, slug), get_person(request)
        # Before the body is read: others get a refusal, and no errors about their fields.
        check_can_manage(actor, community)
        changes = read(CommunityChangeSerializer, request)
        names = ("name", "summary", "text", "is_listed", "tracks")
        values = {name: getattr(community, name) for name in names}
        change_community(community=community, actor=actor, **(values | changes))
        return self._build_response(community)

    def _build_response(self, community: Community) -> Response:
        """Return the response with everything about a community that the person may see."""
        user = self.request.user
        files = []
        for kind, joint in list_joint_kinds():
            if joint.file_for != "model":
                parts = list_parts(user, community, kind.name)
                files += [_describe_file(kind.name, part) for part in parts]
        entries = list_visible_entries(user, community)
        body = CommunitySerializer(community).data | {
            "text": community.text,
            "tasks": CommunityTaskSerializer(entries, many=True).data,
            "news": PostSerializer(community.posts.all(), many=True).data,
            "files": JointFileSerializer(files, many=True).data,
        }
        return Response(body)


def _describe_file(kind: str, part: JointPart) -> dict[str, str]:
    """Return the API's description of the archive's file for a part of a joint submission."""
    return {
        "kind": kind,
        "place": f"{part.archive_path}.jsonl",
        "task": part.task.code,
        "evaluation_set": part.version.evaluation_set.name if part.version else "",
    }


class CommunityBoardView(APIView):
    is_public = True
    reads_query = ("GET",)

    @extend_schema(
        operation_id="communities_board",
        parameters=[
            build_weights_parameter("A weight for a task, as `w_CODE`: `w_nli=2`."),
            OpenApiParameter("track", description="One of the community's tracks."),
        ],
        responses=CommunityBoardSerializer,
    )
    def get(self, request: Request, slug: str) -> Response:
        """Return the board across tasks.

        `w_<task>` sets a task's weight. `track` selects the models of one track.
        """
        check_query(request, "track", prefixes=(WEIGHT_PREFIX,))
        community = find_visible_community(request, slug)
        entries = list_visible_entries(request.user, community)
        board = build_board(community, entries, request.query_params.dict())
        fields = {f"{WEIGHT_PREFIX}{head.task.code}" for head in board.columns}
        weight_fields = {name for name in request.query_params if name.startswith(WEIGHT_PREFIX)}
        # The page ignores such weights. A program should learn that they have no effect.
        wrong_fields = set(board.invalid_parameters) | (weight_fields - fields)
        if wrong_fields:
            message = "A weight must be a number from 0 to 8, for a task of this community."
            raise serializers.ValidationError({name: [message] for name in wrong_fields})
        columns = [head._asdict() | {"task": head.task.code} for head in board.columns]
        body = {"columns": columns, "lines": [_describe_line(line) for line in board.lines]}
        return Response(CommunityBoardSerializer(body).data)


def _describe_line(line: BoardLine) -> dict[str, Any]:
    """Return a line of the board in the API's format."""
    entrant, score = line.entrant, line.score
    points = [
        {"task": task, "model": entrant.models[task], **value._asdict()}
        for task, value in line.points.items()
    ]
    return {
        "rank": line.rank,
        "first": line.first,
        "last": line.last,
        "missing": line.missing,
        "name": entrant.name,
        "owner": entrant.owner,
        "track": entrant.track,
        "score": score.value,
        "low": score.low,
        "high": score.high,
        "points": points,
    }


@extend_schema_view(get=extend_schema(operation_id="communities_submissions"))
class JointSubmissionList(generics.ListAPIView[JointSubmission]):
    """The caller's joint submissions to a community, newest first."""

    serializer_class = JointSerializer
    pagination_class = NewestFirst
    queryset = JointSubmission.objects.none()
    write_scope = ApiToken.Scope.SUBMIT
    throttle = "submit"

    def get_queryset(self) -> QuerySet[JointSubmission]:
        """Return the person's joint submissions to the community."""
        community = find_visible_community(self.request, self.kwargs["slug"])
        return _select_own_submissions(get_person(self.request)).filter(community=community)

    @write("communities_submit", NewJointSerializer, {201: JointSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Submit a model to all tasks that accept its kind. All are submitted, or none.

        422 with the code `joint` if some tasks refuse; the message lists them with their
           reasons.
        """
        community, owner = find_visible_community(request, slug), get_person(request)
        fields = read(NewJointSerializer, request)
        # The upload itself, of this person, in place of its id.
        fields["upload"] = find_upload(owner, fields.get("upload"))
        joint = submit_jointly(community=community, owner=owner, **fields)
        body = JointSerializer(_select_own_submissions(owner).get(pk=joint.pk)).data
        return Response(body, status.HTTP_201_CREATED)


urlpatterns = [
    path("communities/", CommunityList.as_view(), name="communities"),
    path("communities/<slug:slug>/", CommunityView.as_view(), name="community"),
    path("communities/<slug:slug>/board/", CommunityBoardView.as_view(), name="community-board"),
    path(
        "communities/<slug:slug>/submissions/",
        JointSubmissionList.as_view(),
        name="joint-submissions",
    ),
]
