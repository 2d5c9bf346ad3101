# SPDX-License-Identifier: MIT
"""Inline PTX -> C++ on the SIMT backend's units (docs/check.md, "Inline PTX").

translate() turns one `asm` statement into one C++ statement. ROWS is the table: which instruction is which function
of tools/check/program/ptx.hpp, or which expression. A register is a variable that holds bits; the type in an
instruction's name says how to read them. What no row answers is a call that g++ refuses if it is compiled.
"""
import re

PTX = "::cookbook::simt::ptx::"
TYPES = {"b8": "uint8_t", "u8": "uint8_t", "s8": "int8_t", "b16": "uint16_t", "u16": "uint16_t", "s16": "int16_t",
         "b32": "uint32_t", "u32": "uint32_t", "s32": "int32_t", "b64": "uint64_t", "u64": "uint64_t",
         "s64": "int64_t", "f16": "__half", "f16x2": "__half2", "bf16": "__nv_bfloat16", "bf16x2": "__nv_bfloat162",
         "f32": "float", "f64": "double", "tf32": "uint32_t", "pred": "bool", "b128": "unsigned __int128"}
BITS = {"8": "uint16_t", "16": "uint16_t", "32": "uint32_t", "64": "uint64_t", "128": "unsigned __int128", "pred": "bool"}
CONSTRAINTS = {"h": "uint16_t", "r": "uint32_t", "l": "uint64_t", "f": "uint32_t", "d": "uint64_t"}
SPECIAL = {
    "laneid": "::cookbook::simt::lane_id()", "warpid": f"{PTX}thread_rank() / 32",
    "nwarpid": f"({PTX}block_threads() + 31) / 32", "smid": f"{PTX}block_number() % {PTX}sm_count()",
    "nsmid": f"{PTX}sm_count()", "gridid": "0", "clock": "clock()", "clock64": "clock64()",
    "globaltimer": "clock64()", "globaltimer_lo": "clock64()",
    "lanemask_eq": "(1u << ::cookbook::simt::lane_id())", "lanemask_lt": "((1u << ::cookbook::simt::lane_id()) - 1)",
    "lanemask_le": "(2u << ::cookbook::simt::lane_id()) - 1", "lanemask_gt": "~((2u << ::cookbook::simt::lane_id()) - 1)",
    "lanemask_ge": "~((1u << ::cookbook::simt::lane_id()) - 1)",
    "cluster_ctarank": "::cookbook::cluster_block_rank()", "cluster_nctarank": "::cookbook::cluster_size()",
} | {f"{name}.{axis}": f"{variable}.{axis} {operator} ::cookbook::simt::cluster_shape().{axis}" for axis in "xyz"
     for name, variable, operator in (("clusterid", "blockIdx", "/"), ("nclusterid", "gridDim", "/"), ("cluster_ctaid", "blockIdx", "%"))
} | {f"cluster_nctaid.{axis}": f"::cookbook::simt::cluster_shape().{axis}" for axis in "xyz"
} | {f"{name}.{axis}": f"{variable}.{axis}" for axis in "xyz" for name, variable in
     (("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"), ("nctaid", "gridDim"))}


class Refused(Exception):
    """The message names the instruction."""


# ---- the text of an asm statement ----

def parse(template, has_operands):
    """The statements of a template: ("reg", type, names), ("label", name), ("do", guard, name, operands)."""
    template = re.sub(r"//[^\n]*|/\*.*?\*/", " ", template, flags=re.DOTALL)
    if has_operands:  # an operand is `$0` from here on, and %% is %
        template = re.sub(r"%%|%=|%(\d+)", lambda m: f"${m[1]}" if m[1] else "%" if m[0] == "%%" else "", template)
    at = 0
    while True:
        at += re.match(r"[\s{};]*", template[at:]).end()  # scopes: each name is one register
        if at == len(template):
            return
        label = re.match(r"([\w$%]+)\s*:(?!:)", template[at:])
        if label:
            yield "label", label[1]
            at += label.end()
            continue
        end = template.find(";", at)
        if end < 0:
            raise Refused(f"'{template[at:].strip()}' without its semicolon")
        yield statement(template[at:end].strip())
        at = end + 1


def statement(text):
    declared = re.fullmatch(r"\.reg\s*\.(pred|b128|[busf](?:8|16|32|64))\s+(.*)", text, re.DOTALL)
    if declared:
        names = []
        for name in re.split(r"\s*,\s*", declared[2].strip()):
            many = re.fullmatch(r"(.*)<(\d+)>", name)
            names += [f"{many[1]}{i}" for i in range(int(many[2]))] if many else [name]
        return "reg", BITS[declared[1].lstrip("busf") if declared[1] != "pred" else "pred"], names
    found = re.fullmatch(r"(?:@(!?)\s*([\w$%]+)\s+)?([a-z][\w.:]*(?:\$\d+[\w.:]*)*)\s*(.*)", text, re.DOTALL)
    if not found:
        raise Refused(f"'{text}'")
    return "do", (found[2] and (found[1], found[2])), found[3], split(found[4])


def split(text):
    """Operands, at the commas that no bracket holds."""
    found, depth, last = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            found.append(text[last:at].strip())
            last = at + 1
    return found + [text[last:].strip()] if text.strip() else []


# ---- one instruction ----

class Instruction:
    def __init__(self, program, name, operands):
        self.program, self.name, self.operands = program, name, operands
        self.parts = name.split(".")

    def __len__(self):
        return len(self.operands)

    def refuse(self):
        raise Refused(self.name)

    def operand(self, at):
        return self.operands[at] if at < len(self.operands) else self.refuse()

    def read(self, at, kind):
        """The operand as a C++ value of a PTX type."""
        return self.program.read(self.operand(at), TYPES[kind], self)

    def write(self, at, value):
        """operand = value."""
        name = self.operand(at)
        return f"(void)({value})" if name == "_" else f"{PTX}set({self.program.register(name, self)}, {value})"

    def list(self, at):
        text = self.operand(at)
        return split(text[1:-1]) if text.startswith("{") else [text]

    def array(self, at, count):
        """A list of registers as the elements of a braced initialiser."""
        names = self.list(at)
        if len(names) != count:
            self.refuse()
        return ", ".join(self.program.read(name, "uint32_t", self) for name in names)

    def store(self, at, variable):
        """operand {a, b, ...} = variable[0], ..."""
        return "; ".join(f"{PTX}set({self.program.register(name, self)}, {variable}[{i}])"
                         for i, name in enumerate(self.list(at)) if name != "_")

    def memory(self, at, kind="void", space=None):
        """The pointer that [operand] is, in the state space that the instruction names."""
        found = re.fullmatch(r"\[\s*([\w$%]+)\s*(?:\+\s*(-?\w+))?\s*(?:,.*)?\]", self.operand(at), re.DOTALL)
        if not found:
            self.refuse()
        shared = any(part.startswith("shared") for part in self.parts) if space is None else space == "shared"
        # A generic address of 64 bits will do in shared memory, too: its low half is the address there.
        wide = not shared or self.program.is_wide(found[1])
        address = self.program.read(found[1], "uint64_t" if wide else "uint32_t", self)
        offset = f" + {self.program.read(found[2], 'int32_t', self)}" if found[2] else ""
        return f"{PTX}{('wide_shared' if wide else 'shared') if shared else 'generic'}<{kind}>({address}{offset})"

    def tensor_address(self, at):
        """Of [taddr] or [taddr + n], an address of tensor memory."""
        found = re.fullmatch(r"\[\s*([\w$%]+)\s*(?:\+\s*(-?\w+))?\s*\]", self.operand(at))
        if not found:
            self.refuse()
        return " + ".join(self.program.read(name, "uint32_t", self) for name in found.groups() if name)

    def group(self, text):
        """Of `.cta_group::`, which may be an operand of the asm statement."""
        return text if text in ("1", "2") else self.program.read(text, "int32_t", self)

    def coordinates(self, at):
        """Of [map, {x, y}]."""
        found = re.fullmatch(r"\[[^,]*,\s*\{(.*)\}\s*\]", self.operand(at), re.DOTALL)
        return [self.program.read(name, "int32_t", self) for name in split(found[1])] if found else self.refuse()

    def has(self, *words):
        return any(word in self.parts for word in words)


ROWS = []


def row(pattern):
    """The function answers instructions whose whole name matches."""
    def add(function):
        ROWS.append((re.compile(pattern.replace(" ", "")), function))
        return function
    return add


# ---- integers and floating point ----

NUMBER = r"(?P<t>[busf](?:8|16|32|64)|b128|b?f16(?:x2)?|pred)"
EXPRESSIONS = {  # of operands a, b, c of the type T
    "add": "T(a + b)", "sub": "T(a - b)", "and": "T(a & b)", "or": "T(a | b)", "xor": "T(a ^ b)", "div": "T(a / b)",
    "rem": "T(a % b)", "min": "P min(a, b)", "max": "P max(a, b)", "fma": "P fma(a, b, c)", "abs": "P abs(a)",
    "neg": "T(-a)", "not": "P invert(a)", "brev": "P reversed(a)", "sqrt": "sqrt(a)", "rsqrt": "T(1 / sqrt(a))",
    "rcp": "T(1 / a)", "ex2": "exp2(a)", "lg2": "log2(a)", "sin": "sin(a)", "cos": "cos(a)", "tanh": "tanh(a)",
    "copysign": "copysign(b, a)", "mul": "T(a * b)", "mad": "P fma(a, b, c)", "bfi": "P insert(a, b, c, d)",
}
WRAP = {"s16": "u16", "s32": "u32", "s64": "u64"}  # sums and products are the same, and no overflow in C++


def evaluate(one, expression, kind, first=1):
    """The expression with the instruction's sources for a, b, c, d."""
    values = {"T": TYPES[kind], "P ": PTX}
    text = re.sub(r"\bT\b|\bP ", lambda m: values[m[0]], expression)
    return re.sub(r"\b[abcd]\b", lambda m: one.read(first + "abcd".index(m[0]), kind), text)


@row(rf"(add|sub|and|or|xor|div|rem|min|max|fma|abs|neg|not|brev|sqrt|rsqrt|rcp|ex2|lg2|sin|cos|tanh|copysign)"
     rf"(\.(rn|approx|ftz|full))*\.{NUMBER}")
def arithmetic(one, t):
    kind = WRAP.get(t, t) if one.parts[0] in ("add", "sub", "neg") else t
    value = evaluate(one, EXPRESSIONS[one.parts[0]], kind)
    return one.write(0, f"{PTX}flush({value})" if one.has("ftz") else value)


@row(rf"(mul|mad)(\.(rn|ftz|lo))*\.{NUMBER}")
def multiply(one, t):
    kind = WRAP.get(t, t)
    is_float = t.startswith(("f", "bf"))
    return one.write(0, evaluate(one, "T(a * b)" if one.parts[0] == "mul" else "P fma(a, b, c)" if is_float else
                                 "T(a * b + c)", kind))


@row(r"(?P<what>add|sub|mul|fma)(\.(rn|ftz))*\.f32x2")
def two_floats(one, what):
    values = ", ".join(one.read(i, "b64") for i in range(1, len(one)))
    return one.write(0, f"{PTX}two_floats<{PTX}Pair::{what}>({values})")


@row(r"(mul|mad)\.(?P<part>hi|wide)\.(?P<t>[us](16|32|64))")
def multiply_wide(one, part, t):
    wide = f"{t[0]}{2 * int(t[1:])}"
    if part == "wide" and wide not in TYPES:
        one.refuse()
    result = TYPES[wide if part == "wide" else t]
    product = f"{PTX}multiply_{part}({one.read(1, t)}, {one.read(2, t)})"
    added = f" + {one.read(3, wide if part == 'wide' else t)}" if one.parts[0] == "mad" else ""
    return one.write(0, f"{result}({product}{added})")


@row(r"(?P<way>shl|shr)\.(?P<t>[bus](16|32|64))")
def shift(one, way, t):
    return one.write(0, f"{PTX}{way}({one.read(1, t)}, {one.read(2, 'u32')})")


@row(r"(?P<what>popc|clz)\.(?P<t>b(32|64))")
def count(one, what, t):
    return one.write(0, f"{PTX}{what}({one.read(1, t)})")


@row(r"lop3\.b32")
def logic(one):
    return one.write(0, f"{PTX}lop3({', '.join(one.read(i, 'b32') for i in (1, 2, 3, 4))})")


@row(r"prmt\.b32")
def permute(one):
    return one.write(0, f"__byte_perm({', '.join(one.read(i, 'b32') for i in (1, 2, 3))})")


@row(r"bfe\.(?P<t>[us](32|64))")
def extract(one, t):
    return one.write(0, f"{PTX}extract({one.read(1, t)}, {one.read(2, 'u32')}, {one.read(3, 'u32')})")


@row(r"bfi\.(?P<t>b(32|64))")
def insert(one, t):
    return one.write(0, f"{PTX}insert({one.read(1, t)}, {one.read(2, t)}, {one.read(3, 'u32')}, {one.read(4, 'u32')})")


@row(rf"setp\.(?P<compare>eq|ne|lt|le|gt|ge|lo|ls|hi|hs)(\.(?P<and_>and|or|xor))?(\.ftz)?\.{NUMBER}")
def compare(one, compare, and_, t):
    sign = {"eq": "==", "ne": "!=", "lt": "<", "lo": "<", "le": "<=", "ls": "<=", "gt": ">", "hi": ">"}.get(compare, ">=")
    text = f"({one.read(1, t)} {sign} {one.read(2, t)})"
    if and_:
        text += f" {dict(zip(('and', 'or', 'xor'), '&|^'))[and_]} {one.read(3, 'pred')}"
    return one.write(0, text)


@row(rf"selp\.{NUMBER}")
def select(one, t):
    return one.write(0, f"{one.read(3, 'pred')} ? {one.read(1, t)} : {one.read(2, t)}")


@row(rf"mov\.{NUMBER}")
def move(one, t):
    if one.operand(0).startswith("{"):
        return f"{PTX}unpack({one.read(1, t)}, " + \
            ", ".join(one.program.register(name, one) for name in one.list(0)) + ")"
    if one.operand(1).startswith("{"):
        width = int(t[1:]) // len(one.list(1))
        if width not in (16, 32, 64):
            one.refuse()
        parts = ", ".join(one.program.read(name, TYPES[f"b{width}"], one) for name in one.list(1))
        return one.write(0, f"{PTX}pack<{TYPES[t]}>({parts})")
    return one.write(0, one.read(1, t))


@row(r"cvt(\.(?P<round>rn|rz|rni|rzi|rmi|rpi))?(\.ftz)?(\.sat)?\.(?P<to>[usf](8|16|32|64)|b?f16)\."
     r"(?P<t>[usf](8|16|32|64)|b?f16)")
def convert(one, round, to, t):
    if one.has("sat") or round == "rz" and "f" in to:
        one.refuse()
    return one.write(0, f"{PTX}convert<{TYPES[to]}>({one.read(1, t)}, {PTX}Round::{round or 'rn'})")


@row(r"cvt\.rn\.(?P<to>b?f16x2)\.f32")
def convert_pair(one, to):
    pack = "__floats2half2_rn" if to == "f16x2" else "__floats2bfloat162_rn"
    return one.write(0, f"{pack}({one.read(2, 'f32')}, {one.read(1, 'f32')})")


@row(r"cvt\.rna\.tf32\.f32")
def convert_tf32(one):
    return one.write(0, f"::cookbook::to_tf32({one.read(1, 'f32')})")


# ---- memory ----

ORDER = r"(\.(?P<order>weak|relaxed|acquire|release|volatile))?(\.(?P<scope>cta|cluster|gpu|sys))?"
SPACE = r"(\.(global|shared(::cta|::cluster)?|const|param|local))?"
CACHE = r"(\.(nc|ca|cg|cs|lu|cv|wb|wt|L1::\w+|L2::\w+(::\w+)?))*"
VALUE = r"(\.v(?P<count>[248]))?\.(?P<t>[busf](8|16|32|64)|b128)"


@row(rf"ld{ORDER}{SPACE}{ORDER.replace('order', 'order2').replace('scope', 'scope2')}{CACHE}{VALUE}")
def load(one, order, scope, order2, scope2, count, t):
    order, pointer = order or order2, one.memory(1, TYPES[t])
    if order == "release" or count and order == "acquire":
        one.refuse()
    if order == "acquire":
        return one.write(0, f"{PTX}load_acquire({pointer})")
    if count:
        return f"{TYPES[t]} loaded[{count}]; {PTX}load<{count}>(loaded, {pointer}); {one.store(0, 'loaded')}"
    return one.write(0, f"{PTX}load{'_volatile' if order in ('volatile', 'relaxed') else ''}({pointer})")


@row(rf"st{ORDER}{SPACE}{ORDER.replace('order', 'order2').replace('scope', 'scope2')}{CACHE}{VALUE}")
def store(one, order, scope, order2, scope2, count, t):
    order, pointer = order or order2, one.memory(0, TYPES[t])
    if order == "acquire" or count and order == "release":
        one.refuse()
    values = ", ".join(one.program.read(name, TYPES[t], one) for name in one.list(1))
    if count:
        return f"const {TYPES[t]} stored[{count}] = {{{values}}}; {PTX}store<{count}>({pointer}, stored)"
    word = {"release": "_release", "volatile": "_volatile", "relaxed": "_volatile"}.get(order, "")
    return f"{PTX}store{word}({pointer}, {values})"


ATOMICS = {"add": "atomicAdd", "min": "atomicMin", "max": "atomicMax", "and": "atomicAnd", "or": "atomicOr",
           "xor": "atomicXor", "exch": "atomicExch", "cas": "atomicCAS", "inc": "atomicInc", "dec": "atomicDec"}


@row(rf"(?P<base>atom|red)(\.(?P<order>relaxed|acquire|release|acq_rel))?(\.(?P<scope>cta|cluster|gpu|sys))?{SPACE}"
     r"(\.async)?\.(?P<op>add|min|max|and|or|xor|exch|cas|inc|dec)(\.noftz)?\.(?P<t>[bus](32|64)|f(32|64)|b?f16x2)")
def atomic(one, base, order, scope, op, t):
    first = 1 if base == "atom" else 0
    kind = {"uint64_t": "unsigned long long", "int64_t": "long long"}.get(TYPES[t], TYPES[t])
    kind = "unsigned long long" if t == "s64" and op == "add" else kind
    values = ", ".join(f"{kind}({one.read(i, t)})" for i in range(first + 1, len(one)))
    call = f"{ATOMICS[op]}{'_block' if scope == 'cta' else ''}({one.memory(first, kind)}, {values})"
    before = "__threadfence(); " if order in ("release", "acq_rel") else ""
    after = "; __threadfence()" if order in ("acquire", "acq_rel") else ""
    return before + (one.write(0, call) if base == "atom" else call) + after


@row(r"(?P<base>prefetch|prefetchu|discard|applypriority)(\.global)?\.L\d.*|cp\.async\.bulk\.prefetch\..*")
def nothing(one, base):
    return ""


@row(r"prefetch(\.(param|const))?\.tensormap")
def prefetch_map(one):
    return f"::cookbook::tma_prefetch_descriptor({one.memory(0, 'const ::cookbook::TensorMap')})"


@row(r"cvta(?P<to>\.to)?(\.(?P<space>shared(::cta)?|global|local|const|param))\.u(32|64)")
def convert_address(one, to, space):
    value = one.read(1, "u64")
    if not space.startswith("shared"):
        return one.write(0, value)
    return one.write(0, f"__cvta_generic_to_shared({PTX}generic<void>({value}))" if to else
                     f"reinterpret_cast<uint64_t>({PTX}shared<void>({one.read(1, 'u32')}))")


@row(r"mapa(?P<space>\.shared::cluster)?\.u(32|64)")
def map_address(one, space):
    pointer = f"{PTX}shared<void>({one.read(1, 'u32')})" if space else f"{PTX}generic<void>({one.read(1, 'u64')})"
    mapped = f"::cookbook::map_shared({pointer}, {one.read(2, 'u32')})"
    return one.write(0, f"__cvta_generic_to_shared({mapped})" if space else f"reinterpret_cast<uint64_t>({mapped})")


@row(r"createpolicy\.(fractional|range)\..*")
def policy(one):
    return one.write(0, "uint64_t{0}")  # L2 is not modelled


# ---- warps and blocks ----

@row(r"shfl\.sync\.(?P<how>up|down|bfly|idx)\.b32")
def shuffle(one, how):
    d, _, p = one.operand(0).partition("|")
    one.operands[0] = d
    call = f"{PTX}shuffle_{how}({', '.join(one.read(i, 'b32') for i in (4, 1, 2, 3))})"
    if not p:
        return one.write(0, call)
    return f"{one.write(0, call)}; {PTX}set({one.program.register(p, one)}, " \
        f"{PTX}shuffle_{how}_exists({one.read(2, 'b32')}, {one.read(3, 'b32')}))"


@row(r"vote\.sync\.(?P<how>all|any|uni|ballot)\.(pred|b32)")
def vote(one, how):
    if how == "ballot":
        return one.write(0, f"__ballot_sync({one.read(2, 'b32')}, {one.read(1, 'pred')})")
    return one.write(0, f"__{how}_sync({one.read(2, 'b32')}, {one.read(1, 'pred')}) != 0")


@row(r"activemask\.b32")
def active(one):
    return one.write(0, "__activemask()")


@row(r"redux\.sync\.(?P<op>add|min|max|and|or|xor)\.(?P<t>[bus]32)")
def reduce(one, op, t):
    return one.write(0, f"__reduce_{op}_sync({one.read(2, 'b32')}, {one.read(1, t)})")


@row(r"match\.any\.sync\.(?P<t>b(32|64))")
def match(one, t):
    return one.write(0, f"__match_any_sync({one.read(2, 'b32')}, {one.read(1, t)})")


@row(r"elect\.sync")
def elect(one):
    d, _, p = one.operand(0).partition("|")
    leader = "" if d == "_" else \
        f"; {PTX}set({one.program.register(d, one)}, uint32_t(__builtin_ctz({one.read(1, 'b32')})))"
    return f"{PTX}set({one.program.register(p, one)}, ::cookbook::elect_one()){leader}"


@row(r"(bar(\.cta)?|barrier(\.cta)?)\.(?P<what>sync|arrive)(\.aligned)?")
def barrier(one, what):
    threads = one.read(1, "u32") if len(one) > 1 else f"{PTX}block_threads()"
    if what == "sync" and len(one) == 1 and one.operand(0) == "0":
        return "__syncthreads()"
    return f"::cookbook::named_barrier_{what}({one.read(0, 's32')}, {threads})"


@row(r"bar\.warp\.sync")
def barrier_of_warp(one):
    return f"__syncwarp({one.read(0, 'b32')})"


@row(r"barrier\.cluster\.(?P<what>arrive|wait)(\.(release|acquire|(?P<relaxed>relaxed)))?(\.aligned)?")
def barrier_of_cluster(one, what, relaxed):
    return f"::cookbook::cluster_{what}{'_relaxed' if relaxed else ''}()"


@row(r"(fence(\.(acq_rel|sc|acquire|release))?|membar)\.(?P<scope>cta|cluster|gpu|gl|sys)")
def fence(one, scope):
    return "__threadfence_block()" if scope == "cta" else "__threadfence()"


@row(r"fence\.proxy\.async(?P<space>\.global|\.shared::(cta|cluster))?")
def fence_of_proxies(one, space):
    return f"::cookbook::fence_proxy_async{'_global' if space == '.global' else ''}()"


@row(r"fence\.mbarrier_init\.release\.cluster")
def fence_of_barriers(one):
    return "::cookbook::fence_mbarrier_init()"


@row(r"nanosleep\.u32")
def sleep(one):
    return f"__nanosleep({one.read(0, 'u32')})"


@row(r"trap")
def trap(one):
    return "__trap()"


@row(r"griddepcontrol\.(?P<what>wait|launch_dependents)")
def dependent(one, what):
    return "::cookbook::wait_for_previous_launch()" if what == "wait" else ""


@row(r"setmaxnreg\.(inc|dec)\.sync\.aligned\.u32")
def registers(one):
    return f"::cookbook::simt::set_registers({one.read(0, 's32')})"


# ---- asynchronous copies ----

@row(r"cp\.async\.(ca|cg)\.shared(::cta)?\.global(\.L2::\w+)*")
def copy(one):
    hint = one.has("L2::cache_hint")
    size = one.read(2, "s32")
    valid = one.read(3, "s32") if len(one) - hint > 3 else size
    return f"::cookbook::simt::cp_async({one.memory(0)}, {one.memory(1, 'const void', 'global')}, {size}, {valid})"


@row(r"cp\.async\.(?P<what>commit_group|wait_group|wait_all)")
def copy_group(one, what):
    if what == "wait_group":
        return f"::cookbook::simt::cp_async_wait({one.read(0, 's32')})"
    return "::cookbook::cp_async_commit()" + ("; ::cookbook::simt::cp_async_wait(0)" if what == "wait_all" else "")


@row(r"cp\.async\.mbarrier\.arrive\.noinc(\.shared(::cta)?)?\.b64")
def copy_arrive(one):
    return f"::cookbook::cp_async_mbarrier_arrive_noinc({one.memory(0, 'uint64_t')})"


BULK_LOAD = r"\.shared::(cluster|cta)\.global(\.tile)?\.mbarrier::complete_tx::bytes"


GROUP = r"\.cta_group::(?P<group>1|2|\$\d+)"


# Of cta_group ptxas takes any place behind the rank.
@row(rf"cp\.async\.bulk\.tensor\.[1-5]d(\.cta_group::[12])?{BULK_LOAD}(\.cta_group::[12])?"
     rf"(?P<multicast>\.multicast::cluster)?({GROUP})?(\.L2::cache_hint)?")
def tensor_load(one, multicast, group):
    group = group or next((part[-1] for part in one.parts if part.startswith("cta_group::")), None)
    where = one.coordinates(1)
    pointers = f"{one.memory(0)}, {one.memory(1, 'const ::cookbook::TensorMap', 'global')}, {one.memory(2, 'uint64_t')}"
    name, mask = ("tma_multicast", f", {one.read(3, 'u16')}") if multicast else ("tma_load", "")
    copy = f"({pointers}, {{{', '.join(where)}}}, {len(where)}{mask})"
    plain, pair = f"::cookbook::simt::{name}{copy}", f"::cookbook::simt::{name}_pair{copy}"
    if not group or group in "12":
        return pair if group == "2" else plain
    return f"if ({one.group(group)} == 2) {pair}; else {plain}"


@row(r"cp\.(?P<reduce>reduce\.)?async\.bulk\.tensor\.[1-5]d\.global\.shared::cta(\.add)?(\.tile)?\.bulk_group"
     r"(\.L2::cache_hint)?")
def tensor_store(one, reduce):
    where = one.coordinates(0)
    return f"::cookbook::simt::tma_store({one.memory(0, 'const ::cookbook::TensorMap', 'global')}, {one.memory(1)}, " \
        f"{{{', '.join(where)}}}, {len(where)}, {'true' if reduce else 'false'})"


@row(rf"cp\.async\.bulk{BULK_LOAD}(\.L2::cache_hint)?")
def bulk_load(one):
    return f"::cookbook::bulk_load({one.memory(0)}, {one.memory(1, 'const void', 'global')}, {one.read(2, 'u32')}, " \
        f"{one.memory(3, 'uint64_t')})"


@row(r"cp\.async\.bulk\.global\.shared::cta\.bulk_group(\.L2::cache_hint)?")
def bulk_store(one):
    return f"::cookbook::bulk_store({one.memory(0, space='global')}, {one.memory(1, 'const void')}, {one.read(2, 'u32')})"


@row(r"cp\.reduce\.async\.bulk\.global\.shared::cta\.bulk_group(\.L2::cache_hint)?\.add\.f32")
def bulk_add(one):
    return f"::cookbook::bulk_store_add({one.memory(0, 'float', 'global')}, {one.memory(1, 'const void')}, " \
        f"{one.read(2, 'u32')} / 4)"


@row(r"cp\.async\.bulk\.(?P<what>commit_group|wait_group)(?P<read>\.read)?")
def bulk_group(one, what, read):
    if what == "commit_group":
        return "::cookbook::tma_store_commit()"
    return f"::cookbook::simt::bulk_wait({one.read(0, 's32')}, {'true' if read else 'false'})"


@row(r"st\.async(\.weak)?\.shared::cluster\.mbarrier::complete_tx::bytes(\.v[24])?\.[bus](32|64)")
def store_async(one):
    values = one.list(1)
    kind = TYPES[one.parts[-1]]
    text = ", ".join(one.program.read(name, kind, one) for name in values)
    return f"const {kind} sent[] = {{{text}}}; " \
        f"{PTX}store_async({one.memory(0)}, sent, sizeof sent, {one.memory(2, 'uint64_t')})"


# ---- mbarriers ----

SEMANTICS = r"(\.(acquire|release|(?P<relaxed>relaxed)))?(\.(?P<scope>cta|cluster))?(\.shared(::cta|(?P<remote>::cluster))?)?"


@row(r"mbarrier\.init(\.shared(::cta)?)?\.b64")
def barrier_init(one):
    return f"::cookbook::mbarrier_init({one.memory(0, 'uint64_t')}, {one.read(1, 'u32')})"


@row(r"mbarrier\.inval(\.shared(::cta)?)?\.b64")
def barrier_invalidate(one):
    return f"::cookbook::mbarrier_invalidate({one.memory(0, 'uint64_t')})"


@row(rf"mbarrier\.(?P<arrive>arrive)?(?P<expect>\.?expect_tx)?{SEMANTICS}\.b64")
def barrier_arrive(one, arrive, expect, relaxed, scope, remote):
    at = 0 if one.operand(0).startswith("[") else 1
    pointer = one.memory(at, "uint64_t")
    count = one.read(at + 1, "u32") if len(one) > at + 1 else "1"
    of_cluster = "true" if scope == "cluster" and not relaxed else "false"
    if not arrive:
        return f"{PTX}expect_bytes({pointer}, {count})"
    if expect:
        call = f"{PTX}arrive_expect_bytes({pointer}, {count}, {of_cluster})"
    else:
        call = f"{PTX}arrive({pointer}, {count}, {of_cluster})"
    return one.write(0, call) if at == 1 else f"(void){call}"


@row(rf"mbarrier\.(?P<what>try_wait|test_wait)(?P<parity>\.parity)?{SEMANTICS}\.b64")
def barrier_wait(one, what, parity, relaxed, scope, remote):
    where = f"{one.memory(1, 'uint64_t')}, {one.read(2, 'u32' if parity else 'u64')}"
    if one.program.loops and what == "try_wait":  # the loop ends when the phase does
        name = f"mbarrier_wait{'_cluster' if scope == 'cluster' else ''}"
        return f"::cookbook::{name}({where}); {one.write(0, 'true')}"
    return one.write(0, f"::cookbook::mbarrier_try_wait({where})")


# ---- matrices ----

@row(r"ldmatrix\.sync\.aligned(\.m8n8)?\.x(?P<count>[124])(\.m8n8)?(?P<trans>\.trans)?\.shared(::cta)?\.b16")
def load_matrices(one, count, trans):
    return f"uint32_t loaded[{count}]; ::cookbook::simt::ldmatrix(loaded, {count}, {one.memory(1, 'const void')}, " \
        f"{'true' if trans else 'false'}); {one.store(0, 'loaded')}"


@row(r"stmatrix\.sync\.aligned\.m8n8\.x(?P<count>[124])(?P<trans>\.trans)?\.shared(::cta)?\.b16")
def store_matrices(one, count, trans):
    return f"const uint32_t stored[] = {{{one.array(1, int(count))}}}; ::cookbook::simt::stmatrix(stored, {count}, " \
        f"{one.memory(0)}, {'true' if trans else 'false'})"


@row(r"mma\.sync\.aligned\.m16n8k(?P<depth>4|8|16)\.row\.col\.f32\.(?P<t>f16|bf16|tf32)\.(?P=t)\.f32")
def multiply_matrices(one, depth, t):
    whole = 8 if t == "tf32" else 16
    if int(depth) not in (whole, whole // 2):
        one.refuse()
    half = int(depth) != whole  # the other half of the depth is zeros
    a, b = one.array(1, 2 if half else 4) + ", 0, 0" * half, one.array(2, 1 if half else 2) + ", 0" * half
    c = ", ".join(one.program.read(name, "float", one) for name in one.list(3))
    return f"const uint32_t a[] = {{{a}}}, b[] = {{{b}}}; float sums[] = {{{c}}}; " \
        f"::cookbook::simt::mma_m16n8(sums, a, b, ::cookbook::simt::Format::{t}); {one.store(0, 'sums')}"


@row(r"mma\.sync\.aligned\.m16n8k(?P<depth>16|32)\.row\.col(\.satfinite)?\.(?P<d>s32|f16|f32)\.(?P<a>[su]8|e4m3|e5m2|f16)"
     r"\.(?P<b>[su]8|e4m3|e5m2|f16)\.(?P=d)")
def multiply_elements(one, depth, d, a, b):
    count, is_bytes = 2 if d == "f16" else 4, a[1:] == "8"
    if one.has("satfinite") or is_bytes != (b[1:] == "8") or is_bytes != (d == "s32") or (a == "f16") != (b == "f16") or \
            (a == "f16") != (depth == "16"):
        one.refuse()
    flags = f"{'true' if a == 's8' else 'false'}, {'true' if b == 's8' else 'false'}" if is_bytes else \
        f"::cookbook::simt::Format::{a}, ::cookbook::simt::Format::{b}, {'true' if d == 'f16' else 'false'}"
    name = "mma_m16n8k32_bytes" if is_bytes else "mma_m16n8_elements"
    return f"const uint32_t a[] = {{{one.array(1, 4)}}}, b[] = {{{one.array(2, 2)}}}; " \
        f"uint32_t sums[] = {{{one.array(3, count)}}}; ::cookbook::simt::{name}(sums, a, b, {flags}); {one.store(0, 'sums')}"


SMALL = "e4m3|e5m2|e3m2|e2m3|e2m1"


@row(rf"mma\.sync\.aligned(\.m16n8k(?P<depth>32|64))?(\.row\.col)?\.kind::(?P<kind>mxf8f6f4|mxf4|mxf4nvf4)\.block_scale"
     rf"(\.scale_vec::(?P<vector>[124])X)?(\.m16n8k(?P<depth_after>32|64))?(\.row\.col)?\.f32\.(?P<a>{SMALL})\.(?P<b>{SMALL})\.f32"
     r"\.(?P<scale>ue8m0|ue4m3)")
def multiply_scaled(one, depth, kind, vector, depth_after, a, b, scale):
    depth, is_fp4 = depth or depth_after, kind != "mxf8f6f4"
    vector = vector or {"mxf8f6f4": "1", "mxf4": "2"}.get(kind) or one.refuse()
    exists = (vector, scale) in {"mxf8f6f4": [("1", "ue8m0")], "mxf4": [("2", "ue8m0")],
                                 "mxf4nvf4": [("2", "ue8m0"), ("4", "ue4m3")]}[kind]
    if not exists or depth != ("64" if is_fp4 else "32") or is_fp4 and (a, b) != ("e2m1", "e2m1"):
        one.refuse()
    c = ", ".join(one.program.read(name, "float", one) for name in one.list(3))
    scales = [f"{{{', '.join([one.array(at, 1), *(one.program.read(name, 'uint16_t', one) for name in one.list(at + 1))])}}}"
              for at in (4, 6)]
    return f"const uint32_t a[] = {{{one.array(1, 4)}}}, b[] = {{{one.array(2, 2)}}}; float sums[] = {{{c}}}; " \
        f"::cookbook::simt::mma_m16n8_scaled(sums, a, b, {{::cookbook::simt::Format::{a}, ::cookbook::simt::Format::{b}, " \
        f"{vector}, {'true' if scale == 'ue8m0' else 'false'}}}, {', '.join(scales)}); {one.store(0, 'sums')}"


@row(r"wgmma\.(?P<what>fence|commit_group|wait_group)\.sync\.aligned")
def warpgroup(one, what):
    if what == "wait_group":
        return f"::cookbook::simt::wgmma_wait({one.read(0, 's32')})"
    return f"::cookbook::wgmma_{'fence' if what == 'fence' else 'commit'}()"


@row(r"wgmma\.mma_async\.sync\.aligned\.m64n(?P<columns>\d+)k(?P<depth>16|32)\.f32\.(?P<t>f16|bf16|e4m3)\.(?P=t)")
def multiply_warpgroup(one, columns, depth, t):
    sums = one.list(0)
    if len(sums) * 2 != int(columns) or (t == "e4m3") != (depth == "32"):
        one.refuse()
    addresses = ", ".join(one.program.address(name, one) for name in sums)
    in_registers = one.operand(1).startswith("{")
    flags = [one.read(i, "s32") for i in range(4, len(one))]
    flags += ["0"] * (4 - len(flags))
    a_is_mn, b_is_mn = ("0", flags[2]) if in_registers else flags[2:4]
    shape = f"{columns}, ::cookbook::simt::Format::{t}"
    accumulate = one.read(3, "pred")
    begin = f"float* const sums[] = {{{addresses}}}; {PTX}require_positive({flags[0]}, {flags[1]}); "
    if in_registers:
        return begin + f"const uint32_t a[] = {{{one.array(1, 4)}}}; ::cookbook::simt::wgmma_register_a(" \
            f"{PTX}contiguous(sums), {shape}, {b_is_mn} != 0, a, {one.read(2, 'b64')}, {accumulate})"
    return begin + f"::cookbook::simt::wgmma_shared_a({PTX}contiguous(sums), {shape}, {a_is_mn} != 0, {b_is_mn} != 0, " \
        f"{one.read(1, 'b64')}, {one.read(2, 'b64')}, {accumulate})"


# ---- tensor memory and the tensor core of sm_100 ----

@row(rf"tcgen05\.alloc{GROUP}\.sync\.aligned(\.shared::cta)?\.b32")
def allocate_tensor_memory(one, group):
    return f"::cookbook::simt::tmem_alloc({one.memory(0, 'uint32_t')}, {one.read(1, 'u32')}, {one.group(group)})"


@row(rf"tcgen05\.dealloc{GROUP}\.sync\.aligned\.b32")
def free_tensor_memory(one, group):
    return f"::cookbook::simt::tmem_dealloc({one.read(0, 'u32')}, {one.read(1, 'u32')}, {one.group(group)})"


@row(rf"tcgen05\.relinquish_alloc_permit{GROUP}\.sync\.aligned")
def relinquish(one, group):
    return f"::cookbook::simt::tmem_relinquish({one.group(group)})"


TMEM_SHAPE = r"(?P<shape>32x32b|16x64b|16x128b|16x256b|16x32bx2)\.x(?P<repeat>\d+)"


@row(rf"tcgen05\.ld\.sync\.aligned\.{TMEM_SHAPE}(?P<pack>\.pack::16b)?\.b32")
def load_tensor_memory(one, shape, repeat, pack):
    variables = ", ".join(one.program.variable(name, one) for name in one.list(0))
    offset = f", {one.read(2, 'u32')}" if len(one) > 2 else ""
    return f"uint32_t* const loaded[] = {{{variables}}}; ::cookbook::simt::tmem_load_to(loaded, " \
        f"{one.tensor_address(1)}, ::cookbook::simt::TmemShape::s{shape}, {repeat}, {'true' if pack else 'false'}{offset})"


@row(rf"tcgen05\.st\.sync\.aligned\.{TMEM_SHAPE}(?P<unpack>\.unpack::16b)?\.b32")
def store_tensor_memory(one, shape, repeat, unpack):
    offset = f", {one.read(1, 'u32')}" if len(one) > 2 else ""
    values = one.list(len(one) - 1)
    return f"const uint32_t stored[] = {{{one.array(len(one) - 1, len(values))}}}; ::cookbook::simt::tmem_store(" \
        f"{one.tensor_address(0)}, stored, ::cookbook::simt::TmemShape::s{shape}, {repeat}, " \
        f"{'true' if unpack else 'false'}{offset})"


@row(r"tcgen05\.wait::(?P<what>ld|st)\.sync\.aligned")
def wait_tensor_memory(one, what):
    return f"::cookbook::simt::tmem_wait_{'load' if what == 'ld' else 'store'}()"


@row(r"tcgen05\.fence::(?P<when>before|after)_thread_sync")
def fence_tensor(one, when):
    return f"::cookbook::simt::tcgen05_fence_{when}_thread_sync()"


@row(rf"tcgen05\.mma{GROUP}\.kind::(?P<kind>f16|tf32|f8f6f4|i8|mxf8f6f4|mxf4|mxf4nvf4)(?P<scaled>\.block_scale)?"
     r"(\.scale_vec::(?P<vector>[124])X|\.block(?P<block>16|32))?(\.collector::a::(fill|use|lastuse|discard))?")
def multiply_tensor(one, group, kind, scaled, vector, block):
    if bool(scaled) != kind.startswith("mx"):
        one.refuse()
    vector = vector or {"mxf8f6f4": "1", "mxf4": "2", "mxf4nvf4": {"16": "4", "32": "2"}.get(block, "0")}.get(kind, "0")
    in_tensor_memory = one.operand(1).startswith("[")
    a = one.tensor_address(1) if in_tensor_memory else one.read(1, "b64")
    at, scales, lanes, before = 4, "", "nullptr", ""
    if scaled:
        scales = f"{one.tensor_address(4)}, {one.tensor_address(5)}, "
        at = 6
    if one.operand(at).startswith("{"):
        lanes, before = "lanes", f"const uint32_t lanes[] = {{{one.array(at, len(one.list(at)))}}}; "
        at += 1
    scale_d = one.read(at + 1, "s32") if len(one) > at + 1 else "-1"
    name = f"tcgen05_mma{'_scaled' if scaled else ''}{'_tmem' if in_tensor_memory else ''}"
    return f"{before}::cookbook::simt::{name}({one.tensor_address(0)}, {a}, {one.read(2, 'b64')}, {one.read(3, 'u32')}, " \
        f"{scales}{one.read(at, 'pred')}, {{::cookbook::simt::MmaKind::{kind}, {one.group(group)}, {vector}, {scale_d}, " \
        f"{lanes}}})"


@row(rf"tcgen05\.commit{GROUP}\.mbarrier::arrive::one(\.shared::cluster)?(?P<multicast>\.multicast::cluster)?\.b64")
def commit_tensor(one, group, multicast):
    mask = f"{one.read(1, 'u16')}, " if multicast else ""
    return f"::cookbook::simt::tcgen05_commit{'_multicast' if multicast else ''}({one.memory(0, 'uint64_t', 'shared')}, " \
        f"{mask}{one.group(group)})"


@row(rf"tcgen05\.cp{GROUP}\.(?P<shape>128x256b|4x256b|128x128b|64x128b\.warpx2::(02_13|01_23)|32x128b\.warpx4)"
     r"(\.b8x16\.(?P<expand>b4x16_p64|b6x16_p32))?")
def copy_tensor(one, group, shape, expand):
    shape = shape.replace(".warpx2::", "_").removesuffix(".warpx4")
    return f"::cookbook::simt::tcgen05_cp({one.tensor_address(0)}, {one.read(1, 'b64')}, " \
        f"::cookbook::simt::TmemCopy::c{shape}, {one.group(group)}, ::cookbook::simt::TmemExpand::{expand or 'none'})"


# ---- cluster launch control ----

@row(r"clusterlaunchcontrol\.try_cancel\.async(\.shared::cta)?\.mbarrier::complete_tx::bytes"
     r"(?P<multicast>\.multicast::cluster::all)?\.b128")
def try_cancel(one, multicast):
    return f"::cookbook::simt::clc_try_cancel({one.memory(0)}, {one.memory(1, 'uint64_t')}, " \
        f"{'true' if multicast else 'false'})"


@row(r"clusterlaunchcontrol\.query_cancel\.is_canceled\.pred\.b128")
def is_canceled(one):
    return one.write(0, f"{PTX}is_canceled({one.read(1, 'b128')})")


@row(r"clusterlaunchcontrol\.query_cancel\.get_first_ctaid(::(?P<axis>[xyz]))?(\.v4)?\.b32\.b128")
def first_block(one, axis):
    call = f"const uint3 first = {PTX}first_block({one.read(1, 'b128')})"
    if axis:
        return f"{call}; {one.write(0, f'first.{axis}')}"
    writes = [f"{PTX}set({one.program.register(name, one)}, first.{part})"
              for name, part in zip(one.list(0), "xyz") if name != "_"]
    return "; ".join([call, *writes])


# ---- a whole statement ----

class Program:
    def __init__(self, outputs, inputs):
        self.operands = [*outputs, *inputs]  # (constraint, expression)
        self.outputs = len(outputs)
        self.registers = {}  # PTX name: (type, C++ name)
        self.addressed = set()  # operands whose address is passed on: they are no copies
        self.loops = False
        self.waits = False  # for tcgen05.ld

    def constraint(self, number, one=None):
        if number >= len(self.operands):
            raise Refused(f"operand %{number}, which does not exist,")
        return self.operands[number][0].lstrip("=+&")

    def is_wide(self, name):
        """Whether it is a register of 64 bits."""
        if name in self.registers:
            return self.registers[name][0] == "uint64_t"
        return re.fullmatch(r"\$\d+", name) is not None and self.constraint(int(name[1:])) == "l"

    def register(self, name, one):
        if name in self.registers:
            return self.registers[name][1]
        if re.fullmatch(r"\$\d+", name) and int(name[1:]) < self.outputs:
            return f"cookbook_{name[1:]}"
        return one.refuse()

    def address(self, name, one):
        if not re.fullmatch(r"\$\d+", name) or int(name[1:]) >= self.outputs:
            one.refuse()
        self.addressed.add(int(name[1:]))
        return f"&({self.operands[int(name[1:])][1]})"

    def variable(self, name, one):
        """The address of a variable, or of a register of the statement, that is written at a later wait."""
        if name not in self.registers:
            return f"reinterpret_cast<uint32_t*>({self.address(name, one)})"
        if self.registers[name][0] != "uint32_t" or not self.waits:
            one.refuse()  # nobody could read it after the wait
        return f"&{self.registers[name][1]}"

    def read(self, name, kind, one):
        negated = name.startswith("!")
        name = name.lstrip("!")
        if name in self.registers:
            text = self.registers[name][1]
        elif re.fullmatch(r"\$\d+", name):
            number = int(name[1:])
            constant = self.constraint(number, one) == "n"
            text = f"({self.operands[number][1]})" if constant else f"cookbook_{number}"
            if constant:
                return f"{kind}{text}" if not negated else f"!{text}"
        elif re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", name):
            return f"static_cast<{kind}>({name.rstrip('U')}{'ull' if name[0] != '-' else 'll'})"
        elif re.fullmatch(r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}", name):
            text = f"uint{4 * len(name) - 8}_t{{0x{name[2:]}}}"
        elif re.fullmatch(r"-?\d+\.\d*([eE][-+]?\d+)?", name):
            return f"static_cast<{kind}>({name})"
        elif name.startswith("%") and name[1:] in SPECIAL:
            text = f"uint64_t({SPECIAL[name[1:]]})"
        else:
            return one.refuse() if not name.startswith("%") else self.unknown_register(name)
        return f"{'!' if negated else ''}{PTX}as<{kind}>({text})"

    @staticmethod
    def unknown_register(name):
        raise Refused(f"the register {name}")

    def instruction(self, guard, name, operands):
        one = Instruction(self, name, operands)
        if name.split(".")[0] == "bra":
            text = f"goto {self.label(operands[0])}"
        else:
            for pattern, function in ROWS:
                found = pattern.fullmatch(name)
                if found:
                    text = function(one, **found.groupdict())
                    break
            else:
                one.refuse()
        if guard:
            return f"if ({self.read(guard[0] + guard[1], 'bool', one)}) {{ {text}; }}"
        return f"{{ {text}; }}"

    @staticmethod
    def label(name):
        return "cookbook_at_" + re.sub(r"\W", "_", name)

    def translate(self, template, clobbers):
        statements = list(parse(template, bool(self.operands) or clobbers is not None))
        labels = [s[1] for s in statements if s[0] == "label"]
        seen = set()
        for entry in statements:
            if entry[0] == "reg":
                for name in entry[2]:
                    self.registers[name] = (entry[1], f"cookbook_r{len(self.registers)}")
            elif entry[0] == "label":
                seen.add(entry[1])
            elif entry[2].split(".")[0] == "bra" and entry[3][0] in seen:
                self.loops = True
            elif entry[2].startswith("tcgen05.wait::ld"):
                self.waits = True
        body = []
        for entry in statements:
            if entry[0] == "label":
                body.append(f"{self.label(entry[1])}:;")
            elif entry[0] == "do":
                body.append(self.instruction(*entry[1:]))
        head = "".join(f"__label__ {self.label(name)}; " for name in labels)
        for kind, name in self.registers.values():
            head += f"{kind} {name}{{}}; "
        tail = ""
        for number, (constraint, expression) in enumerate(self.operands):
            letter = constraint.lstrip("=+&")
            if letter == "n" or number in self.addressed:
                continue
            if letter not in CONSTRAINTS:
                raise Refused(f"the constraint \"{constraint}\"")
            start = "" if constraint.startswith("=") else f"{PTX}in<{CONSTRAINTS[letter]}>({expression})"
            head += f"{CONSTRAINTS[letter]} cookbook_{number}{{{start}}}; "
            if number < self.outputs:
                tail += f"{PTX}out({expression}, cookbook_{number}); "
        if clobbers and "memory" in clobbers:
            tail += 'asm volatile("" : : : "memory"); '
        return f"do {{ {head}{' '.join(body)} {tail}}} while (0)"


def translate(template, outputs, inputs, clobbers, number):
    """One asm statement as a C++ statement without its `;`. outputs, inputs: (constraint, C++ expression); clobbers:
    their names; None: the statement has no operands at all. `number` is its own in the program."""
    try:
        return Program(outputs, inputs).translate(template, clobbers)
    except Refused as reason:
        message = f"inline PTX: {reason} is not supported".replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        return f'do {{ extern void cookbook_refused_{number}() __attribute__((error("{message}"))); ' \
            f"cookbook_refused_{number}(); }} while (0)"
