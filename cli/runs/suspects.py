"""Which record it is that kills the process that judges it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

GROUP = 8
"""Records that are tried together once they may have killed a worker."""
_IN_GROUP, _ALONE, GUILTY = 1, 2, 3
"""Deaths behind a record that is tried in a group, that is tried alone, that is tried no more."""


@dataclass(kw_only=True)
class _Attempt:
    """A batch that was begun and has not ended."""

    workers: list[str] = field(default_factory=list)
    """Those that began it, in order."""
    open: set[int] = field(default_factory=set)
    """The records that are being judged now."""
    deaths: dict[int, int] = field(default_factory=dict)
    """How often a worker died while the record was judged."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What is known of a batch when it is begun."""

    workers: Sequence[str] = ()
    """Those that began it before."""
    deaths: Mapping[int, int] = field(default_factory=dict)
    """Of its records that were judged when a worker died."""

    def groups(self) -> list[list[int]]:
        """The suspects as they are to be tried, one group after the other and with nothing else beside them."""
        ranked = sorted(self.deaths)
        together = [index for index in ranked if self.deaths[index] == _IN_GROUP]
        alone = [[index] for index in ranked if self.deaths[index] == _ALONE]
        return [together[at : at + GROUP] for at in range(0, len(together), GROUP)] + alone

    def guilty(self) -> set[int]:
        """Those with which a worker died in company, in a group, and alone."""
        return {index for index, deaths in self.deaths.items() if deaths >= GUILTY}


class Suspects:
    """Notes which records are judged at a time; a batch that is begun again without having ended tells of a death."""

    def __init__(self) -> None:
        self._attempts: dict[int, _Attempt] = {}

    def begin(self, worker: str, batch: int, indexes: Sequence[int]) -> Attempt:
        """Note a batch, named by its first record; all that are no suspects are judged at once."""
        attempt = self._attempts.setdefault(batch, _Attempt())
        for index in attempt.open:
            attempt.deaths[index] = attempt.deaths.get(index, 0) + 1
        before = Attempt(workers=tuple(attempt.workers), deaths=dict(attempt.deaths))
        attempt.workers.append(worker)
        attempt.open = {index for index in indexes if index not in attempt.deaths}
        return before

    def judge(self, batch: int, indexes: Sequence[int]) -> None:
        """Note which records of a batch are judged from now on."""
        self._attempts[batch].open = set(indexes)

    def end(self, batch: int) -> None:
        """Forget a batch that has ended."""
        self._attempts.pop(batch, None)
