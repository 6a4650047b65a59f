"""Groups of options: each is declared once, and read as what a run makes of it."""

import re
from dataclasses import dataclass, replace

from ...evaluators.costs.budget import Caps
from ...evaluators.errors import UsageError
from ...evaluators.judges.endpoint import DEFAULT_MODEL, Api
from ..records.carrying import Carrying
from ..records.fields import Fields
from ..records.paths import FieldPath
from ..records.sampling import Selection
from ..records.schemas import find_schema
from ..records.where import parse_condition
from ..reports.files import ReportFiles
from ..runs.engine import Engine
from ..runs.gates import MAX_ERRORS, GateOn, Gates, parse_allowance, parse_threshold
from ..runs.opinions.wanted import Wanted
from . import options as opt

_HOST_AND_PORT = re.compile(r"([\w.-]+|\[[0-9a-fA-F:]+\]):[0-9]{1,5}")


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """Who is asked."""

    model: opt.Model = DEFAULT_MODEL
    api: opt.Service = Api.CHAT
    base_url: opt.BaseUrl = None


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """With which parameters, and how fast."""

    param: opt.Parameters = None
    concurrency: opt.Concurrency = None
    rpm: opt.RequestsPerMinute = None
    tpm: opt.TokensPerMinute = None

    def parameters(self) -> dict[str, object]:
        """The request parameters. Raises UsageError."""
        return opt.parse_parameters(self.param or [])


@dataclass(frozen=True, kw_only=True)
class CapOptions:
    """What may be spent."""

    max_cost: opt.MaxCost = None
    max_tokens_total: opt.MaxTokensTotal = None

    def parse(self) -> Caps:
        """The caps. Raises UsageError for what is no amount of money."""
        if self.max_cost is not None and not 0 < self.max_cost < float("inf"):
            raise UsageError(f"--max-cost {self.max_cost:g}: give an amount in USD above 0")
        return Caps(cost=self.max_cost, tokens=self.max_tokens_total)


@dataclass(frozen=True, kw_only=True)
class FieldOptions:
    """Where the parts of a record stand."""

    question_field: opt.QuestionField = None
    contexts_field: opt.ContextsField = None
    answer_field: opt.AnswerField = None
    id_field: opt.IdField = None
    field: opt.OtherFields = None

    def parse(self) -> Fields:
        """The fields, of the options for single ones and of NAME=PATH. Raises UsageError."""
        named = {
            "question": self.question_field,
            "contexts": self.contexts_field,
            "answer": self.answer_field,
            "id": self.id_field,
        }
        paths = {name: FieldPath(path) for name, path in named.items() if path is not None}
        for text in self.field or []:
            name, equals, path = text.partition("=")
            if not equals or not name.isidentifier():
                raise UsageError(f"{text!r} names no field; write --field NAME=PATH, as tone=meta.tone")
            if name in paths:
                raise UsageError(f"the field of {name!r} is named twice")
            paths[name] = FieldPath(path)
        own = {name: paths.pop(name, None) for name in named}
        return Fields(**own, others=paths, schema=None, records=None)


@dataclass(frozen=True, kw_only=True)
class LogOptions(FieldOptions):
    """The same, and how the log as a whole is laid out."""

    schema: opt.Schema = None
    records: opt.Records = None

    def parse(self) -> Fields:
        """The fields, with those of a schema's name. Raises UsageError."""
        return replace(
            super().parse(),
            schema=find_schema(self.schema) if self.schema is not None else None,
            records=FieldPath(self.records) if self.records is not None else None,
        )


@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """Which records of a log are meant."""

    limit: opt.Limit = None
    where: opt.Where = None
    sample: opt.Sample = None
    seed: opt.Seed = 0
    sample_by: opt.SampleBy = None

    def parse(self) -> Selection:
        """The selection. Raises UsageError."""
        return Selection(
            limit=self.limit,
            where=[parse_condition(text) for text in self.where or []],
            sample=self.sample,
            seed=self.seed,
            by=FieldPath(self.sample_by) if self.sample_by is not None else None,
        )


@dataclass(frozen=True, kw_only=True)
class CarryingOptions:
    """What of a record goes along into its rows."""

    keep: opt.Kept = None
    with_input: opt.WithInput = False

    def parse(self) -> Carrying:
        """What is carried. Raises UsageError."""
        return Carrying(keep=[FieldPath(path) for path in self.keep or []], whole=self.with_input)


@dataclass(frozen=True, kw_only=True)
class PatienceOptions:
    """How long and how often an endpoint is tried, and whether it is trusted."""

    timeout: opt.Timeout = None
    attempts: opt.Attempts = 5
    grace: opt.Grace = 30.0
    insecure: opt.Insecure = False


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """Whether and how requests go through the Batch API."""

    batch: opt.Batch = False
    no_wait: opt.NoWait = False
    finish_live: opt.FinishLive = False


@dataclass(frozen=True, kw_only=True)
class OpinionOptions:
    """Which further opinions are asked for."""

    repeat: opt.Repeat = 1
    judge_also: opt.JudgeAlso = None
    judge_also_base_url: opt.JudgeAlsoBaseUrl = None
    judge_also_key_env: opt.JudgeAlsoKeyEnv = None
    on_disagreement: opt.OnDisagreement = False
    shuffle_contexts: opt.ShuffleContexts = False

    def parse(self) -> Wanted:
        """The opinions."""
        return Wanted(
            repeat=self.repeat,
            model=self.judge_also,
            base_url=self.judge_also_base_url,
            key_env=self.judge_also_key_env,
            on_disagreement=self.on_disagreement,
            shuffle=self.shuffle_contexts,
        )


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """What carries a run out."""

    engine: opt.EngineName = Engine.LOCAL
    ray_address: opt.RayAddress = None
    ray_workers: opt.RayWorkers = None

    def check(self) -> None:
        """Raise UsageError for options of an engine that was not asked for."""
        if self.engine is not Engine.RAY and (self.ray_address is not None or self.ray_workers is not None):
            raise UsageError(f"--ray-{'address' if self.ray_address is not None else 'workers'} needs --engine ray")
        if (
            self.ray_address is not None
            and self.ray_address != "auto"
            and not _HOST_AND_PORT.fullmatch(self.ray_address)
        ):
            raise UsageError(
                f"--ray-address {self.ray_address!r}: give auto, or HOST:PORT as `ray start --head` prints it"
            )


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """How good a run has to be."""

    fail_under: opt.FailUnder = None
    gate_on: opt.GateOnWhat = GateOn.SCORE
    max_errors: opt.MaxErrors = MAX_ERRORS

    def parse(self) -> Gates:
        """The gates. Raises UsageError."""
        return Gates(
            fail_under=[parse_threshold(given) for given in self.fail_under or []],
            gate_on=self.gate_on,
            max_errors=parse_allowance(self.max_errors),
        )


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Which reports are wanted."""

    junit: opt.Junit = None
    markdown: opt.Markdown = None
    metrics_file: opt.MetricsFile = None

    def parse(self) -> ReportFiles:
        """The reports. Raises UsageError where they could not be written."""
        reports = ReportFiles(self.junit, self.markdown, self.metrics_file)
        reports.check()
        return reports
