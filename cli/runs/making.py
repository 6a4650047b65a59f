"""What a run is made of: the judge of its plan, who asks it and within which limits, and where rows go."""

from dataclasses import replace

from ...evaluators.costs.budget import NOTHING, Budget
from ...evaluators.costs.price import dollars, show_dollars
from ...evaluators.judges.asking import Asker, Patience
from ...evaluators.judges.dialect import recall_dialect
from ...evaluators.judges.endpoint import Api
from ...evaluators.judges.growth import MOST
from ...evaluators.judges.judge import Judge
from ...evaluators.judges.limiter import Limits
from ...evaluators.judges.llamacpp import LocalJudge
from ...evaluators.judges.named import NAMED
from ...evaluators.judges.openai_chat import ChatJudge
from ...evaluators.judges.openai_decisions import DecisionsJudge
from ...evaluators.judging import Judging
from .opinions.opinions import Opinions
from .plan import Plan, Reporter
from .pricing import spent_before
from .results import Results, ResultsFile, ResultsStream
from .store import Store
from .table import ResultsTable


def make_judge(plan: Plan, store: Store, reporter: Reporter) -> Judge:
    """The judge of a plan, with what the store knows of its endpoint."""
    endpoint = plan.endpoint
    if endpoint is None:
        named = NAMED[plan.options.model]()
        for notice in named.notices():
            reporter.warn(notice)
        return named
    address, model = endpoint.address, endpoint.model
    dialect = recall_dialect(store.facts(address, model))

    def remember(found: dict[str, object]) -> None:
        store.keep_facts(address, model, found)

    if plan.local:
        return LocalJudge(plan.local, dialect=dialect, on_dialect=remember, on_notice=reporter.warn)
    concurrency = plan.options.concurrency or MOST
    if plan.options.api is Api.DECISIONS:
        service = f"{address}/{Api.DECISIONS}"
        return DecisionsJudge(
            endpoint,
            concurrency=concurrency,
            known=bool(store.facts(service, model)),
            on_answer=lambda: store.keep_facts(service, model, {"answers": True}),
            on_notice=reporter.warn,
        )
    return ChatJudge(
        endpoint,
        concurrency=concurrency,
        dialect=dialect,
        on_dialect=remember,
        on_notice=reporter.warn,
    )


def make_asker(plan: Plan, store: Store, reporter: Reporter) -> Asker:
    """Who asks the judge of a plan, within its rates and what is left of its caps."""
    judge = make_judge(plan, store, reporter)
    fixed = plan.endpoint is None or plan.local is not None
    return _make_asker(plan, judge, _make_budget(plan, store, reporter), fixed=fixed)


def _make_asker(plan: Plan, judge: Judge, budget: Budget, *, fixed: bool) -> Asker:
    """`fixed` tells that how many requests are in flight is not to be found out, whatever the options say."""
    options = plan.options
    fixed = fixed or options.concurrency is not None
    limits = Limits(most=judge.concurrency, fixed=fixed, rpm=options.rpm, tpm=options.tpm)
    return Asker(judge, Patience(attempts=options.attempts), limits, budget)


def _make_budget(plan: Plan, store: Store, reporter: Reporter) -> Budget:
    """The budget of a plan, with what earlier runs have left of it."""
    earlier = NOTHING
    if plan.options.caps.any:  # each reply in the store is looked at
        earlier = spent_before(store, plan.tariff, plan.output, alone=plan.alone)
        if earlier.tokens:
            money = f"{show_dollars(dollars(earlier.pico))}, " if plan.tariff.price else ""
            reporter.note(f"earlier runs have spent {money}{earlier.tokens:,} tokens")
    return Budget(plan.tariff, plan.options.caps, earlier=earlier, on_loss=store.keep_unanswered)


def make_judging(plan: Plan, asker: Asker, store: Store, *, salt: bytes = b"") -> Judging:
    """What judges records for a plan; with `salt` its requests are not those of a plain run."""
    return Judging(asker, store, max_input_tokens=plan.options.max_input_tokens, salt=salt)


def make_opinions(plan: Plan, first: Judging, store: Store, reporter: Reporter) -> Opinions | None:
    """What asks for further opinions, None where none are wanted."""
    wanted = plan.options.wanted
    if not wanted.any:
        return None
    repeats = [make_judging(plan, first.asker, store, salt=f"repeat {n}".encode()) for n in range(2, wanted.repeat + 1)]
    second = None
    if plan.second:
        asked = replace(plan.options, model=wanted.model or plan.options.model)
        judge = make_judge(replace(plan, options=asked, endpoint=plan.second.endpoint, local=None), store, reporter)
        asker = _make_asker(plan, judge, Budget(plan.second.tariff), fixed=plan.second.endpoint is None)
        second = make_judging(plan, asker, store)
    return Opinions(wanted, plan.options.selection.seed, first, repeats, second)


def make_results(plan: Plan) -> Results:
    """Where the rows of a plan go."""
    if plan.folder is None:
        return ResultsStream()
    path = plan.folder / plan.results
    return ResultsTable(path, plan.columns) if plan.columns else ResultsFile(path)
