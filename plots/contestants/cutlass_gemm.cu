// SPDX-License-Identifier: MIT
// C = A B by CUTLASS's kernels for Hopper, for `./run compare`: cutlass.py compiles it, a library
// per schedule, from CUTLASS's headers. COOPERATIVE: two warpgroups share a tile of 128 x 256;
// otherwise ping-pong: they take turns with tiles of 128 x 128.
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/kernel_hardware_info.hpp>
#include <cutlass/util/packed_stride.hpp>

namespace {

using Element = cutlass::bfloat16_t;
using RowMajor = cutlass::layout::RowMajor;
constexpr int kAlignment = 16 / sizeof(Element);

#if COOPERATIVE
using Tile = cute::Shape<cute::_128, cute::_256, cute::_64>;
using MainSchedule = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
using EndSchedule = cutlass::epilogue::TmaWarpSpecializedCooperative;
#else
using Tile = cute::Shape<cute::_128, cute::_128, cute::_64>;
using MainSchedule = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
using EndSchedule = cutlass::epilogue::TmaWarpSpecialized;
#endif
using Cluster = cute::Shape<cute::_2, cute::_1, cute::_1>;

using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, RowMajor, kAlignment,
    Element, RowMajor, kAlignment, EndSchedule>::CollectiveOp;
// [quote gemm]
using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, RowMajor, kAlignment, Element,
    RowMajor, kAlignment, float, Tile, Cluster,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
        sizeof(typename Epilogue::SharedStorage))>,
    MainSchedule>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop,
                                                    Epilogue, cutlass::gemm::PersistentScheduler>;
// [end quote]
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

struct Plan {
  Gemm gemm;
  void* workspace = nullptr;
};

}  // namespace

/// Dense row-major bf16 matrices in device memory: A (m x k), B (k x n), C (m x n). swizzle: width
/// of the bands in which tiles are computed, 1, 2, 4 or 8. Null where CUTLASS cannot.
extern "C" void* cookbook_cutlass_plan(const void* a, const void* b, void* c, int m, int n, int k,
                                       int swizzle) {
  const auto stride = [](auto kind, int rows, int cols) {
    return cutlass::make_cute_packed_stride(kind, {rows, cols, 1});
  };
  cutlass::KernelHardwareInfo hardware;
  hardware.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(0);
  typename Gemm::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGemm,
      {m, n, k, 1},
      {static_cast<const Element*>(a), stride(typename Kernel::StrideA{}, m, k),
       static_cast<const Element*>(b), stride(typename Kernel::StrideB{}, n, k)},
      {{1.0f, 0.0f},
       nullptr,
       stride(typename Kernel::StrideC{}, m, n),
       static_cast<Element*>(c),
       stride(typename Kernel::StrideD{}, m, n)},
      hardware};
  arguments.scheduler.max_swizzle_size = swizzle;
  if (Gemm::can_implement(arguments) != cutlass::Status::kSuccess) return nullptr;
  auto* plan = new Plan;
  const size_t bytes = Gemm::get_workspace_size(arguments);
  if ((bytes > 0 && cudaMalloc(&plan->workspace, bytes) != cudaSuccess) ||
      plan->gemm.initialize(arguments, plan->workspace) != cutlass::Status::kSuccess) {
    cudaFree(plan->workspace);
    delete plan;
    return nullptr;
  }
  return plan;
}

/// 0, or CUTLASS's status.
extern "C" int cookbook_cutlass_run(void* plan, void* stream) {
  return static_cast<int>(static_cast<Plan*>(plan)->gemm.run(static_cast<cudaStream_t>(stream)));
}

extern "C" void cookbook_cutlass_destroy(void* plan) {
  cudaFree(static_cast<Plan*>(plan)->workspace);
  delete static_cast<Plan*>(plan);
}

extern "C" const char* cookbook_cutlass_version() {
#define COOKBOOK_TEXT(x) #x
#define COOKBOOK_VERSION(a, b, c) COOKBOOK_TEXT(a) "." COOKBOOK_TEXT(b) "." COOKBOOK_TEXT(c)
  return COOKBOOK_VERSION(CUTLASS_MAJOR, CUTLASS_MINOR, CUTLASS_PATCH);
}
