"""Counts of the criteria that people judge: how many are met, and how far people agree on them."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from core.text.words import gettext_noop
from validation.rates.agreement import compute_krippendorff_alpha
from validation.rates.rates import Rate, Undefined, compute_clustered_rate

NO_CRITERIA_REASON = gettext_noop("no criterion is decided")
NO_SCORES_REASON = gettext_noop("no answer has a score from its criteria")
NO_PAIRS_REASON = gettext_noop("no criterion has two judgements")
NO_AUTHOR_REASON = gettext_noop("no author has judged a decided criterion")
NO_JUDGEMENTS_REASON = gettext_noop("no criterion is judged")
CLEAR = ("met", "not_met")

Shares = dict[Hashable, tuple[float, int]]
"""By author the sum of something, and the number of cases."""


@dataclass
class CriteriaCounts:
    """Counts of the criteria of a round's examples.

    judged: criteria with a judgement. decided: those that the votes found met or not met.
    patterns: the number of criteria by their judgements `met` and `not_met`. met: the criteria with
    positive points, and how many of them are met. score_sums: answers, and the sum of their scores.
    unclear: the judgements, and how many of them can't tell. author_agrees: decided criteria, and
    how many as the author said.
    """

    judged: int = 0
    decided: int = 0
    judgements: int = 0
    patterns: Counter[tuple[int, int]] = field(default_factory=Counter)
    met: Shares = field(default_factory=dict)
    score_sums: Shares = field(default_factory=dict)
    unclear: Shares = field(default_factory=dict)
    author_agrees: Shares = field(default_factory=dict)

    def __iadd__(self, other: "CriteriaCounts") -> "CriteriaCounts":
        self.judged += other.judged
        self.decided += other.decided
        self.judgements += other.judgements
        self.patterns += other.patterns
        for name in ("met", "score_sums", "unclear", "author_agrees"):
            # An author of both rounds is one cluster, as the answers to one person are alike.
            for author, (total, count) in getattr(other, name).items():
                _add(getattr(self, name), author, total, count)
        return self

    def add_example(
        self,
        author: Hashable,
        points: Sequence[int],
        votes: Sequence[Sequence[str]],
        *,
        consensus: Sequence[str | None],
        score: float | None,
        said: Sequence[str],
    ) -> None:
        """Count an example.

        Parameters
        ----------
        author
            A key of its own if the author is unknown.
        points
            Of each criterion.
        votes
            The judgements of each person, in the order of the criteria.
        consensus
            What was decided about each criterion.
        score
            By the consensus; None if it is open.
        said
            What the author said of each criterion; empty if nothing.
        """
        for number, criterion_points in enumerate(points):
            given = Counter(judgements[number] for judgements in votes)
            # Flags are no judgements, so a criterion may have none.
            self.judged += bool(given)
            self.judgements += given.total()
            self.patterns[given["met"], given["not_met"]] += 1
            _add(self.unclear, author, given["cannot_tell"], given.total())
            winner = consensus[number] if number < len(consensus) else None
            if winner not in CLEAR:
                continue
            self.decided += 1
            # A criterion that a good answer doesn't meet would turn the share's meaning around.
            if criterion_points > 0:
                _add(self.met, author, winner == "met", 1)
            if number < len(said):
                _add(self.author_agrees, author, winner == said[number], 1)
        # Without one, the answer is left out, and its criteria still count.
        if score is not None:
            _add(self.score_sums, author, score, 1)


def _add(shares: Shares, author: Hashable, total: float, count: int) -> None:
    old_total, old_count = shares.get(author, (0, 0))
    shares[author] = old_total + total, old_count + count


def measure_criteria(counts: CriteriaCounts) -> Mapping[str, int | float | Rate | Undefined]:
    """Return the numbers about criteria. The answers to one author may depend on one another."""
    # Imported on first use: most requests need no numpy.
    import numpy as np

    table = np.array([*counts.patterns], dtype=float).reshape(len(counts.patterns), 2)
    alpha = compute_krippendorff_alpha(table, np.array(list(counts.patterns.values())))
    # With a reason of its own, which is about criteria.
    if not any(met + not_met > 1 for met, not_met in counts.patterns):
        alpha = Undefined(NO_PAIRS_REASON)
    return {
        "criteria_judged": counts.judged,
        "criteria_decided": counts.decided,
        "criteria_judgements": counts.judgements,
        "criteria_met_share": compute_clustered_rate(counts.met.values(), NO_CRITERIA_REASON),
        "criteria_score": compute_clustered_rate(counts.score_sums.values(), NO_SCORES_REASON),
        "criteria_unclear_share": compute_clustered_rate(
            counts.unclear.values(), NO_JUDGEMENTS_REASON
        ),
        "criteria_author_share": compute_clustered_rate(
            counts.author_agrees.values(), NO_AUTHOR_REASON
        ),
        "criteria_krippendorff_alpha": alpha,
    }
