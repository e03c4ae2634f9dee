"""The jobs that run for studies every minute."""

from core.periodic import register_minutely
from dynabench.studies.model_alone_services import ask_models_alone
from dynabench.studies.services import match_draws


@register_minutely(counts="draws matched", why="People who were drawn take their places.")
def match_study_draws() -> int:
    """Note which place each drawn person took."""
    return match_draws()


@register_minutely(
    counts="cases answered by models alone", why="A study compares people with their model alone."
)
def ask_study_models() -> int:
    """Ask the models of studies about the cases that people decide."""
    return ask_models_alone()
