// SPDX-License-Identifier: MIT
// Level 6's kernels for tiles that are assigned whole. They are in files of their own because
// several programs link them: see `extern template` in level_6_any_shape.cuh.
#include "chapters/08_persistent/level_6_any_shape.cuh"

namespace cookbook::gemm::any_shape {

template Plan prepare_tiles<>(Tiles, const Problem&, const Buffers&);

}  // namespace cookbook::gemm::any_shape
