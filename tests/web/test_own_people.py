"""Authors and validators, by pseudonym and by need for a look."""

# ruff: noqa: F811  (fixtures are named where they are used)

import csv
from io import StringIO

import pytest

from annotation.models import Example
from core.accounts.models import Annotator
from core.accounts.people import get_shown_name
from core.accounts.services import get_annotator
from dynabench.manage.people import check_agreement, check_labels
from dynabench.notices.sentences import build_sentence, get_address
from dynabench.notices.services import renew_notices
from tests.support.factories import RoundFactory, UserFactory
from tests.support.judging import write
from tests.support.owner_pages import crowd  # noqa: F401
from validation.consensus.gold_check import Check
from validation.consensus.reading import WORDS_PER_SECOND
from validation.models import Validation
from validation.statistics.people import list_author_statistics, list_validator_statistics

URL = "/own/nli/annotators/"


def rows(html, region):
    """Name to cells of a table."""
    table = html.partition(f'aria-label="{region}"')[2].partition("</table>")[0]
    cells = [row.partition("<")[0].strip() for row in table.split('<th scope="row">')[1:]]
    return cells, table


def test_who_needs_a_look_comes_first(as_alice, crowd, nli):
    html = as_alice.get(URL).text
    said = {check: f'data-check="{check.value}"' for check in Check}
    names, table = rows(html, "Authors")
    assert names == [crowd["carol"].pseudonym, crowd["bob"].pseudonym]
    assert table.index(said[Check.FAIL]) < table.index(said[Check.PASS])
    assert "100.0%<small" in table.replace(" ", "")
    names, table = rows(html, "Judges")
    assert names[0] == crowd["mallory"].pseudonym
    assert len(names) == 4
    assert table.index(said[Check.FAIL]) < table.index(said[Check.PASS])


def test_who_answers_faster_than_anybody_reads_is_shown_to_owners(as_alice, crowd, nli):
    """Evidence on the page and a notice; nothing else follows, and few votes say nothing."""
    fast, slow, few = (get_annotator(UserFactory()) for _ in range(3))
    examples = [write(nli, UserFactory(), number) for number in range(100, 122)]
    for who, seconds, votes in ((fast, 1.9, 22), (slow, 2.0, 22), (few, 0.7, 19)):
        Validation.objects.bulk_create(
            Validation(example=e, validator=who, label="neutral", seconds=seconds, words=30)
            for e in examples[:votes]
        )
    known = {one.annotator: one for one in list_validator_statistics([nli])}
    checks = [known[who].reading_check for who in (fast, slow, few)]
    assert checks == [Check.FAIL, Check.PASS, Check.UNKNOWN]
    assert (known[fast].unread.value, known[slow].unread.value) == (1, 0)
    assert known[crowd["mallory"]].reading_check is Check.UNKNOWN
    for one in Validation.objects.filter(validator__in=[fast, slow, few]):
        assert (one.seconds * WORDS_PER_SECOND < one.words) == (one.seconds < 2)
    renew_notices()
    notice = nli.task.notices.get(kind="reading")
    assert (notice.numbers, get_address(notice)) == ({"count": 1}, URL)
    assert build_sentence(notice)
    assert rows(as_alice.get(URL).text, "Judges")[0][0] == get_shown_name(fast)


def test_what_is_unknown_never_counts_against_anybody(as_alice, crowd, nli):
    dave = UserFactory()
    for number in range(60, 63):  # nobody judged them; a small number says nothing
        write(nli, dave, number)
    alone = write(nli, dave, 70)
    Validation.objects.create(
        example=alone, validator=get_annotator(UserFactory()), label="contradiction"
    )
    statistics = {one.annotator: one for one in list_author_statistics([nli])}
    assert check_labels(statistics[crowd["carol"]]) is Check.FAIL
    assert check_labels(statistics[crowd["bob"]]) is Check.PASS
    assert check_labels(statistics[get_annotator(dave)]) is Check.UNKNOWN
    checks = [check_agreement(one) for one in list_validator_statistics([nli])]
    assert checks.count(Check.FAIL) == 1
    assert checks.count(Check.UNKNOWN) == 1
    names, _ = rows(as_alice.get(URL).text, "Authors")
    assert names[-1] != crowd["carol"].pseudonym
    assert names[0] == crowd["carol"].pseudonym


@pytest.mark.parametrize("who", ["authors", "validators"])
def test_a_table_comes_as_csv(as_alice, crowd, who):
    response = as_alice.get(f"{URL}{who}.csv")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert f'filename="nli-{who}.csv"' in response["Content-Disposition"]
    table = list(csv.DictReader(StringIO(response.text)))
    first = {"authors": "carol", "validators": "mallory"}[who]
    assert table[0]["annotator"] == crowd[first].pseudonym
    if who == "authors":
        shares = (table[0]["label_flip"], table[0]["label_flip_n"], table[0]["validity"])
        assert shares == ("1.0", "24", "0.0")
        assert table[0]["median_seconds"] == ""
    else:
        assert (table[0]["votes"], table[0]["skips"], table[0]["gold"]) == ("48", "1", "")
        assert table[0]["gold_check"] == "unknown"
        assert float(table[0]["reliability_high"]) < 0.5


def test_the_id_of_a_source_is_not_shown(as_alice, nli, crowd):
    worker = Annotator.objects.create(pseudonym="nli:A1WORKERID", source="import")
    Example.objects.filter(annotator=crowd["bob"]).update(annotator=worker)
    for path in ("", "authors.csv"):
        text = as_alice.get(URL + path).text
        assert get_shown_name(worker) in text
        assert "A1WORKERID" not in text


def test_a_round_is_chosen(as_alice, nli, crowd):
    RoundFactory(task=nli.task, number=2, state="closed")
    assert not as_alice.get(f"{URL}?round=2").context["authors"]
    assert as_alice.get(f"{URL}authors.csv?round=2").text.count("\n") == 1
    assert rows(as_alice.get(f"{URL}?round=1").text, "Authors")[0]


def test_the_file_has_all_rows_of_a_table_in_pages(as_alice, crowd, monkeypatch):
    monkeypatch.setattr("core.web.lists.MAX_PAGE_ROWS", 1)
    assert len(as_alice.get(URL).context["validators"]) == 1
    assert as_alice.get(f"{URL}validators.csv").text.count("\n") == 5


def test_others_learn_nothing(client, crowd):
    client.force_login(UserFactory())
    for path in ("", "authors.csv", "validators.csv"):
        assert client.get(URL + path).status_code == 404
