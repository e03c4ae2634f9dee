"""Releases go to Zenodo and the hub: whole or not at all, resumed after a stop, with their DOI."""

# ruff: noqa: F811  (fixtures are named where they are used)

import hashlib
import json
import time
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from huggingface_hub import constants

from annotation.moderation import withdraw_example
from core.errors import Refused
from evaluation.dataset_releases.publishing import services
from evaluation.dataset_releases.publishing.services import claim_publication
from evaluation.dataset_releases.publishing.zenodo import Zenodo
from evaluation.dataset_releases.undo_services import UndoRefused, undo_release
from evaluation.models import Publication
from tasks.models import Task
from tests.support.hub_uploads import hub_server
from tests.support.releases import _own_storage, closed, people, released  # noqa: F401
from tests.support.zenodo import zenodo_server

CITED = {"README.md", "croissant.json", "SHA256SUMS"}


@pytest.fixture
def zenodo(settings):
    with zenodo_server() as server:
        settings.ZENODO_URL, settings.ZENODO_TOKEN = server.url, server.token
        yield server


@pytest.fixture
def hub(settings, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with hub_server() as server:
        settings.HUB_ENDPOINT, settings.HUB_TOKEN = server.url, server.token
        yield server


def publish(to="zenodo", **options):
    out = StringIO()
    call_command("publish", "nli", 1, to=to, stdout=out, **options)
    return out.getvalue()


def digests_of(dataset):
    return dict(dataset.files.filter(is_public=True).values_list("name", "sha256"))


def test_a_release_gets_a_doi_on_page_card_citation_and_metadata(closed, zenodo, client):
    dataset = released(closed)
    out = publish()
    publication = Publication.objects.get()
    doi = publication.doi
    assert f"https://doi.org/{doi}" in out
    [record] = zenodo.records.values()
    assert record["submitted"]
    files = record["files"]
    digests = digests_of(dataset)
    assert files.keys() == digests.keys()
    changed = {n for n, data in files.items() if hashlib.sha256(data).hexdigest() != digests[n]}
    assert changed == CITED
    assert f"doi = {{{doi}}}" in files["README.md"].decode()
    assert json.loads(files["croissant.json"])["identifier"] == f"https://doi.org/{doi}"
    for line in files["SHA256SUMS"].decode().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256(files[name]).hexdigest() == digest
    metadata = record["metadata"]
    assert (metadata["upload_type"], metadata["version"]) == ("dataset", "1")
    assert metadata["license"] == dataset.options["license"]
    page = client.get("/t/nli/rounds/1/data/").text
    assert f"https://doi.org/{doi}" in page
    assert f"doi = {{{doi}}}" in page
    told = client.get("/api/v1/tasks/nli/datasets/").json()["results"][0]["publications"]
    assert [(one["place"], one["doi"]) for one in told] == [("zenodo", doi)]
    # Once more: nothing is made or uploaded again.
    uploads = len(zenodo.uploads)
    assert doi in publish()
    assert (len(zenodo.uploads), len(zenodo.records)) == (uploads, 1)


def test_a_zenodo_that_fails_at_the_third_file_publishes_nothing_and_is_resumed(closed, zenodo):
    dataset = released(closed)
    zenodo.fails_at = 3
    with pytest.raises(CommandError, match="Nothing is published"):
        publish()
    [record] = zenodo.records.values()
    assert not record["submitted"]
    publication = Publication.objects.get()
    assert (publication.published_at, publication.leased_until) == (None, None)
    doi = publication.doi
    zenodo.fails_at = 0
    publish()
    assert len(zenodo.records) == 1
    assert record["submitted"]
    # What had arrived was not sent again.
    assert len(zenodo.uploads) == len(digests_of(dataset)) + 1
    assert Publication.objects.get().doi == doi


def test_a_lost_answer_to_the_last_step_is_not_called_unpublished(closed, zenodo):
    released(closed)
    zenodo.drops_answer = True
    with pytest.raises(CommandError, match="may be published"):
        publish()
    [record] = zenodo.records.values()
    assert record["submitted"]
    # The next attempt knows no more until Zenodo has answered.
    zenodo.is_down = True
    with pytest.raises(CommandError, match="may be published"):
        publish()
    zenodo.drops_answer = zenodo.is_down = False
    uploads = len(zenodo.uploads)
    publish()
    assert (len(zenodo.uploads), len(zenodo.records)) == (uploads, 1)
    assert Publication.objects.get().published_at is not None


def test_a_refused_last_step_is_called_unpublished(closed, zenodo, monkeypatch):
    released(closed)
    monkeypatch.setattr(Zenodo, "describe", lambda self, draft, metadata: None)
    with pytest.raises(CommandError, match="Nothing is published"):
        publish()
    [record] = zenodo.records.values()
    assert not record["submitted"]


def test_a_stop_after_the_last_step_is_noticed(closed, zenodo):
    released(closed)
    publish()
    Publication.objects.update(published_at=None, url="")
    uploads = len(zenodo.uploads)
    publish()
    assert len(zenodo.uploads) == uploads
    assert Publication.objects.get().url.startswith(zenodo.url)


def test_a_damaged_upload_is_named(closed, zenodo):
    released(closed)
    zenodo.damages = "test.jsonl"
    with pytest.raises(CommandError, match=r"test\.jsonl"):
        publish()
    zenodo.damages = ""
    publish()


def test_a_later_version_is_a_new_version_of_the_record(closed, zenodo, alice):
    first = released(closed)
    publish()
    withdraw_example(example=first.items.first().example, actor=alice, reason="names a person")
    second = released(closed)
    assert second.version == 2
    publish()
    first_record, second_record = zenodo.records.values()
    assert first_record["submitted"]
    assert second_record["submitted"]
    assert second_record["metadata"]["version"] == "2"
    assert second_record["files"].keys() == digests_of(second).keys()
    dois = set(Publication.objects.values_list("doi", flat=True))
    assert len(dois) == 2


def test_private_labels_stay(closed, zenodo):
    released(closed, private_test=True)
    publish()
    [record] = zenodo.records.values()
    assert not record["files"].keys() & {"test.jsonl", "test.parquet"}


def test_two_at_once_do_not_publish_twice(closed, zenodo):
    dataset = released(closed)
    publication = claim_publication(dataset, Publication.Place.ZENODO)
    with pytest.raises(CommandError):
        publish()
    assert not zenodo.records
    # The other one was killed: it is resumed once it has been silent for a minute.
    assert publication.leased_until - timezone.now() <= timedelta(minutes=1)
    past = timezone.now() - timedelta(seconds=1)
    Publication.objects.filter(pk=publication.pk).update(leased_until=past)
    publish()
    assert len(zenodo.records) == 1


def test_a_slow_upload_keeps_its_lease(closed, zenodo, monkeypatch):
    released(closed)
    monkeypatch.setattr(services, "LEASE", timedelta(seconds=2))
    monkeypatch.setattr(services, "RENEWAL", timedelta(0))
    refusals = []

    def upload(self, draft, name, content, send=Zenodo.upload):
        if name == "SHA256SUMS":
            time.sleep(5)
        return send(self, draft, name, content)

    def keep(publication, renew=services.keep_lease):
        renew(publication)
        with pytest.raises(Refused) as refused:
            claim_publication(publication.dataset, Publication.Place.ZENODO)
        refusals.append(refused)

    monkeypatch.setattr(Zenodo, "upload", upload)
    monkeypatch.setattr(services, "keep_lease", keep)
    publish()
    assert len(refusals) > 4
    assert len(zenodo.records) == 1


def test_who_was_silent_for_too_long_publishes_nothing(closed, zenodo):
    dataset = released(closed)
    silent = claim_publication(dataset, Publication.Place.ZENODO)
    past = timezone.now() - timedelta(seconds=1)
    Publication.objects.update(leased_until=past)
    other = claim_publication(dataset, Publication.Place.ZENODO)
    for act in (services.store_progress, lambda row: services.finish_publication(row, url="x")):
        with pytest.raises(Refused):
            act(silent)
    services.end_work(silent)
    kept = Publication.objects.get()
    assert (kept.leased_until, kept.published_at) == (other.leased_until, None)


@pytest.mark.parametrize("to", ["zenodo", "hub"])
def test_a_release_is_final_once_its_files_leave(closed, zenodo, hub, settings, to):
    released(closed)
    options = {"repository": "lab/nli"} if to == "hub" else {}
    name = "HUB_TOKEN" if to == "hub" else "ZENODO_TOKEN"
    token = getattr(settings, name)
    setattr(settings, name, "wrong")
    with pytest.raises(CommandError):
        publish(to, **options)
    undo_release(round=closed, actor=None)
    setattr(settings, name, token)
    dataset = released(closed)
    zenodo.fails_at, hub.fails = 1, True
    with pytest.raises(CommandError):
        publish(to, **options)
    with pytest.raises(UndoRefused):
        undo_release(round=dataset.round, actor=None)


def test_an_undone_release_is_not_published(closed, zenodo):
    dataset = released(closed)
    undo_release(round=closed, actor=None)
    with pytest.raises(Refused):
        claim_publication(dataset, Publication.Place.ZENODO)


@pytest.mark.parametrize("to", ["zenodo", "hub"])
def test_what_cannot_be_published_is_refused(closed, zenodo, hub, settings, to, monkeypatch):
    released(closed)
    options = {"repository": "lab/nli"} if to == "hub" else {}
    with monkeypatch.context() as patch:
        patch.setattr(Task, "is_simulated", True)
        with pytest.raises(CommandError, match="simulated"):
            publish(to, **options)
    setattr(settings, "HUB_TOKEN" if to == "hub" else "ZENODO_TOKEN", "wrong")
    with pytest.raises(CommandError):
        publish(to, **options)
    setattr(settings, "HUB_TOKEN" if to == "hub" else "ZENODO_TOKEN", "")
    with pytest.raises(CommandError, match="TOKEN"):
        publish(to, **options)
    assert not zenodo.records
    assert not hub.repositories


def test_a_release_is_one_commit_and_a_tag_on_the_hub(closed, hub, client):
    dataset = released(closed)
    out = publish("hub", repository="lab/nli-round1")
    repository = hub.repositories["lab/nli-round1"]
    digests = digests_of(dataset)
    found = {name: hashlib.sha256(data).hexdigest() for name, data in repository["files"].items()}
    assert found == digests
    assert (repository["tags"], repository["commits"]) == (["v1"], 1)
    assert f"{hub.url}/datasets/lab/nli-round1" in out
    assert "lab/nli-round1" in client.get("/t/nli/rounds/1/data/").text
    with pytest.raises(CommandError, match="lab/nli-round1"):
        publish("hub", repository="lab/another")


def test_a_hub_that_fails_leaves_no_half_release(closed, hub):
    released(closed)
    hub.fails = True
    with pytest.raises(CommandError, match="again"):
        publish("hub", repository="lab/nli-round1")
    assert not hub.repositories["lab/nli-round1"]["files"]
    assert Publication.objects.get().published_at is None
    hub.fails = False
    publish("hub", repository="lab/nli-round1")
    assert Publication.objects.get().published_at is not None


def test_a_hub_that_sets_no_tag_has_the_files_and_is_resumed(closed, hub):
    dataset = released(closed)
    hub.tags_fail = True
    with pytest.raises(CommandError, match="without the tag v1"):
        publish("hub", repository="lab/nli-round1")
    repository = hub.repositories["lab/nli-round1"]
    assert repository["files"].keys() == digests_of(dataset).keys()
    publication = Publication.objects.get()
    assert (publication.published_at, publication.leased_until) == (None, None)
    hub.tags_fail = False
    publish("hub", repository="lab/nli-round1")
    assert repository["tags"] == ["v1"]
    assert Publication.objects.get().published_at is not None


def test_a_hub_that_is_not_there_is_named(closed, hub, settings):
    released(closed)
    settings.HUB_ENDPOINT = "http://127.0.0.1:9"
    with pytest.raises(CommandError, match="did not answer"):
        publish("hub", repository="lab/nli-round1")


@pytest.mark.parametrize("wrong", [None, "nli", "lab/", "/x", "a/b/c", "-a/../b", "lab/nli round"])
def test_a_repository_needs_an_organisation_and_a_name(closed, hub, wrong):
    released(closed)
    with pytest.raises(CommandError):
        publish("hub", repository=wrong)
    assert not Publication.objects.exists()


def test_the_hubs_copy_has_the_doi_of_zenodo(closed, zenodo, hub):
    released(closed)
    publish()
    publish("hub", repository="lab/nli-round1")
    doi = Publication.objects.get(place="zenodo").doi
    assert doi in hub.repositories["lab/nli-round1"]["files"]["README.md"].decode()
