# SPDX-License-Identifier: MIT
"""What a submission's source may not say, before anything is compiled.

The text is read as one stream of tokens. What a compiler could read in another way (line splices, digraphs, trigraphs,
raw strings, control characters) is refused, so that these tokens are the compiler's; tokens_of_compiler() asks it.
This is the first fence. The checked object file (objects.py) and the sandbox (sandbox.py) hold where it is evaded.
"""
import re
from collections import namedtuple

Token = namedtuple("Token", "line kind text")

# In this order: what begins at a place is the first that matches there, as in a compiler.
SCANNER = re.compile(r"""
    (?P<space>[ \t]+) | (?P<line>\n) | (?P<comment>//[^\n]*|/\*.*?\*/) | (?P<open>/\*)
  | (?P<raw>(?:u8|[uUL])?R") | (?P<quote>(?:u8|[uUL])?(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
  | (?P<number>\.?[0-9](?:'?\w|[eEpP][+-]|\.)*) | (?P<word>[A-Za-z_]\w*)
  | (?P<digraph><%|%>|%:|:>|<:(?!:[^:>])|\?\?[=/'()!<>-]) | (?P<other>.)""", re.VERBOSE | re.DOTALL | re.ASCII)
# What stands in a raw text before it has tokens.
UNREADABLE = (
    (re.compile(r"[^\n\t -~\x80-\U0010ffff]"), "control characters, such as a carriage return, are not allowed"),
    (re.compile(r"\\[ \t]*(?=\n|\Z)"), "a line that ends in a backslash is not allowed"),
    (re.compile(r"\?\?/[ \t]*(?=\n|\Z)"), "digraphs and trigraphs are not allowed"))

WORDS = {
    "asm": "inline assembly", "extern": "what it declares is elsewhere; dynamic shared memory is `dynamic_shared<T>()`",
    "thread_local": "memory of a block is `__shared__`", "export": "a module",
    "LevelEntry": "a name of the harness", "Instance": "a name of the harness", "DeviceMemory": "allocation",
    "new": "allocation", "delete": "allocation", "make_unique": "allocation", "make_shared": "allocation",
    "typeid": "the type of a value at run time", "source_location": "which file, line or build this is",
}
# Of these, what is called. A variable may have such a name.
FUNCTIONS = {
    **dict.fromkeys(("malloc", "calloc", "realloc", "aligned_alloc", "free", "alloca", "mmap"), "allocation"),
    **dict.fromkeys(("exit", "abort", "quick_exit"), "ending the process"), **dict.fromkeys(("fork", "system", "popen"), "a process"),
    **dict.fromkeys(("printf", "puts", "fprintf"), "output"), "fopen": "a file", "syscall": "a system call",
}
# Of these, what is in them.
SCOPES = {"simt": "a name of the backend", "detail": "a name of the backend", "grading": "a name of the grader"}
# Of the reserved names (`__x`, `_X`), those of CUDA C++ that the backend offers. No other may be used.
CUDA_NAMES = re.compile(r"""
    __(?:global|device|host|shared|constant|forceinline|noinline|launch_bounds|restrict|grid_constant|cluster_dims|align)__
  | __(?:sync(?:threads|warp)\w* | threadfence\w* | shfl(?:_up|_down|_xor)?_sync | (?:ballot|any|all)_sync | activemask
      | match_(?:any|all)_sync | reduce_\w+_sync | ld(?:g|c[agsv]|lu) | st(?:cg|cs|wb|wt) | nanosleep | trap
      | cvta_\w+ | dp[24]a | mul24 | umul24 | u?mulhi | u?mul64hi | u?sad | byte_perm | funnelshift_l[c]? | funnelshift_rc?
      | (?:brev|clz|ffs|popc)(?:ll)? | saturatef | sincosf | (?:sin|cos|tan|exp|exp10|log|log2|log10|pow)f | fdividef
      | [df](?:add|sub|mul|div|rcp|sqrt|ma|maf|rsqrt)f?_r[nzud] | fmaf_r[nzud] | fma_r[nzud] | frsqrt_rn
      | (?:half|nv_bfloat16)2? | nv_fp8_e[45]m[32] | \w*(?:bfloat16|half|float)\w*2\w* | \w*2(?:half|float|bfloat16|double|int|uint|ll)\w*
      | float_(?:as_u?int|to_tf32) | u?int_as_float | double_as_longlong | longlong_as_double | \w+_as_(?:half|bfloat16|u?short)
      | h(?:add|sub|mul|div|fma|neg|abs|max|min|eq|ne|lt|le|gt|ge|isnan|isinf)2?(?:_sat|_relu)? | h2div
      | (?:low|high)2\w+ | (?:lows|highs)2\w+ | lowhigh2highlow | halves2\w+ | vi\w+_[su]32\w* )""", re.VERBOSE)
NOT_CUDA = re.compile(r"__(?:builtin|asm|attribute|declspec|cuda|device_stub|nv_(?!bfloat16|fp8)|tsan|sanitizer|gnu|float128)")
# Of the C library's macros: limits and constants. Other macros than these, and than the teacher's, are not allowed.
MACROS = re.compile(r"U?(?:INT|LLONG|LONG|SHRT|CHAR|SCHAR)(?:_FAST|_LEAST)?\d*_(?:MAX|MIN)|U(?:CHAR|SHRT)_MAX|SIZE_MAX|PTRDIFF_M\w+|"
                    r"(?:FLT|DBL)_[A-Z0-9]+|CHAR_BIT|M_[A-Z0-9_]+|INFINITY|NAN|HUGE_VALF?|NULL|U?INT(?:8|16|32|64)_C|assert|"
                    r"isnan|isinf|isfinite|signbit|offsetof")
# Of the standard library: types, and functions of numbers. What moves memory is a loop in a kernel.
STD = re.compile(r"""u?int(?:8|16|32|64|ptr|max)_t | u?int_(?:fast|least)\d+_t | size_t | ptrdiff_t | byte | nullptr_t
  | min | max | clamp | abs | swap | move | forward | exchange | declval | as_const | midpoint | lerp | gcd | lcm
  | f(?:abs|ma|max|min|mod|dim|loor)f? | ceilf? | floorf? | roundf? | truncf? | l?l?r(?:int|ound)f? | nearbyintf? | sqrtf? | cbrtf?
  | expf? | exp2f? | expm1f? | logf? | log2f? | log10f? | log1pf? | powf? | sinf? | cosf? | tanf? | a(?:sin|cos|tan)f? | atan2f?
  | (?:sin|cos|tan)hf? | hypotf? | ldexpf? | frexpf? | copysignf? | isnan | isinf | isfinite | signbit | erff? | remainderf?
  | numeric_limits | integral_constant | bool_constant | true_type | false_type | integer_sequence | index_sequence
  | make_index_sequence | make_integer_sequence | index_sequence_for | ratio | pair | tuple | get | tie | make_pair | make_tuple
  | array | optional | nullopt | span | string | string_view | to_string | shared_ptr | invalid_argument
  | popcount | countl_zero | countr_zero | countl_one | countr_one | bit_width | bit_ceil | bit_floor | has_single_bit | rotl | rotr
  | bit_cast | plus | minus | multiplies | greater | less | bit_and | bit_or | bit_xor | same_as | integral | floating_point
  | \w+_v | (?!atomic)\w+_t | is_\w+ | conditional | enable_if | decay | remove_\w+ | add_\w+ | make_(?:un)?signed | type_identity
  | tuple_size | tuple_element | extent | rank | alignment_of | void_t | initializer_list | ignore""", re.VERBOSE)
# What a compiler expands where it stands. memcpy, memmove, memset and memcmp are counted.
MOVERS = re.compile(r"memp?ccpy|mempcpy|(?:raw)?memr?chr|b(?:copy|zero|cmp)|stpn?cpy|wmem\w+|wcs\w+|"
                    r"str(?:n?(?:cpy|cat|cmp|len|dup|str)|r?chr|c?spn|pbrk|tok|coll|xfrm|case\w+)")
MOST_NAME = 200
BRACKETS = {"(": ")", "[": "]", "{": "}"}
ATTRIBUTES = {"maybe_unused", "nodiscard", "likely", "unlikely", "fallthrough", "no_unique_address"}
UNROLL = re.compile(r"#pragmaunroll\(?[\w:+*/<>.-]*\)?")


class Source:
    """A text as tokens. `unreadable`: [(line, message)] of what a compiler could read in another way."""

    def __init__(self, text):
        self.tokens, self.unreadable, self.foreign = [], [], None
        for pattern, message in UNREADABLE:
            found = pattern.search(text)
            if found:
                self.unreadable.append((text.count("\n", 0, found.start()) + 1, message))
        line = 1
        for match in SCANNER.finditer(text):
            kind, body = match.lastgroup, match[0]
            if kind not in ("space", "line", "comment"):
                self.take(line, kind, body)
            elif kind == "comment" and body.count("\n"):
                # A directive would go on behind it.
                self.tokens.append(Token(line, "comment", ""))
            line += body.count("\n")
            if self.unreadable:  # nobody reads further, and a quote without a second one is sought to the end of its line
                break

    def take(self, line, kind, body):
        wrong = {"open": "a comment that begins with `/*` is not closed", "raw": "raw strings are not allowed",
                 "digraph": "digraphs and trigraphs are not allowed"}.get(kind)
        if kind == "other" and body in "\"'":
            wrong = f"a {body} has no second one in its line"
        elif kind == "other" and body in "\\$@`":
            wrong = f"the character {body} is not allowed here"
        if not body.isascii():  # a comment may be in any language
            wrong = "characters other than ASCII are allowed in comments only"
        if wrong:
            self.unreadable.append((line, wrong))
        self.tokens.append(Token(line, kind, body))


def ends_in_comment(text):
    """Whether a comment is open at the end: what follows the region would be in it."""
    return any(token.kind == "open" for token in Source(text).tokens)


def tags_of(text):
    """The marks `// [tag]` that claims refer to, wherever a line ends in one."""
    return sorted(tag for row in text.split("\n") for tag in re.findall(r"// ?\[(\w+)\]\s*$", row))


def directive_problem(row, region, includes):
    """What is wrong with the tokens of a line that has a `#`, or ""."""
    said = "".join(token.text for token in row)
    if any(token.kind == "comment" for token in row):
        return "a comment of several lines is not allowed at a directive"
    if row[0].text != "#":
        return "`#` is not allowed"
    if UNROLL.fullmatch(said):
        return ""
    name = row[1].text if len(row) > 1 else ""
    if not region and said == "#pragmaonce":
        return ""
    if not region and name == "include":
        file = re.fullmatch(r'#include(?:"([\w./-]+)"|<([\w./-]+)>)', said)
        file = file and (file[1] or file[2])
        if file and ".." not in file and any(file == one or (one.endswith("/") and file.startswith(one))
                                             for one in includes):
            return ""
    rest = ("" if name == "include" else " ").join(token.text for token in row[2:])[:60]
    return f"`#{name} {rest}` is not allowed" if name in ("include", "pragma") else f"`#{name}` is not allowed"


def attribute_problem(tokens, at):
    """What is wrong with the attributes that begin with the `[[` at tokens[at], or ""."""
    depth, name_comes = 0, True
    for token in tokens[at + 2:at + 200]:
        if depth == 0 and token.text == "]":
            return ""
        if depth == 0 and name_comes and token.text not in ATTRIBUTES:
            return f"`{token.text[:60]}` is not allowed: an attribute"
        if depth == 0 and not name_comes and token.text not in (",", "("):
            return f"`{token.text[:60]}` is not allowed: an attribute"
        name_comes = depth == 0 and token.text == ","
        depth += (token.text in BRACKETS) - (token.text in BRACKETS.values())
    return "an attribute does not end"


def word_problem(tokens, at, workspaces, macros, known):
    """Why the name tokens[at] is not allowed, or ""."""
    word = tokens[at].text
    after = [token.text for token in tokens[at + 1:at + 4]] + [""] * 3
    before = tokens[at - 1].text if at > 0 else ""
    if word == "DeviceMemory" and workspaces:
        return ""
    scoped = [token.text for token in tokens[max(at - 2, 0):at]] == [":", ":"]
    if word in ("import", "module") and (at == 0 or tokens[at - 1].line < tokens[at].line) and after[0] not in ("(", "="):
        return "a module"
    if word == "goto" and after[0] == "*":
        return "where it goes is computed"
    if word in FUNCTIONS and (after[0] == "(" or scoped):
        return FUNCTIONS[word]
    if word in SCOPES and (after[0] == ":" or scoped or before == "namespace"):
        return SCOPES[word]
    if word == "namespace":
        # It opens one: no alias, and no `using namespace`.
        opened = next((token.text for token in tokens[at + 1:at + 40] if token.text in ("{", "=", ";")), "")
        if before == "using":
            return "write the namespace in front of each name"
        return "" if opened == "{" else "only a namespace that is opened"
    if word == "operator" and after[0] in ("new", "delete"):
        return "allocation"
    if word == "std":
        if after[0] != ":" or after[1] != ":":
            return "write `std::` and a name"
        if why := WORDS.get(after[2]) or FUNCTIONS.get(after[2]):
            return why
        return "" if STD.fullmatch(after[2]) or f"std::{after[2]}" in known else "of `std`, only types and functions of numbers are"
    if word.startswith("COOKBOOK_"):
        return "a name of the build"
    if MOVERS.fullmatch(word):
        return "it moves data that is not counted; write a loop"
    if word in WORDS:
        return WORDS[word]
    if word.startswith("__") or re.match(r"_[A-Z]", word):
        if not CUDA_NAMES.fullmatch(word) or NOT_CUDA.match(word):
            if word.startswith("__builtin_"):
                return "a compiler's builtin"
            if word.startswith("__attribute") or word == "__declspec":
                return "an attribute"
            if word.startswith("__asm"):
                return "inline assembly"
            if word == "_Pragma":
                return "a pragma"
            return "a reserved name that is none of CUDA's"
    elif word in macros and word not in known and not MACROS.fullmatch(word):
        return "a macro"
    return ""


def lint(text, first_line=1, region=True, includes=(), own_tags=(), workspaces=False, macros=(), known=()):
    """[(line, message)] of what is not allowed.

    A region of the teacher's file (`region`) includes nothing and leaves every scope as it found it. A
    whole file may include `includes` (prefixes) and opens namespaces. `own_tags`: the marks that claims
    refer to in the teacher's version; a region may have no others. `workspaces`: it may have device memory.
    `macros`: names of all macros; `known`: names that the teacher's file uses, and `std::x`."""
    source = Source(text)
    found = list(source.unreadable)
    extra = [tag for tag in tags_of(text) if tag not in own_tags] if region else []
    if extra:
        line = next(line for line, row in enumerate(text.split("\n"), 1) if extra[0] in tags_of(row))
        found.append((line, f"a claim refers to the mark `// [{extra[0]}]`; do not add one"))
    if source.unreadable:
        return [(first_line + line - 1, message) for line, message in found]
    tokens, at, stack = source.tokens, 0, []
    by_line = {}
    for token in tokens:
        by_line.setdefault(token.line, []).append(token)
    directives = {line for line, row in by_line.items() if any(token.text == "#" for token in row)}
    for line in sorted(directives):
        wrong = directive_problem(by_line[line], region, includes)
        if wrong:
            found.append((line, wrong))
    tokens = [token for token in tokens if token.line not in directives and token.kind != "comment"]
    heads = False  # in `namespace a::b`, before its brace
    for at, (line, kind, body) in enumerate(tokens):
        if not region and not stack:
            # What is specialised of std or the book would stand there.
            heads = body != "{" and (heads or body == "namespace")
            if not heads and body not in ("{", "}", ";", "inline"):
                found.append((line, f"`{body[:60]}` stands in no namespace: write all of your code in one"))
                break
        if kind in ("word", "number") and len(body) > MOST_NAME:
            found.append((line, f"a name or a number has {len(body):,} characters; at most {MOST_NAME}"))
        elif kind == "word":
            why = word_problem(tokens, at, workspaces, macros, known)
            if why:
                more = tokens[at + 1:at + 4]
                said = f"std::{more[2].text}" if body == "std" and [one.text for one in more[:2]] == [":", ":"] and more[2:] else body
                said = f"using {said}" if body == "namespace" and at > 0 and tokens[at - 1].text == "using" else said
                found.append((line, f"`{said[:60]}` is not allowed: {why}"))
        elif body == "[" and tokens[at + 1:at + 2] and tokens[at + 1].text == "[":
            why = attribute_problem(tokens, at)
            if why:
                found.append((line, why))
        if kind == "other" and body in BRACKETS:
            stack.append((BRACKETS[body], line))
        elif kind == "other" and body in BRACKETS.values():
            if not stack or stack[-1][0] != body:
                found.append((line, f"`{body}` closes what was not opened here"))
                stack = []
                break
            stack.pop()
    if stack:
        found.append((stack[-1][1], f"`{stack[-1][0]}` is missing"))
    return [(first_line + line - 1, message) for line, message in sorted(found, key=lambda one: one[0])]


def names_in(text):
    """The names in a text, and `std::x` for each name of the standard library."""
    tokens = [token.text for token in Source(text).tokens]
    return set(tokens) | {f"std::{tokens[at + 3]}" for at in range(len(tokens) - 3)
                          if tokens[at:at + 3] == ["std", ":", ":"]}


def says(text, code):
    """Whether the tokens of `code` stand in the text one after the other: a comment says nothing."""
    of_text, of_code = ([token.text for token in Source(one).tokens if token.text] for one in (text, code))
    return any(of_text[at:at + len(of_code)] == of_code for at in range(len(of_text)))


def includes_in(text):
    """What a text that passed the lint includes."""
    return re.findall(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', text, re.MULTILINE)


# Preprocesses text that knows no macro and includes nothing: the compiler's tokens of it.
PREPROCESS = ["-E", "-P", "-undef", "-nostdinc", "-w", "-"]


def without_includes(text):
    return re.sub(r"^[ \t]*#[ \t]*(?:include|pragma[ \t]+once)\b.*", "", text, flags=re.MULTILINE)


def read_differently(text, preprocessed):
    """The line from which on the compiler's preprocessor (PREPROCESS) made other tokens of the text than this file does;
    0 where it made the same."""
    mine, theirs = ([token for token in Source(one).tokens if token.kind != "comment"] for one in (text, preprocessed))
    for token, other in zip(mine, theirs):
        if token.text != other.text:
            return token.line
    return 0 if len(mine) == len(theirs) else mine[-1].line if mine else 1
