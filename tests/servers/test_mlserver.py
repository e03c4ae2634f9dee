"""A classifier of scikit-learn on MLServer, through the Open Inference Protocol."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from annotation.models import Example
from tasks.models import RoundTarget, TargetModel
from tasks.targets.connect import get_endpoint
from tasks.targets.endpoints.base import EndpointError
from tests.support.factories import ContextFactory, RoundFactory, UserFactory
from tests.support.other_servers import HOME, Server, running_mlserver
from tests.support.writing import open_form, signed_in
from tests.web.conftest import HTMX

from .conftest import Figures

pytestmark = pytest.mark.mlserver

TRAIN = """
import sys

import joblib
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

texts = {"entailment": "it opened yes", "neutral": "blue maybe", "contradiction": "shut never no"}
model = make_pipeline(CountVectorizer(), MultinomialNB())
joblib.dump(model.fit([*texts.values()], [*texts]), sys.argv[1])
"""
SETTINGS = {
    "name": "mood",
    "implementation": "mlserver_sklearn.SKLearnModel",
    "parameters": {"uri": "./model.joblib"},
    "inputs": [
        {
            "name": "text", "datatype": "BYTES", "shape": [-1],
            "parameters": {"content_type": "str"},
        }
    ],
}  # fmt: skip
OPTIONS = {"model": "mood", "template": "{hypothesis}", "label_output": "predict"}
TEXTS = (
    "The shop opened.",
    "The shop is blue.",
    "The shop stayed shut.",
    "No, never.",
    "Maybe blue.",
    "Yes it opened.",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("mlserver")
    python = HOME / "mlserver" / "bin" / "python"
    (folder / "mood").mkdir()
    model = folder / "mood" / "model.joblib"
    subprocess.run([str(python), "-c", TRAIN, str(model)], check=True)
    (folder / "mood" / "model-settings.json").write_text(json.dumps(SETTINGS))
    (folder / "settings.json").write_text(json.dumps({"host": "127.0.0.1", "parallel_workers": 0}))
    with running_mlserver(folder) as found:
        yield found


def by_hand(server: Server, texts: tuple[str, ...]) -> list[str]:
    tensor = {"name": "text", "shape": [len(texts)], "datatype": "BYTES", "data": texts}
    url = f"{server.url}/v2/models/mood/infer"
    reply = httpx.post(url, json={"inputs": [tensor]}, timeout=60).raise_for_status()
    return list(reply.json()["outputs"][0]["data"])


@pytest.fixture
def target(server: Server) -> TargetModel:
    round = RoundFactory(task__code="nli")
    target = TargetModel.objects.create(
        task=round.task, name="mood", adapter="open_inference_v2", url=server.url, options=OPTIONS
    )
    RoundTarget.objects.create(round=round, target=target, position=0)
    ContextFactory(round=round)
    return target


def test_a_person_writes_against_it(server: Server, target: TargetModel, figures: Figures) -> None:
    client = signed_in(UserFactory())
    for text in TEXTS:
        client.post("/t/nli/write/", open_form(client, text=text), **HTMX)
    found = Example.objects.order_by("pk")
    ours = [one.target_outputs.get().output["label"] for one in found]
    theirs = by_hand(server, TEXTS)
    same = sum(one == other for one, other in zip(ours, theirs, strict=True))
    figures[server.name]["live target"] = f"{same} of {len(theirs)}"
    assert ours == theirs
    assert len(set(theirs)) == 3


def test_a_batch_is_one_request(server: Server, target: TargetModel) -> None:
    inputs = [{"premise": "x", "hypothesis": text} for text in TEXTS]
    answers = get_endpoint(target).predict(inputs, deadline_seconds=60)
    assert [one.output["label"] for one in answers] == by_hand(server, TEXTS)


@pytest.mark.parametrize("route", ["/v2", "/v2/", "/v2/models/mood", "/v2/models/mood/infer"])
def test_the_whole_address_is_understood(server: Server, target: TargetModel, route: str) -> None:
    target.url = server.url + route
    inputs = [{"premise": "x", "hypothesis": TEXTS[0]}]
    (answer,) = get_endpoint(target).predict(inputs, deadline_seconds=60)
    assert [answer.output["label"]] == by_hand(server, TEXTS[:1])


@pytest.mark.parametrize("wrong", [{"model": "nobody"}, {"label_output": "nothing"}])
def test_wrong_settings_are_not_the_texts_fault(target: TargetModel, wrong: dict) -> None:
    target.options = OPTIONS | wrong
    with pytest.raises(EndpointError) as caught:
        get_endpoint(target).predict([{"premise": "x", "hypothesis": "y"}], deadline_seconds=60)
    assert caught.value.reason in ("misconfigured", "rubbish")
