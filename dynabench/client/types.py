"""What the server answers, as plain dictionaries; docs/client.md and /api/v1/docs/ say more.

Times are ISO 8601 in UTC, rates are 0 to 1, ids are text unless they number something.
"""

from typing import Any, Literal, TypedDict

Results = dict[str, Any]
"""Of `get_results`. Its keys: `model`, `name`, `task`, `phase`, `sentence`, `is_over`, `dynascore`,
`dynascore_low`, `dynascore_high`, `rank`, for each round `round1_acc`, `round2_acc` … (None where
there is no number), `scores` (set → metric → `Number`), `throughput`, `memory`, `fairness`,
`robustness`, `notes`, `error`. No TypedDict: the task has the rounds that it has."""


class Number(TypedDict):
    """A measured number with its 95% interval, of `n` examples."""

    value: float
    low: float | None
    high: float | None
    n: int


class Card(TypedDict, total=False):
    """What is told of a model; `description` is Markdown."""

    description: str
    languages: str
    license: str
    paper_url: str
    parameters: int | None


class Model(TypedDict):
    """A model that was handed in, and how far it is."""

    id: str
    task: str
    name: str
    kind: Literal["directory", "image", "predictions", "hub", "endpoint", "target"]
    phase: str
    sentence: str
    is_over: bool
    share: float | None
    is_published: bool
    card: Card
    log: str


class Run(TypedDict):
    """An evaluation of a model on a version of a set; `log` is shown to those who may see it."""

    id: str
    log: str


class UploadState(TypedDict):
    """A file on its way to the server."""

    id: str
    file_name: str
    size: int
    received: int
    piece_bytes: int
