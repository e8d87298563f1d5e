#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Validates values with the package jsonschema (tests/schema_mask.c).

	schema.py FILE

Each line has a schema, a tab and a value.  Prints the lines that are not valid.  Exit status 77: the package is missing.
"""
import json
import sys

sys.path.pop(0)  # the folder of this file
try:
    import jsonschema
except ImportError:
    sys.exit(77)

FORMATS = jsonschema.Draft202012Validator.FORMAT_CHECKER
wrong = count = 0
for line in open(sys.argv[1], encoding="utf-8"):
    schema, value = line.rstrip("\n").split("\t")
    schema = json.loads(schema)
    if "nullable" in str(schema) or "oneOf" in str(schema):  # of OpenAPI; exactly one
        continue
    count += 1
    try:
        jsonschema.Draft202012Validator(schema, format_checker=FORMATS).validate(json.loads(value))
    except jsonschema.ValidationError as e:
        wrong += 1
        print(f"# {schema}: {value}: {e.message}")
print(f"# {count} values")
sys.exit(wrong > 0)
