"""Everything ctxrel raises for its users.

CtxrelError
├── UsageError               what was asked for cannot be done; nothing was sent
│   ├── DefinitionError      an evaluator's YAML is not right (file and line)
│   └── InputError           a log cannot be read or has no usable fields
├── RunError                 the run ended before its input did
│   ├── EndpointError        the endpoint will not serve this run
│   │   ├── EndpointUnreachable
│   │   ├── EndpointDown
│   │   ├── KeyRefused
│   │   ├── ParameterRefused
│   │   ├── ModelUnknown
│   │   └── QuotaExhausted
│   ├── OutputError          results or store cannot be written
│   │   └── MemoryBusy       not now: another program holds the store
│   ├── RecordFailed         a record failed and the user asked to stop at the first one
│   └── BudgetReached        what the run may spend is spent
└── OutputLocked             another run works at the same output

Failure                      one record could not be judged: data, never the end of a run
└── RateLimited
"""

from enum import StrEnum


class CtxrelError(Exception):
    """Base of all errors that tell the user something; its text is one sentence that names the next step."""


class UsageError(CtxrelError, ValueError):
    """What was asked for cannot be done; nothing was sent."""


class DefinitionError(UsageError):
    """An evaluator's YAML is not right."""


class InputError(UsageError):
    """A log cannot be read or has no usable fields."""


class RunError(CtxrelError):
    """The run ended before its input did."""


class EndpointError(RunError):
    """The endpoint will not serve this run."""

    doubtful = False
    """Whether it may have been meant for the one request: a 403 or 404 in words that are not the API's."""


class EndpointUnreachable(EndpointError):
    """Nothing at the base URL has ever answered."""


class EndpointDown(EndpointError):
    """The endpoint has stopped answering anything but errors."""


class KeyRefused(EndpointError):
    """The endpoint does not accept the API key."""


class ParameterRefused(EndpointError):
    """The endpoint does not take the value of a parameter that was asked for by name."""


class ModelUnknown(EndpointError):
    """The endpoint does not serve the model."""


class QuotaExhausted(EndpointError):
    """The account has no credit left."""


class OutputError(RunError):
    """Results or store cannot be written."""


class MemoryBusy(OutputError):
    """Another program holds the store for the moment."""


class RecordFailed(RunError, ValueError):
    """A record failed and the user asked to stop at the first one."""


class BudgetReached(RunError):
    """What the run may spend is spent."""


class OutputLocked(CtxrelError):
    """Another run works at the same output."""


class FailureKind(StrEnum):
    """Why a record could not be judged; a closed list."""

    BAD_INPUT = "bad_input"
    INVALID_REPLY = "invalid_reply"
    TRUNCATED = "truncated"
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"
    CONTEXT_TOO_LONG = "context_too_long"
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    SERVER_ERROR = "server_error"
    REJECTED = "rejected"


class Failure(Exception):
    """One record could not be judged."""

    def __init__(self, kind: FailureKind, message: str, *, wait: float | None = None, billed: bool = False) -> None:
        """`wait` is for how many seconds the endpoint asked everybody to wait, None where it did not.

        `billed` tells that the endpoint may have done the work, and may charge for it, though no reply has come.
        """
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.wait = wait
        self.billed = billed


class RateLimited(Failure):
    """The endpoint's rate limit was reached."""

    def __init__(self, message: str, *, wait: float | None) -> None:
        super().__init__(FailureKind.RATE_LIMITED, message, wait=wait)
