"""What each kind of submission must tell, and which field is named when it does not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.kinds import KINDS, find_kinds
from evaluation.submissions.kinds import find_submission_kind
from evaluation.submissions.requirements import Sources, find_gpu_problem
from tasks.config.loading import load_config
from tests.unit.tasks.config_texts import MINIMAL

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PINNED = f"registry.example:5000/team/model@sha256:{'ab' * 32}"


def field_of(kind, source="", revision="", adapter="jsonl", upload=False, evaluation_set=False):
    found = find_submission_kind(kind).find_problem(
        Sources(source, revision, adapter, upload, evaluation_set, private_hosts=("10.0.0.5",))
    )
    assert found is None or found[1].endswith((".", ")."))
    return found and found[0]


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"kind": "directory"}, "upload"),
        ({"kind": "directory", "upload": True}, None),
        ({"kind": "rows"}, "upload"),
        ({"kind": "rows", "upload": True}, None),
        ({"kind": "predictions"}, "upload"),
        ({"kind": "predictions", "upload": True}, "evaluation_set"),
        ({"kind": "predictions", "upload": True, "evaluation_set": True}, None),
        ({"kind": "llm", "upload": True}, None),
        ({"kind": "hub", "source": "org/name", "revision": COMMIT}, None),
        ({"kind": "hub", "source": "org/name", "revision": "main"}, "revision"),
        ({"kind": "hub", "source": "org/name", "revision": COMMIT[:7]}, "revision"),
        ({"kind": "hub", "source": "../name", "revision": COMMIT}, "source"),
        ({"kind": "hub", "source": "/etc/passwd", "revision": COMMIT}, "source"),
        ({"kind": "hub", "source": "name", "revision": COMMIT}, "source"),
        ({"kind": "image"}, "source"),
        ({"kind": "image", "upload": True}, None),
        ({"kind": "image", "source": "team/model:latest"}, "source"),
        ({"kind": "image", "source": PINNED}, None),
        ({"kind": "endpoint"}, "source"),
        ({"kind": "endpoint", "source": "https://example.org/model"}, None),
        ({"kind": "endpoint", "source": "http://example.org/model"}, "source"),
        ({"kind": "endpoint", "source": "http://10.0.0.5:8000"}, None),
        ({"kind": "endpoint", "source": "https://me:secret@example.org"}, "source"),
        ({"kind": "endpoint", "source": "https://example.org:port"}, "source"),
        ({"kind": "endpoint", "source": "https://[half"}, "source"),
        ({"kind": "endpoint", "source": "file:///etc/passwd"}, "source"),
        ({"kind": "endpoint", "source": "https://a.b", "adapter": "dynalab"}, None),
        ({"kind": "chat", "source": "https://a.b/v1"}, None),
        ({"kind": "chat", "source": "http://a.b/v1"}, "source"),
        ({"kind": "endpoint", "source": "https://a.b", "adapter": "dynabench2"}, "adapter"),
    ],
)
def test_the_first_thing_that_is_missing_is_named(told, field):
    assert field_of(**told) == field


@given(st.sampled_from(["hub", "image", "endpoint"]), st.text(), st.text())
def test_whatever_is_typed_is_answered(kind, source, revision):
    assert field_of(kind, source, revision) in (None, "source", "revision")


def test_a_task_takes_models_or_training_data() -> None:
    models = ("directory", "image", "hub", "llm", "predictions", "chat", "endpoint")
    assert find_kinds(load_config(MINIMAL)) == models
    rows = replace(load_config(MINIMAL), training_rows=10)
    assert find_kinds(rows) == ("rows",)
    assert {"throughput", "memory"}.isdisjoint(rows.weights)  # every model is the same


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        (("directory", 0, 0), False),
        (("directory", 1, 1), False),
        (("llm", 1, 1), True),
        (("image", 1, 0), True),
        (("image", 2, 4), True),
        (("image", 1, 4), False),
    ],
)
def test_who_gets_a_gpu_and_one_at_most(asked, refused):
    kind, gpus, site_has = asked
    assert bool(find_gpu_problem(KINDS[kind].may_use_gpu, gpus, site_has)) == refused
