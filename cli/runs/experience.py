"""What a run learns of its judge for later estimates."""

from collections.abc import Mapping
from contextlib import suppress

from ...evaluators.costs.experience import Experience, recall_experience
from ...evaluators.errors import OutputError
from ...evaluators.judges.asking import Asker
from .plan import Plan
from .store import Store


def experience_of(asker: Asker) -> dict[bytes, Experience]:
    """What an asker has seen, by the prompt's fingerprint as it is by now."""
    return {asker.judge.fingerprint(prompt): seen for prompt, seen in asker.experience.items() if seen.replies}


def keep_experience(plan: Plan, new: Mapping[bytes, Experience], store: Store) -> None:
    """Add what a run has seen to what the store knows, as far as it can be written."""
    if plan.endpoint is None:
        return
    address, model = plan.endpoint.address, plan.endpoint.model
    with suppress(OutputError):
        known = store.experience(address, model)
        for fingerprint, seen in new.items():
            sums = recall_experience(known.get(fingerprint, {})).plus(seen).sums()
            store.keep_experience(address, model, fingerprint, sums)
