# SPDX-License-Identifier: MIT
"""What a submission's source may not say, before anything is compiled.

This is the first of three fences. It gives the clearest reason; the checked object file (objects.py)
and the sandbox (sandbox.py) hold where it is evaded.
"""
import re

# A word, a number, a string, or one other character.
TOKEN = re.compile(r'[A-Za-z_]\w*|\d(?:\'?[\w.])*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\S')

WORDS = {
    "asm": "inline assembly", "__asm": "inline assembly", "__asm__": "inline assembly",
    "extern": "`extern`", "__attribute__": "an attribute", "__attribute": "an attribute",
    "__declspec": "an attribute", "alignas": None, "thread_local": "`thread_local`",
    "namespace": "a namespace", "module": "a module", "import": "a module", "export": "`export`",
    "simt": "a name of the backend", "detail": "a name of the backend",
    "grading": "a name of the grader", "LevelEntry": "a name of the harness",
    "Instance": "a name of the harness", "DeviceMemory": "allocation",
    "new": "allocation", "delete": "allocation", "malloc": "allocation", "calloc": "allocation",
    "realloc": "allocation", "aligned_alloc": "allocation", "free": "allocation", "alloca": "allocation",
    "mmap": "allocation", "make_unique": "allocation", "make_shared": "allocation",
    "_Pragma": "a pragma", "operator": None, "typeid": "`typeid`",
    "exit": "ending the process", "_exit": "ending the process", "abort": "ending the process",
    "quick_exit": "ending the process", "fork": "a process", "system": "a process", "popen": "a process",
    "syscall": "a system call", "printf": "output", "puts": "output", "fprintf": "output", "fopen": "a file",
}
PREFIXES = {"COOKBOOK_": "a name of the build", "__builtin_": "a compiler's builtin",
            "__cuda": "a name of the compiler", "__device_stub": "a name of the compiler", "__nv": "a name of the compiler",
            "__tsan": "a name of the tracer", "__sanitizer": "a name of the tracer"}
# Which file and line this is, and with it which build.
PLACE = {"__FILE__", "__LINE__", "__BASE_FILE__", "__FILE_NAME__", "__COUNTER__", "__DATE__", "__TIME__",
         "__TIMESTAMP__", "__INCLUDE_LEVEL__", "__func__", "__FUNCTION__", "__PRETTY_FUNCTION__",
         "__SANITIZE_THREAD__", "source_location"}
# Of the teacher's file, which a region is in.
BRACKETS = {"(": ")", "[": "]", "{": "}"}
ATTRIBUTES = {"maybe_unused", "nodiscard", "likely", "unlikely", "fallthrough", "no_unique_address"}


def blank_comments(text):
    """The text without comments, lines kept. Also the line comments as (line, text)."""
    out, comments, at, line = [], [], 0, 1
    # Names and numbers too: the ' of 1'000 begins no character.
    pattern = re.compile(r'[A-Za-z_]\w*|\.?\d(?:\'?[\w.])*|//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
    for match in pattern.finditer(text):
        out.append(text[at:match.start()])
        line += text.count("\n", at, match.start())
        body = match[0]
        if body.startswith("//"):
            comments.append((line, body))
            body = ""
        elif body.startswith("/*"):
            body = " " + "\n" * body.count("\n")
        out.append(body)
        line += match[0].count("\n")
        at = match.end()
    out.append(text[at:])
    return "".join(out), comments


def ends_in_comment(text):
    """Whether a comment is open at the end: what follows the region would be in it."""
    marker = "cookbook_region_ends_here"
    return marker not in blank_comments(text + "\n" + marker)[0]


def tags_of(text):
    """The marks `// [tag]` that claims refer to."""
    return sorted(tag for _, comment in blank_comments(text)[1] for tag in re.findall(r"// ?\[(\w+)\]\s*$", comment))


def lint(text, first_line=1, region=True, includes=(), own_tags=(), workspaces=False):
    """[(line, message)] of what is not allowed.

    A region of the teacher's file (`region`) includes nothing and leaves every scope as it found it. A
    whole file may include `includes` (prefixes) and opens namespaces. `own_tags`: the marks that claims
    refer to in the teacher's version; a region may have no others. `workspaces`: it may have device memory."""
    found = []

    def note(line, message):
        found.append((first_line + line - 1, message))

    spliced = re.search(r"\\\s*?$", text, re.MULTILINE)
    if spliced:
        note(text.count("\n", 0, spliced.start()) + 1, "a line that ends in a backslash is not allowed")
    if re.search(r'\b(u8|u|U|L)?R"', text):
        note(1, "raw strings are not allowed")
    if "??" in text or "%:" in text or "<%" in text or "<:" in text:
        note(1, "digraphs and trigraphs are not allowed")
    code, _ = blank_comments(text)
    foreign = re.compile(r"[^\n\t\r -~]")
    if foreign.search(code):  # a comment may be in any language
        note(1 + text.count("\n", 0, foreign.search(text).start()),
             "characters other than ASCII are allowed in comments only")
    if ends_in_comment(text):
        note(text.count("\n") + 1, "a comment that begins with `/*` is not closed")
    extra = [tag for tag in tags_of(text) if tag not in own_tags] if region else []
    if extra:
        note(1, f"a claim refers to the mark `// [{extra[0]}]`; do not add one")
    stack = []
    for number, row in enumerate(code.split("\n"), 1):
        directive = re.match(r"\s*#\s*(\w*)\s*(.*)", row)
        if directive:
            name, rest = directive[1], directive[2].strip()
            if name == "pragma" and re.match(r"unroll\b", rest):
                continue
            if not region and name == "pragma" and rest == "once":
                continue
            quoted = re.fullmatch(r'["<]([^">]+)[">]', rest)
            if not region and name == "include" and quoted and ".." not in quoted[1] and \
                    any(quoted[1] == one or (one.endswith("/") and quoted[1].startswith(one)) for one in includes):
                continue
            what = f"`#{name} {rest}`" if name in ("include", "pragma") else f"`#{name}`"
            note(number, f"{what} is not allowed")
            continue
        tokens = TOKEN.findall(row)
        for i, token in enumerate(tokens):
            why = WORDS.get(token)
            if token in ("namespace", "alignas") and not region:
                why = None
            if token == "DeviceMemory" and workspaces:
                why = None
            if token == "operator" and tokens[i + 1:i + 2] and tokens[i + 1] in ("new", "delete"):
                why = "allocation"
            if token == "import" and region and tokens[i + 1:i + 2] == ["("]:
                why = None
            for prefix, text_of in PREFIXES.items():
                if token.startswith(prefix):
                    why = text_of
            if token in PLACE:
                why = "which file, line or build this is"
            if token == "[" and tokens[i + 1:i + 2] == ["["] and \
                    not (tokens[i + 2:i + 3] and tokens[i + 2] in ATTRIBUTES):
                why = "an attribute"
            if why:
                note(number, f"`{token}` is not allowed: {why}")
            if token in BRACKETS:
                stack.append((BRACKETS[token], number))
            elif token in BRACKETS.values():
                if not stack or stack[-1][0] != token:
                    note(number, f"`{token}` closes what was not opened here")
                    return found
                stack.pop()
    if stack:
        note(stack[-1][1], f"`{stack[-1][0]}` is missing")
    return found
