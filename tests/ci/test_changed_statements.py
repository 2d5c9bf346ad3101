# SPDX-License-Identifier: MIT
"""changed_statements.py on small kernels, and the book's ladders within its limit."""
import unittest
from pathlib import Path

import changed_statements as counting
from tree import Tree

KERNEL = """
template <class C>
__global__ void __launch_bounds__(C::kThreads, C::at(1)) {name}(int n, float* out) {{
  const int i = threadIdx.x;  // a comment; with a semicolon
#pragma unroll
  for (int k = 0; k < 4; ++k) {{
    {body}
  }}
  if (i < n) out[i] = k;
}}
"""


def statements(name="naive", body="k += 1;"):
    kernel, = counting.kernels(KERNEL.format(name=name, body=body))
    return counting.statements(kernel)


class ChangedStatements(Tree):
    def test_a_kernel_is_split_into_its_statements(self):
        self.assertEqual(statements(), [
            "void__launch_bounds__(C::kThreads,C::at(1))kernel(intn,float*out)",
            "constinti=threadIdx.x", "for(intk=0;k<4;++k)", "k+=1", "if(i<n)out[i]=k"])

    def test_names_and_layout_are_no_change(self):
        self.assertEqual(counting.changed(statements("naive"), statements("tiled", "k  +=\n 1;")),
                         (0, 0))

    def test_new_and_dropped_statements_are_counted(self):
        self.assertEqual(counting.changed(statements(), statements(body="k += 2;")), (1, 1))
        self.assertEqual(counting.changed(statements(), statements(body="k += 1; k += 2; f(k);")),
                         (2, 0))
        self.assertEqual(counting.changed(statements(), statements(body="")), (0, 1))
        self.assertEqual(counting.changed(["a", "b", "c"], ["c", "a", "b"]), (1, 1))  # moved

    def test_declarations_are_no_kernels(self):
        self.assertEqual(counting.kernels("template <class C> __global__ void f(int); struct S {};"),
                         [])

    def test_a_level_without_a_kernel_runs_that_of_the_level_it_includes(self):
        for name, text in (("level_1_naive", KERNEL.format(name="naive", body="f();")),
                           ("level_2_same", '#include "chapters/06_tma/level_1_naive.cuh"\nstruct Same {};\n'),
                           ("level_10_other", KERNEL.format(name="other", body="g();")), ("decode_level_0_alone", ""),
                           ("level_11_apart", '#include "chapters/06_tma/body.cuh"\n'),
                           ("body", KERNEL.format(name="other", body="g(); h();"))):
            self.write(f"chapters/06_tma/{name}.cuh", text)
        self.assertEqual([(file.name, size, new, gone) for file, size, new, gone in counting.steps(self.root, ["6"])],
                         [("level_2_same.cuh", 5, 0, 0), ("level_10_other.cuh", 5, 1, 1), ("level_11_apart.cuh", 6, 1, 0)])

    def test_the_book_is_within_the_limit(self):
        found = counting.steps(Path(__file__).resolve().parents[2])
        self.assertGreater(len(found), 20)
        self.assertTrue(all(size > 0 for _, size, _, _ in found))
        self.assertLessEqual(counting.median_of(found), counting.LIMIT)


if __name__ == "__main__":
    unittest.main()
