"""How the files that rrfp leaves behind are read."""

import json

from figure_file import fail


def read_result(path, schema, what):
    """The object in a JSON file; a file of another schema is not `what`."""
    try:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
    except (OSError, ValueError) as error:
        fail(f"{path}: {error}")
    if not isinstance(result, dict) or result.get("schema") != schema:
        fail(f"{path}: not {what}; expected the schema {schema}")
    return result


def read_summary(path):
    return read_result(path, "rrfp.sweep/1", "a summary of a sweep")


def name_of_varying(entry):
    """The preset of an entry of "variability", or its model."""
    if isinstance(entry, dict):
        named = entry.get("preset") or entry.get("from_preset") or entry.get("model")
        return named or json.dumps(entry)
    return str(entry)
