// SPDX-License-Identifier: MIT
// Level 6's kernels. They are in a file of their own because several programs link them: see
// `extern template` in level_6_any_shape.cuh.
#include "chapters/08_persistent/level_6_any_shape.cuh"

namespace cookbook::gemm::any_shape {

template Plan prepare_tiles<>(Tiles, const Problem&, const Buffers&);
template Plan prepare_best<Large, Medium, Small>(const Problem&, const Buffers&);
template Plan prepare_with<Large>(const Problem&, const Buffers&, int);
template Plan prepare_with<Medium>(const Problem&, const Buffers&, int);
template Plan prepare_with<Small>(const Problem&, const Buffers&, int);
template Plan prepare_gemv<8>(const Problem&, const Buffers&);
template Plan prepare_gemv<1>(const Problem&, const Buffers&);
template Plan prepare_skinny_for<Major::k>(const Problem&, const Buffers&, const Gemv&);
template Plan prepare_skinny_for<Major::mn>(const Problem&, const Buffers&, const Gemv&);
template Plan prepare_short_k<>(const Problem&, const Buffers&, const Gemv&);
template Plan prepare_splitting_for<Major::k>(const Problem&, const Buffers&, int);
template Plan prepare_splitting_for<Major::mn>(const Problem&, const Buffers&, int);
template Plan prepare_split_k<>(SplitTiles, const Problem&, const Buffers&, int);

}  // namespace cookbook::gemm::any_shape
