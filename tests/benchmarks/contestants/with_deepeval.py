"""ContextualRelevancyMetric through DeepEval's `evaluate`; `lenient`: `ignore_errors`, `cache`: `use_cache`."""

from deepeval import evaluate
from deepeval.evaluate import CacheConfig, DisplayConfig, ErrorConfig
from deepeval.metrics import ContextualRelevancyMetric
from deepeval.test_case import LLMTestCase
from outcome import MODEL, option, records, write

cases = [LLMTestCase(input=row["question"], actual_output="-", retrieval_context=row["contexts"]) for row in records()]
found = evaluate(
    cases,
    metrics=[ContextualRelevancyMetric(model=MODEL)],
    error_config=ErrorConfig(ignore_errors=option("lenient")),
    cache_config=CacheConfig(use_cache=option("cache")),
    display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
)
data = [metric for result in found.test_results for metric in result.metrics_data or []]
write([metric.score for metric in data], told=sum(metric.error is not None for metric in data))
