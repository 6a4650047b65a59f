"""What the caps of a run leave for its batches: each is reserved as a whole before it is made."""

from collections.abc import Callable, Mapping

from ....evaluators.costs.bounds import MOST_OUTPUT
from ....evaluators.costs.budget import Amount, Budget
from ....evaluators.judges.openai_chat import Room
from ....evaluators.replies import Usage
from .parts import Part


class Purse:
    """Reserves the most that a batch can cost, from before it is made until its replies are paid."""

    def __init__(self, budget: Budget, most_output: int, rooms: Callable[[Part], Mapping[Room, int]]) -> None:
        """`most_output` is the most tokens that a reply can have; `rooms` counts the requests that ask for others."""
        self._budget = budget
        self._most = {Room.WANTED: most_output, Room.ENLARGED: 2 * most_output, Room.UNLIMITED: MOST_OUTPUT}
        self._rooms = rooms
        self._reserved: dict[int, Amount] = {}

    def hold(self, part: Part) -> None:
        """Count a batch that is made already."""
        if part.number not in self._reserved:
            self._reserved[part.number] = self._bound(part)
            self._budget.reserve(self._reserved[part.number])

    def take(self, part: Part) -> None:
        """Count a batch that is about to be made. Raises BudgetReached where it could pass a cap."""
        if part.number not in self._reserved:
            self._budget.check_batch(self._bound(part), part.requests)
        self.hold(part)

    def release(self, part: Part) -> None:
        """Its replies are paid, or there will be none."""
        self._budget.release(self._reserved.pop(part.number, Amount()))

    def _bound(self, part: Part) -> Amount:
        """A token of input has one byte or more."""
        output = sum(count * self._most[room] for room, count in self._rooms(part).items())
        return self._budget.bound(Usage(part.bytes, output), batch=True)
