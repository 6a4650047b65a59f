"""Which further opinions a run asks for."""

from collections.abc import Sequence
from dataclasses import dataclass

from ....evaluators.case import CONTEXTS
from ....evaluators.costs.budget import Caps
from ....evaluators.errors import UsageError
from ....evaluators.evaluator import Evaluator
from ....evaluators.judges.endpoint import Api

COLUMNS = ("opinions", "majority")
"""The further columns of a row whose record was asked about more than once."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is asked beside the one answer of a plain run."""

    repeat: int = 1
    """How often the judge is asked the same, the plain run's answer included."""
    model: str | None = None
    """The second judge."""
    base_url: str | None = None
    """The second judge's endpoint; None for that of the first."""
    key_env: str | None = None
    """The variable that holds the key of the second judge's endpoint."""
    on_disagreement: bool = False
    """Whether the second judge is asked only where the scores of the repeats differ."""
    shuffle: bool = False
    """Whether the judge is asked once more with the contexts in another order."""

    @property
    def any(self) -> bool:
        """Whether there is anything."""
        return self.repeat > 1 or self.model is not None or self.shuffle

    @property
    def columns(self) -> list[str]:
        """The further columns that rows have for it."""
        return [*COLUMNS] if self.any else []

    def describe(self) -> dict[str, object]:
        """The same as JSON can hold it."""
        return {
            "repeat": self.repeat,
            "judge_also": self.model,
            "judge_also_base_url": self.base_url,
            "judge_also_key_env": self.key_env,
            "on_disagreement": self.on_disagreement,
            "shuffle_contexts": self.shuffle,
        }


NONE_WANTED = Wanted()


def check_wanted(
    wanted: Wanted, evaluators: Sequence[Evaluator], caps: Caps, api: Api, *, elsewhere: str | None
) -> None:
    """Raise UsageError where opinions cannot be had; `elsewhere` is an option by which others ask, not this process."""
    if wanted.model is None:
        for given, option in (
            (wanted.base_url is not None, "--judge-also-base-url"),
            (wanted.key_env is not None, "--judge-also-key-env"),
            (wanted.on_disagreement, "--on-disagreement"),
        ):
            if given:
                raise UsageError(f"{option} is about a second judge; name one with --judge-also, or leave it out")
    if wanted.on_disagreement and wanted.repeat == 1:
        raise UsageError("--on-disagreement looks at repeats, and nothing is repeated; add --repeat 3, or leave it out")
    if wanted.any and elsewhere:
        raise UsageError(
            f"--repeat, --judge-also and --shuffle-contexts ask live, from one process; leave out {elsewhere}"
        )
    if wanted.model is not None and caps.any:
        option = "--max-cost" if caps.cost is not None else "--max-tokens-total"
        raise UsageError(f"{option} caps one judge's account, and --judge-also has another; leave out one of the two")
    if wanted.model is not None and api is Api.DECISIONS:
        raise UsageError("--judge-also asks for chat completions; leave out --api decisions, or --judge-also")
    if wanted.shuffle and not any(CONTEXTS in evaluator.inputs for evaluator in evaluators):
        raise UsageError("no evaluator of this run reads contexts, so there are none to shuffle; leave out the option")
