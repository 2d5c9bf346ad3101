# SPDX-License-Identifier: MIT
"""How a question looks on the screen, or on a handout."""
import shutil
import textwrap

import catalogue


def wrapped(text, indent="  "):
    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    return "\n".join(textwrap.fill(part, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
                     for part in text.split("\n"))


def text_of(variant):
    """What a student reads."""
    exercise = variant.exercise
    rows = [f"Exercise {exercise.key}, variant {variant.number} ({catalogue.seed_of(exercise, variant.number)}) · "
            f"{exercise.data['title']}",
            wrapped(variant.filled(exercise.data["text"])), ""]
    for place, lines in variant.quoted():
        rows += [f"  {place}", *(f"    {line}".rstrip() for line in lines), ""]
    return "\n".join(rows)


def handout(variant):
    """The same with what is asked, for a student who has no book at hand."""
    asked = "\n".join(wrapped(f"{question['name']}: {question['ask']}") for question in variant.questions)
    return f"{text_of(variant)}\n{asked}\n\n  Write a number for each '?' in {variant.exercise.file.name}.\n"
