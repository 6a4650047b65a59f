"""What the endpoint of the pages' commands answers: something valid, whatever it is asked."""

import json
from typing import Any

from servers.decisions import deciding
from servers.loopback import Answer, Seen, cite, completion, judge_by_hash


def reply(seen: Seen) -> Answer:
    """A decision, citations, or an example of the schema."""
    if "questions" in seen.body:
        return deciding(lambda _, name: len(name) % 2)(seen)
    schema = seen.body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    keys = schema.get("properties", {})
    if "statements" in keys:
        return completion(json.dumps({"statements": ["It is so."], "evidence": [[1]], "statement_scores": [1]}))
    if list(keys) == ["relevant_statements"] and keys["relevant_statements"]["items"]["type"] == "integer":
        return judge_by_hash(seen)
    return completion(json.dumps({key: _example(value) for key, value in keys.items()})) if keys else cite()


def _example(schema: dict[str, Any]) -> object:
    if "enum" in schema:
        return schema["enum"][0]
    return {"array": [], "boolean": True, "integer": schema.get("minimum", 0), "number": 0.5}.get(schema["type"], "so")
