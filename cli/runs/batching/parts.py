"""The parts of a batch run, and what becomes of them."""

from enum import StrEnum
from typing import NamedTuple

from ....evaluators.judges.openai_chat import Room
from ....evaluators.replies import Usage


class State(StrEnum):
    """How far a part has come."""

    PLANNED = "planned"
    """Its file is on the disk, and nothing was sent."""
    UPLOADED = "uploaded"
    """Its file is at the endpoint."""
    CREATING = "creating"
    """A batch was asked for; there may be one whose id is not known."""
    SENT = "sent"
    """The batch is known."""
    HELD = "held"
    """The account, or a cap, had no room for the batch: another is to be made of the file."""
    COLLECTED = "collected"
    """What the batch brought is in the store."""
    RETURNED = "returned"
    """Nothing came of it; its requests are wanted as before."""


OPEN = (State.PLANNED, State.UPLOADED, State.CREATING, State.SENT, State.HELD)


class Part(NamedTuple):
    """Requests that are sent together."""

    number: int
    run: int
    hash: str
    """Over its requests."""
    state: State
    planned: float
    requests: int
    bytes: int
    tokens: int
    """What it may take of the account's limit of enqueued tokens, estimated from above."""
    dialect: str
    """In which it asks, as JSON."""
    file: str | None
    batch: str | None
    status: str | None
    """The endpoint's word for how far the batch is."""
    completed: int
    failed: int
    created: float | None
    ended: float | None
    company: int
    """Others of ours that were at the endpoint when its batch was asked for."""
    refused: int
    """How often the account had no room for it though no other of ours took any."""
    cancelled: bool
    """Whether `ctxrel batch cancel` has asked for its end."""
    usage: Usage

    @property
    def described(self) -> str:
        """How far it is, for people."""
        if self.state is State.SENT:
            return self.status or "sent"
        return f"{self.status}, collected" if self.state is State.COLLECTED else self.state.value


class Planned(NamedTuple):
    """A request on its way into a part."""

    key: bytes
    prompt: bytes
    """The judge's fingerprint of the prompt."""
    room: Room


REPLIED = "replied"
"""Outcome of a try that brought a reply; whether it can be read is for its reader to say."""
OTHER_WAY = "other way"
"""Outcome of a try that was refused for a parameter and is worth another; followed by the room to try it with."""


class Try(NamedTuple):
    """One try at a request in this run."""

    outcome: str | None
    """`replied`, `other way: ROOM`, a kind of failure; None while it is under way."""
    part: int
