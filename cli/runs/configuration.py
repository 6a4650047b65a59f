"""The configuration of a run, as its summary tells it."""

from ...evaluators.judges.judge import Judge
from ..records.addresses import shown
from ..records.source import printable
from .plan import Plan


def configuration(plan: Plan, judge: Judge) -> dict[str, object]:
    """What was in force, defaults and environment included; the name of the key's variable, never the key."""
    options, endpoint, local = plan.options, plan.endpoint, plan.local
    return {
        "inputs": [shown(printable(name)) for name in options.inputs],
        "evaluators": [printable(name) for name in options.evaluators],
        "model": options.model,
        "api": options.api,
        "base_url": endpoint.base_url if endpoint and not local else None,
        "api_key_env": options.api_key_env if endpoint and not local else None,
        "server": local and local.configuration,
        "parameters": {evaluator.name: judge.parameters(evaluator.static) for evaluator in plan.evaluators},
        "concurrency": judge.concurrency if local else options.concurrency,
        "max_cost": options.caps.cost,
        "max_tokens_total": options.caps.tokens,
        "prices": printable(options.prices) if options.prices else None,
        "rpm": options.rpm,
        "tpm": options.tpm,
        "fields": {
            name: path.text
            for name in ("question", "contexts", "answer", "id")
            if (path := getattr(options.fields, name))
        }
        | {name: path.text for name, path in options.fields.others.items()},
        "schema": options.fields.schema.name if options.fields.schema else None,
        "records": options.fields.records.text if options.fields.records else None,
        "config": printable(options.config) if options.config else None,
        "engine": options.engine,
        "ray_address": options.ray_address,
        "ray_workers": options.ray_workers,
        "limit": options.selection.limit,
        "sample": options.selection.describe(),
        **options.carrying.describe(),
        **options.gates.describe(),
        **options.wanted.describe(),
        "output": printable(plan.folder) if plan.folder else None,
        "format": options.format,
        "store": printable(plan.store) if plan.store else None,
        "raise_on_failure": options.raise_on_failure,
        "timeout": endpoint.timeout if endpoint else None,
        "attempts": options.attempts,
        "grace": options.grace,
        "insecure": options.insecure,
        "batch": options.batch,
        "wait": options.wait,
        "finish_live": options.finish_live,
        "explain": options.explain,
        "max_input_tokens": options.max_input_tokens,
    }
