"""Evaluators without output tokens: predicates that a judge answers with probabilities, and what verdicts they give."""
