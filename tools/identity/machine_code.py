# SPDX-License-Identifier: MIT
"""The machine code of kernels, read from the object file or executable that holds them.

nvcc puts an ELF image for each GPU into the section .nv_fatbin; they must not be compressed (--no-compress)."""
import hashlib
import struct
from pathlib import Path

DIGITS = 16  # of a hash, as text
FATBIN, FATBIN_ELF = 0xBA55ED50, 2


class Unreadable(Exception):
    """A file that holds no machine code to read, with the reason."""


def short_hash(*parts):
    """The hash of byte strings, which are told apart."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest()[:DIGITS]


def sections(elf):
    """(name, size, contents) of each section of a 64-bit ELF file."""
    start, = struct.unpack_from("<Q", elf, 0x28)
    entry, count, names_at = struct.unpack_from("<HHH", elf, 0x3A)
    heads = [struct.unpack_from("<IIQQQQIIQQ", elf, start + i * entry) for i in range(count)]
    names = bytes(elf[heads[names_at][4]:][:heads[names_at][5]])
    for name, kind, _, _, at, size, *_ in heads:  # kind 8 has a size and no contents
        yield names[name:names.index(b"\0", name)].decode(), size, b"" if kind == 8 else elf[at:at + size]


def images(path):
    """(compute capability, ELF image) of everything that nvcc has put into a file."""
    data = memoryview(Path(path).read_bytes())
    if data[:4] != b"\x7fELF":
        raise Unreadable(f"{path} is no object file or executable")
    for name, _, fatbins in sections(data):
        if name != ".nv_fatbin":
            continue
        at = 0
        while at + 16 <= len(fatbins):
            magic, _, header, size = struct.unpack_from("<IHHQ", fatbins, at)
            if magic != FATBIN:  # padding between those of two object files
                at += 8
                continue
            end, at = at + header + size, at + header
            while at < end:
                kind, _, header, size = struct.unpack_from("<HHIQ", fatbins, at)
                capability, = struct.unpack_from("<I", fatbins, at + 28)
                if kind == FATBIN_ELF:
                    if fatbins[at + header:at + header + 4] != b"\x7fELF":
                        raise Unreadable(f"{path}: its machine code is compressed: build it with nvcc --no-compress")
                    yield capability, fatbins[at + header:at + header + size]
                at += header + size


def reads_constants(code):
    """Whether an instruction has an operand in bank 3, where a module's __constant__ variables are.

    A 128-bit instruction says in bits 9 to 11 that an operand is a constant, and in bits 54 to 58 of which bank."""
    return any(word >> 54 & 31 == 3 and word >> 9 & 7 in (3, 5) for word, _ in struct.iter_unpack("<QQ", code))


def registers(cubin_sections):
    """Index in the symbol table -> registers per thread: the records 0x2f of .nv.info."""
    info, at, found = bytes(cubin_sections.get(".nv.info", (0, b""))[1]), 0, {}
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        if attribute == 0x2F:
            symbol, count = struct.unpack_from("<II", info, at + 4)
            found[symbol] = count
        at += 4 + (size if form == 4 else 0)
    return found


def of_image(cubin):
    """Mangled name -> hash, of each kernel of an ELF image: instructions, registers, static shared memory, constants."""
    found = {name: (size, body) for name, size, body in sections(cubin)}
    used = registers(found)
    kernels, names = {}, bytes(found[".strtab"][1])
    for index, (name, kind, _, _, _, _) in enumerate(struct.iter_unpack("<IBBHQQ", found[".symtab"][1])):
        if kind & 15 == 2:  # a function
            kernels[names[name:names.index(b"\0", name)].decode()] = used.get(index, 0)
    reserved = 1024 if ".nv.shared.reserved.0" in found else 0  # part of the size, where a module says that at all
    variables = found.get(".nv.global.init", (0, b""))[1]
    constants = found.get(".nv.constant3", (0, b""))[1]
    hashes = {}
    for name, count in kernels.items():
        if ".text." + name not in found:
            continue
        code = found[".text." + name][1]
        own = [found[section][1] for bank in (1, 2, 4) if (section := f".nv.constant{bank}.{name}") in found]
        hashes[name] = short_hash(
            code, b"%d registers" % count, b"%d bytes" % found.get(".nv.shared." + name, (reserved,))[0], variables,
            constants if constants and reads_constants(code) else b"", *own)
    return hashes


def machine_code(paths, capability=90):
    """Mangled name -> hash of every kernel for that compute capability in object files or executables."""
    found = {}
    for path in paths:
        for capable, image in images(path):
            if capable == capability:
                found.update(of_image(image))
    return found
