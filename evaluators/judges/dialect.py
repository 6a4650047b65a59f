"""What an endpoint takes: found out once per endpoint and model, then remembered."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ..prompt import Prompt

_WEAKER_FORMAT = {"json_schema": "json_object", "json_object": "text"}
_OTHER_NAME = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}
LIMITS = frozenset(_OTHER_NAME)
"""Parameters that bound the reply's length; they are one wish under two names."""
OURS = LIMITS | {"response_format", "temperature"}
"""What is sent without anybody having asked for it."""
_UNKNOWN_CODES = frozenset({"unsupported_parameter", "unknown_parameter"})
_VALUE_CODES = frozenset({"unsupported_value", "invalid_value", "invalid_type"})
_UNKNOWN = re.compile(
    r"unsupported|not supported|unknown|unrecogni[sz]ed|not permitted|not allowed|unexpected|extra", re.IGNORECASE
)
_VALUE = re.compile(r"\bvalues?\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, eq=False)  # hashed by identity: each change makes a new one
class Dialect:
    """The strictest way of asking that an endpoint takes for a model."""

    response_format: str = "json_schema"
    """`json_schema` (strict), `json_object` or `text`."""
    renamed: Mapping[str, str | None] = field(default_factory=dict)
    """Parameters that go by another name, or by none: they are left out."""

    def parameters(self, wanted: Mapping[str, object]) -> dict[str, object]:
        """The wanted parameters as this endpoint takes them."""
        names = {name: self.renamed.get(name, name) for name in wanted}
        return {name: wanted[asked] for asked, name in names.items() if name is not None}

    def format_of(self, prompt: Prompt) -> dict[str, object]:
        """The request's `response_format`, nothing where the endpoint takes none."""
        if self.response_format == "json_schema" and prompt.schema is None:
            return {"response_format": {"type": "json_object"}}
        if self.response_format == "json_schema":
            schema = {"name": prompt.name, "strict": True, "schema": prompt.schema}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        return {} if self.response_format == "text" else {"response_format": {"type": self.response_format}}

    def without(self, name: str) -> "Dialect":
        """The dialect of an endpoint that does not take the parameter `name` as it was sent."""
        if name == "response_format":
            return replace(self, response_format=_WEAKER_FORMAT[self.response_format])
        asked = next((asked for asked, sent in self.renamed.items() if sent == name), name)
        substitute = None if asked in self.renamed else _OTHER_NAME.get(name)
        return replace(self, renamed={**self.renamed, asked: substitute})

    def changed_from(self, other: "Dialect") -> set[str]:
        """The parameters that this dialect treats in another way."""
        names = {name for name in self.renamed if self.renamed[name] != other.renamed.get(name, name)}
        return names | ({"response_format"} if self.response_format != other.response_format else set())

    def remembered(self, ours: Collection[str]) -> dict[str, object]:
        """What holds for later runs: of parameters only ours, for whoever names one may have meant another value."""
        lasting = {asked: sent for asked, sent in self.renamed.items() if asked in ours}
        return {"response_format": self.response_format, "renamed": lasting}

    def changes(self) -> list[str]:
        """One sentence for each way in which requests differ from what was wanted."""
        said = [
            f"the endpoint does not take {asked}; " + (f"{sent} is sent instead" if sent else "it is left out")
            for asked, sent in self.renamed.items()
        ]
        if self.response_format != "json_schema":
            said.append(f"the endpoint does not take a JSON schema; response_format is {self.response_format}")
        return said


def recall_dialect(facts: Mapping[str, object]) -> Dialect | None:
    """The dialect that was `remembered`, None where nothing usable was."""
    response_format, renamed = facts.get("response_format"), facts.get("renamed")
    if response_format not in ("json_schema", "json_object", "text") or not isinstance(renamed, dict):
        return None
    return Dialect(response_format=str(response_format), renamed=renamed)


def named_parameter(message: str, param: object, sent: Mapping[str, object]) -> str | None:
    """The sent parameter that a 400 blames: the one it names in `param`, else the first in its message."""
    if isinstance(param, str):
        top = re.split(r"[.\[]", param)[0]
        return top if top in sent else None
    places = {name: where.start() for name in sent if (where := re.search(rf"\b{re.escape(name)}\b", message))}
    if places:
        return min(places, key=lambda name: places[name])
    return "response_format" if "response_format" in sent and "json_schema" in message else None


def blames_the_value(message: str, code: object) -> bool:
    """Whether a 400 takes the parameter and not its value."""
    if code in _UNKNOWN_CODES:
        return False
    return code in _VALUE_CODES or bool(_VALUE.search(message)) or not _UNKNOWN.search(message)
