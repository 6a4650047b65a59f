"""The configuration in a summary: the options that were in force."""

from ...evaluators.judges.endpoint import Api
from ..runs.engine import Engine
from ..runs.folder import Format
from ..runs.gates import GateOn
from .parts import Schema, boolean, choice, entries, integer, listing, mapping, nullable, number, text


def configuration_schema() -> Schema:
    """The form of `configuration`."""
    return entries(
        "What was in force, defaults and environment included; no key of an endpoint is in it.",
        {**_of_the_judge(), **_of_the_log(), **_of_the_run(), **_of_opinions()},
    )


def _of_the_judge() -> dict[str, Schema]:
    return {
        "inputs": listing("The logs as they were named, without secrets.", {"type": "string"}),
        "evaluators": listing("As `--evaluator`.", {"type": "string"}),
        "model": text("As `--model`."),
        "api": choice("As `--api`.", [*Api]),
        "base_url": nullable(text("Of the endpoint; null where none is asked.")),
        "api_key_env": nullable(text("Name of the variable that holds the key; null likewise.")),
        "server": nullable(mapping("What serves a model file, and how; null without one.", {}, properties={
            "file": text("The file in words."), "blake2b": text("Hash over it."),
        })),
        "parameters": mapping("Request parameters in force, by evaluator.", {"type": "object"}),
        "concurrency": nullable(integer("As `--concurrency`; null where it is found out.")),
        "max_cost": nullable(number("As `--max-cost`.")),
        "max_tokens_total": nullable(integer("As `--max-tokens-total`.")),
        "prices": nullable(text("As `--prices`.")),
        "rpm": nullable(number("As `--rpm`.")),
        "tpm": nullable(number("As `--tpm`.")),
    }  # fmt: skip


def _of_the_log() -> dict[str, Schema]:
    return {
        "fields": mapping("Paths that were named by `--question-field`, `--field` and the like.", {"type": "string"}),
        "schema": nullable(text("As `--schema`.")),
        "records": nullable(text("As `--records`.")),
        "config": nullable(text("The config file in force; null without one.")),
        "engine": choice("As `--engine`.", [*Engine]),
        "ray_address": nullable(text("As `--ray-address`.")),
        "ray_workers": nullable(integer("As `--ray-workers`.")),
        "limit": nullable(integer("As `--limit`.")),
        "sample": entries("Which records were wanted.", {
            "n": nullable(integer("As `--sample`.")),
            "seed": nullable(integer("As `--seed`; null without a sample.")),
            "by": nullable(text("As `--sample-by`.")),
            "where": listing("As `--where`.", {"type": "string"}),
        }),
        "keep": listing("As `--keep`.", {"type": "string"}),
        "with_input": boolean("As `--with-input`."),
    }  # fmt: skip


def _of_the_run() -> dict[str, Schema]:
    return {
        "fail_under": listing("As `--fail-under`.", {"type": "string"}),
        "gate_on": choice("As `--gate-on`.", [*GateOn]),
        "max_errors": text("As `--max-errors`."),
        "output": nullable(text("Folder of the run; null for standard output.")),
        "format": choice("Format of the results.", [*Format]),
        "store": nullable(text("The store; null where replies were kept in memory only.")),
        "raise_on_failure": boolean("As `--raise-on-failure`."),
        "timeout": nullable(number("As `--timeout`; null where no endpoint is asked.")),
        "attempts": integer("As `--attempts`."),
        "grace": number("As `--grace`."),
        "insecure": boolean("As `--insecure`."),
        "batch": boolean("As `--batch`."),
        "wait": boolean("Whether batches were waited for: not with `--no-wait`."),
        "finish_live": boolean("As `--finish-live`."),
        "explain": boolean("As `--explain`."),
        "max_input_tokens": nullable(integer("As `--max-input-tokens`.")),
    }


def _of_opinions() -> dict[str, Schema]:
    return {
        "repeat": integer("As `--repeat`."),
        "judge_also": nullable(text("As `--judge-also`.")),
        "judge_also_base_url": nullable(text("As `--judge-also-base-url`.")),
        "judge_also_key_env": nullable(text("As `--judge-also-key-env`.")),
        "on_disagreement": boolean("As `--on-disagreement`."),
        "shuffle_contexts": boolean("As `--shuffle-contexts`."),
    }
