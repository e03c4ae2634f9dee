"""Five jobs by a client that was generated of docs/openapi-v1.yaml; prints what came of each.

python generated_walk.py URL KEY_OF_A_WRITER KEY_OF_A_JUDGE FILE_OF_PREDICTIONS, in an environment
that has the generator, and with the client, `generated`, on the path.
"""

import io
import json
import sys
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

from generated import AuthenticatedClient, Client
from generated.api.assignments import examples_create
from generated.api.examples import validations_create
from generated.api.tasks import (
    assignment_take,
    judging_next,
    leaderboard_get,
    models_create,
    rounds_list,
    tasks_get,
)
from generated.api.uploads import uploads_create, uploads_put
from generated.models import (
    NewExampleRequest,
    NewModelKindEnum,
    NewModelRequest,
    NewUploadRequest,
    NewValidationRequest,
    WantEnum,
    WantRequest,
)
from generated.types import File

CODE = "nli"


def good(response: Any) -> Any:
    """What an answer of success holds, as the client reads it."""
    assert 200 <= response.status_code < 300, response.content
    assert response.parsed is not None, response.content
    return response.parsed


def read(anybody: Client) -> list[int]:
    """A task and its rounds, without a token."""
    assert good(tasks_get.sync_detailed(CODE, client=anybody)).code == CODE
    page = good(rounds_list.sync_detailed(CODE, client=anybody, page_size=10))
    assert page.next_ is None
    return [one.number for one in page.results]


def write(writer: AuthenticatedClient) -> tuple[str, str]:
    """An example: its id, and what became of it."""
    take = assignment_take.sync_detailed
    found = good(take(CODE, client=writer, body=WantRequest()))
    while found.goal == "entailment":
        found = good(take(CODE, client=writer, body=WantRequest(want=WantEnum.GOAL)))
    told = NewExampleRequest.from_dict({"inputs": {"hypothesis": "Nobody was in this shop."}})
    made = good(examples_create.sync_detailed(found.id, client=writer, body=told))
    return str(made.id), made.outcome.value


def judge(judging: AuthenticatedClient) -> str:
    """A vote on the next example: the vote."""
    item = good(judging_next.sync_detailed(CODE, client=judging))
    told = NewValidationRequest(vote=item.choices[0].vote)
    sent = validations_create.sync_detailed(item.example, client=judging, body=told)
    while sent.status_code == HTTPStatus.TOO_MANY_REQUESTS:  # nobody has read it that fast
        time.sleep(float(sent.headers["Retry-After"]))
        sent = validations_create.sync_detailed(item.example, client=judging, body=told)
    return good(sent).vote


def submit(writer: AuthenticatedClient, file: Path) -> str:
    """Predictions for a set: the kind of model that was made."""
    data = file.read_bytes()
    told = NewUploadRequest(file_name=file.name, size=len(data))
    begun = good(uploads_create.sync_detailed(client=writer, body=told))
    piece = File(payload=io.BytesIO(data))
    sent = good(uploads_put.sync_detailed(begun.id, client=writer, body=piece, offset=0))
    assert sent.received == len(data)
    model = NewModelRequest(
        kind=NewModelKindEnum.PREDICTIONS,
        name="generated",
        upload=begun.id,
        evaluation_set="round-1",
    )
    return good(models_create.sync_detailed(CODE, client=writer, body=model)).kind.value


def main(url: str, writing: str, judging: str, file: str) -> None:
    anybody = Client(base_url=url)
    writer, judges = (AuthenticatedClient(base_url=url, token=key) for key in (writing, judging))
    rounds = read(anybody)
    example, outcome = write(writer)
    board = good(leaderboard_get.sync_detailed(CODE, client=anybody))
    told = {"rounds": rounds, "example": example, "outcome": outcome, "vote": judge(judges)}
    told |= {"kind": submit(writer, Path(file)), "board": [one.model for one in board.rows]}
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
