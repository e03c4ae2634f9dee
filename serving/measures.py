"""What the model server counts of its work, for Prometheus."""

from prometheus_client import Counter, Histogram

BATCHES = Histogram(
    "dynabench_model_batch_size",
    "Texts, or conversations, that a model worked on at once.",
    ["model"],
    buckets=(1, 2, 4, 8, 16, 32, 64),
)
TOKENS = Counter("dynabench_model_tokens", "Tokens that a model read or wrote.", ["model"])


def count(model: str, *, batch: int, tokens: int) -> None:
    """Count one forward pass of a model."""
    BATCHES.labels(model).observe(batch)
    TOKENS.labels(model).inc(tokens)
