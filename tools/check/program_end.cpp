// SPDX-License-Identifier: MIT
// Linked behind the objects of a program and before all libraries: where its code ends
// (preemptible_code).
asm(".text\n.globl cookbook_program_end\ncookbook_program_end:\n");
