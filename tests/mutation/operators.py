# SPDX-License-Identifier: MIT
"""Single edits of C++ and CUDA sources that a test should notice.

Works on text that clang-format has laid out (binary operators between spaces, none before `&&` of a
reference). Comments, strings, preprocessor lines, static assertions, texts and speed claims are left
alone, and so is code that the SIMT backend does not compile."""
import bisect
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    path: str  # relative to the root
    line: int
    operator: str
    start: int  # the characters [start, end) of the file become `text`
    end: int
    text: str
    number: int  # among those of this operator in this line

    @property
    def id(self):
        return f"{self.path}:{self.line}:{self.operator}:{self.number}"

    def apply(self, source):
        return source[:self.start] + self.text + source[self.end:]


# --- what is code --------------------------------------------------------------------------------
LITERAL = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|' r"'(?:\\[^'\n]+|[^'\\\n])'",
                     re.DOTALL)
# Calls whose arguments are texts, checks at compile time, or speeds that only a GPU can judge.
IGNORED_CALL = re.compile(r"\b(?:static_assert|fmt::(?:print|format|runtime)|\w+_than_previous|at_least_previous"
                          r"|__attribute__|alignas|assert|asm volatile|asm|__launch_bounds__)\s*\(")
IGNORED_DECLARATION = re.compile(r"\bstatic constexpr (?:const char\s*\*|LevelText)\s*\w+\s*[={][^;]*;|\b(?:using|namespace) [^;{]*[;{]")
# What the preprocessor knows when the SIMT backend compiles; anything else may be either.
DEFINED = {"COOKBOOK_SIMT": 1, "__cplusplus": 202002, "__x86_64__": 1}
UNDEFINED = {"COOKBOOK_CUDA", "__CUDACC__", "__CUDA_ARCH__", "__CUDA_ARCH_FEAT_SM90_ALL", "__clang__",
             "__SANITIZE_ADDRESS__", "__aarch64__"}


def holds(condition):
    """True or False where the SIMT backend decides a preprocessor condition, otherwise None."""
    condition = re.sub(r"//.*", "", condition)
    text = re.sub(r"defined\s*\(?\s*(\w+)\s*\)?",
                  lambda m: "1" if m[1] in DEFINED else "0" if m[1] in UNDEFINED else "unknown", condition)
    text = re.sub(r"\b[A-Za-z_]\w*\b",
                  lambda m: str(DEFINED.get(m[0], 0 if m[0] in UNDEFINED else "unknown")), text)
    if "unknown" in text or not re.fullmatch(r"[\d\s()<>=!&|]+", text):
        return None
    text = text.replace("&&", " and ").replace("||", " or ")
    return bool(eval(re.sub(r"!(?!=)", " not ", text), {"__builtins__": {}}))  # digits and operators only


def first_outside(code, at, step, stops):
    """The first place from `at` on, in the direction of `step`, that is the bracket around it, or where `stops` and
    that is not within brackets; -1 if there is none."""
    opens, closes = ("([{", ")]}")[::step]
    depth = 0
    while 0 <= at < len(code):
        depth += (code[at] in opens) - (code[at] in closes)
        if depth < 0 or depth == 0 and stops(at):
            return at
        at += step
    return -1


def closing(code, opening):
    """Where the bracket at `opening` is closed, or -1."""
    return first_outside(code, opening, 1, lambda at: True)


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def code_of(source):
    """`source` with everything that no operator may touch replaced by spaces, character by character."""
    # Strings keep their quotes, so that an argument stays an argument.
    code = LITERAL.sub(lambda m: blank(m[0]) if m[0][0] == "/" else '"' + blank(m[0][1:-1]) + '"', source)
    lines, active = [], []  # active: of every #if that is open, whether this branch is compiled
    continued = False
    for line in code.split("\n"):
        directive = re.match(r"\s*#\s*(\w+)(.*)", line)
        if directive and not continued:
            name, rest = directive[1], directive[2]
            if name in ("if", "ifdef", "ifndef"):
                truth = holds(rest if name == "if" else f"defined({rest.strip()})")
                active.append((not truth if truth is not None else None) if name == "ifndef" else truth)
            elif name == "elif" and active:
                active[-1] = False if active[-1] else holds(rest)
            elif name == "else" and active:
                active[-1] = not active[-1] if active[-1] is not None else None
            elif name == "endif" and active:
                active.pop()
        skip = bool(directive) or continued or False in active
        continued = line.endswith("\\") and (bool(directive) or continued)
        lines.append(" " * len(line) if skip else line)
    code = "\n".join(lines)
    for match in list(IGNORED_CALL.finditer(code)):
        end = closing(code, match.end() - 1)
        if end > 0:
            code = code[:match.start()] + "_" + blank(code[match.start() + 1:end + 1]) + code[end + 1:]
    return IGNORED_DECLARATION.sub(lambda m: blank(m[0]), code)


# --- operators -----------------------------------------------------------------------------------
# Each takes the code and yields (start, end, replacement). A replacement may take from the code.
SYNCHRONISES = re.compile(r"(?:barrier|fence|wait|commit|arrive|sync(?!hronize)|release|acquire|signal|expect|notify"
                          r"|lock\b|join\b)", re.IGNORECASE)
DECLARES = re.compile(
    r"(?:const|constexpr|auto|static|using|typedef|template|struct|class|enum|union|extern|inline|return|break"
    r"|continue|goto|throw|case|default|else|if|for|while|do|switch|namespace|public|private|protected|friend"
    r"|explicit|virtual|operator|unsigned|signed|volatile|mutable|__\w+__)\b"
    r"|[\w:]+(?:<[^;=]*>)?(?:\s+(?:const\s+)?|\s*[*&]+\s*|\s+[*&]+)[A-Za-z_]\w*\s*(?:[=;,({\[]|$)")


def statements(code):
    """(start, end) of the expression statements, `;` included."""
    for match in re.finditer(r"(?<=[;{})])\s+(?=[\w(*+:\-])|(?<=\) )(?=[\w*+])", code):
        start = match.end()
        if code[start:start + 1] in ("", "{", "}"):
            continue
        at = first_outside(code, start, 1, lambda at: code[at] == ";")
        if at < 0 or code[at] != ";":
            continue
        text = code[start:at]
        if DECLARES.match(text) or re.search(r"=\s*(?:default|delete)\s*$", text):
            continue
        if re.search(r"[^=!<>]=[^=]|\+\+|--|[+\-*/%&|^]=|<<=|>>=", text) or text.rstrip().endswith(")"):
            yield start, at + 1


def is_reset(text):
    return re.search(r"[^=!<>]=\s*(?:0(?:\.0?f?)?|false|nullptr|\{\}|-1)\s*;$", text) or re.search(
        r"\b(?:memset|fill|clear|reset|zero\w*)\(", text)


def drop_sync(code):
    for start, end in statements(code):
        text = code[start:end]
        if "=" not in text.split("(")[0] and SYNCHRONISES.search(text.split("(")[0]):
            yield start, end, ";"


def drop_reset(code):
    return ((s, e, ";") for s, e in statements(code) if is_reset(code[s:e]))


def drop_statement(code):
    for start, end in statements(code):
        text = code[start:end]
        if not is_reset(text) and not SYNCHRONISES.search(text.split("(")[0]):
            yield start, end, ";"


def weaken_sync(code):
    for name, weaker in (("cluster_sync", "__syncthreads"), ("__syncthreads", "__syncwarp"),
                         ("__threadfence", "__threadfence_block")):
        for match in re.finditer(rf"\b{name}\(\);", code):
            yield match.start(), match.end(), f"{weaker}();"


def conditions(code):
    """(start of `if`, start of the condition, its end) of every run-time `if`."""
    for match in re.finditer(r"\bif \(", code):
        end = closing(code, match.end() - 1)
        if end > 0:
            yield match.start(), match.end(), end


def drop_guard(code):
    for start, _, end in conditions(code):
        if re.search(r"else\s*$", code[:start]):
            continue
        match = re.match(r"\)\s*(?:\{\s*)?(?:return|continue|break|throw)\b", code[end:])
        if not match:
            continue
        at = code.find(";", end)
        braced = "{" in match[0]
        if braced:  # only this one statement
            brace = code.find("{", end)
            at = closing(code, brace)
            if code[brace:at].count(";") != 1:
                continue
        if at > 0 and not re.match(r"\s*else\b", code[at + 1:]):
            yield start, at + 1, ";"


def negate_condition(code):
    for _, start, end in conditions(code):
        text = code[start:end]
        if ";" in text:  # if (init; condition)
            start += text.rfind(";") + 1
            text = code[start:end]
        if re.match(r"\s*(?:const|auto)\b", text):
            continue
        yield start, end, f"!({text.strip()})"


def weaken_condition(code):
    def ends(at):
        return code[at] in ",;?" or code[at:at + 2] in ("&&", "||")

    def begins(at):
        return re.match(r" = |return ", code[at:at + 7])
    for match in re.finditer(r" (&&|\|\|)\s", code):
        left = first_outside(code, match.start(), -1, lambda at: ends(at) or begins(at))
        right = first_outside(code, match.end(), 1, ends)
        if left < 0 or right < 0:
            continue
        left += len(begins(left)[0]) if begins(left) else 1
        if left < len(code) and code[left - 1:left + 1] in ("&&", "||"):
            left += 1
        while code[left].isspace():
            left += 1
        operand_end = match.start()
        while code[right - 1].isspace():
            right -= 1
        yield left, match.end(), ""  # only the right operand is left
        yield operand_end, right, ""  # only the left one


COMPARISONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": (None, "!="),
               "!=": (None, "==")}


def comparisons(code):
    return re.finditer(r"(?<= )(<=|>=|==|!=|<|>)(?=[ \n])", code)


def shift_bound(code):
    for match in comparisons(code):
        if COMPARISONS[match[1]][0]:
            yield match.start(), match.end(), COMPARISONS[match[1]][0]
    for match in re.finditer(r"(?<=[\w)\]]) ([+-]) 1\b(?![.'\w])", code):
        yield match.start(), match.end(), ""
    # A loop that ends one turn early.
    for match in re.finditer(r"(?<=;) [^;()&|]*? (?:<|<=) ([^;&|]+)(?=; (?:\+\+\w|\w+ \+= ([^;{}]+?)\) ))", code):
        yield match.end(), match.end(), f" - {match[2]}" if match[2] else " - 1"


def shift_index(code):
    for match in re.finditer(r"(?<=[\w)\]])\[", code):
        end = closing(code, match.start())
        inside = code[match.end():end] if end > 0 else ""
        # Not a declaration's extent, not a lambda's captures.
        before = code[code.rfind("\n", 0, match.start()) + 1:match.start()]
        if not inside.strip() or re.match(r"\s*(?:alignas \S* )?(?:__shared__|static|float|double|int|char|unsigned|bool)\b",
                                          before) and "=" not in before:
            continue
        yield end, end, " + 1"


def invert_comparison(code):
    for match in comparisons(code):
        yield match.start(), match.end(), COMPARISONS[match[1]][1]


PAIRS = [("row", "col"), ("rows", "cols"), ("row0", "col0"), ("x", "y"), ("m", "n"), ("in", "out"), ("q", "k"),
         ("first", "last"), ("first", "second"), ("low", "high"), ("left", "right"), ("lda", "ldb"),
         ("in_pitch", "out_pitch"), ("kTileM", "kTileN"), ("kBlockM", "kBlockN"), ("block_m", "block_n"),
         ("full", "empty"), ("producer", "consumer"), ("cold", "hot"), ("base", "other"), ("odd", "even"),
         ("begin", "end"), ("blockIdx", "threadIdx"), ("gridDim", "blockDim")]


def swap_pair(code):
    words = set(re.findall(r"\b[A-Za-z_]\w*\b", code))
    for one, other in PAIRS:
        if one not in words or other not in words:
            continue
        for match in re.finditer(rf"\b({one}|{other})\b(?!\s*\()", code):
            # A use, not a declaration.
            if re.search(r"[\w>*&] $|[*&]$", code[max(0, match.start() - 2):match.start()]) and not re.search(
                    r"\breturn $", code[:match.start()][-7:]):
                continue
            yield match.start(), match.end(), other if match[1] == one else one


def widen_bound(code):
    name = r"[\w.\->]*(?:bound|tolerance|ulp|slack|margin|spread|error|allowed|limit|atol|rtol)s?\b"
    for match in re.finditer(rf"\b{name}(?:\[[^\]]*\])? \+?= ([^;{{}}]+);", code, re.IGNORECASE):
        yield match.start(1), match.end(1), f"2 * ({match[1]})"
    for match in re.finditer(rf"(?<=[<>] )({name})(?![\w(\[])", code, re.IGNORECASE):
        yield match.start(1), match.end(1), f"2 * {match[1]}"
    for match in re.finditer(rf"(?<= )({name}\([^;()]*\))(?=[;)])", code, re.IGNORECASE):
        yield match.start(1), match.end(1), f"2 * {match[1]}"


def narrow_integer(code):
    for match in re.finditer(r"\b(?:std::)?(?:u?int64_t|size_t|ptrdiff_t)\b(?!\*)|\b(?:unsigned )?long long\b", code):
        if code[match.end():match.end() + 1] != ">" or "cast<" in code[match.start() - 12:match.start()]:
            yield match.start(), match.end(), "int"


def change_constant(code):
    for match in re.finditer(r"(?<![\w.'])(0x[0-9a-fA-F]+|\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|\d+)(f|u|ull|ll|z)?\b(?![.'\w])",
                             code):
        number, suffix = match[1], match[2] or ""
        if re.fullmatch(r"0\d+", number):  # octal: permissions
            continue
        if "." in number or "e" in number and not number.startswith("0x"):
            text = "1.0" if float(number) == 0 else f"2 * {number}"
        else:
            text = str(int(number, 0) + 1)
        yield match.start(), match.end(), text + suffix


def swap_extremum(code):
    for match in re.finditer(r"\b(?:std::)?(f?)(min|max)(f?)\(", code):
        other = match[0].replace("min", "#").replace("max", "min").replace("#", "max")
        yield match.start(), match.end(), other


ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "+=": "-=", "-=": "+=",
              "*=": "/=", "/=": "*="}


def swap_arithmetic(code):
    for match in re.finditer(r"(?<=[\w)\]] )(\+=|-=|\*=|/=|<<|>>|[+\-*/%])(?=[ \n])", code):
        yield match.start(), match.end(), ARITHMETIC[match[1]]


def swap_arguments(code):
    for match in re.finditer(r"\b([A-Za-z_]\w*)\(([\w.\[\]]+), ([\w.\[\]]+)(?=[,)])", code):
        if match[1] not in ("min", "max", "fmin", "fmax", "fminf", "fmaxf", "swap") and match[2] != match[3]:
            yield match.start(2), match.end(3), f"{match[3]}, {match[2]}"


OPERATORS = {
    "drop-sync": drop_sync,  # a barrier, fence, wait, commit or arrival
    "weaken-sync": weaken_sync,  # a barrier or fence of a smaller scope
    "drop-reset": drop_reset,  # an assignment of zero, a clear
    "drop-statement": drop_statement,
    "drop-guard": drop_guard,  # if (...) return / continue / break / throw
    "negate-condition": negate_condition,
    "weaken-condition": weaken_condition,  # one operand of && or ||
    "shift-bound": shift_bound,  # < as <=, n + 1 as n, a loop that stops one short
    "shift-index": shift_index,  # a[i] as a[i + 1]
    "invert-comparison": invert_comparison,
    "swap-pair": swap_pair,  # row for col, x for y
    "swap-arguments": swap_arguments,
    "swap-extremum": swap_extremum,  # min for max
    "swap-arithmetic": swap_arithmetic,  # + for -, * for /
    "widen-bound": widen_bound,  # a tolerance times two
    "narrow-integer": narrow_integer,  # int64 as int
    "change-constant": change_constant,
}


def mutants(path, source):
    """Every mutant of a file, in the order of the operators and of the text."""
    code = code_of(source)
    starts = [0] + [m.end() for m in re.finditer("\n", source)]
    found, seen = [], set()
    for name, operator in OPERATORS.items():
        counts = {}
        for start, end, text in operator(code):
            result = hash(source[:start] + text + source[end:])  # `a` of `a && b && c` has two neighbours
            if source[start:end] == text or result in seen:
                continue
            seen.add(result)
            line = bisect.bisect_right(starts, start)
            # Lines after the edit keep their numbers.
            text += "\n" * (source.count("\n", start, end) - text.count("\n"))
            counts[line] = counts.get(line, 0) + 1
            found.append(Mutant(path, line, name, start, end, text, counts[line]))
    return found
