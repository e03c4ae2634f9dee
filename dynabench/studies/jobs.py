"""The job that runs for studies every minute."""

from core.periodic import register_minutely
from dynabench.studies.services import match_draws


@register_minutely(counts="draws matched", why="People who were drawn take their places.")
def match_study_draws() -> int:
    """Note which place each drawn person took."""
    return match_draws()
