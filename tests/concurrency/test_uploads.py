"""Pieces of a file and versions of a set that come at the same instant."""

import io

import pytest
from django.core.files.storage import default_storage

from core.errors import Refused
from evaluation.contract import SetRow
from evaluation.isolation.uploads.chunked import (
    MAX_OPEN_UPLOADS,
    UploadRefused,
    add_piece,
    assemble_upload,
    begin_upload,
    count_stored_bytes,
    select_open_uploads,
)
from evaluation.judges.paraphrases.services import create_paraphrased_version
from evaluation.models import EvaluationSetVersion, UploadPiece
from evaluation.test_sets import source_services as sets
from evaluation.test_sets.selectors import read_set_rows
from evaluation.test_sets.services import create_set, make_version
from tests.support.factories import TaskFactory, UserFactory
from tests.support.paraphrases import paraphrased

pytestmark = pytest.mark.django_db(transaction=True)
THREADS = 8


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


def test_the_same_piece_from_many_tabs_is_stored_once(at_once):
    upload = begin_upload(UserFactory(), "model.zip", 12)
    for offset in (0, 4, 8):
        ends = at_once(lambda n, at=offset: add_piece(upload, at, io.BytesIO(b"%4d" % n)), range(8))
        assert set(ends) == {offset + 4}
    assert UploadPiece.objects.count() == 3
    assert len(default_storage.listdir(f"uploads/{upload.pk}")[1]) == 3
    with assemble_upload(upload) as path:
        assert path.stat().st_size == 12


def test_nobody_gets_more_uploads_than_the_cap(at_once):
    owner = UserFactory()

    def begin(_):
        try:
            return begin_upload(owner, "model.zip", 1)
        except UploadRefused:
            return None

    made = at_once(begin, range(THREADS))
    assert len(list(filter(None, made))) == select_open_uploads(owner).count() == MAX_OPEN_UPLOADS


def test_nobody_gets_more_bytes_than_the_quota(at_once, settings):
    settings.UNCONFIRMED_QUOTA_BYTES = 20
    owner = UserFactory()

    def begin(_):
        try:
            return begin_upload(owner, "model.zip", 10)
        except UploadRefused:
            return None

    at_once(begin, range(THREADS))
    assert count_stored_bytes(owner) == 20


def test_the_same_rows_at_once_make_one_version(at_once):
    one = create_set(task=TaskFactory(), name="mine", actor=None)
    rows = [SetRow(str(n), {"premise": "A.", "hypothesis": "B."}, ("neutral",)) for n in range(5)]
    made = at_once(lambda _: make_version(one, rows, None), range(THREADS))
    assert len({version.pk for version in made}) == EvaluationSetVersion.objects.count() == 1
    assert len(default_storage.listdir(f"evaluation-sets/{one.pk}")[1]) == 2


def test_different_rows_at_once_make_versions_one_after_another(at_once):
    one = create_set(task=TaskFactory(), name="mine", actor=None)

    def make(number):
        return make_version(one, [SetRow(str(number), {"premise": "A."}, ("neutral",))], None)

    made = at_once(make, range(THREADS))
    assert sorted(version.version for version in made) == list(range(1, THREADS + 1))
    for number, version in enumerate(made):
        assert [row.uid for row in read_set_rows(version)] == [str(number)]


def test_kept_paraphrases_make_one_version(at_once):
    """Lock: the set, in `create_paraphrased_version`; without it both have the same number."""
    one = create_set(task=TaskFactory(), name="mine", actor=None)
    rows = [SetRow(str(n), {"premise": "A.", "hypothesis": "B."}, ("neutral",)) for n in range(5)]
    paraphrased(make_version(one, rows, None), "kept")
    owner = UserFactory()

    def take(_):
        try:
            return create_paraphrased_version(evaluation_set=one, actor=owner).version
        except Refused:
            return None

    assert sorted(at_once(take, range(THREADS)), key=str) == [2, *[None] * (THREADS - 1)]


def test_two_sweeps_make_one_control_set(at_once):
    TaskFactory(code="nli", is_official=True)
    at_once(lambda _: sets.make_missing_versions(), range(4))
    assert EvaluationSetVersion.objects.count() == 1
