# SPDX-License-Identifier: MIT
"""What the object file of a submission may contain: kernels and launches, nothing that runs by itself.

Compared with the object file of the teacher's own version. Beyond what that one imports, a submission may
import the device interface, mathematics and what the compiler adds.
"""
import collections
import contextlib
import re
import struct
import subprocess
import threading

import sandbox

# The device interface of the SIMT backend (common/backend/simt/language/language.hpp, units/), demangled.
DEVICE = re.compile(r"""
    threadIdx | blockIdx | blockDim | gridDim
  | (?:[^()]*[ ])?cookbook::(?:  # a template's name comes behind the type of its result
    detail::launch_kernel | LaunchError::[^(]* | spin_pause
  | simt::(?:
      sync_\w+ | shuffle\w* | vote\w* | ballot\w* | match_\w+ | reduce\w* | active_mask | lane_id | any_of | all_of
    | dynamic_shared_memory | shared_address | shared_pointer | memory_fence\w* | nap | atomic_\w+ | normal_quantile
    | cycle_counter | nanosecond_counter | trap | load_acquire | store_release
    | (?:named_)?barrier_\w+ | cluster_\w+ | map_shared_rank | mapa\w* | units::[^(]*
    # The units of later GPUs: asynchronous copies, tensor cores, barriers in shared memory, clusters, TMA.
    | bulk_wait | cp_async\w* | ldmatrix | stmatrix | map_shared | mma_\w+ | set_registers | store_async | tcgen05_\w+
    | tma_load_pair | tmem_\w+ | wgmma_\w+ | wmma_\w+ )
  | (?:bulk|cluster|cp_async|fence|mbarrier|named_barrier|tma|wgmma)_\w+
  | elect_one | to_tf32 | make_tensor_map | device_info
  )(?:<.*>)?\(.*""", re.VERBOSE)
# What a level says about itself, which makes data and nothing else.
CLAIMS = re.compile(r"""cookbook::(?:
    (?:global|shared|tma)_(?:loads|stores) | Accesses::\w+ | faster_than_previous | at_least_previous | against_library
  | fraction_of_roof | number_text )(?:\[abi:cxx11\])?\(.*""", re.VERBOSE)
MATHEMATICS = re.compile(r"""
  (?: a?(?:sin|cos|tan)h? | atan2 | exp2? | expm1 | exp10 | log(?:2|10|1p|b)? | pow | sqrt | cbrt | hypot | fabs | fmod
  | fm(?:a|in|ax) | floor | ceil | trunc | l?l?r(?:ound|int) | nearbyint | ldexp | frexp | modf | scalbl?n | copysign
  | erfc? | [lt]gamma | remainder | remquo | nextafter | ilogb | fdim | sincos | j[01n] | y[01n] )[fl]?
  """, re.VERBOSE)
# What g++ adds without being asked: instrumentation, unwinding, copies of structs.
COMPILER = re.compile(r"""
  (?: __fentry__ | __x86_(?:return|indirect)_thunk\w* | __tsan_(?!acquire|release|mutex|create|switch|set|get|destroy)\w+ | __sanitizer_cov_trace_pc | __ubsan_handle_\w+
  | _Unwind_Resume | __gxx_personality_v0 | __cxa_(?:begin|end)_catch | __cxa_call_terminate | __cxa_guard_\w+
  | _GLOBAL_OFFSET_TABLE_ | __tls_get_addr | __tls_init | mem(?:cpy|set|move|cmp) | __stack_chk_fail
  | std::terminate\(\) | std::__throw_\w+\(.*\) | __assert_fail | __dso_handle )""", re.VERBOSE)
ENTRY = "_ZN8cookbook7grading5entryEv"
# g++ -fsanitize=thread makes one, which calls __tsan_init.
OWN_CONSTRUCTOR = ".init_array.00099"
# Instructions that reach the kernel of the operating system, or the outside.
FORBIDDEN_INSTRUCTIONS = re.compile(r"^(syscall|sysenter|int[013n]?|sysret|svc|hvc|smc|in|out|ins\w*|outs\w*|rdtscp?|"
                                    r"rdpmc|cpuid|wrfsbase|wrgsbase|hlt|brk)$")


# The same in a constant, where a jump into it would find them: syscall, int 0x80, sysenter.
HIDDEN_CALLS = (b"\x0f\x05", b"\xcd\x80", b"\x0f\x34")
# An object of more is not looked at: objdump makes a hundred times as much of it.
MOST_OBJECT_BYTES = 8 << 20
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
MOST_OUTPUT_BYTES = 128 << 20  # of a tool; objdump makes the most
TOOLS = ("nm", "readelf", "objdump", "ld", "objcopy", "as")
BOX = threading.local()


@contextlib.contextmanager
def in_box(folder, slot):
    """Tools that this thread runs are in the box, where `folder` is /box. Otherwise they have limits only: for files of the
    teacher's."""
    BOX.place = folder, slot
    try:
        yield
    finally:
        BOX.place = None


def output_of(command, text=None):
    """What a tool such as nm writes, with `text` as its input."""
    place = getattr(BOX, "place", None)
    # The teacher's own objects lie elsewhere.
    if place and (text is not None or any(str(place[0]) in part for part in command)):
        command = sandbox.boxed(sandbox.kind_of_sandbox(), place[0], [
            part.replace(str(place[0]), "/box") for part in command], sandbox.Limits(memory_mb=4096, file_mb=256), place[1], True)
    else:
        command = sandbox.limited(command)
    name = command[-1] if text is not None else next((part for part in command if part in TOOLS), command[0])
    status, said = sandbox.run(command, 120, MOST_OUTPUT_BYTES, given=text, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    if status != 0:
        raise RuntimeError(f"{name} failed with status {status}")
    return said


def demangled(names):
    """{symbol: demangled}"""
    names = list(names)
    return dict(zip(names, output_of(["c++filt"], "\n".join(names) + "\n").split("\n")))


def undefined(path):
    """{symbol: demangled} that the linker must find elsewhere."""
    return demangled(row.split()[-1] for row in output_of(["nm", "-u", str(path)]).splitlines() if row.strip())


Symbol = collections.namedtuple("Symbol", "name kind binding section size")


def symbols_of(path):
    """What the object defines; `section` is a number, `kind` as FUNC, OBJECT, TLS."""
    found = []
    for row in output_of(["readelf", "-sW", str(path)]).splitlines():
        match = re.match(r"\s*\d+: [0-9a-f]+\s+(\w+) (\w+)\s+(\w+)\s+\w+\s+(?:\[[^]]*\] +)?(\d+) (\S+)", row)
        if match:
            found.append(Symbol(match[5], match[2], match[3], int(match[4]), int(match[1], 0)))
    return found


# In sections that are written: the handle of an exception, and what is constant once addresses are known.
CONSTANT_SECTIONS = re.compile(r"\.data\.rel\.ro|\.data\.rel\.local\.DW\.ref\.|\.(?:init|fini|preinit)_array|\.[cd]tors|"
                               r"\.tm_clone_table")


def writable_data(path):
    """What keeps a value from launch to launch, in whatever section: names of variables, or of sections without one.
    Thread-local ones are shared memory."""
    sections = sections_of(path)
    written = {number for number, (name, kind, size, flags) in enumerate(sections)
               if flags & 3 == 3 and not flags & 0x400 and size and not CONSTANT_SECTIONS.match(name)}
    named = {symbol.section: set() for symbol in symbols_of(path) if symbol.section in written}
    for symbol in symbols_of(path):
        if symbol.section in written and symbol.size:
            named[symbol.section].add(symbol.name)
    found = set().union(*named.values()) if named else set()
    return found | {sections[number][0] for number in written if not named.get(number)}


# What a block may have of static shared memory, and a thread of local memory: CUDA's own limits.
MOST_SHARED_BYTES, MOST_LOCAL_BYTES = 48 << 10, 512 << 10


def too_much_shared(path):
    """A kernel whose `__shared__` variables take more than a block has, or ""."""
    of_kernel = {}
    for row in output_of(["readelf", "-sWC", str(path)]).splitlines():
        match = re.match(r"\s*\d+: [0-9a-f]+\s+(\w+) TLS\s+\w+\s+\w+\s+\w+ (.*)::(\w+)", row)
        if match and not match[3].startswith("cookbook_red_zone_"):
            of_kernel[match[2]] = of_kernel.get(match[2], 0) + int(match[1], 0)
    for kernel, size in of_kernel.items():
        if size > MOST_SHARED_BYTES:
            return (f"a block of `{readable(kernel)}` takes {size:,} bytes of static shared memory; at most "
                    f"{MOST_SHARED_BYTES:,}")
    return ""


def sections_of(path):
    """[(name, type, size, flags)], from the file's own header."""
    raw = path.read_bytes()
    if raw[:5] != b"\x7fELF\x02":
        raise RuntimeError("no 64-bit ELF file")
    table, = struct.unpack_from("<Q", raw, 40)
    entry_bytes, count, names = struct.unpack_from("<HHH", raw, 58)
    if count == 0:  # more than 65,279: the first section has the number
        count, = struct.unpack_from("<Q", raw, table + 32)
    if names == 0xffff:
        names, = struct.unpack_from("<I", raw, table + 40)
    rows = [struct.unpack_from("<IIQQQQ", raw, table + i * entry_bytes) for i in range(count)]
    text = rows[names][4]
    return [(raw[text + row[0]:raw.index(b"\0", text + row[0])].decode(errors="replace"), row[1], row[5], row[2])
            for row in rows]


def readable(demangled):
    return demangled if len(demangled) < 100 else demangled[:97] + "..."


def variable(demangled):
    """Without the function that it is in; a section is named after it, where that is all there is."""
    return readable(demangled.removeprefix("guard variable for ").rsplit("::", 1)[-1])


# nvcc's variables of a kernel's handle, and what finds the device code; the lint forbids such names.
OF_NVCC = re.compile(r"__cudaFatCubinHandle|_ZZ\w*__device_stub_\w+|_ZL20__cudaFatCubinHandle")


def line_of_call(path, symbol, lines_of):
    """"FILE:LINE: " of the student's line that uses it, or "": the last of theirs before, where it is inlined code that does."""
    place = ""
    for row in output_of(["objdump", "-dlr", "--no-show-raw-insn", "-w", str(path)]).split("\n"):
        if match := re.match(r"(?:\S*/)?([^/\s:]+):(\d+)", row):
            if int(match[2]) in lines_of.get(match[1], ()):
                place = f"{match[1]}:{match[2]}: "
        elif row.endswith(">:"):
            place = ""
        elif symbol in row and " R_" in row.replace("\t", " "):
            return place
    return ""


def line_of_name(name, lines_of, before=r"\b"):
    """"FILE:LINE: " of the student's first line whose code has the name, behind the pattern `before`; or ""."""
    plain = re.escape(name.partition("<")[0])
    return next((f"{file}:{line}: " for file, rows in (lines_of or {}).items() for line, row in rows.items()
                 if re.search(rf"{before}{plain}\b", row.split("//")[0])), "")


def check_object(path, teacher, gpu=False, lines_of=None):
    """What is wrong with a submission's object file, or "". `teacher`: the teacher's own, compiled alike. `gpu`:
    made by nvcc, whose registration of the kernels is one static initialiser. `lines_of`: {file: lines} of the student's."""
    if path.stat().st_size > MOST_OBJECT_BYTES:
        return f"the code takes more than {MOST_OBJECT_BYTES >> 20} MiB when it is compiled"
    allowed = undefined(teacher)
    for symbol, name in undefined(path).items():
        if symbol in allowed:
            continue
        if not (DEVICE.fullmatch(name) or CLAIMS.fullmatch(name) or MATHEMATICS.fullmatch(name) or COMPILER.fullmatch(name)):
            return line_of_call(path, symbol, lines_of or {}) + \
                f"the code calls `{readable(name)}`: only kernels, launches and mathematics are allowed"
    for name, kind, size, _ in sections_of(path):
        # INIT_ARRAY, FINI_ARRAY, PREINIT_ARRAY and their older forms.
        runs_itself = kind in (14, 15, 16) or re.match(r"\.(ctors|dtors|init|fini)\b", name)
        allowed_one = name == (".init_array" if gpu else OWN_CONSTRUCTOR)
        if runs_itself and size > 0 and (not allowed_one or size > 8):
            return "the code has a static initialiser: it would run before the grader"
    if re.search(r"^[0-9a-f]* *i ", output_of(["nm", str(path)]), re.MULTILINE):
        return "the code has an indirect function: it would run before the grader"
    more = writable_data(path) - writable_data(teacher)
    if gpu:
        more = {name for name in more if not OF_NVCC.fullmatch(name)}
    if more:
        name = variable(demangled([sorted(more)[0]]).popitem()[1])
        return f"{line_of_name(name, lines_of)}the variable `{name}` keeps a value from one launch to the next"
    # Its guard would be memory that no kernel has.
    of_threads = [symbol.name for symbol in symbols_of(path) if symbol.kind == "TLS" and symbol.name.startswith("_ZGV")]
    if of_threads:
        name = variable(demangled(of_threads[:1]).popitem()[1])
        return f"{line_of_name(name, lines_of)}the shared variable `{name}` has an initialiser, which CUDA does not allow"
    if wrong := takes_a_place(path, teacher) or too_much_shared(path):
        return wrong
    return check_code(path, teacher, gpu)


def takes_a_place(path, teacher):
    """A definition of what the instrumentation or the backend has to define, or ""."""
    theirs = undefined(teacher)
    defined = {symbol.name: symbol.binding for symbol in symbols_of(path) if symbol.section}
    for name, plain in demangled(defined).items():
        # What the backend's headers define is weak.
        if name in theirs or INSTRUMENTATION.match(name) or defined[name] == "GLOBAL" and DEVICE.fullmatch(plain):
            return f"the code defines `{readable(plain)}`, which is not yours to define"
    return ""


OF_BACKEND = re.compile(r"_ZNK?8cookbook4simt")
INSTRUMENTATION = re.compile(r"_*(?:tsan|sanitizer|ubsan|asan)_|mem(?:cpy|set|move|cmp)$")


def is_of_headers(text):
    """Whether a demangled function is one that the book's headers leave without instrumentation: conversions of numbers."""
    words = text.split("(")[0].split(" ")
    named = next((word for word in words if "operator" in word), words[-1])
    return named.startswith(("__half", "__nv_", "operator"))


def check_code(path, teacher, gpu):
    """An instruction that is not allowed, or a function without the instrumentation that every other has; or ""."""
    wrong, function, plain, counted = "", None, [], False
    constants = re.compile(r"\$0x([0-9a-f]{4,16})\b")
    for row in output_of(["objdump", "-dr", "--no-show-raw-insn", "-w", str(path)]).split("\n"):
        if begin := re.match(r"[0-9a-f]+ <(.+)>:$", row):
            plain += [function] if function and not counted else []
            function, counted = begin[1], False
            continue
        counted = counted or "__sanitizer_cov_trace_pc" in row
        match = re.match(r"\s+[0-9a-f]+:\s+(?:(?:lock|rep\w*|notrack|bnd|data16|cs)\s+)*(\w+)", row)
        frame = re.search(r"\ssub\s+\$0x([0-9a-f]{6,8}),%rsp", row)
        if frame and int(frame[1], 16) > MOST_LOCAL_BYTES:
            wrong = wrong or f"`{readable(demangled([function])[function])}` has {int(frame[1], 16):,} bytes of variables: a thread has 512 KB"
        if match and FORBIDDEN_INSTRUCTIONS.match(match[1]):
            wrong = wrong or f"the code has the instruction `{match[1]}`"
        for constant in constants.findall(row):
            value = int(constant, 16).to_bytes(8, "little")
            if any(call in value for call in HIDDEN_CALLS):
                wrong = wrong or f"the code has the constant 0x{constant}, which reads as a system call"
    plain += [function] if function and not counted else []
    if wrong or gpu:
        return wrong
    known = {symbol.name for symbol in symbols_of(teacher)}
    for symbol, text in demangled(name for name in plain if name not in known).items():
        if not (UNCOUNTED.match(text) or OF_BACKEND.match(symbol) or is_of_headers(text)):
            return f"the function `{readable(text)}` is not instrumented"
    return ""


# A place in the source, as -fdump-tree-tsan-lineno writes them into its text; g++ 13 adds a discriminator.
PLACE = re.compile(r"\[([^]\s]+):(\d+):\d+(?: discrim \d+)?\] ?")
IN_REGISTERS = re.compile(r"&.*|<retval>|(?:\w+\.\d+|[\w$]+)_\d+(?:\(D\))?|[-\d\"{].*")
STRING = re.compile(r'"(?:\\.|[^"\\])*"')


# Builtins that access no memory. Others do, and g++ instruments none: they are calls that count (counted.hpp), or refused.
BUILTIN = re.compile(r"__builtin_(?!return_|eh_|unreachable|trap|expect|unwind_|alloca_|stack_|cexpi|__tsan_|__sanitizer_|__ubsan_|"
                     r"(?:bswap|clz|ctz|ffs|popcount|parity|clrsb)(?:l|ll|\d+)?\b)(\w+)")
# Functions of mathematics that write through a pointer, and which argument that is.
WRITES = re.compile(r"(?:__builtin_)?(frexp|modf|remquo|sincos|lgamma)(?:[fl]|[fl]?_r)? \(")


def moved_by_builtin(dump):
    """{(function, builtin that accesses memory): place in the source}"""
    found = {}
    for function in dump.split("\n;; Function ")[1:]:
        symbol = re.search(r"\((\w+)", function)[1]
        for row in function.split("\n"):
            for name in BUILTIN.findall(row):
                place = PLACE.search(row)
                # What a shared_ptr compares of the names of types.
                if not MATHEMATICS.fullmatch(name) and not (name == "strcmp" and place and place[1].endswith("/typeinfo")):
                    found[symbol, name] = place
    return found


# A variable or a constant that a cast has made another type of, and what is indexed in that. g++ instruments no access to a
# variable that it sees in its own function: none to where such an index ends.
VIEW = re.compile(r'(?:MEM(?: <[^;]*?>)? ?\[\([^)]*\)(?:&([\w.]+)|"(?:\\.|[^"\\])*")[^]]*\]|VIEW_CONVERT_EXPR<[^;]*?>\(([\w.]+)\))'
                  r"((?:\.\w+|\[[^]]*\])+)")
BOUND = re.compile(r"\.UBSAN_BOUNDS \(\w+, (\w+), (\d+)\)")
MOST_INDEX = 1 << 10


def index_beyond(rows, shared):
    """A row of a function's, and the name of the variable in it that is indexed as a larger array; or None."""
    bounds = {}
    for row in rows:
        for index, bound in BOUND.findall(row):
            bounds[index] = int(bound) + 1
        for view in VIEW.finditer(PLACE.sub("", row)) if "MEM" in row or "VIEW_CONVERT" in row else ():
            reach = 1
            for index in re.findall(r"\[(\w*[a-z_]\w*)\]", view[3]):
                reach *= bounds.get(index, MOST_INDEX + 1)
            name = view[1] or view[2] or "a text"
            if reach > MOST_INDEX and name not in shared:
                return row, name
    return None


def split_arguments(text):
    """The arguments of a call, without the places."""
    found, depth = [""], 0
    for c in text:
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return [one.strip() for one in found]


# What g++ writes grows with the names of types, which a few lines make as long as memory. Patterns that are applied to it
# take time as the square of a row.
MOST_DUMP_BYTES, MOST_ROW = 64 << 20, 1 << 14
TOO_LONG = "the name of a type, a constant or a statement is too long when it is compiled"


def uncounted(dump, path, lines_of, of_teacher=""):
    """A line of the student's with an access that g++ does not instrument, and why; or "". `dump`: what g++ wrote of
    its functions when it had instrumented them; `of_teacher`: of the teacher's. `lines_of`: {file: lines} of the
    student's.

    A call whose argument is a struct in memory reads it, and one whose result is a struct may write it, uncounted. A
    constant is read uncounted, also where it is shared memory that was written by a cast. Builtins and functions of
    mathematics that access memory do so uncounted."""
    if any(len(row) > MOST_ROW for row in dump.split("\n")):
        return TOO_LONG
    theirs = moved_by_builtin(of_teacher)
    for (symbol, name), place in moved_by_builtin(dump).items():
        if (symbol, name) not in theirs:
            own = place and int(place[2]) in lines_of.get(place[1].split("/")[-1], ())
            return (f"{place[1].split('/')[-1]}:{place[2]}: " if own else "") + \
                f"the code has g++ move data by `{name}`, which is not counted; write a loop"
    shared = {text.split("::")[-1] for text in demangled(
        symbol.name for symbol in symbols_of(path) if symbol.kind == "TLS").values()}
    names = {name.split("::")[-1] for name in re.findall(r"^;; Function (?:.*? )??([\w:~]+)(?:<.*)? \(", dump, re.MULTILINE)}
    for function in dump.split("\n;; Function ")[1:]:
        head, _, body = function.partition("\n{\n")
        if beyond := index_beyond(body.split("\n"), shared):
            place = next((f"{file.split('/')[-1]}:{line}: " for file, line in PLACE.findall(beyond[0])
                          if int(line) in lines_of.get(file.split("/")[-1], ())), "")
            return f"{place}`{beyond[1]}` is indexed as a larger array than it is, which is not counted"
        local, static = set(re.findall(r"(\w+)(?=[,)])", head)), set()
        for row in body.split("\n"):
            place = PLACE.search(row)
            plain = PLACE.sub("", row).strip()
            line = f"{place[1].split('/')[-1]}:{place[2]}: " if place and int(place[2]) in lines_of.get(
                place[1].split("/")[-1], ()) else ""
            declared = re.fullmatch(r"(static )?(.*?)([\w.]+)(?:\[\S*\])*(?: = .*)?;", plain)
            if not place and declared and " = " not in plain.split(declared[3])[0]:
                (static if declared[1] else local).add(declared[3])
                if not declared[1]:
                    continue
                if re.search(r"\bconst\b", declared[2]) and declared[3] in shared:
                    return (f"{line_of_name(declared[3], lines_of)}the shared variable `{declared[3]}` is const: what is "
                            "read from it is not counted")
                continue
            if writes := WRITES.search(plain):
                to = split_arguments(plain[writes.end():plain.rindex(")")])[2 if writes[1] == "remquo" else 1:]
                if not all(re.match(r"&(\w*)", operand) and re.match(r"&(\w*)", operand)[1] in local - static for operand in to):
                    return f"{line}`{writes[1]}` writes to memory, which is not counted: let it write to a variable of the function"
            # These are constants to g++: it instruments no access through their address.
            if index := re.match(r"(?:MEM[^;=]*&)?(threadIdx|blockIdx|blockDim|gridDim)\b.* = ", plain) or re.search(
                    r"MEM[^;]*&(threadIdx|blockIdx|blockDim|gridDim)(?! \+ [48]B?\]|\])", plain) or re.search(
                    r"MEM[^;]*&(threadIdx|blockIdx|blockDim|gridDim)[^\]]*\]\[", plain):
                return f"{line}`{index[1]}` is written, or something else is read through its address"
            if not line:
                continue
            for operand in operands_of(plain):
                base = re.fullmatch(r"MEM\S* ?\[\([^)]*\)&([\w.]+).*|(?!MEM|TARGET_MEM_REF)(D\.\d+|\w+)(?:[.\[].*)?", operand)
                name = (base[1] or base[2]) if base else ""
                known = name not in static and (name in local or re.fullmatch(r"D\.\d+", name)) and "->" not in operand
                in_registers = IN_REGISTERS.fullmatch(operand) and operand not in static | shared
                if in_registers or known or re.match(r"[\w:~]*", operand)[0].split("::")[-1] in names - shared - static:
                    continue
                return (f"{line}a struct in memory is an argument or a result of a call, which "
                        "cannot be counted; copy it by way of a variable")
    return ""


BOUNDS_OF_LAUNCH = re.compile(r"__launch_bounds__\((?:[^()]|\([^()]*\))*\)")


def device_functions(text):
    """[(name, whether it is a kernel, first line, last line)] of those that a text defines."""
    text, found = BOUNDS_OF_LAUNCH.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text), []
    for match in re.finditer(r"__(global|device)__[^;{}()=]*?\b(\w+)\s*\(", text):
        depth, at = 0, match.end()
        for at in range(match.end() - 1, len(text)):  # to the end of its body, or of its declaration
            depth += (text[at] in "({") - (text[at] in ")}")
            if depth == 0 and text[at] in "};":
                break
        if text[at] == "}":
            found.append((match[2], match[1] == "global", text.count("\n", 0, match.start(2)) + 1, text.count("\n", 0, at) + 1))
    return found


def of_the_book(dump, of_teacher, headers, part, lines_of):
    """What a submission runs of the book's levels that is its to write: a kernel, or a function that `part`, as it was
    handed out, defines; or "". What the teacher's version runs, it may, too. `headers`: {name: text}"""
    mine, theirs = ({(file, int(line)) for file, line in re.findall(r"/((?:chapters|library|capstones)/[^]\s:]+):(\d+):", one)}
                    for one in (dump, of_teacher))
    to_write = {name for name, *_ in device_functions(part)}
    for file, text in headers.items():
        for name, kernel, first, last in device_functions(text):
            body = {(file, line) for line in range(first, last + 1)}
            if (kernel or name in to_write) and body & mine and not body & theirs:
                place = line_of_name(name, lines_of, r"::\s*(?:template\s+)?")
                return f"{place}the code runs `{name}` of {file.split('/')[-1]}, which is a level of the book: write your own"
    return ""


def operands_of(statement):
    """The result and the arguments of a call, where a statement of g++'s is one of a function that was compiled."""
    text = re.sub(r"(?: \[[a-z ]+\])+$", "", STRING.sub('""', statement))
    if not text.endswith(");"):
        return []
    depth = at = 0
    for at in range(len(text) - 2, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            break
    result, _, name = text[:at].rpartition(" = ")
    if not name.endswith(" ") or name.startswith(("__builtin___", ".")):
        return []
    return [*filter(None, [result, *split_arguments(text[at + 1:-2])])]


# What g++ makes beside the functions of the source: wrappers of thread-local variables, and the instrumentation's start.
UNCOUNTED = re.compile(r"TLS (?:wrapper|init) function|_sub_I_|__tls_init|_GLOBAL__sub|non-virtual thunk|virtual thunk")


OF_LIBRARY = re.compile(r"_ZN?K?St|_ZN?K?9__gnu_cxx")
COPIES = [f"{name} __tsan_{name}" for name in ("memcpy", "memmove", "memset", "memcmp")]


# Calls from the wrong side, which nothing counts or bounds, end what runs: a kernel has no use for operator new,
# exceptions or the standard library's own objects, nor the host for atomics. `current_thread` is null on the host.
# Elsewhere than on x86-64 such calls are not stopped.
ONE_SIDE = """.globl {new}
{new}: movq _ZN8cookbook4simt14current_threadE@gottpoff(%rip), %r11
 cmpq $0, %fs:(%r11)
 {jump} 1f
 jmp {old}@PLT
1: leaq 2f(%rip), %rdi
 jmp cookbook_grading_called_by_{side}@PLT
2: .asciz "{said}"
"""
BOTH_SIDES = re.compile(r"(?:(?:[^()]*[ ])?cookbook::(?:detail::launch_kernel|LaunchError::|spin_pause|to_tf32|make_tensor_map|"
                        r"device_info|simt::units::)|threadIdx|blockIdx|blockDim|gridDim).*")
VARIABLES = {"stdin", "stdout", "stderr", "environ", "__libc_single_threaded", "signgam"}


def of_one_side(path):
    """[(symbol, its name here, demangled, side that it is not for)] of the functions that the object imports, and only the
    host or only kernels call."""
    if struct.unpack_from("<H", path.read_bytes(), 18)[0] != 62:
        return []
    found = []
    for symbol, name in undefined(path).items():
        if MATHEMATICS.fullmatch(name) or COMPILER.fullmatch(name) or BOTH_SIDES.fullmatch(name) or symbol in VARIABLES or \
                symbol.startswith("_ZT") or "(" not in name and symbol.startswith("_Z"):
            continue
        found.append((symbol, f"cookbook_of_one_side_{len(found)}", name, "host" if DEVICE.fullmatch(name) else "kernel"))
    return found


def confine(path, target, gpu=False):
    """The object file with every definition local but the entry, and nothing that runs by itself: its
    functions cannot take the place of the grader's. `gpu`: except nvcc's registration of the kernels."""
    joined, names = target.with_suffix(".joined.o"), target.with_suffix(".names")
    output_of(["ld", "-r", "--force-group-allocation", str(path), "-o", str(joined)])
    # The tracer does not count what code of the standard library accesses, because the runtime uses it, too: here it
    # is the submission's. And it counts what is copied.
    renamed = [f"{symbol.name} cookbook_submitted{symbol.name}" for symbol in symbols_of(joined)
               if symbol.section and symbol.kind == "FUNC" and OF_LIBRARY.match(symbol.name)]
    traced = "__tsan_init" in undefined(joined)
    renamed += COPIES if traced else []
    one_side = of_one_side(joined) if traced else []
    renamed += [f"{symbol} {new}" for symbol, new, _, _ in one_side]
    names.write_text("".join(f"{row}\n" for row in dict.fromkeys(renamed)))
    sections = [".ctors*", ".fini_array*", ".preinit_array*", ".dtors*"]
    if not gpu:
        sections += [".init_array*", ".rela.init_array*"]
    output_of(["objcopy", f"--redefine-syms={names}", f"--keep-global-symbol={ENTRY}", *(f"--remove-section={name}" for name in sections),
               str(joined), str(target)])
    if one_side:
        source, made = target.with_suffix(".s"), target.with_suffix(".one_side.o")
        source.write_text("".join(ONE_SIDE.format(
            new=new, old=old.replace("__cxa_allocate_", "cookbook_grading_allocate_"), side=side, jump="jne" if side == "kernel" else "je",
            said=re.sub(r"[^ -~]|[\\\"]", "?", readable(name))) for old, new, name, side in one_side) +
            '.section .note.GNU-stack,"",@progbits\n')
        output_of(["as", str(source), "-o", str(made)])
        target.rename(joined)
        output_of(["ld", "-r", str(joined), str(made), "-o", str(target)])
    joined.unlink()
