#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random legal spellings of what a submission may not say: the lint must refuse each, and accept its honest twin.

  tests/grading/lint_fuzz.py 10000 [SEED]  also compiles them, to show that they are legal
"""
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/grading"))
import lint  # noqa: E402

# Tokens of a declaration in a namespace. NAME is another one each time. A row that begins with # is a directive.
FORBIDDEN = {
    "assembly": ["asm ( \"nop\" ) ;", "__asm__ ( \"nop\" ) ;", "void NAME ( ) { asm volatile ( \"nop\" ) ; }",
                 "__CONCAT ( as , m ) ( \"nop\" ) ;"],
    "attribute": ["__attribute__ ( ( used ) ) int NAME ;", "[ [ gnu :: used ] ] int NAME ;", "int NAME [ [ gnu :: used ] ] ;",
                  "[ [ maybe_unused , gnu :: used ] ] int NAME ;", "[ [ using gnu : used ] ] int NAME ;",
                  "[ [ maybe_unused ] ] [ [ gnu :: constructor ] ] void NAME ( ) { }", "[ [ __gnu__ :: __used__ ] ] int NAME ;",
                  "int NAME __attribute_used__ ;", "struct [ [ gnu :: packed ] ] NAME { int a ; } ;",
                  "void NAME ( [ [ gnu :: unused ] ] int a ) { }"],
    "linkage": ["extern int NAME ;", "extern \"C\" void NAME ( ) ;", "__BEGIN_DECLS void NAME ( ) ; __END_DECLS"],
    "directive": ["# define NAME 1", "# include <cstdlib>", "# undef NAME", "# pragma GCC push_options", "# line 7 \"a.hpp\"",
                  "# ifdef NAME\n# endif", "# 7 \"a.hpp\""],
    "scope": ["} namespace NAME { int a ;", "} } namespace outer { namespace NAME {", "namespace detail { }", "} void NAME ( ) {",
              "namespace NAME = :: std ;"],
    "name": ["const char* NAME = __FILE__ ;", "int NAME = __LINE__ ;", "void NAME ( ) { __builtin_trap ( ) ; }",
             "int NAME = __COUNTER__ ;", "auto NAME = & :: exit ;", "thread_local int NAME ;", "int* NAME = new int ;",
             "int NAME = _POSIX_VERSION ;", "int NAME = EXIT_FAILURE ;", "void NAME ( int* p ) { std :: copy ( p , p + 1 , p ) ; }",
             "using :: std :: copy ; int NAME ;", "void NAME ( int* p ) { memcpy_ ( p ) ; }".replace("memcpy_ ( p )", "bzero ( p , 4 )"),
             "_Pragma ( \"once\" ) int NAME ;"],
}
HONEST = ["int NAME ;", "int NAME [ 4 ] ;", "[ [ maybe_unused ] ] int NAME ;", "struct NAME { int a ; } ;", "namespace { int NAME ; }",
          "namespace NAME { int a ; }", "void NAME ( bool free , int detail ) { }",
          "void NAME ( int* p ) { p [ 0 ] = std :: max ( p [ 1 ] , 2 ) ; }", "auto NAME = & :: floorf ;",
          "template < class T > [ [ nodiscard , maybe_unused ] ] T NAME ( T a ) { return a ; }"]
# Stands around it, and holds what a simple reader of text trips over.
DISTRACTIONS = ["", "constexpr char cNAME = '\"';\n", "constexpr char cNAME = '\\'';\n", "const char* cNAME = \"/*\";\n",
                "const char* cNAME = \"// '\";\n", "constexpr int cNAME = 1'000;\n", "const char* cNAME = \"\\\\\";\n",
                "// ' \" /*\n", "/* \" ' // */\n", "constexpr double cNAME = 1e+5;\n", "constexpr auto cNAME = u8\"'\";\n",
                "constexpr auto cNAME = L'\\\"';\n", "constexpr double cNAME = 0x1'0p+1'0;\n"]
PLAIN = [" ", "  ", "\t", "/**/", "/* ' */", "/* \" // */"]
LINES = ["\n", "\n\n", "// ' \" \n", "/* \n */"]
# Legal C++ that the lint does not read: it refuses them.
WILD = ["\v", "\f", " \\\n ", "\\\n\t"]
HEADERS = "#include <algorithm>\n#include <cmath>\n#include <cstdlib>\n#include <strings.h>\n#include <sys/cdefs.h>\n" \
          "#include <unistd.h>\n"
DIGRAPHS = {"{": "<%", "}": "%>", "[": "<:", "]": ":>", "#": "%:"}


def glued(one, other):
    """Whether two tokens may stand side by side without anything between."""
    return not ((one[-1:].isalnum() or one[-1:] in "_*&\"") and (other[:1].isalnum() or other[:1] in "_\"'*&") or
                one in "<:>#%/&+-" or other in "<:>#%/&+-")


def spell(text, draw, wild):
    """The tokens of `text` with random blanks, comments, splices and digraphs."""
    out = []
    for row in text.split("\n"):
        directive, last = row.startswith("#"), ""
        if directive:
            out.append("\n" + draw.choice(["", " ", "/* a */", "\t"]))
        for token in row.split(" "):
            gaps = PLAIN + ([] if directive else LINES) + (WILD[2:] if directive else WILD) * wild
            gap = draw.choice(gaps)
            if last and glued(last, token) and draw.random() < 0.4 or not last:
                gap = ""
            if wild and token in DIGRAPHS and draw.random() < 0.3:
                token = DIGRAPHS[token]
            elif wild and len(token) > 2 and token.isidentifier() and draw.random() < 0.1:
                at = draw.randrange(1, len(token))
                token = token[:at] + "\\\n" + token[at:]
            out += [gap, token]
            last = token
        if directive:
            out.append("\n")
    return "".join(out)


def sample(number, draw):
    """(what is forbidden, its text, its honest twin)"""
    what = draw.choice(list(FORBIDDEN))
    wild = draw.random() < 0.3
    before, after = draw.choice(DISTRACTIONS), draw.choice(DISTRACTIONS)

    def text_of(declaration, wild):
        text = before.replace("NAME", "b") + spell(declaration, draw, wild) + "\n" + after.replace("cNAME", "caNAME")
        return text.replace("NAME", f"n{number}") + "\n"
    return what, text_of(draw.choice(FORBIDDEN[what]), wild), text_of(draw.choice(HONEST), False)


# Macros of the headers that a teacher's file may include.
MACROS = {"__CONCAT", "__attribute_used__", "__BEGIN_DECLS", "__END_DECLS", "_POSIX_VERSION", "EXIT_FAILURE"}


def passed(count, seed):
    """[(what, text)] that the lint accepts, and honest texts that it refuses: both must be empty."""
    draw, wrong = random.Random(seed), []
    for number in range(count):
        what, text, twin = sample(number, draw)
        if not lint.lint(text, macros=MACROS):
            wrong.append((what, text))
        refused = lint.lint(twin, macros=MACROS)
        if refused:
            wrong.append((f"honest: {refused[0]}", twin))
    return wrong


def illegal(count, seed, each=100):
    """How many of the samples g++ does not accept."""
    draw, bad = random.Random(seed), []

    def compiles(texts):
        body = "".join(f"namespace outer {{ namespace m{i} {{\n{text}}} }}\n" for i, text in enumerate(texts))
        done = subprocess.run(["g++", "-std=c++20", "-w", "-fsyntax-only", "-x", "c++", "-"], input=HEADERS + body, text=True,
                              capture_output=True)
        if done.returncode != 0 and len(texts) == 1:
            bad.append((texts[0], done.stderr))
        return done.returncode == 0

    def check(texts):
        if texts and not compiles(texts) and len(texts) > 1:
            check(texts[:len(texts) // 2])
            check(texts[len(texts) // 2:])
    texts = [sample(number, draw)[1] for number in range(count)]
    for begin in range(0, count, each):
        check(texts[begin:begin + each])
    return bad


def main(argv):
    count, began = int(argv[0]), time.monotonic()
    seed = int(argv[1]) if len(argv) > 1 else 1
    wrong = passed(count, seed)
    for what, text in wrong[:10]:
        print(f"--- passes ({what}):\n{text}")
    print(f"{count} spellings, {len(wrong)} not as they should be, {time.monotonic() - began:.0f} s", flush=True)
    bad = illegal(count, seed)
    for text, said in bad[:3]:
        print(f"--- not legal:\n{text}\n{said[:600]}")
    print(f"{count - len(bad)} of them are legal C++ to g++, {time.monotonic() - began:.0f} s")
    return 1 if wrong or len(bad) > count // 20 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
