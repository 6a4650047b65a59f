"""What a run learns of its judge for later estimates."""

from contextlib import suppress

from ...evaluators.costs.experience import recall_experience
from ...evaluators.errors import OutputError
from ...evaluators.judges.asking import Asker
from .plan import Plan
from .store import Store


def keep_experience(plan: Plan, asker: Asker, store: Store) -> None:
    """Add what this run has seen to what the store knows, as far as it can be written."""
    if plan.endpoint is None:
        return
    address, model = plan.endpoint.address, plan.endpoint.model
    with suppress(OutputError):
        known = store.experience(address, model)
        for prompt, seen in asker.experience.items():
            if seen.replies:
                fingerprint = asker.judge.fingerprint(prompt)
                sums = recall_experience(known.get(fingerprint, {})).plus(seen).sums()
                store.keep_experience(address, model, fingerprint, sums)
