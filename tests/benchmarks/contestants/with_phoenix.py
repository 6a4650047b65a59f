"""RetrievalRelevanceEvaluator over a dataframe, as Phoenix documents it; `lenient`: `exit_on_error=False`."""

import asyncio

import pandas as pd
from outcome import MODEL, option, records, write
from phoenix.evals import LLM, async_evaluate_dataframe
from phoenix.evals.metrics import RetrievalRelevanceEvaluator

frame = pd.DataFrame([{"input": row["question"], "context": "\n\n".join(row["contexts"])} for row in records()])
evaluator = RetrievalRelevanceEvaluator(llm=LLM(provider="openai", model=MODEL))
found = asyncio.run(
    async_evaluate_dataframe(
        dataframe=frame, evaluators=[evaluator], hide_tqdm_bar=True, exit_on_error=False if option("lenient") else None
    )
)
name = evaluator.name
scores = found[f"{name}_score"] if f"{name}_score" in found else [None] * len(found)
write(
    [score["score"] if isinstance(score, dict) else None for score in scores],
    told=sum(not details["status"].startswith("COMPLETED") for details in found[f"{name}_execution_details"]),
)
