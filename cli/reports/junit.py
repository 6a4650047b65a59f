"""A run's gates as JUnit XML, for the test pages of CI servers."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold."""


def junit_xml(summary: Mapping[str, Any]) -> str:
    """A test suite with a test case for the run itself and for each gate, the evaluators as their classes.

    A broken gate is a failure, a run that did not end an error; gates of which nothing can be told are skipped.
    The form is that of the Jenkins xUnit plugin's schema, which GitLab, GitHub actions and Azure Pipelines read.
    """
    gates = summary["gates"]
    timings = summary["timings"]
    ended = summary["status"] == "complete"
    suite = ET.Element(
        "testsuite",
        name="ctxrel",
        tests=str(1 + len(gates)),
        failures=str(sum(gate["met"] is False for gate in gates)),
        errors=str(int(not ended)),
        skipped=str(sum(gate["met"] is None for gate in gates)),
        time=str(timings["seconds"]),
        timestamp=timings["ended"].partition("+")[0],
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(summary).items():
        ET.SubElement(properties, "property", name=name, value=_clean(value))
    run = ET.SubElement(suite, "testcase", classname="ctxrel", name="run", time=str(timings["seconds"]))
    if not ended:
        ET.SubElement(run, "error", type=summary["status"], message=_clean(summary["error"] or ""))
    for gate in gates:
        case = ET.SubElement(
            suite, "testcase", classname=f"ctxrel.{gate['evaluator']}", name=_clean(gate["gate"]), time="0"
        )
        if gate["met"] is False:
            ET.SubElement(case, "failure", type="GateNotMet", message=_clean(gate["message"]))
        elif gate["met"] is None:
            ET.SubElement(case, "skipped", message=_clean(gate["message"]))
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def _properties(summary: Mapping[str, Any]) -> dict[str, str]:
    found = {"version": summary["version"], "model": summary["judge"]["model"]}
    for name, block in summary["evaluators"].items():
        found[f"{name}.prompt"] = block["prompt"]
        if block["score"] is not None:
            found[f"{name}.score"] = f"{block['score']:.6g}"
    return found


def _clean(text: str) -> str:
    return _UNFIT.sub("\ufffd", text)
