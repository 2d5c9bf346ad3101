# SPDX-License-Identifier: MIT
"""What a source says, without how it is written: the tokens of a file and of the project headers that it includes.

Comments, blank space and names of files do not count, nor does the order of the declarations: one may move to another
file. Left out is what does not reach a kernel: the rooms of the host, and the marks of common/device/timeline.cuh."""
import re
from functools import cache
from pathlib import Path

from machine_code import short_hash

ROOT = Path(__file__).resolve().parents[2]
HOST_ROOMS = ("common/harness/", "common/backend/", "common/bench/", "common/device/timeline.cuh")

TOKEN = re.compile(r"""
    (?P<blank>  \s+ | \\\n | //[^\n]* | /\*.*?\*/ )
  | (?P<line>   ^\#(?: \\\n | /\*.*?\*/ | //[^\n]* | [^\n] )* )
  | R"(?P<mark> [^(\s]*)\(.*?\)(?P=mark)"
  | "(?: \\. | [^"\\])*"
  | [A-Za-z_]\w*
  | \.?\d(?: (?<=[eEpP])[+-] | '?[\w.] )*
  | '(?: \\. | [^'\\])*'
  | <=> | <<= | >>= | \.\.\. | ->\* | :: | -> | \+\+ | -- | << | <= | >= | == | != | && | \|\| | [-+*/%&|^]= | .
""", re.VERBOSE | re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"\\\n|/\*.*?\*/|//[^\n]*", re.DOTALL)
INCLUDE = re.compile(r'# *include *"([^"]+)"')
MARK = re.compile(r"^ *timeline::[^;\n]*;$", re.MULTILINE)  # alone on its line


def tokens(text):
    """The tokens of a source; a line of the preprocessor is one."""
    for match in TOKEN.finditer(MARK.sub("", text)):
        if match.lastgroup == "line":
            yield " ".join(COMMENT.sub(" ", match[0]).split())
        elif match.lastgroup != "blank":
            yield match[0]


def declarations(text):
    """(its tokens, with the namespaces around it) of each declaration of a source outside of classes and functions."""
    namespaces, declaration, depth, conditions, heads = [], [], 0, [], None
    for token in tokens(text):
        outside = depth == 0 and not conditions
        if token.startswith(("#include", "#pragma once")):
            continue
        if heads is not None and token in "{;":  # of a namespace, or of an alias of one
            if token == "{":
                namespaces.append(" ".join(heads))
            else:
                yield namespaces + heads
            heads = None
            continue
        if heads is not None:
            heads.append(token)
            continue
        if outside and not declaration and token == "namespace":
            heads = []
            continue
        if outside and not declaration and token == "}":
            namespaces = namespaces[:-1]
            continue
        declaration.append(token)
        if token.startswith("#if"):
            conditions.append(depth)
        elif token.startswith(("#else", "#elif")) and conditions:
            depth = conditions[-1]  # each branch opens its own brackets
        elif token == "#endif":
            conditions = conditions[:-1]
        elif token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        if depth == 0 and not conditions and (token in "};" or token[0] == "#"):
            if declaration != [";"]:  # of a class, that ends with its bracket
                yield namespaces + declaration
            declaration = []
    yield namespaces + declaration


@cache
def hashes(path):
    """Of the declarations of a file."""
    return frozenset(short_hash(*(token.encode() for token in each))
                     for each in declarations(path.read_text(errors="replace")))


@cache
def headers(path, root):
    """The project's headers that a file includes."""
    beside = [(path.parent / name, root / name) for name in INCLUDE.findall(path.read_text(errors="replace"))]
    return [file.resolve() for files in beside if (file := next(filter(Path.is_file, files), None))]


def forget_sources():
    """A process reads each source once; after this, once more."""
    hashes.cache_clear()
    headers.cache_clear()


def sources(file, root=ROOT):
    """A file and the project's headers that it includes, directly or not, each once."""
    seen, waiting = {}, [Path(file).resolve()]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen[path] = True
            waiting += headers(path, root)
    return list(seen)


def token_hash(file, root=ROOT):
    """The hash of what a level's file and all that it includes say."""
    rooms = tuple(f"{root}/{room}" for room in HOST_ROOMS)
    said = set()
    for path in sources(file, root):
        if not str(path).startswith(rooms):
            said |= hashes(path)
    return short_hash(*(each.encode() for each in sorted(said)))
