#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""forbid.py STEP COMMAND...: runs a command in which a step of making namespaces fails with EPERM, for an ordinary user and for
root. STEP: CLONE_NEWUSER, or a system call."""
import ctypes
import errno
import os
import struct
import sys

# Of x86-64 and of aarch64.
CALLS = {"clone": (56, 220), "unshare": (272, 97), "mount": (165, 40), "pivot_root": (155, 41), "umount2": (166, 39),
         "clone3": (435, 435)}
CLONE_NEWUSER = 0x10000000
LOAD, JUMP_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, FAIL = 0x7fff0000, 0x00050000


def rules_of(step, machine):
    """The filter's instructions: (code, where to go if so, if not, a value)."""
    number = {name: both[machine == "aarch64"] for name, both in CALLS.items()}
    if step != "CLONE_NEWUSER":
        return [(LOAD, 0, 0, 0), (JUMP_EQUAL, 0, 1, number[step]), (RETURN, 0, 0, FAIL | errno.EPERM), (RETURN, 0, 0, ALLOW)]
    return [(LOAD, 0, 0, 0), (JUMP_EQUAL, 4, 0, number["clone3"]), (JUMP_EQUAL, 1, 0, number["clone"]),
            (JUMP_EQUAL, 0, 4, number["unshare"]), (LOAD, 0, 0, 16), (JUMP_SET, 1, 2, CLONE_NEWUSER),
            (RETURN, 0, 0, FAIL | errno.ENOSYS), (RETURN, 0, 0, FAIL | errno.EPERM), (RETURN, 0, 0, ALLOW)]


def main(argv):
    rules = b"".join(struct.pack("HBBI", *rule) for rule in rules_of(argv[0], os.uname().machine))
    held = ctypes.create_string_buffer(rules, len(rules))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rules) // 8, ctypes.addressof(held)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:  # no new privileges; a filter
        raise OSError(ctypes.get_errno(), "prctl")
    os.execvp(argv[1], argv[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
