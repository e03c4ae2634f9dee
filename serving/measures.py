"""Metrics of the model server for Prometheus."""

from prometheus_client import Counter, Histogram

BATCH_HISTOGRAM = Histogram(
    "dynabench_model_batch_size",
    "Texts, or conversations, that a model worked on at once.",
    ["model"],
    buckets=(1, 2, 4, 8, 16, 32, 64),
)
TOKEN_COUNTER = Counter("dynabench_model_tokens", "Tokens that a model read or wrote.", ["model"])


def count_forward_pass(model: str, *, row_count: int, token_count: int) -> None:
    """Count one forward pass of a model.

    row_count: the number of its rows. token_count: the number of tokens in all rows.
    """
    BATCH_HISTOGRAM.labels(model).observe(row_count)
    TOKEN_COUNTER.labels(model).inc(token_count)
