"""ContextRelevanceEvaluator as Haystack documents it; `lenient`: `raise_on_failure=False`."""

from haystack.components.evaluators import ContextRelevanceEvaluator
from haystack.components.generators.chat import OpenAIChatGenerator
from outcome import MODEL, option, records, write

generator = OpenAIChatGenerator(model=MODEL, generation_kwargs={"response_format": {"type": "json_object"}, "seed": 42})
evaluator = ContextRelevanceEvaluator(
    progress_bar=False, raise_on_failure=not option("lenient"), chat_generator=generator
)
log = records()
found = evaluator.run(questions=[row["question"] for row in log], contexts=[row["contexts"] for row in log])
write(
    [result["score"] for result in found["results"]],
    told=sum(result["status"] == "error" for result in found["results"]),
    mean=found["score"],
)
