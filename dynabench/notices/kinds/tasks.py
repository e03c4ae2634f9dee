"""Kinds of notices about tasks."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.utils.translation import gettext_lazy, ngettext

from dynabench.campaigns.models import Place
from dynabench.notices.counting import count_rows_by_id, select_open_reports
from dynabench.notices.facts import LIVE_STATES
from dynabench.notices.registry import CountNotice
from evaluation.submissions.selectors import count_submitted_models
from tasks.models import TargetFailure
from tasks.targets.failures import FAILURE_LIFETIME
from validation.consensus.reading import has_read_too_little
from validation.models import Validation
from validation.statistics.people import build_pace_counts

RECENT_TIME = timedelta(days=7)


class FailingTargets(CountNotice, name="target"):
    """The notice of failing targets. Owners also get emails from `tasks.targets.failures`."""

    label = gettext_lazy("A model to fool is failing")
    page = "own:targets"
    has_own_mail = True

    def count_by_task(self, now: datetime) -> Mapping[int, int]:
        """Return the number of targets that failed recently, by task id."""
        recent_failures = TargetFailure.objects.filter(last_at__gte=now - FAILURE_LIFETIME)
        return count_rows_by_id(recent_failures, "target__task")

    def build_sentence(self, count: int) -> str:
        """Return the sentence that says how many targets fail."""
        return ngettext(
            "%(count)d model to fool is failing.", "%(count)d models to fool are failing.", count
        )


class OpenReports(CountNotice, name="reports"):
    """The notice of open reports on contexts and comments.

    Reviewers also get emails from `annotation.mails`.
    """

    label = gettext_lazy("Open reports")
    page = "own:reports"
    has_own_mail = True

    def count_by_task(self, now: datetime) -> Mapping[int, int]:
        """Return the number of open reports, by task id."""
        reports, comments = select_open_reports()
        report_counts = Counter(count_rows_by_id(reports, "context__round__task"))
        report_counts.update(count_rows_by_id(comments, "example__round__task"))
        return report_counts

    def build_sentence(self, count: int) -> str:
        """Return the sentence that says how many reports are open."""
        return ngettext("%(count)d open report.", "%(count)d open reports.", count)


class SubmittedModels(CountNotice, name="models"):
    """The notice of models submitted within the past week."""

    label = gettext_lazy("New models")
    page = "leaderboard:board"

    def count_by_task(self, now: datetime) -> Mapping[int, int]:
        """Return the number of models submitted within the past week, by task id."""
        return count_submitted_models(now - RECENT_TIME)

    def build_sentence(self, count: int) -> str:
        """Return the sentence that says how many models were submitted."""
        return ngettext(
            "%(count)d model was submitted in the past 7 days.",
            "%(count)d models were submitted in the past 7 days.",
            count,
        )


class StudiesWithoutWork(CountNotice, name="studies"):
    """The notice of study participants for whom no work or test items were left."""

    label = gettext_lazy("A study is running out of work")
    page = "own-campaigns:campaigns"

    def count_by_task(self, now: datetime) -> Mapping[int, int]:
        """Return how many participants ran out of work within the past week, by task id."""
        return count_rows_by_id(
            Place.objects.filter(ran_out_at__gte=now - RECENT_TIME), "campaign__task"
        )

    def build_sentence(self, count: int) -> str:
        """Return the sentence that says how many participants found no work."""
        return ngettext(
            "%(count)d study participant found no work or test items left.",
            "%(count)d study participants found no work or test items left.",
            count,
        )


class HastyJudges(CountNotice, name="reading"):
    """The notice of judges who cast most of this week's votes faster than people can read."""

    label = gettext_lazy("Judges answer too fast")
    page = "own:annotators"

    def count_by_task(self, now: datetime) -> Mapping[int, int]:
        """Return the number of judges in live rounds who vote too fast to read, by task id."""
        votes = Validation.objects.filter(
            example__round__state__in=LIVE_STATES,
            created_at__gte=now - RECENT_TIME,
            by_program=False,
        )
        judge_rows = (
            votes.filter(validator__isnull=False)
            .order_by()
            .values_list("example__round__task", "validator")
        )
        hasty_counts: Counter[int] = Counter()
        for task, _judge, timed, unread in judge_rows.annotate(**build_pace_counts()):
            if has_read_too_little(unread, timed):
                hasty_counts[task] += 1
        return hasty_counts

    def build_sentence(self, count: int) -> str:
        """Return the sentence that says how many judges vote too fast."""
        return ngettext(
            "%(count)d judge answers too fast to have read the text.",
            "%(count)d judges answer too fast to have read the text.",
            count,
        )
