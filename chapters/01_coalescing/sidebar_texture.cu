// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar: an image read along a rotated grid, from row-major memory and through a texture. A CUDA
// array stores neighbours in both directions close together, so a warp that moves across the rows
// still finds its neighbours in the same sectors. Along rows a texture gains nothing. The SIMT
// backend does not model the texture unit: this program runs on a GPU only.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/bench/bench.hpp"
#include "common/device/cuda.cuh"
#include "common/harness/report/statistics.hpp"
#include "common/harness/run/arguments.hpp"

namespace cookbook {
namespace {

constexpr int kExtent = 8192;  // pixels per side: 256 MiB of floats
constexpr int kThreadsX = 32;
constexpr int kThreadsY = 8;

/// Rotates pixel (x, y) about the centre of the image; the result is clamped to the image.
struct Rotation {
  float cosine, sine;
  __device__ int2 operator()(int x, int y) const {
    const float dx = x - kExtent / 2, dy = y - kExtent / 2;
    const int u = static_cast<int>(floorf(cosine * dx - sine * dy + 0.5f)) + kExtent / 2;
    const int v = static_cast<int>(floorf(sine * dx + cosine * dy + 0.5f)) + kExtent / 2;
    return make_int2(min(max(u, 0), kExtent - 1), min(max(v, 0), kExtent - 1));
  }
};

__global__ void rotate_linear(const float* __restrict__ in, float* __restrict__ out,
                              Rotation rotation) {
  const int x = blockIdx.x * kThreadsX + threadIdx.x, y = blockIdx.y * kThreadsY + threadIdx.y;
  const int2 from = rotation(x, y);
  out[std::int64_t{y} * kExtent + x] = __ldg(in + std::int64_t{from.y} * kExtent + from.x);
}

__global__ void rotate_texture(cudaTextureObject_t in, float* __restrict__ out, Rotation rotation) {
  const int x = blockIdx.x * kThreadsX + threadIdx.x, y = blockIdx.y * kThreadsY + threadIdx.y;
  const int2 from = rotation(x, y);
  out[std::int64_t{y} * kExtent + x] = tex2D<float>(in, from.x + 0.5f, from.y + 0.5f);
}

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

/// A kExtent x kExtent image in a CUDA array, with a texture object without filtering.
class Texture {
 public:
  explicit Texture(const void* pixels) {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    check(cudaMallocArray(&array_, &format, kExtent, kExtent));
    const std::size_t row_bytes = kExtent * sizeof(float);
    check(cudaMemcpy2DToArray(array_, 0, 0, pixels, row_bytes, row_bytes, kExtent,
                              cudaMemcpyDeviceToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array_;
    cudaTextureDesc texture = {};
    texture.addressMode[0] = texture.addressMode[1] = cudaAddressModeClamp;
    texture.filterMode = cudaFilterModePoint;
    texture.readMode = cudaReadModeElementType;
    check(cudaCreateTextureObject(&object_, &resource, &texture, nullptr));
  }
  ~Texture() {
    cudaDestroyTextureObject(object_);
    cudaFreeArray(array_);
  }
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;
  cudaTextureObject_t object() const { return object_; }

 private:
  cudaArray_t array_ = nullptr;
  cudaTextureObject_t object_ = 0;
};

int run() {
  const std::size_t pixels = std::size_t{kExtent} * kExtent, bytes = pixels * sizeof(float);
  std::vector<float> image(pixels);
  std::mt19937 random(1);
  for (float& pixel : image) pixel = static_cast<float>(random() >> 8);
  DeviceMemory in(bytes, "in"), linear_out(bytes, "linear"), texture_out(bytes, "texture");
  in.copy_from_host(image.data(), bytes);
  const Texture texture(in.data());
  const LaunchConfig config{dim3(kExtent / kThreadsX, kExtent / kThreadsY),
                            dim3(kThreadsX, kThreadsY)};

  std::printf("| angle | row-major, us | texture, us | row-major / texture |\n|---|---|---|---|\n");
  bool same = true;
  for (const int degrees : {0, 10, 45, 90}) {
    const double angle = degrees * std::acos(-1.0) / 180;
    const Rotation rotation{static_cast<float>(std::cos(angle)),
                            static_cast<float>(std::sin(angle))};
    const std::vector<Contender> contenders = {
        {"row-major",
         [&](Stream stream) {
           launch(rotate_linear, config, stream, in.as<const float>(), linear_out.as<float>(),
                  rotation);
         }},
        {"texture", [&](Stream stream) {
           launch(rotate_texture, config, stream, texture.object(), texture_out.as<float>(),
                  rotation);
         }}};
    std::vector<ClockSample> clocks;
    const std::vector<Measurement> times = measure(contenders, BenchOptions{}, &clocks);
    for (const Measurement& time : times) {
      if (!time.error.empty()) throw std::runtime_error(time.error);
    }
    std::vector<float> expected(pixels), got(pixels);
    linear_out.copy_to_host(expected.data(), bytes);
    texture_out.copy_to_host(got.data(), bytes);
    same = same && std::memcmp(expected.data(), got.data(), bytes) == 0;
    std::printf("| %d degrees | %.1f | %.1f | %.2f |\n", degrees, times[0].cold.median,
                times[1].cold.median, paired_ratio(times[0].cold_us, times[1].cold_us).ratio);
  }
  std::puts(same ? "both read the same pixels" : "MISMATCH: the two read other pixels");
  return same ? 0 : 1;
}

}  // namespace
}  // namespace cookbook

int main(int argc, char** argv) {
  cookbook::take_no_arguments(argc, argv);
  try {
    return cookbook::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sidebar_texture: %s\n", error.what());
    return 1;
  }
}
