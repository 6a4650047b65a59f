"""What is asked about a record, and how a reply becomes a score; usable without files and terminal."""

from .components import ContextRelevanceEvaluator, DefinedEvaluator, FaithfulnessEvaluator, LLMEvaluator
from .errors import CtxrelError, RecordFailed, UsageError
from .evaluator import Evaluation, Evaluator, load_evaluator
from .judges.function import FunctionJudge
from .judges.options import JudgeOptions
from .record import Record

__all__ = [
    "ContextRelevanceEvaluator",
    "CtxrelError",
    "DefinedEvaluator",
    "Evaluation",
    "Evaluator",
    "FaithfulnessEvaluator",
    "FunctionJudge",
    "JudgeOptions",
    "LLMEvaluator",
    "Record",
    "RecordFailed",
    "UsageError",
    "load_evaluator",
]
