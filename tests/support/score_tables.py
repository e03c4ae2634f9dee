"""Tables of scores for the Dynascore."""

from leaderboard.ranking.dynascore import (
    Rule,
    compute_exchange_rates,
    score_models,
)

CLASSIC, ROBUST = Rule("classic"), Rule("robust")

METRICS = ("perf", "throughput", "memory", "fairness", "robustness")


def table(rows: dict[str, tuple[float | None, ...]], metrics=METRICS):
    return {model: dict(zip(metrics, row, strict=True)) for model, row in rows.items()}


def scores(rule: Rule, rows, rates=None, errors=None) -> dict[str, float | None]:
    found = score_models(rule, rows, rates or compute_exchange_rates(rule, rows, errors))
    return {row.model: row.dynascore for row in found}
