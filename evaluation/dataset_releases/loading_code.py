"""Write the Python code that loads a released version from this site."""

from collections.abc import Sequence

from django.http import HttpRequest
from django.urls import reverse

from evaluation.dataset_releases.split_files import UNLABELLED
from evaluation.models import Dataset, DatasetFile


def write_loading_code(request: HttpRequest, dataset: Dataset, files: Sequence[DatasetFile]) -> str:
    """Return Python code that loads the splits that have rows; "" if there are none. No query.

    files: the files of the version that the reader may download.
    """
    round = dataset.round
    rows_by_split = dataset.numbers.get("rows", {})
    lines = []
    for file in files:
        split, _dot, ending = file.name.partition(".")
        # The loader cannot find out the columns of a file without lines.
        has_rows = rows_by_split.get(split.removesuffix(UNLABELLED), 1) > 0
        if ending == "jsonl" and has_rows:
            arguments = (round.task.code, round.number, dataset.version, file.name)
            url = request.build_absolute_uri(reverse("evaluation:dataset-file", args=arguments))
            lines.append(f'    "{split}": "{url}",')
    if not lines:
        return ""
    return "\n".join(
        [
            "from datasets import load_dataset",
            "",
            'rows = load_dataset("json", data_files={',
            *lines,
            "})",
        ]
    )
