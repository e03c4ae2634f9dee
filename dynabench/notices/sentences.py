"""Notices and news in words, and the page where one acts on each."""

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dynabench.notices.assignments import AssignmentNews
from dynabench.notices.models import About, Notice
from dynabench.notices.news import News

Kind = Notice.Kind
DigestItem = Notice | AssignmentNews | News
PAGES = {
    Kind.BUDGET: "own:rounds",
    Kind.END: "own:rounds",
    Kind.TARGET: "own:targets",
    Kind.REPORTS: "own:reports",
    Kind.MODELS: "leaderboard:board",
    Kind.STUDIES: "own-campaigns:campaigns",
    Kind.READING: "own:annotators",
}
"""The pages where one acts on notices about a task, or a round's end, by their kind."""


def sentence(notice: DigestItem) -> str:
    """Return what a notice or news says, as a sentence."""
    if isinstance(notice, News):
        return _news_sentence(notice)
    if isinstance(notice, AssignmentNews):
        return _assignment_sentence(notice.kind)
    return _notice_sentence(notice)


def _notice_sentence(notice: Notice) -> str:
    """Return the sentence of a notice."""
    # Numbers only: the sentence is put together in the reader's language.
    values = {"round": notice.round, **notice.numbers}
    count = notice.numbers.get("count", 0)
    match Kind(notice.kind):
        case Kind.CONTEXTS:
            words = ngettext(
                "Round %(round)d runs out of contexts: %(count)d of %(all)d has no example yet.",
                "Round %(round)d runs out of contexts: %(count)d of %(all)d have no example yet.",
                count,
            )
        case Kind.JUDGING:
            words = ngettext(
                "Judging lags in round %(round)d: %(count)d example has waited more than "
                "%(days)d days.",
                "Judging lags in round %(round)d: %(count)d examples have waited more than "
                "%(days)d days.",
                count,
            )
        case Kind.BUDGET:
            words = _("Round %(round)d has used %(percent)d%% of its budget.")
        case Kind.END:
            words = _("Round %(round)d ends within two days.")
        case _:
            words = _of_task(Kind(notice.kind), count)
    return words % values


def _of_task(kind: Kind, count: int) -> str:
    """Return the sentence of a notice about a task, without its numbers."""
    match kind:
        case Kind.TARGET:
            return ngettext("%(count)d target fails.", "%(count)d targets fail.", count)
        case Kind.REPORTS:
            return ngettext("%(count)d report waits.", "%(count)d reports wait.", count)
        case Kind.READING:
            return ngettext(
                "%(count)d judge answered faster than anybody reads.",
                "%(count)d judges answered faster than anybody reads.",
                count,
            )
        case Kind.STUDIES:
            return ngettext(
                "%(count)d person of a study found no work or no test items left.",
                "%(count)d people of studies found no work or no test items left.",
                count,
            )
    return ngettext(
        "%(count)d model was submitted within a week.",
        "%(count)d models were submitted within a week.",
        count,
    )


def _news_sentence(news: News) -> str:
    """Return the sentence of news, with the reasons where it has some."""
    words = {
        About.INVITED: _("You are invited to take part in the study “%(study)s”."),
        About.CONSENT: _(
            "The study “%(study)s” has a new text. Read it, and say whether you agree."
        ),
        About.INVALID: _("People did not agree with an example of yours."),
        About.SENT_BACK: _("An example of yours was sent back. Read why, and mend it."),
        About.CLOSING: _("Round %(round)d closes on %(at)s."),
        About.PAID: _("You were paid %(amount)s for the study “%(study)s”."),
        About.APPEAL: _("Your appeal in the study “%(study)s” was answered."),
    }
    text = words[About(news.kind)] % news.words
    reasons = news.words.get("reasons")
    # The names of the flags that judges chose, which are no free texts.
    if reasons:
        text = " ".join([text, _("Their reasons: %(reasons)s") % {"reasons": reasons}])
    return text


def _assignment_sentence(kind: str) -> str:
    """Return the sentence of news about an assignment."""
    words = {
        "assigned": _("You are asked for work in this task."),
        "due": _("Your assignment in this task is due by tomorrow."),
        "overdue": _("Your assignment in this task is overdue."),
    }
    return words[kind]


def address(notice: DigestItem) -> str:
    """Return the page where one acts on a notice or news; its task is read."""
    if isinstance(notice, News):
        return notice.path
    if isinstance(notice, AssignmentNews):
        return reverse("me:duties")
    code = notice.task.code
    match Kind(notice.kind):
        case Kind.CONTEXTS:
            return reverse("own:contexts", args=[code, notice.round])
        case Kind.JUDGING:
            return f"{reverse('own:dashboard', args=[code])}?round={notice.round}"
    return reverse(PAGES[Kind(notice.kind)], args=[code])
