"""ContextRelevance in an experiment, as Ragas documents it since 0.4; `cache`: its DiskCacheBackend."""

import asyncio

from openai import AsyncOpenAI
from outcome import MODEL, option, records, write
from ragas import Dataset, experiment
from ragas.cache import DiskCacheBackend
from ragas.llms import llm_factory
from ragas.metrics.collections import ContextRelevance

llm = llm_factory(MODEL, client=AsyncOpenAI(), cache=DiskCacheBackend() if option("cache") else None)
metric = ContextRelevance(llm=llm)
log = records()


@experiment()
async def judge(row):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  # as documented
    """One row of the experiment."""
    result = await metric.ascore(user_input=row["question"], retrieved_contexts=log[int(row["number"])]["contexts"])
    return {**row, "score": result.value}


dataset = Dataset(name="log", backend="local/csv", root_dir=".")
for number, record in enumerate(log):
    dataset.append({"number": number, "question": record["question"]})
dataset.save()
done = asyncio.run(judge.arun(dataset, name="run"))
scores = [row["score"] for row in done]
write(scores, told=sum(score != score for score in scores) + len(log) - len(scores))  # noqa: PLR0124  # NaN
