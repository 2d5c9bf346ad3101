# SPDX-License-Identifier: MIT
"""What the object file of a submission may contain: kernels and launches, nothing that runs by itself.

Compared with the object file of the teacher's own version. Beyond what that one imports, a submission may
import the device interface, mathematics and what the compiler adds.
"""
import re
import struct
import subprocess

# The device interface of the SIMT backend (common/backend/simt/language/language.hpp, units/), demangled.
DEVICE = re.compile(r"""
  (?: threadIdx | blockIdx | blockDim | gridDim
  | cookbook::detail::launch_kernel\(.*
  | cookbook::LaunchError::.* | cookbook::spin_pause\(\)
  | cookbook::simt::(?:
      sync_\w+ | shuffle\w* | vote\w* | ballot\w* | match_\w+ | reduce\w* | active_mask | lane_id | any_of | all_of
    | dynamic_shared_memory | shared_address | shared_pointer | memory_fence\w* | nap | atomic_\w+ | normal_quantile
    | cycle_counter | nanosecond_counter | trap | load_acquire | store_release
    | (?:named_)?barrier_\w+ | cluster_\w+ | map_shared_rank | mapa\w*
    )\(.*
  | cookbook::simt::units::.*
  # The units of later GPUs: asynchronous copies, tensor cores, barriers in shared memory, clusters, TMA.
  | cookbook::(?:bulk|cluster|cp_async|fence|mbarrier|named_barrier|tma|wgmma)_\w+\(.*
  | cookbook::(?:elect_one|to_tf32|make_tensor_map|device_info)\(.*
  | cookbook::simt::(?:bulk_wait|cp_async\w*|ldmatrix|stmatrix|map_shared|mma_\w+|set_registers|store_async|
      wgmma_\w+|wmma_\w+)(?:<.*>)?\(.*
  )""", re.VERBOSE)
# What a level says about itself, which makes data and nothing else.
CLAIMS = re.compile(r"""cookbook::(?:
    (?:global|shared|tma)_(?:loads|stores) | Accesses::\w+ | faster_than_previous | at_least_previous | against_library
  | fraction_of_roof | number_text )(?:\[abi:cxx11\])?\(.*""", re.VERBOSE)
MATHEMATICS = re.compile(r"""
  (?: a?(?:sin|cos|tan)h? | atan2 | exp2? | expm1 | exp10 | log(?:2|10|1p|b)? | pow | sqrt | cbrt | hypot | fabs | fmod
  | fm(?:a|in|ax) | floor | ceil | trunc | l?l?r(?:ound|int) | nearbyint | ldexp | frexp | modf | scalbl?n | copysign
  | erfc? | [lt]gamma | remainder | remquo | nextafter | ilogb | fdim | sincos | j[01n] | y[01n] | nan )[fl]?
  """, re.VERBOSE)
# What g++ adds without being asked: instrumentation, unwinding, copies of structs.
COMPILER = re.compile(r"""
  (?: __tsan_(?!acquire|release|mutex|create|switch|set|get|destroy)\w+ | __sanitizer_cov_trace_pc | __ubsan_handle_\w+
  | _Unwind_Resume | __gxx_personality_v0 | __cxa_(?:begin|end)_catch | __cxa_call_terminate | __cxa_guard_\w+
  | _GLOBAL_OFFSET_TABLE_ | __tls_get_addr | __tls_init | mem(?:cpy|set|move|cmp) | str(?:len|cmp) | __stack_chk_fail
  | std::terminate\(\) | std::__throw_\w+\(.*\) | __assert_fail | __dso_handle )""", re.VERBOSE)
ENTRY = "_ZN8cookbook7grading5entryEv"
# g++ -fsanitize=thread makes one, which calls __tsan_init.
OWN_CONSTRUCTOR = ".init_array.00099"
# Instructions that reach the kernel of the operating system, or the outside.
FORBIDDEN_INSTRUCTIONS = re.compile(r"^(syscall|sysenter|int[013n]?|sysret|svc|hvc|smc|in|out|ins\w*|outs\w*|rdtscp?|"
                                    r"rdpmc|cpuid|wrfsbase|wrgsbase|hlt|brk)$")


def output_of(command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                          env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"})
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()[:400]}")
    return done.stdout


def undefined(path):
    """{symbol: demangled} that the linker must find elsewhere."""
    names = [row.split()[-1] for row in output_of(["nm", "-u", str(path)]).splitlines() if row.strip()]
    plain = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True).stdout.split("\n")
    return dict(zip(names, plain))


def writable_data(path):
    """Names of variables that keep a value from launch to launch; thread-local ones are shared memory."""
    found = set()
    for row in output_of(["nm", "-S", "--defined-only", str(path)]).splitlines():
        fields = row.split()
        if len(fields) != 4 or fields[2] not in "bBdDgGsSuvV":
            continue
        found.add(fields[3])
    sections = {}
    for row in output_of(["objdump", "-t", str(path)]).splitlines():
        match = re.match(r"[0-9a-f]+ .{7} (\S+)\s+[0-9a-f]+\s+(?:\.hidden )?(\S+)$", row)
        if match:
            sections[match[2]] = match[1]
    return {name for name in found
            if sections.get(name, "").startswith((".data", ".bss")) and ".data.rel.ro" not in sections[name]
            and not name.startswith(("DW.ref.", ".L", "_ZGVZ"))}


# What a block may have of static shared memory: CUDA's own limit.
MOST_SHARED_BYTES = 48 << 10


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
    """[(name, type, size)], from the file's own header."""
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
    return [(raw[text + row[0]:raw.index(b"\0", text + row[0])].decode(), row[1], row[5]) for row in rows]


def readable(demangled):
    return demangled if len(demangled) < 100 else demangled[:97] + "..."


# nvcc's variables of a kernel's handle, and what finds the device code; the lint forbids such names.
OF_NVCC = re.compile(r"__cudaFatCubinHandle|_ZZ\w*__device_stub_\w+|_ZL20__cudaFatCubinHandle")


def check_object(path, teacher, gpu=False):
    """What is wrong with a submission's object file, or "". `teacher`: the teacher's own, compiled alike. `gpu`:
    made by nvcc, whose registration of the kernels is one static initialiser."""
    allowed = undefined(teacher)
    for symbol, name in undefined(path).items():
        if symbol in allowed:
            continue
        if not (DEVICE.fullmatch(name) or CLAIMS.fullmatch(name) or MATHEMATICS.fullmatch(name) or COMPILER.fullmatch(name)):
            return f"the code calls `{readable(name)}`: only kernels, launches and mathematics are allowed"
    for name, kind, size in sections_of(path):
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
        name = output_of(["c++filt", sorted(more)[0]]).strip()
        return f"the variable `{readable(name)}` keeps a value from one launch to the next"
    if wrong := too_much_shared(path):
        return wrong
    for row in output_of(["objdump", "-d", "--no-show-raw-insn", "-w", str(path)]).splitlines():
        match = re.match(r"\s+[0-9a-f]+:\s+(?:(?:lock|rep\w*|notrack|bnd|data16|cs)\s+)*(\w+)", row)
        if match and FORBIDDEN_INSTRUCTIONS.match(match[1]):
            return f"the code has the instruction `{match[1]}`"
    return ""


def confine(path, target, gpu=False):
    """The object file with every definition local but the entry, and nothing that runs by itself: its
    functions cannot take the place of the grader's. `gpu`: except nvcc's registration of the kernels."""
    joined = target.with_suffix(".joined.o")
    output_of(["ld", "-r", "--force-group-allocation", str(path), "-o", str(joined)])
    sections = [".ctors*", ".fini_array*", ".preinit_array*", ".dtors*"]
    if not gpu:
        sections += [".init_array*", ".rela.init_array*"]
    output_of(["objcopy", f"--keep-global-symbol={ENTRY}", *(f"--remove-section={name}" for name in sections),
               str(joined), str(target)])
    joined.unlink()
