"""Publish a release on Zenodo, with a DOI. An attempt that stopped is resumed."""

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.utils.html import escape

from evaluation.dataset_releases.cards import find_languages, make_title
from evaluation.dataset_releases.publishing.files import write_cited_release
from evaluation.dataset_releases.publishing.services import (
    claim_publication,
    end_work,
    finish_publication,
    keep_lease,
    make_final,
    send_patiently,
    store_progress,
)
from evaluation.dataset_releases.publishing.zenodo import (
    Draft,
    UnknownOutcome,
    Zenodo,
    ZenodoError,
    compute_md5,
)
from evaluation.models import Dataset, Publication

GONE_STATUSES = (404, 410)
"""Zenodo has no such draft. It cannot delete a published record, so there is none."""
REFUSAL_STATUSES = range(400, 500)
"""Zenodo did nothing. After a status from 500 on, it may have done what it was asked."""
KEYWORDS = ("dynamic benchmark", "adversarial", "human-in-the-loop", "dynabench")


def publish_to_zenodo(
    dataset: Dataset, zenodo: Zenodo, report: Callable[[str], None]
) -> Publication:
    """Publish a version and return its publication, which has the DOI.

    1. Create a draft, or a new version of the former version's record, and store its id.
    2. Upload the files that the draft lacks, and delete those of the former version.
    3. Store the metadata, and publish.

    Nothing is visible at Zenodo before the last step. Raises Refused, OSError, UnknownOutcome if
    the last step may have been done, and ZenodoError if it was not.
    """
    publication = claim_publication(dataset, Publication.Place.ZENODO)
    if publication.published_at is not None:
        end_work(publication)
        report(f"{dataset} is published already: https://doi.org/{publication.doi}")
        return publication
    try:
        draft = _open_draft(publication, zenodo)
        make_final(publication)
        if not draft.is_published:
            with TemporaryDirectory() as scratch:
                _upload_files(publication, zenodo, draft, Path(scratch), report)
            metadata, finished_draft = _make_metadata(dataset), draft
            send_patiently(publication, lambda: zenodo.describe(finished_draft, metadata))
            with _notice_unknown_outcome(REFUSAL_STATUSES):
                draft = send_patiently(publication, lambda: zenodo.publish(finished_draft))
        # Or it was published just before the previous attempt stopped.
        finish_publication(publication, url=draft.url, doi=draft.doi)
    except BaseException:
        # Also if it is interrupted, so that the next attempt need not wait for the lease.
        end_work(publication)
        raise
    return publication


@contextmanager
def _notice_unknown_outcome(certain_statuses: Container[int]) -> Iterator[None]:
    """Within the context, raise UnknownOutcome for an error of Zenodo.

    certain_statuses: HTTP statuses of errors that say that nothing is published.
    """
    try:
        yield
    except ZenodoError as error:
        if error.status in certain_statuses:
            raise
        raise UnknownOutcome(str(error), error.status) from error


def _open_draft(publication: Publication, zenodo: Zenodo) -> Draft:
    """Return the draft of an earlier attempt, or a new one, whose id and DOI are stored."""
    if publication.record:
        # An earlier attempt may have published it without hearing of it.
        with _notice_unknown_outcome(GONE_STATUSES):
            return send_patiently(publication, lambda: zenodo.read_draft(publication.record))
    former_record = _find_former_record(publication.dataset)

    def create() -> Draft:
        if former_record:
            return zenodo.create_new_version(former_record)
        return zenodo.create_draft()

    draft = send_patiently(publication, create)
    # At once, because a draft whose id is lost would stay at Zenodo forever.
    store_progress(publication, record=draft.id, doi=draft.doi)
    return draft


def _find_former_record(dataset: Dataset) -> str:
    """Return the record of the newest published version below this one, or ""."""
    former_publications = Publication.objects.filter(
        dataset__round=dataset.round_id,
        dataset__version__lt=dataset.version,
        place=Publication.Place.ZENODO,
        published_at__isnull=False,
    )
    former = former_publications.order_by("dataset__version").last()
    return former.record if former else ""


def _upload_files(
    publication: Publication,
    zenodo: Zenodo,
    draft: Draft,
    folder: Path,
    report: Callable[[str], None],
) -> None:
    """Make the files of a draft those of the release. Equal ones are not uploaded again."""
    keep = partial(keep_lease, publication)
    paths = write_cited_release(publication.dataset, folder, draft.doi, keep)
    names = {path.name for path in paths}
    for name, file in draft.files.items():
        if name not in names:
            send_patiently(publication, partial(zenodo.delete_file, draft, file))
    for path in paths:
        stored_file = draft.files.get(path.name)
        keep_lease(publication)
        if stored_file is not None and stored_file.md5 == compute_md5(path):
            continue
        report(f"Uploading {path.name} …")
        with path.open("rb") as content:
            # A large file takes longer than the lease.
            send_patiently(publication, partial(zenodo.upload, draft, path.name, content))


def _make_metadata(dataset: Dataset) -> dict[str, Any]:
    """Return Zenodo's description of a version. It names no person."""
    options, task = dataset.options, dataset.round.task
    description = options["description"] or task.config.summary or make_title(dataset)
    assert dataset.finished_at  # it is released
    metadata: dict[str, Any] = {
        "title": make_title(dataset),
        "upload_type": "dataset",
        # Zenodo shows HTML, but owners write plain text.
        "description": f"<p>{escape(description)}</p>",
        "creators": [{"name": f"The {task.code} annotators"}],
        "access_right": "open",
        "license": options["license"],
        "version": str(dataset.version),
        "publication_date": f"{dataset.finished_at:%Y-%m-%d}",
        "keywords": [*KEYWORDS, *find_languages(dataset)],
    }
    if options["url"]:
        metadata["related_identifiers"] = [
            {"identifier": options["url"], "relation": "isIdenticalTo", "resource_type": "dataset"}
        ]
    return metadata
