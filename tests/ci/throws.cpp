// SPDX-License-Identifier: MIT
// How many exceptions throw.cpp notes (test_throw.py).
#include <cstdio>
#include <exception>
#include <vector>
namespace cookbook::simt {
int noted = 0;
void note_throw() { ++noted; }
}  // namespace cookbook::simt
int main() {
  try {
    throw 1;
  } catch (int) {
  }
  try {
    std::vector<int>(1).at(1);
  } catch (const std::exception&) {
  }  // the library throws
  try {
    std::rethrow_exception(std::make_exception_ptr(1));
  } catch (int) {
  }  // none new
  std::printf("%d", cookbook::simt::noted);
}
