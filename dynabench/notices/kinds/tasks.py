"""Notices about tasks."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.utils.translation import gettext_lazy, ngettext

from annotation.models import Report
from dynabench.campaigns.models import Place
from dynabench.notices.counting import count_by
from dynabench.notices.facts import LIVE_STATES
from dynabench.notices.registry import CountNotice
from evaluation.models import Submission
from tasks.models import TargetFailure
from tasks.targets.failures import FORGET_AFTER
from validation.consensus.reading import reads_too_little
from validation.models import Comment, Validation
from validation.statistics.people import counted_paces

RECENT_TIME = timedelta(days=7)


class FailingTargets(CountNotice, name="target"):
    """A notice of failing targets. Their owners also get emails from `tasks.targets.failures`."""

    label = gettext_lazy("a target fails")
    page = "own:targets"
    has_own_mail = True

    def count_by_task(self, now: datetime) -> Mapping[int, int]:
        """Return the number of targets that failed recently, by task id."""
        failing = TargetFailure.objects.filter(last_at__gte=now - FORGET_AFTER)
        return count_by(failing, "target__task")

    def sentence(self, count: int) -> str:
        """Return the sentence that says how many targets fail."""
        return ngettext("%(count)d target fails.", "%(count)d targets fail.", count)


class OpenReports(CountNotice, name="reports"):
    """A notice of open reports about texts and comments.

    Reviewers also get emails from `annotation.mails`.
    """

    label = gettext_lazy("reports wait")
    page = "own:reports"
    has_own_mail = True

    def count_by_task(self, now: datetime) -> Mapping[int, int]:
        """Return the number of open reports, by task id."""
        reports = Report.objects.filter(resolved_at=None)
        comments = Comment.objects.filter(reported_at__isnull=False)
        waiting = Counter(count_by(reports, "context__round__task"))
        waiting.update(count_by(comments, "example__round__task"))
        return waiting

    def sentence(self, count: int) -> str:
        """Return the sentence that says how many reports are open."""
        return ngettext("%(count)d report waits.", "%(count)d reports wait.", count)


class SubmittedModels(CountNotice, name="models"):
    """A notice of models that were submitted within the past week."""

    label = gettext_lazy("models were submitted")
    page = "leaderboard:board"

    def count_by_task(self, now: datetime) -> Mapping[int, int]:
        """Return the number of models submitted within the past week, by task id."""
        models = Submission.objects.filter(queued_at__gte=now - RECENT_TIME, withdrawn_at=None)
        return count_by(models, "task")

    def sentence(self, count: int) -> str:
        """Return the sentence that says how many models were submitted."""
        return ngettext(
            "%(count)d model was submitted within a week.",
            "%(count)d models were submitted within a week.",
            count,
        )


class StudiesWithoutWork(CountNotice, name="studies"):
    """A notice of study participants for whom no work or test items were left."""

    label = gettext_lazy("a study runs out of work")
    page = "own-campaigns:campaigns"

    def count_by_task(self, now: datetime) -> Mapping[int, int]:
        """Return the number of such participants within the past week, by task id."""
        return count_by(Place.objects.filter(ran_out_at__gte=now - RECENT_TIME), "campaign__task")

    def sentence(self, count: int) -> str:
        """Return the sentence that says how many participants found no work."""
        return ngettext(
            "%(count)d person of a study found no work or no test items left.",
            "%(count)d people of studies found no work or no test items left.",
            count,
        )


class HastyJudges(CountNotice, name="reading"):
    """A notice of judges most of whose votes this week were faster than people can read."""

    label = gettext_lazy("judges answer faster than they can read")
    page = "own:annotators"

    def count_by_task(self, now: datetime) -> Mapping[int, int]:
        """Return the number of such judges in live rounds, by task id."""
        votes = Validation.objects.filter(
            example__round__state__in=LIVE_STATES,
            created_at__gte=now - RECENT_TIME,
            by_program=False,
        )
        paces = (
            votes.filter(validator__isnull=False)
            .order_by()
            .values_list("example__round__task", "validator")
        )
        hasty: Counter[int] = Counter()
        for task, _judge, timed, unread in paces.annotate(**counted_paces()):
            if reads_too_little(unread, timed):
                hasty[task] += 1
        return hasty

    def sentence(self, count: int) -> str:
        """Return the sentence that says how many judges vote too fast."""
        return ngettext(
            "%(count)d judge answered faster than anybody reads.",
            "%(count)d judges answered faster than anybody reads.",
            count,
        )
