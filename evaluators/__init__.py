"""What is asked about a record, and how a reply becomes a score; usable without files and terminal."""

from .evaluator import CitationEvaluator, Evaluation, Evaluator, load_evaluator
from .record import Record

__all__ = ["CitationEvaluator", "Evaluation", "Evaluator", "Record", "load_evaluator"]
