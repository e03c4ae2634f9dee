import json

import pytest

from tests.support.published import read


@pytest.fixture
def of(tmp_path):
    """The rows of records in a file of the name, and what is wrong with it."""

    def of(name, records, file="file.jsonl"):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        is_array = file.endswith(".json")
        lines = map(json.dumps, records) if isinstance(records, list) else [json.dumps(records)]
        whole = "\n".join(lines)
        if is_array:
            whole = json.dumps(records)
        path.write_text(whole + "\n")
        return read(path, name)

    return of
