"""SARIF held against the rules of its published schema (the part that gpumem-report uses, and what code
scanning asks beyond it), and JUnit against what CI systems read. formats.py SARIF JUNIT FAILED_GATES"""
import json
import sys
import xml.etree.ElementTree as tree

import jsonschema

URI = {"type": "string", "pattern": r"^([a-z]+://)?([A-Za-z0-9._~/:-]|%[0-9A-F]{2})+$"}
MESSAGE = {"type": "object", "required": ["text"], "additionalProperties": False,
           "properties": {"text": {"type": "string", "minLength": 1}}}
LOCATION = {
    "type": "object", "additionalProperties": False,
    "properties": {
        "physicalLocation": {
            "type": "object", "required": ["artifactLocation"], "additionalProperties": False,
            "properties": {
                "artifactLocation": {"type": "object", "required": ["uri"], "additionalProperties": False,
                                     "properties": {"uri": URI, "uriBaseId": {"const": "RUNROOT"}}},
                "region": {"type": "object", "additionalProperties": False,
                           "properties": {"startLine": {"type": "integer", "minimum": 1},
                                          "byteOffset": {"const": 0},
                                          "byteLength": {"type": "integer", "minimum": 1}}}}},
        "message": MESSAGE}}
SCHEMA = {
    "type": "object", "required": ["version", "runs"], "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "minItems": 1, "items": {
            "type": "object", "required": ["tool", "results"], "additionalProperties": False,
            "properties": {
                "tool": {"type": "object", "required": ["driver"], "additionalProperties": False,
                         "properties": {"driver": {
                             "type": "object", "required": ["name"], "additionalProperties": False,
                             "properties": {
                                 "name": {"type": "string", "minLength": 1},
                                 "version": {"type": "string"},
                                 "rules": {"type": "array", "uniqueItems": True, "items": {
                                     "type": "object", "required": ["id"],
                                     "additionalProperties": False,
                                     "properties": {"id": {"type": "string"},
                                                    "name": {"type": "string", "pattern": "^([A-Z][a-z]+)+$"},
                                                    "shortDescription": MESSAGE, "fullDescription": MESSAGE,
                                                    "help": MESSAGE}}}}}}},
                "columnKind": {"const": "unicodeCodePoints"},
                "originalUriBaseIds": {"type": "object", "additionalProperties": False, "properties": {
                    "RUNROOT": {"type": "object", "required": ["uri"], "properties": {"uri": URI}}}},
                "results": {"type": "array", "items": {
                    "type": "object", "required": ["message", "ruleId", "locations"],
                    "additionalProperties": False,
                    "properties": {
                        "ruleId": {"type": "string"},
                        "level": {"enum": ["none", "note", "warning", "error"]},
                        "kind": {"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
                        "message": MESSAGE,
                        "locations": {"type": "array", "minItems": 1, "items": LOCATION},
                        "partialFingerprints": {"type": "object",
                                                "additionalProperties": {"type": "string"}},
                        "stacks": {"type": "array", "uniqueItems": True, "items": {
                            "type": "object", "required": ["frames"],
                            "additionalProperties": False,
                            "properties": {"frames": {"type": "array", "items": {
                                "type": "object", "additionalProperties": False,
                                "properties": {"location": LOCATION}}}}}}}}}}}}}}


def main(sarif_path, junit_path, failed):
    with open(sarif_path, encoding="utf-8") as file:
        sarif = json.load(file)
    jsonschema.validate(sarif, SCHEMA)
    run, = sarif["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    results = run["results"]
    assert {result["ruleId"] for result in results} <= rules, "a result's rule is not among the rules"
    assert {result["ruleId"] for result in results} == failed, [r["ruleId"] for r in results]
    for result in results:
        if result["ruleId"] == "leaks":
            text = result["message"]["text"]
            assert " live in " in text and "iB" in text and ", limit " in text, text
            assert result["stacks"][0]["frames"], "a leak without its stack"

    root = tree.parse(junit_path).getroot()
    assert root.tag == "testsuites"
    for suite in root:
        cases = suite.findall("testcase")
        assert suite.tag == "testsuite" and int(suite.get("tests")) == len(cases)
        assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
    assert int(root.get("tests")) == len(root.findall(".//testcase"))
    assert {c.get("name") for c in root.iter("testcase") if c.find("failure") is not None} == failed
    for failure in root.iter("failure"):
        assert failure.get("message") and failure.get("type")


main(sys.argv[1], sys.argv[2], set(sys.argv[3].split()))
