# SPDX-License-Identifier: MIT
"""What Gradescope says of a results.json: https://gradescope-autograders.readthedocs.io/en/latest/specs/ and its
page on leaderboards."""
NUMBER, TEXT = (int, float), (str,)
FORMATS = ("text", "html", "simple_format", "md", "ansi")
VISIBILITIES = ("hidden", "after_due_date", "after_published", "visible")
# field: (types, the values that it may have, or none)
TOP = {"score": (NUMBER, ()), "execution_time": (NUMBER, ()), "output": (TEXT, ()), "output_format": (TEXT, FORMATS),
       "test_output_format": (TEXT, FORMATS), "test_name_format": (TEXT, FORMATS), "visibility": (TEXT, VISIBILITIES),
       "stdout_visibility": (TEXT, VISIBILITIES), "extra_data": ((dict,), ()), "tests": ((list,), ()),
       "leaderboard": ((list,), ())}
TEST = {"score": (NUMBER, ()), "max_score": (NUMBER, ()), "status": (TEXT, ("passed", "failed")), "name": (TEXT, ()),
        "name_format": (TEXT, FORMATS), "number": (TEXT, ()), "output": (TEXT, ()), "output_format": (TEXT, FORMATS),
        "tags": ((list,), ()), "visibility": (TEXT, VISIBILITIES), "extra_data": ((dict,), ())}
ROW = {"name": (TEXT, ()), "value": (NUMBER + TEXT, ()), "order": (TEXT, ("asc", "desc"))}


def wrong_fields(where, value, fields):
    if not isinstance(value, dict):
        return [f"{where}: not an object"]
    found = []
    for name, one in value.items():
        types, values = fields.get(name, (None, ()))
        if types is None:
            found.append(f"{where}: unknown field '{name}'")
        elif not isinstance(one, types) or isinstance(one, bool):
            found.append(f"{where}: {name} is of the wrong type: {one!r}")
        elif values and one not in values:
            found.append(f"{where}: {name} is {one!r}; it may be {', '.join(values)}")
    return found


def problems(document):
    """What is wrong with a results.json, as texts."""
    found = wrong_fields("results", document, TOP)
    if found:
        return found
    tests, rows = document.get("tests", []), document.get("leaderboard", [])
    for number, test in enumerate(tests):
        found += wrong_fields(f"test {number}", test, TEST)
        if not found and any(not isinstance(tag, str) for tag in test.get("tags", [])):
            found.append(f"test {number}: a tag is no text")
        if not found and test.get("score", 0) > test.get("max_score", float("inf")):
            found.append(f"test {number}: more than its max_score")
    for number, row in enumerate(rows):
        found += wrong_fields(f"leaderboard {number}", row, ROW)
        found += [f"leaderboard {number}: no {name}" for name in ("name", "value") if isinstance(row, dict) and
                  name not in row]
    if "score" not in document and not any("score" in test for test in tests if isinstance(test, dict)):
        found.append("results: neither a score nor tests with one")
    return found
