"""ContextRelevance through Ragas's `evaluate`, deprecated since 0.4, with its RunConfig (16 workers)."""

import math
import warnings

from langchain_openai import ChatOpenAI
from outcome import MODEL, records, write
from ragas import EvaluationDataset, RunConfig, evaluate
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import ContextRelevance

warnings.simplefilter("ignore")
dataset = EvaluationDataset.from_list(
    [{"user_input": row["question"], "retrieved_contexts": row["contexts"]} for row in records()]
)
metric = ContextRelevance(llm=LangchainLLMWrapper(ChatOpenAI(model=MODEL)))
found = evaluate(dataset, metrics=[metric], run_config=RunConfig(), show_progress=False)
(scores,) = ([row[name] for row in found.scores] for name in found.scores[0])
write(scores, told=sum(map(math.isnan, scores)), mean=found._repr_dict[next(iter(found._repr_dict))])
