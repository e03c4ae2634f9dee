"""A search with words of a masked language model: which ones it tries, and what runs log."""

import json

import pytest

from annotation.models import Example
from core.errors import Invalid
from dynabench.adversaries import masked_services
from dynabench.adversaries.kinds.base import Blank
from dynabench.adversaries.masked_services import BROKEN_MESSAGE, NO_MODEL_MESSAGE, LoggedWords
from dynabench.adversaries.masked_worker import MaskedModel, answer_line
from dynabench.adversaries.models import AdversaryRun, WriterCall
from dynabench.adversaries.run_services import RunSlice
from evaluation.isolation.queue.leases import Heartbeat
from tests.support.adversaries import make_adversary, run_to_its_end, sentiment_round
from tests.support.masked_models import make_masked_model

pytestmark = pytest.mark.django_db
TEXT = "We loved the small blue boat."
ONLY_MASKED = {"sentences": f"positive | {TEXT}", "letters": False, "words": False, "masked": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_masked_model(tmp_path_factory.mktemp("models") / masked_services.FOLDER_NAME)


@pytest.fixture
def installed(folder, settings):
    settings.MODELS_HOME = folder.parent


def words_for(folder, text, word, count=10):
    start = text.index(word)
    request = {"text": text, "start": start, "end": start + len(word), "count": count}
    return answer_line(MaskedModel(str(folder)), request)["words"]


def test_words_are_whole_likely_and_keep_the_meaning(folder):
    """Not the same word, no piece, no number, and none of another meaning."""
    assert words_for(folder, TEXT, "loved") == ["adored", "never", "liked"]
    assert words_for(folder, TEXT, "loved", count=1) == ["adored"]


def test_a_text_with_a_mask_of_its_own_gets_no_words(folder):
    assert words_for(folder, "We loved the [MASK] boat.", "loved") == []


def test_only_what_is_near_the_word_is_read(folder):
    long_text = "boat " * 400 + TEXT
    assert words_for(folder, long_text, "loved") == []  # the model reads 64 tokens


def test_a_search_finds_what_fools_and_keeps_negations_out(installed):
    round, owner = sentiment_round()
    run = run_to_its_end(make_adversary(round, owner, **ONLY_MASKED))
    assert (run.state, run.ended_by) == ("done", "finished")
    assert Example.objects.get().inputs["text"] == "We adored the small blue boat."
    assert not run.logged_tries.filter(text__contains="never", is_offered=True).exists()
    assert run.calls == run.logged_tries.count() + run.examples


def test_logged_words_are_not_computed_again(installed, monkeypatch):
    round, owner = sentiment_round()
    adversary = make_adversary(round, owner, **ONLY_MASKED)
    run = AdversaryRun.objects.create(adversary=adversary, round=round, number=1)
    blank = Blank(TEXT, 3, 8, 10)
    with LoggedWords(run) as words:
        assert not words.has_words(blank)
        found = words.find_words(blank)
        process = words._process
    assert process.poll() is not None  # it has ended
    assert json.loads(WriterCall.objects.get().text) == found
    monkeypatch.setattr(LoggedWords, "_start", None)
    with LoggedWords(run) as again:
        assert again.has_words(blank)
        assert again.find_words(blank) == found


def test_the_lease_is_renewed_while_the_model_works(installed):
    round, owner = sentiment_round()
    run = AdversaryRun.objects.create(
        adversary=make_adversary(round, owner, **ONLY_MASKED), round=round, number=1
    )
    beats = []
    with LoggedWords(run, lambda: beats.append(1)) as words:
        words.find_words(Blank(TEXT, 3, 8, 10))
    assert len(beats) >= 2  # at least once for its start and once for its answer


def test_logged_words_cost_no_query(installed, django_assert_num_queries):
    round, owner = sentiment_round()
    run = AdversaryRun.objects.create(
        adversary=make_adversary(round, owner, **ONLY_MASKED), round=round, number=1
    )
    blank = Blank(TEXT, 3, 8, 10)
    with LoggedWords(run) as words:
        words.find_words(blank)
    slice = RunSlice(run, Heartbeat(run), LoggedWords(run))
    with django_assert_num_queries(0):
        assert "adored" in slice._find_words(blank).words


def test_without_a_model_the_setting_is_refused(settings, tmp_path):
    settings.MODELS_HOME = tmp_path
    round, owner = sentiment_round()
    with pytest.raises(Invalid) as refusal:
        make_adversary(round, owner, **ONLY_MASKED)
    assert refusal.value.field == "masked"


def test_a_model_that_is_gone_or_broken_ends_a_run(installed, settings, tmp_path):
    round, owner = sentiment_round()
    adversary = make_adversary(round, owner, **ONLY_MASKED)
    settings.MODELS_HOME = tmp_path
    assert run_to_its_end(adversary).error == NO_MODEL_MESSAGE
    broken = tmp_path / masked_services.FOLDER_NAME
    broken.mkdir()
    (broken / "config.json").write_text("{}")
    assert run_to_its_end(adversary).error == BROKEN_MESSAGE
