// SPDX-License-Identifier: MIT
#include "tools/check/program/include/cufft.h"

#include <algorithm>
#include <array>
#include <complex>
#include <numbers>
#include <vector>

#include "tools/check/program/library_call.hpp"

namespace {

using cookbook::simt::program::LibraryCall;
using cookbook::simt::program::Place;
using Complex = std::complex<double>;
using Index = std::array<int, 3>;

/// Where the elements of a side are; without an embedding they follow each other.
struct Side {
  bool is_given = false;
  Index embed{1, 1, 1};
  int stride = 1, distance = 0;
  size_t at(int batch, const Index& i) const {
    const size_t row = (static_cast<size_t>(i[0]) * embed[1] + i[1]) * embed[2] + i[2];
    return static_cast<size_t>(batch) * distance + row * stride;
  }
};
struct Plan {
  Index n{1, 1, 1};  // the last one is innermost
  Side in, out;
  cufftType type{};
  int batch = 1;
  cudaStream_t stream = nullptr;
  bool is_alive = true;
};
std::vector<Plan>& plans() {
  static auto* instance = new std::vector<Plan>;
  return *instance;
}
Plan* find(cufftHandle plan) {
  const bool is_known = plan >= 0 && static_cast<size_t>(plan) < plans().size();
  return is_known && plans()[plan].is_alive ? &plans()[plan] : nullptr;
}

/// The transform of n elements with `stride` between them, by the smallest factor of n.
void fourier(const Complex* in, Complex* out, int n, int stride, double sign) {
  if (n == 1) {
    *out = *in;
    return;
  }
  int factor = 2;
  while (n % factor != 0 && factor * factor <= n) ++factor;
  if (n % factor != 0) factor = n;
  const int m = n / factor;
  std::vector<Complex> parts(n);
  for (int r = 0; r < factor; ++r) {
    fourier(in + static_cast<ptrdiff_t>(r) * stride, &parts[r * m], m, stride * factor, sign);
  }
  std::vector<Complex> roots(n);
  for (int k = 0; k < n; ++k) roots[k] = std::polar(1.0, sign * 2 * std::numbers::pi * k / n);
  for (int k = 0; k < n; ++k) {
    Complex sum = 0;
    for (int r = 0; r < factor; ++r) {
      sum += roots[static_cast<int64_t>(r) * k % n] * parts[r * m + k % m];
    }
    out[k] = sum;
  }
}

void fourier(std::vector<Complex>& grid, const Index& n, double sign) {
  const Index stride{n[1] * n[2], n[2], 1};
  for (int axis = 0; axis < 3; ++axis) {
    if (n[axis] == 1) continue;
    std::vector<Complex> line(n[axis]);
    for (int i = 0; i < n[0] * n[1] * n[2]; ++i) {
      if (i / stride[axis] % n[axis] != 0) continue;
      fourier(&grid[i], line.data(), n[axis], stride[axis], sign);
      for (int k = 0; k < n[axis]; ++k) grid[i + k * stride[axis]] = line[k];
    }
  }
}

template <class F>
void for_each(const Index& n, const F& function) {
  Index i;
  for (i[0] = 0; i[0] < n[0]; ++i[0]) {
    for (i[1] = 0; i[1] < n[1]; ++i[1]) {
      for (i[2] = 0; i[2] < n[2]; ++i[2]) function(i);
    }
  }
}

Complex load(float2 x) { return {x.x, x.y}; }
Complex load(double2 x) { return {x.x, x.y}; }
template <class T>
Complex load(T x) {
  return x;
}
void store(Complex x, float2* to) { *to = {float(x.real()), float(x.imag())}; }
void store(Complex x, double2* to) { *to = {x.real(), x.imag()}; }
template <class T>
void store(Complex x, T* to) {
  *to = static_cast<T>(x.real());
}

template <class In, class Out>
cufftResult execute(cufftHandle handle, const In* in, Out* out, double sign, cufftType type,
                    const char* function, Place place) {
  constexpr bool kIsReal[] = {sizeof(In) < sizeof(Out), sizeof(Out) < sizeof(In)};  // in, out
  const Plan* const plan = find(handle);
  if (!plan) return CUFFT_INVALID_PLAN;
  if (plan->type != type) return CUFFT_INVALID_TYPE;
  const Index& n = plan->n;
  Index half = n;
  half[2] = n[2] / 2 + 1;
  const bool in_place = static_cast<const void*>(in) == static_cast<const void*>(out);
  const auto side_of = [&](const Side& given, bool is_real, bool is_half) {
    if (given.is_given) return given;
    Side side;
    side.embed = is_half ? half : n;
    if (is_real && in_place) side.embed[2] = 2 * half[2];  // room for the complex ones
    side.distance = side.embed[0] * side.embed[1] * side.embed[2];
    return side;
  };
  const Side from = side_of(plan->in, kIsReal[0], kIsReal[1]);
  const Side to = side_of(plan->out, kIsReal[1], kIsReal[0]);
  const Index& read = kIsReal[1] ? half : n;
  const Index& written = kIsReal[0] ? half : n;
  const auto end = [&](const Side& side, const Index& extent) {
    return side.at(plan->batch - 1, {extent[0] - 1, extent[1] - 1, extent[2] - 1}) + 1;
  };
  LibraryCall call(function, plan->stream, place);
  // Padding is not read: a row is looked at by itself.
  for (int b = 0; b < plan->batch; ++b) {
    for (int row = 0; row < read[0] * read[1]; ++row) {
      const Index at{row / read[1], row % read[1], 0};
      const size_t elements = static_cast<size_t>(read[2] - 1) * from.stride + 1;
      if (!call.reads(in + from.at(b, at), (from.stride == 1 ? elements : 1) * sizeof(In))) {
        return CUFFT_EXEC_FAILED;
      }
    }
  }
  if (!call.writes(out, end(to, written) * sizeof(Out))) return CUFFT_EXEC_FAILED;
  std::vector<Complex> grid(static_cast<size_t>(n[0]) * n[1] * n[2]);
  for (int b = 0; b < plan->batch; ++b) {
    for_each(n, [&](const Index& i) {
      Complex value;
      if (i[2] < read[2]) {
        value = load(in[from.at(b, i)]);
      } else {  // the other half of the spectrum of real numbers
        const Index mirrored{(n[0] - i[0]) % n[0], (n[1] - i[1]) % n[1], n[2] - i[2]};
        value = std::conj(load(in[from.at(b, mirrored)]));
      }
      grid[(static_cast<size_t>(i[0]) * n[1] + i[1]) * n[2] + i[2]] = value;
    });
    fourier(grid, n, sign);
    for_each(written, [&](const Index& i) {
      store(grid[(static_cast<size_t>(i[0]) * n[1] + i[1]) * n[2] + i[2]], &out[to.at(b, i)]);
    });
  }
  return CUFFT_SUCCESS;
}

}  // namespace

cufftResult cufftPlanMany(cufftHandle* plan, int rank, int* n, int* in_embed, int in_stride,
                          int in_distance, int* out_embed, int out_stride, int out_distance,
                          cufftType type, int batch) {
  if (rank < 1 || rank > 3 || batch < 1) return CUFFT_INVALID_SIZE;
  Plan made;
  for (int i = 0; i < rank; ++i) {
    if (n[i] < 1) return CUFFT_INVALID_SIZE;
    made.n[3 - rank + i] = n[i];
  }
  const auto side = [&](const int* embed, int stride, int distance) {
    Side result;
    if (!embed) return result;
    result = {true, {1, 1, 1}, stride, distance};
    for (int i = 0; i < rank; ++i) result.embed[3 - rank + i] = embed[i];
    return result;
  };
  made.in = side(in_embed, in_stride, in_distance);
  made.out = side(out_embed, out_stride, out_distance);
  made.type = type;
  made.batch = batch;
  *plan = static_cast<int>(plans().size());
  plans().push_back(made);
  return CUFFT_SUCCESS;
}
cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream) {
  if (!find(plan)) return CUFFT_INVALID_PLAN;
  find(plan)->stream = stream;
  return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(cufftHandle plan) {
  if (!find(plan)) return CUFFT_INVALID_PLAN;
  find(plan)->is_alive = false;
  return CUFFT_SUCCESS;
}

#define COOKBOOK_BOTH(NAME, T)                                                               \
  cufftResult cufftExec##NAME(cufftHandle plan, T* in, T* out, int direction, Place place) { \
    return execute(plan, in, out, direction, CUFFT_##NAME, "cufftExec" #NAME, place);        \
  }
#define COOKBOOK_REAL(NAME, IN, OUT, SIGN)                                       \
  cufftResult cufftExec##NAME(cufftHandle plan, IN* in, OUT* out, Place place) { \
    return execute(plan, in, out, SIGN, CUFFT_##NAME, "cufftExec" #NAME, place); \
  }
COOKBOOK_BOTH(C2C, float2)
COOKBOOK_BOTH(Z2Z, double2)
COOKBOOK_REAL(R2C, float, float2, CUFFT_FORWARD)
COOKBOOK_REAL(C2R, float2, float, CUFFT_INVERSE)
COOKBOOK_REAL(D2Z, double, double2, CUFFT_FORWARD)
COOKBOOK_REAL(Z2D, double2, double, CUFFT_INVERSE)
