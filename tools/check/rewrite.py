# SPDX-License-Identifier: MIT
"""CUDA C++ as the preprocessor leaves it -> C++ for g++ and the SIMT backend (docs/check.md).

rewrite() replaces what g++ does not know: `kernel<<<...>>>(...)`, `__shared__`, `extern __shared__` and the
words in front of functions and variables. Everything stays on its line. What it cannot translate is an
Unsupported error with file and line. It reads tokens, not grammar: macros and headers are expanded before.
"""
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import ptx

PROGRAM = Path(__file__).resolve().parent / "program"
# The book's own headers, which need no rewriting, and the system's: a macro of cuda_runtime.h reaches into <cmath>.
OWN = (f"{PROGRAM}/", str(Path(__file__).resolve().parents[2] / "common") + "/", "/usr/include/")
RUNTIME = "::cookbook::simt::program::"
UNTRACED = '__attribute__((no_sanitize("thread"), no_sanitize_coverage))'
NOINLINE = "__attribute__((noinline))"
RED_ZONE_BYTES = 256  # as in common/backend/simt/language/language.hpp

TOKEN = re.compile(r"""
    (?P<marker>^\#[^\n]*)                                              # line marker or pragma
  | (?P<space>[ \t\r\f\v]+|\n)
  | (?P<string>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]*)\(.*?\)(?P=delimiter)"
              |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
              |(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?\d(?:'[0-9a-zA-Z]|[eEpP][+-]|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<launch><<[ ]?<)
  | (?P<other>::|->|.)
""", re.VERBOSE | re.MULTILINE | re.DOTALL)
MARKER = re.compile(r'#\s*(\d+)\s+"((?:\\.|[^"\\])*)"((?:\s+\d)*)')

WORDS = {"__global__", "__device__", "__host__", "__shared__", "__constant__", "__managed__", "__noinline__"}
ALLOCATIONS = {"cudaMalloc", "cudaMallocAsync", "cudaMallocManaged", "cudaMallocHost", "cudaHostAlloc",
               "cudaMallocPitch", "cudaMallocArray", "cudaMalloc3DArray"}
COOPERATIVE = {"cudaLaunchCooperativeKernel", "cudaLaunchAttributeCooperative", "__cluster_dims__",
               "cudaLaunchAttributeClusterDimension"}
ALIGNMENTS = ("alignas", "__align__")
ATTRIBUTES = ("__launch_bounds__", "__cluster_dims__")
OPENING, CLOSING = "([{", ")]}"

# What has no equivalent, by name: the first group that matches says why.
UNSUPPORTED = [
    (re.compile(r"cuda(Bind|Unbind)(Texture|Surface)\w*|cudaGet(Texture|Surface)(Reference|AlignmentOffset)|"
                r"cudaTextureType\w+|(texture|surface)Reference"),
     "texture references, which CUDA 12 removed,"),
    (re.compile(r"cuda\w*Mipmapped\w*|cudaArrayCubemap|texCubemap\w*|tex2Dgather|tex[123]D(Layered)?(Lod|Grad)"),
     "mipmaps, cube maps and gathers of textures"),
    (re.compile(r"cudaGraph(AddMem(Alloc|Free)|Conditional|AddEvent|AddExternal|AddNode|ExecMem|ExecHost)\w*"),
     "these nodes of CUDA graphs"),
    (re.compile(r"cuda(Graphics|GL)[A-Z]\w*"), "buffers of OpenGL"),
    (re.compile(r"cuda(Ipc|Import|ExternalMemory|ExternalSemaphore)\w*"), "memory between processes, IPC"),
    (re.compile(r"cu(DeviceGet|CtxCreate|ModuleLoad|ModuleGetFunction|LaunchKernel|MemAlloc)\w*"),
     "the driver API"),
]


HEADERS = [  # what no header here answers, with what it stands for
    ("curand", "cuRAND"), ("cublas", "cuBLAS"), ("cufft", "cuFFT"), ("cusparse", "cuSPARSE"), ("cusolver", "cuSOLVER"),
    ("cudnn", "cuDNN"), ("nccl", "NCCL"), ("thrust/", "Thrust"), ("cub/", "CUB"), ("cuda/", "libcu++"),
    ("cute/", "CuTe"), ("cutlass/", "CUTLASS"), ("nvrtc", "NVRTC"), ("nvtx3/", "NVTX of C++"),
    ("texture", "textures"), ("surface", "surfaces"), ("npp", "NPP"), ("GL/", "OpenGL"),
    ("cooperative_groups/", "this part of cooperative groups"),
    ("cuda_gl_interop", "OpenGL"), ("opencv", "OpenCV"), ("mpi.h", "MPI"),
    ("nvml", "NVML"), ("cupti", "CUPTI"), ("cuda_awbarrier", "cuda::barrier"), ("nvjpeg", "nvJPEG"),
    ("omp.h", "OpenMP without -Xcompiler -fopenmp"),
]
# Of Thrust: they take a policy, which may say where they are called.
ALGORITHMS = {"sort", "sort_by_key"} | set(re.findall(
    r"COOKBOOK_(?:POLICY|OF_RANGE)\((\w+)", (PROGRAM / "include/thrust/detail/algorithms.h").read_text())) - {"NAME"}
NOTES = set()  # what is no mistake, and unexpected
HERE = set()  # headers of HEADERS, or folders of them, that an option brings
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


def foreign_header(name):
    """What a header such as "curand_kernel.h" stands for; None if it is not on the list, or is here."""
    if any(name.startswith(part) for part in HERE) or (PROGRAM / "include" / name).is_file():
        return None
    return next((what for prefix, what in HEADERS if name.startswith(prefix)), None)


def without_template_parameters(words):
    """The words of a declaration without each `template <...>`, whose defaults have a `=`."""
    kept, i = [], 0
    while i < len(words):
        if words[i] == "template" and words[i + 1:i + 2] == ["<"]:
            depth, i = 0, i + 1
            while i < len(words):
                depth += {"<": 1, ">": -1, ">>": -2}.get(words[i], 0)
                i += 1
                if depth <= 0:
                    break
            continue
        kept.append(words[i])
        i += 1
    return kept


ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


def string_value(text):
    """What a string literal says."""
    raw = re.fullmatch(r'(?:u8|[uUL])?R"([^()\\\s]*)\((.*)\)\1"', text, re.DOTALL)
    if raw:
        return raw[2]
    return re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[1]), text[text.index('"') + 1:-1], flags=re.DOTALL)


class Unsupported(Exception):
    def __init__(self, file, line, what):
        super().__init__(f"{file}:{line}: {what}")
        self.file, self.line, self.what = file, line, what


@dataclass
class Where:
    at: int
    token: "Token"
    scope: str  # namespace, class or function
    code: str   # device; both: of a __host__ __device__ function; None: the host's


@dataclass
class Token:
    kind: str
    text: str
    file: str
    line: int
    own: bool  # of the program, not of a system header


def source_line(file, line):
    """The line of a source file; "" if it cannot be read."""
    if file not in SOURCES:
        try:
            SOURCES[file] = Path(file).read_text(errors="replace").split("\n")
        except OSError:
            SOURCES[file] = []
    return SOURCES[file][line - 1] if 0 < line <= len(SOURCES[file]) else ""


SOURCES = {}


def tokens_of(text):
    """Tokens with their places. What system headers hold is one token per stretch, of kind "system"."""
    result, file, line, own = [], "", 1, False
    lines = text.split("\n")
    stretch, first = [], (file, line, own)

    def end_stretch():
        if not stretch:
            return
        body = "\n".join(stretch) + "\n"
        at_file, at_line, is_own = first
        if not is_own:
            result.append(Token("system", body, at_file, at_line, False))
        else:
            number = at_line
            for match in TOKEN.finditer(body):
                kind, piece = match.lastgroup, match.group()
                if kind == "delimiter":
                    kind = "string"
                result.append(Token(kind, piece, at_file, number, True))
                number += piece.count("\n")
        stretch.clear()

    def refuse_foreign(file, line, own, found):
        """The toolkit may be installed: its libraries are found and still are for nvcc. A folder of the program may be
        called cuda/ or cub/, too."""
        include = INCLUDE.match(source_line(file, line)) if own else None
        what = foreign_header(include[1]) if include else None
        is_own = what and '"' in include[0] and found.startswith(str(Path(file).parent)) and found.endswith(include[1])
        if what and not is_own:
            raise Unsupported(file, line, f"{what} is not supported (it includes <{include[1]}>)")

    for row in lines:
        marker = MARKER.match(row) if row.startswith("#") else None
        if marker:
            found = marker[2].replace('\\"', '"').replace("\\\\", "\\")
            refuse_foreign(file, line, own, found)
            end_stretch()
            line, file = int(marker[1]), found
            own = "3" not in marker[3].split() and not file.startswith(("<", *OWN))
            result.append(Token("marker", row + "\n", file, line, False))
            first = (file, line, own)
        else:
            stretch.append(row)
            line += 1
    end_stretch()
    return result


class Rewriter:
    def __init__(self, text, traced):
        self.tokens = tokens_of(text)
        self.traced = traced
        self.red_zones = 0
        self.function = None  # where the body under way begins
        self.dynamic = {}  # the first extern __shared__ name of each
        self.variables = 0
        self.assemblies = 0
        self.braces, self.opened = [0], 0  # those that are open, by number
        self.shared_names = []  # (brace, name) of the function's __shared__ variables
        self.attributes = {}  # in front of a kernel, by where they end
        # All blocks of a cooperative launch or a cluster share a thread's storage, and a descriptor of wgmma reaches
        # the block's memory alone: there the variables lie elsewhere.
        self.cooperative = any(t.own and (t.text in COOPERATIVE or t.kind == "string" and "wgmma.mma" in t.text)
                               for t in self.tokens)
        self.captures = any(t.own and t.text == "cudaStreamBeginCapture" for t in self.tokens)
        # Indices of what counts: neither spaces nor line markers nor system headers.
        self.solid = [i for i, t in enumerate(self.tokens) if t.own and t.kind not in ("space", "marker")]
        self.before = {}  # text put in front of a token
        self.after = {}   # ... and behind it

    # ---- tokens, by their position among the solid ones ----
    def token(self, at):
        return self.tokens[self.solid[at]] if 0 <= at < len(self.solid) else Token("other", "", "", 0, True)

    def text(self, at):
        return self.token(at).text

    def put_before(self, at, text):
        self.before[self.solid[at]] = text + self.before.get(self.solid[at], "")

    def put_after(self, at, text):
        self.after[self.solid[at]] = self.after.get(self.solid[at], "") + text

    def erase(self, first, last=None):
        for at in range(first, (first if last is None else last) + 1):
            self.token(at).text = ""

    def unsupported(self, at, what):
        token = self.token(at)
        raise Unsupported(token.file, token.line, what)

    def match(self, at, step=1):
        """The bracket that closes (step 1) or opens (step -1) the one at `at`."""
        depth = 0
        opens, closes = (OPENING, CLOSING) if step == 1 else (CLOSING, OPENING)
        while 0 <= at < len(self.solid):
            text = self.text(at)
            if len(text) == 1 and text in opens:
                depth += 1
            elif len(text) == 1 and text in closes:
                depth -= 1
                if depth == 0:
                    return at
            at += step
        self.unsupported(min(max(at, 0), len(self.solid) - 1), "a bracket without its partner")

    def match_angle(self, at, step=1):
        """The `>` that closes (step 1) or the `<` that opens (step -1) a list of template arguments; None if there is
        none."""
        depth = 0
        inner, ends = (tuple(OPENING), (";", "")) if step == 1 else (tuple(CLOSING), (";", "{"))
        while 0 <= at < len(self.solid):
            text = self.text(at)
            if text in ends:
                return None
            if text in inner:
                at = self.match(at, step)
            elif text == "<" or text == ">" and (step == 1 or self.text(at - 1) != "-"):
                depth += step if text == "<" else -step
                if depth == 0:
                    return at
            at += step
        return None

    # ---- launches ----
    def launch_operand(self, at):
        """Where the expression begins that ends before the `<<<` at `at`."""
        begin = at
        while True:
            last = begin - 1
            if self.text(last) == ">":
                last = self.match_angle(last, -1)
                if last is None:
                    self.unsupported(at, "a launch whose kernel cannot be told")
                last -= 1
            while self.text(last) in (")", "]"):
                opening = self.match(last, -1)
                last = opening - 1
                if self.token(last).kind != "name" and self.text(last) not in (")", "]"):
                    return opening  # an expression in parentheses
                if self.text(last) == "return":
                    return opening
            if self.token(last).kind != "name":
                self.unsupported(at, "a launch whose kernel cannot be told")
            begin = last
            if self.text(begin - 1) == "template":
                begin -= 1
            if self.text(begin - 1) not in ("::", ".", "->"):
                return begin
            begin -= 1
            if self.text(begin) == "::" and self.token(begin - 1).kind != "name" \
                    and self.text(begin - 1) != ">":
                return begin  # ::kernel
            if self.text(begin - 1) in ("return", "else", "do"):
                return begin

    def launch(self, at):
        token = self.token(at)
        begin = self.launch_operand(at)
        end = at + 1
        while not (self.text(end) == ">" and self.text(end + 1) == ">" and self.text(end + 2) == ">"):
            text = self.text(end)
            if text in ("(", "[", "{"):
                end = self.match(end)
            elif text in ("", ";", "}", ")"):
                self.unsupported(at, "a <<< without its >>>")
            end += 1
        if self.text(end + 3) != "(":
            self.unsupported(at, "a launch without arguments in parentheses")
        file = token.file.replace("\\", "\\\\").replace('"', '\\"')
        # The node of a graph lives longer than a pointer to a kernel. What is indexed may not be copied.
        copies = "=" if self.captures or begin == at - 1 else "&"
        self.put_before(begin, f'{RUNTIME}launch_at("{file}", {token.line}, '
                               f"[{copies}](const auto&... cookbook_arguments) {UNTRACED} {{ ")
        token.text = "(cookbook_arguments...); }).with("
        self.erase(end, end + 2)
        self.put_after(end + 2, ")")
        # NULL is an integer for a template.
        argument, closing = end + 4, self.match(end + 3)
        while argument < closing:
            if self.text(argument) == "__null":
                self.token(argument).text = "nullptr"
            argument += 1

    # ---- kernels and variables ----
    def declarator(self, at):
        """From a word such as __device__ at `at`: ("function", its `(`), ("variable", what ends its name)."""
        at += 1
        start, seen_operator = at, False
        while True:
            text = self.text(at)
            if text in ("__attribute__", *ALIGNMENTS, "decltype", "__declspec", "noexcept", "__launch_bounds__",
                        "__cluster_dims__"):
                at = self.match(at + 1) + 1
                continue
            if text == "[" and self.text(at + 1) == "[":
                at = self.match(at) + 1
                continue
            if text == "operator":
                seen_operator = True
            if text == "<" and not seen_operator:
                close = self.match_angle(at)
                at = close + 1 if close is not None else at + 1
                continue
            if text == "(":
                if seen_operator and self.text(at - 1) == "operator":
                    at += 2
                    continue
                return "function", at
            if text in ("", ";", "{", "}", ",", ")") or (text in ("=", "[") and not seen_operator):
                # `[=] __device__ { ... }`, a lambda without parameters
                if text == "{" and (at == start or self.text(start - 2) == "]"):
                    return "function", at
                return "variable", at
            at += 1

    def kernel(self, at):
        kind, opening = self.declarator(at)
        if kind != "function":
            self.unsupported(at, "__global__ in front of what is no function")
        body = self.match(opening) + 1
        while self.text(body) in ("noexcept", "__attribute__"):
            body = self.match(body + 1) + 1 if self.text(body + 1) == "(" else body + 1
        if self.text(body) == "{":
            said = self.attributes.get(at, {})
            for i in range(at, opening):
                said = said | self.attribute(i)
            most, cluster = said.get("__launch_bounds__", "0"), said.get("__cluster_dims__", "0")
            self.put_after(body, f" if ({RUNTIME}asking) {{ if ({RUNTIME}answer({most}, {cluster})) return; }} ")
        return opening

    def first_argument(self, opening):
        """Where the first argument begins and ends, from the `(` at `opening`."""
        end, close = opening + 1, self.match(opening)
        while end < close and self.text(end) != ",":
            end = self.match(end) + 1 if self.text(end) in ("(", "[", "{") else end + 1
        return opening + 1, end - 1

    def attribute(self, at):
        """{name: text} of the threads of the __launch_bounds__(...) at `at`, or all numbers of __cluster_dims__(...)."""
        name = self.text(at)
        if name not in ATTRIBUTES or self.text(at + 1) != "(":
            return {}
        first, last = self.first_argument(at + 1)
        if name == "__cluster_dims__":  # all dimensions
            first, last = at + 2, self.match(at + 1) - 1
        return {name: " ".join(self.text(i) for i in range(first, last + 1))}

    def allocation(self, at):
        """The runtime learns what the buffer is called: `d_x` of `cudaMalloc((void**)&d_x, n)`."""
        if self.text(at + 1) != "(":
            return
        first, last = begin, end = self.first_argument(at + 1)
        if first > last:
            return
        while True:  # without casts, parentheses around all of it, and &
            if self.text(begin).endswith("_cast") and self.text(begin + 1) == "<":
                begin = (self.match_angle(begin + 1) or begin) + 1
            elif self.text(begin) == "(" and self.match(begin) == end:
                begin, end = begin + 1, end - 1
            elif self.text(begin) == "(":
                begin = self.match(begin) + 1
            elif self.text(begin) == "&":
                begin += 1
            else:
                break
        name = "".join(self.text(i) for i in range(begin, end + 1)).replace("\\", "\\\\").replace('"', '\\"')
        self.put_before(first, f"{RUNTIME}AnyPointer(")
        self.put_after(last, f', "{name}")')

    def heap(self, at):
        """malloc(), free(), new and delete of device code use the heap of kernels."""
        text = self.text(at)
        if text == "new":
            if self.text(at + 1) != "(":  # no placement
                self.token(at).text = f"new ({RUNTIME}Heap()) "
        elif self.text(at + 1) == "(" and self.text(at - 1) not in (".", "->"):
            if self.text(at - 1) == "::":
                self.erase(at - 2 if self.text(at - 2) == "std" else at - 1, at - 1)
            self.token(at).text = f"{RUNTIME}heap_{text}"

    def declaration_start(self, at):
        while self.text(at - 1) not in (";", "{", "}", "", ")", ":"):
            at -= 1
        return at

    def declaration_end(self, at):
        while self.text(at) != ";":
            text = self.text(at)
            if text in ("(", "[", "{"):
                at = self.match(at)
            elif text == "":
                self.unsupported(len(self.solid) - 1, "a declaration without its end")
            at += 1
        return at

    def declarator_names(self, first, end):
        """Where the names of `first ... ;` at `end` are: the last name before `[`, `=`, `{`, `,` or `;`."""
        names, name, taken, at = [], None, False, first
        while at <= end:
            text = self.text(at)
            if text in ("__attribute__", *ALIGNMENTS, "decltype"):
                at = self.match(at + 1)
            elif text == "<" and not taken:
                at = self.match_angle(at) or at
            elif text in (",", ";"):
                if name is not None:
                    names.append(name)
                name, taken = None, False
            elif text in ("=", "[", "{", "("):
                taken = True
                if text != "=":
                    at = self.match(at)
            elif self.token(at).kind == "name" and not taken:
                name = at
            at += 1
        return names

    def variable(self, at, scope):
        """Tells the runtime about a __device__, __managed__ or __constant__ variable."""
        start, end = self.declaration_start(at), self.declaration_end(at)
        words = [self.text(i) for i in range(start, end)]
        if scope == "class" and "__constant__" in words and "static" not in words:
            self.put_after(end, ' static_assert(false, "__constant__ of a member, which nvcc refuses: declare the variable '
                                'outside of the class");')
        if scope != "namespace" or "extern" in words or "template" in words:
            return
        if "constexpr" in words:
            return
        kind = "constant" if "__constant__" in words or "const" in words else \
            "managed" if "__managed__" in words else "device"
        names = [self.text(i) for i in self.declarator_names(at + 1, end)]
        for name in names:
            self.variables += 1
            self.put_after(end, f" static {RUNTIME}DeviceVariable cookbook_variable_{self.variables}("
                                f'(const void*)&{name}, sizeof({name}), "{name}", {RUNTIME}DeviceVariable::{kind});')
        if self.traced and "inline" not in words and self.text(start) != "[":
            # What lies around them in the sections of variables without a value, with one, and of constants.
            self.put_before(start, self.zones() + "__attribute__((no_reorder)) ")
            self.put_after(end, self.zones())

    def zones(self):
        self.variables += 1
        name = f"cookbook_zone_{self.variables}"
        kept = f"[{RED_ZONE_BYTES}] __attribute__((used, no_reorder))"
        seen = f"{name}_{hashlib.sha256(self.tokens[0].file.encode()).hexdigest()[:16]}"  # static ones lie elsewhere
        return (f" static char {name}a{kept}; char {seen}{kept}; static char {name}b{kept} = {{1}}; "
                f"static const char {name}c{kept} = {{1}}; "
                f"static {RUNTIME}RedZones {name}({{{name}a, {seen}, {name}b, {name}c}}, {RED_ZONE_BYTES}); ")

    # ---- shared memory ----
    def count_brace(self, text):
        self.opened += 1
        if text == "{":
            self.braces.append(self.opened)
        elif len(self.braces) > 1:
            self.braces.pop()

    def limited_names(self, start, end, scope):
        """ptxas refuses more than 48 KB of __shared__ variables: of a function, those seen at this place."""
        if scope != "function":
            return []
        self.shared_names = [entry for entry in self.shared_names if entry[0] in self.braces]
        self.shared_names += [(self.braces[-1], self.text(i)) for i in self.declarator_names(start, end)]
        return [name for _, name in self.shared_names]

    def shared(self, at, scope):
        start, end = self.declaration_start(at), self.declaration_end(at)
        words = {self.text(i) for i in range(start, end)}
        if "extern" in words:
            self.dynamic_shared(start, end, scope)
            return
        names, declared = self.limited_names(start, end, scope), self.declarator_names(start, end)
        for i in range(start, end):
            if self.text(i) in ("static", "__shared__", "__device__", "inline"):
                self.erase(i)
            elif self.text(i) == "alignas":
                self.token(i).text = "__align__"  # C++ wants alignas in front of all
        self.red_zones += 1
        if self.cooperative:
            if scope != "function":
                self.unsupported(at, "a __shared__ variable outside of functions is not supported in a program "
                                 "with cooperative launches")
            self.put_before(start, "typedef ")
            for i in declared:
                name, number = self.text(i), self.red_zones
                kind = f"cookbook_shared_{number}_{name}"
                self.token(i).text = kind
                self.put_after(end, f" {kind}& {name} = *({kind}*){RUNTIME}cooperative_shared("
                                    f'"{kind}", sizeof({kind}), alignof({kind}));')
        elif self.traced:
            self.put_before(start, f"static thread_local char cookbook_red_zone_{self.red_zones}"
                                   f"[{RED_ZONE_BYTES}] __attribute__((used, aligned(128))); "
                                   "static thread_local __attribute__((used, aligned(128))) ")
        else:  # as nvcc aligns arrays in practice: programs read them in vectors
            self.put_before(start, "static thread_local __attribute__((aligned(16))) ")
        if names:
            total = " + ".join(f"sizeof({name})" for name in names)
            self.put_after(end, f' static_assert({total} <= 49152, "the __shared__ variables have more than 48 KB, '
                                'which nvcc refuses: use extern __shared__ and cudaFuncSetAttribute()");')

    def dynamic_shared(self, start, end, scope):
        """`extern __shared__ T name[];` -> `T* name = dynamic_shared<T>();`, with further extents in T."""
        i, kept, name, extents = start, [], None, []
        while i < end:
            text = self.text(i)
            if text in ("__attribute__", *ALIGNMENTS):
                i = self.match(i + 1)
            elif text in ("extern", "__shared__", "__device__"):
                pass
            elif text == "[":
                close = self.match(i)
                extents.append(" ".join(self.text(k) for k in range(i, close + 1)))
                i = close
            elif text == "<" and self.match_angle(i):
                close = self.match_angle(i)
                kept += [self.text(k) for k in range(i, close + 1)]
                i = close
            elif text == ",":
                self.unsupported(i, "two extern __shared__ arrays in one declaration")
            else:
                kept.append(text)
            i += 1
        name = kept.pop() if kept else ""
        element = " ".join(kept) + "".join(extents[1:] if extents else [])
        if not extents and scope != "function":
            self.unsupported(start, "an extern __shared__ variable that is no array")
        self.erase(start, end - 1)
        if not extents:
            text = f"auto& {name} = *{RUNTIME}dynamic_shared<{element}>()"
        elif scope == "function":
            token = self.token(start)
            place = f"{token.file}:{token.line}:{name}".replace("\\", "\\\\").replace('"', '\\"')
            text = f'auto* const {name} = {RUNTIME}dynamic_shared<{element}, "{place}">()'
            first = self.dynamic.setdefault(self.function, name)
            if first != name:
                NOTES.add(f"{Path(token.file).name}:{token.line}: extern __shared__ '{first}' and '{name}' start at the "
                          "same address: declare one, and give the other an address within it")
        else:
            text = f"static const {RUNTIME}DynamicShared<{element}> {name}{{}}"
        self.put_before(end, text)

    # ---- the whole text ----
    def scope_of_brace(self, at):
        """What the `{` at `at` opens: namespace, class, function, or inner, which is none of its own."""
        head, i = [], at - 1
        while i >= 0 and self.text(i) not in (";", "{", "}"):
            opening = self.match(i, -1) if self.text(i) == ")" else i
            if self.text(opening - 1) == "__align__":
                i = opening - 1
            else:
                head.append(self.text(i))
            i -= 1
        head = without_template_parameters(head[::-1])
        if "namespace" in head:
            return "namespace"
        if head[:1] == ["extern"] and len(head) == 2:
            return "namespace"
        if any(word in head for word in ("class", "struct", "union", "enum")) and ")" not in head[-2:] \
                and "=" not in head and head[-1:] != ["("]:
            return "class"
        return "function"

    def walk(self):
        """Yields where each token is, in order."""
        scopes = []  # (scope, code)
        words = set()  # of the declaration so far
        for at in range(len(self.solid)):
            token = self.token(at)
            text = token.text
            scope, code = scopes[-1] if scopes else ("namespace", None)
            yield Where(at, token, scope, code)
            if text == "{":
                what = self.scope_of_brace(at) if scope != "function" else "function"
                if what == "function":
                    self.function = at if scope != "function" else self.function
                    code = code or ({"__device__": "device", "__host__": None, "": None}.get(
                        " ".join(sorted(words)), "both"))
                    words = set()
                scopes.append((what, code))
            elif text == "}":
                if scopes:
                    scopes.pop()
            elif scope != "function" and text == ";":
                words = set()
            elif scope != "function" and text in ("__global__", "__device__", "__host__"):
                words.add("__device__" if text == "__global__" else text)

    def rewrite(self):
        for where in self.walk():
            at, token, text = where.at, where.token, where.token.text
            if text in ("{", "}"):
                self.count_brace(text)
            elif token.kind == "launch":
                self.launch(at)
            elif text in ("::", ".", "->") and where.scope == "function":
                self.member_template(at)
            elif token.kind == "name":
                self.name(at, text, where.scope)
                if where.code and text in ("asm", "__asm__"):
                    self.inline_ptx(at)
                if where.code == "device" and text in ("malloc", "free", "new"):
                    self.heap(at)
                if where.code == "device" and text == "cudaDeviceSynchronize":
                    self.unsupported(at, f"{text}() in a kernel, which CUDA 12 removed, is not supported")
        for at in range(len(self.solid)):
            if self.text(at) == "__align__":
                self.put_after(self.match(at + 1), "))")
                self.token(at).text = "__attribute__((aligned"
        for token in self.tokens:
            if token.own and token.kind == "name" and token.text in WORDS:
                token.text = NOINLINE if token.text in ("__global__", "__noinline__") else ""
        if self.cooperative:
            self.tokens[-1].text += f"\nstatic {RUNTIME}CooperativeProgram cookbook_cooperative;\n"
        return "".join(self.before.get(i, "") + token.text + self.after.get(i, "")
                       for i, token in enumerate(self.tokens))

    def member_template(self, at):
        """nvcc's front end takes `A<T>::f<n>(x)` and `a.f<n>(x)` of a dependent type without the word template."""
        if self.text(at) == "::" and self.text(at - 1) != ">" or self.token(at + 1).kind != "name" or self.text(at + 2) != "<":
            return
        end = self.match_angle(at + 2)
        inner = [self.token(i) for i in range(at + 3, end or 0)]
        if inner and self.text(end + 1) == "(" and all(t.kind in ("name", "number") or t.text in (",", "::") for t in inner):
            self.put_after(at, " template ")

    def name(self, at, text, scope):
        if text == "__noinline__" and self.text(at - 1) == "(":
            self.token(at).text = "noinline"  # in __attribute__((...))
        elif text in WORDS:
            if text == "__global__":
                self.kernel(at)
            elif text == "__shared__":
                self.shared(at, scope)
            elif text in ("__device__", "__constant__", "__managed__"):
                kind, _ = self.declarator(at)
                # Of `__device__ __constant__` the last word tells.
                if kind == "variable" and self.text(at + 1) not in WORDS and "__shared__" not in (
                        self.text(i) for i in range(self.declaration_start(at), at)):
                    self.variable(at, scope)
        elif text in ATTRIBUTES and self.text(at + 1) == "(":
            end = self.match(at + 1)
            self.attributes[end + 1] = self.attributes.get(at, {}) | self.attribute(at)
            self.erase(at, end)
        elif text in ALLOCATIONS:
            self.allocation(at)
        elif text in ALGORITHMS and self.text(at - 1) == "::" and self.text(at - 2) == "thrust" and self.text(at + 1) == "(":
            token = self.token(at)
            file = token.file.replace("\\", "\\\\").replace('"', '\\"')
            self.put_after(at + 1, f'::thrust::detail::Here("{file}", {token.line}), ')
        elif text in ("cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaFuncSetAttribute",
                      "cudaFuncSetCacheConfig", "cudaFuncGetAttributes"):
            self.launch_function(at)
        elif text == "func" and self.text(at - 1) in (".", "->") and [self.text(at + i) for i in (1, 2, 3, 4, 5)] == \
                ["=", "(", "void", "*", ")"]:
            self.erase(at + 2, at + 5)  # of a cudaKernelNodeParams: the kernel keeps its type
        else:
            for pattern, what in UNSUPPORTED:
                if pattern.fullmatch(text):
                    self.unsupported(at, f"{what} are not supported ({text})" if what[-1] in "s,"
                                     else f"{what} is not supported ({text})")

    def inline_ptx(self, at):
        """asm("..." : outputs : inputs : clobbers) in device code -> what ptx.py makes of it."""
        opening = at + 1
        while self.text(opening) in ("volatile", "__volatile__", "goto"):
            opening += 1
        if self.text(opening) != "(":
            return
        end = self.match(opening)
        parts = [[]]  # between the colons
        i = opening + 1
        while i < end:
            close = self.match(i) if self.text(i) in ("(", "[", "{") else i
            if self.text(i) == ":":
                parts.append([])
            elif self.text(i) == "::":
                parts += [[], []]
            else:
                parts[-1].append((i, close))
            i = close + 1
        template = "".join(string_value(self.text(i)) for i, _ in parts[0])
        outputs, inputs = (self.asm_operands(parts[k]) if len(parts) > k else [] for k in (1, 2))
        clobbers = [string_value(self.text(i)) for i, _ in parts[3]] if len(parts) > 3 else None
        self.assemblies += 1
        text = ptx.translate(template, outputs, inputs, clobbers if len(parts) < 2 else clobbers or [], self.assemblies)
        self.erase(at, end)
        self.put_before(at, text)

    def asm_operands(self, part):
        """"r"(x), "l"(y) -> [("r", "x"), ("l", "y")]"""
        found = []
        for i, close in part:
            if self.text(i) == "(" and self.token(i - 1).kind == "string":
                tokens = self.tokens[self.solid[i] + 1:self.solid[close]]
                expression = "".join(token.text for token in tokens if token.kind != "marker").replace("\n", " ")
                found.append((string_value(self.text(i - 1)), expression))
        return found

    def launch_function(self, at):
        """A kernel must keep its type: `(void*)kernel` -> `kernel`."""
        if self.text(at + 1) != "(":
            return
        i, close = at + 2, self.match(at + 1)
        while i < close:
            if self.text(i) == "(" and self.text(i + 1) in ("void", "const") and \
                    {self.text(k) for k in range(i + 1, self.match(i))} <= {"void", "const", "*"}:
                end = self.match(i)
                self.erase(i, end)
                i = end
            elif self.text(i) in ("reinterpret_cast", "static_cast") and self.text(i + 1) == "<":
                end = self.match_angle(i + 1)
                if end and {self.text(k) for k in range(i + 2, end)} <= {"void", "const", "*"}:
                    self.erase(i, end)
                    i = end
            elif self.text(i) == ",":
                return  # the kernel is the first argument; of cudaFuncGetAttributes it needs no cast
            i += 1


def rewrite(text, traced):
    """The rewritten text. Raises Unsupported."""
    return Rewriter(text, traced).rewrite()
