"""Publish a release as a dataset repository of the Hugging Face Hub, in one commit."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from core.errors import Refused
from evaluation.dataset_releases.publishing.files import write_cited_release
from evaluation.dataset_releases.publishing.services import (
    claim_publication,
    end_work,
    finish_publication,
    keep_lease,
    make_final,
    send_patiently,
)
from evaluation.models import Dataset, Publication

REPOSITORY_PATTERN = re.compile(r"[\w-][\w.-]{0,95}/[\w-][\w.-]{0,95}")


def publish_to_hub(
    dataset: Dataset,
    repository: str,
    *,
    endpoint: str,
    token: str,
    report: Callable[[str], None],
) -> Publication:
    """Publish a version in a repository, with the tag `v<version>`; return its publication.

    repository: its id, such as lab/nli-round1. It is created if it does not exist. All files come
    in one commit, so that readers see the former version or this one. Raises Refused, also if the
    files have arrived and the tag has not, OSError, HTTPError without an answer,
    and HfHubHTTPError or OfflineModeIsEnabled of the hub's library.
    """
    from httpx2 import HTTPError  # of the hub's library, which is not in the web process
    from huggingface_hub import CommitOperationAdd, HfApi

    if not REPOSITORY_PATTERN.fullmatch(repository):
        raise Refused("Write the repository as ORGANISATION/NAME, such as lab/nli-round1.")
    publication = claim_publication(dataset, Publication.Place.HUB, repository)
    hub = HfApi(endpoint=endpoint, token=token)
    try:
        send = partial(send_patiently, publication)
        send(lambda: hub.create_repo(repository, repo_type="dataset", exist_ok=True))
        with TemporaryDirectory() as scratch:
            keep = partial(keep_lease, publication)
            paths = write_cited_release(dataset, Path(scratch), find_doi(dataset), keep)
            operations = [CommitOperationAdd(path.name, path) for path in paths]
            report(f"Uploading {len(operations)} files …")
            commit = partial(
                hub.create_commit,
                repository,
                operations,
                commit_message=f"Version {dataset.version}",
            )
            make_final(publication)
            send(lambda: commit(repo_type="dataset"))
        # Readers load a version by its tag, even after a later one.
        name = f"v{dataset.version}"
        tag = partial(hub.create_tag, repository, tag=name, exist_ok=True)
        try:
            send(lambda: tag(repo_type="dataset"))
        except (HTTPError, OSError) as error:
            raise Refused(
                f"The files are there without the tag {name}: {error}. Run the same command again."
            ) from error
        finish_publication(publication, url=f"{endpoint.rstrip('/')}/datasets/{repository}")
    except BaseException:
        end_work(publication)
        raise
    return publication


def find_doi(dataset: Dataset) -> str:
    """Return the DOI under which a version is published, or ""."""
    publications = dataset.publications.filter(published_at__isnull=False).exclude(doi="")
    return publications.values_list("doi", flat=True).first() or ""
