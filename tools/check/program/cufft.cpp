// SPDX-License-Identifier: MIT
// cuFFT for checked programs: in double precision, with bounds checked before.
#include "tools/check/program/include/cufft.h"

#include <array>
#include <complex>
#include <numbers>
#include <type_traits>
#include <vector>

#include "tools/check/program/library_call.hpp"

namespace {

using cookbook::simt::program::LibraryCall;
using cookbook::simt::program::Place;
using Complex = std::complex<double>;

/// Where the elements of one side lie.
struct Layout {
  std::array<size_t, 3> extents{};  // the first one is never used
  size_t stride = 1, distance = 0;  // from an element to the next, from a transform to the next

  size_t at(size_t batch, size_t x, size_t y, size_t z) const {
    return batch * distance + ((x * extents[1] + y) * extents[2] + z) * stride;
  }
};

struct Plan {
  bool is_made = false;
  std::array<size_t, 3> n{1, 1, 1};  // of less than three dimensions the last ones
  Layout in, out;
  bool has_layout = false;  // otherwise it depends on whether a transform is in place
  cufftType type = CUFFT_C2C;
  size_t batch = 1;
  cudaStream_t stream = nullptr;
};

std::vector<Plan>& plans() {
  static std::vector<Plan> all;
  return all;
}

Plan* find(cufftHandle handle) {
  const auto i = static_cast<size_t>(handle);
  return handle >= 0 && i < plans().size() ? &plans()[i] : nullptr;
}

size_t smallest_factor(size_t n) {
  for (size_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

/// A transform of `n` elements by its factors; `roots` has those of 1, as many as its length.
void transform(const Complex* in, size_t stride, Complex* out, size_t n,
               const std::vector<Complex>& roots) {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  const size_t p = smallest_factor(n), m = n / p, step = roots.size() / n;
  for (size_t r = 0; r < p; ++r) transform(in + r * stride, stride * p, out + r * m, m, roots);
  std::vector<Complex> parts(p);
  for (size_t k = 0; k < m; ++k) {
    for (size_t r = 0; r < p; ++r) parts[r] = out[r * m + k];
    for (size_t q = 0; q < p; ++q) {
      Complex sum = parts[0];
      for (size_t r = 1; r < p; ++r) sum += parts[r] * roots[r * (q * m + k) % n * step];
      out[q * m + k] = sum;
    }
  }
}

/// Along one dimension of `data`.
void transform(std::vector<Complex>& data, const std::array<size_t, 3>& n, size_t dimension,
               int direction) {
  const size_t length = n[dimension];
  size_t step = 1;
  for (size_t d = dimension + 1; d < 3; ++d) step *= n[d];
  std::vector<Complex> roots(length), out(length);
  for (size_t i = 0; i < length; ++i) {
    roots[i] = std::polar(1.0, direction * 2 * std::numbers::pi * static_cast<double>(i) /
                                   static_cast<double>(length));
  }
  for (size_t first = 0; first < data.size(); ++first) {
    if (first / step % length != 0) continue;
    transform(&data[first], step, out.data(), length, roots);
    for (size_t i = 0; i < length; ++i) data[first + i * step] = out[i];
  }
}

Complex number(float x) { return static_cast<double>(x); }
Complex number(double x) { return x; }
template <class T>
Complex number(const T& z) {
  return {z.x, z.y};
}
void set(float& x, Complex value) { x = static_cast<float>(value.real()); }
void set(double& x, Complex value) { x = value.real(); }
template <class T>
void set(T& z, Complex value) {
  z = {static_cast<decltype(z.x)>(value.real()), static_cast<decltype(z.x)>(value.imag())};
}

template <class In, class Out>
cufftResult execute(const char* function, cufftHandle handle, cufftType type, const In* in,
                    Out* out, int direction, Place place) {
  Plan* const plan = find(handle);
  if (!plan || !plan->is_made) return CUFFT_INVALID_PLAN;
  if (plan->type != type) return CUFFT_INVALID_TYPE;
  if (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE) return CUFFT_INVALID_VALUE;
  constexpr bool kRealIn = std::is_floating_point_v<In>, kRealOut = std::is_floating_point_v<Out>;
  const auto [nx, ny, nz] = plan->n;
  const size_t half = nz / 2 + 1;
  Layout from = plan->in, to = plan->out;
  if (!plan->has_layout) {
    // In place, a row of real numbers has the room of its complex ones.
    const bool is_padded = static_cast<const void*>(in) == static_cast<const void*>(out);
    const auto basic = [&](bool is_real) {
      const size_t complex_row = kRealIn || kRealOut ? half : nz;
      const size_t row = is_real ? (is_padded ? 2 * half : nz) : complex_row;
      return Layout{{nx, ny, row}, 1, nx * ny * row};
    };
    from = basic(kRealIn), to = basic(kRealOut);
  }
  const size_t in_row = kRealOut ? half : nz, out_row = kRealIn ? half : nz;
  LibraryCall call(function, plan->stream, place);
  for (size_t i = 0; i < plan->batch * nx * ny; ++i) {
    const size_t b = i / (nx * ny), x = i / ny % nx, y = i % ny;
    const size_t bytes_out = ((out_row - 1) * to.stride + 1) * sizeof(Out);
    if (!call.reads_rows(in + from.at(b, x, y, 0), sizeof(In), in_row, from.stride * sizeof(In)) ||
        !call.writes(out + to.at(b, x, y, 0), bytes_out)) {
      return CUFFT_EXEC_FAILED;
    }
  }
  std::vector<std::vector<Complex>> all(plan->batch);  // in place, a result may hide an operand
  for (size_t b = 0; b < plan->batch; ++b) {
    std::vector<Complex>& data = all[b];
    data.resize(nx * ny * nz);
    for (size_t i = 0; i < data.size(); ++i) {
      const size_t x = i / (ny * nz), y = i / nz % ny, z = i % nz;
      data[i] = z < in_row
                    ? number(in[from.at(b, x, y, z)])
                    // A real result: the other half is conjugate.
                    : std::conj(number(in[from.at(b, (nx - x) % nx, (ny - y) % ny, nz - z)]));
    }
    for (size_t d = 0; d < 3; ++d) {
      if (plan->n[d] > 1) transform(data, plan->n, d, direction);
    }
  }
  for (size_t b = 0; b < plan->batch; ++b) {
    for (size_t i = 0; i < nx * ny * nz; ++i) {
      const size_t x = i / (ny * nz), y = i / nz % ny, z = i % nz;
      if (z < out_row) set(out[to.at(b, x, y, z)], all[b][i]);
    }
  }
  return CUFFT_SUCCESS;
}

}  // namespace

cufftResult cufftCreate(cufftHandle* plan) {
  *plan = static_cast<cufftHandle>(plans().size());
  plans().emplace_back();
  return CUFFT_SUCCESS;
}

cufftResult cufftMakePlanMany(cufftHandle handle, int rank, int* n, int* inembed, int istride,
                              int idist, int* onembed, int ostride, int odist, cufftType type,
                              int batch, size_t* bytes) {
  Plan* const plan = find(handle);
  if (!plan || plan->is_made) return CUFFT_INVALID_PLAN;
  if (rank < 1 || rank > 3 || batch < 1) return CUFFT_INVALID_VALUE;
  const auto first = static_cast<size_t>(3 - rank);
  for (size_t d = first; d < 3; ++d) {
    if (n[d - first] < 1) return CUFFT_INVALID_SIZE;
    plan->n[d] = static_cast<size_t>(n[d - first]);
  }
  plan->has_layout = inembed && onembed;
  const auto layout = [&](const int* embed, int stride, int distance) {
    Layout made{{1, 1, 1}, static_cast<size_t>(stride), static_cast<size_t>(distance)};
    for (size_t d = first; embed && d < 3; ++d) {
      made.extents[d] = static_cast<size_t>(embed[d - first]);
    }
    return made;
  };
  plan->in = layout(inembed, istride, idist), plan->out = layout(onembed, ostride, odist);
  plan->type = type, plan->batch = static_cast<size_t>(batch), plan->is_made = true;
  if (bytes) *bytes = 0;
  return CUFFT_SUCCESS;
}

cufftResult cufftDestroy(cufftHandle handle) {
  Plan* const plan = find(handle);
  if (!plan || !plan->is_made) return CUFFT_INVALID_PLAN;
  plan->is_made = false;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  Plan* const plan = find(handle);
  if (!plan) return CUFFT_INVALID_PLAN;
  plan->stream = stream;
  return CUFFT_SUCCESS;
}

cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* in, cufftComplex* out, int direction,
                         Place place) {
  return execute("cufftExecC2C", plan, CUFFT_C2C, in, out, direction, place);
}
cufftResult cufftExecR2C(cufftHandle plan, cufftReal* in, cufftComplex* out, Place place) {
  return execute("cufftExecR2C", plan, CUFFT_R2C, in, out, CUFFT_FORWARD, place);
}
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* in, cufftReal* out, Place place) {
  return execute("cufftExecC2R", plan, CUFFT_C2R, in, out, CUFFT_INVERSE, place);
}
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleComplex* out,
                         int direction, Place place) {
  return execute("cufftExecZ2Z", plan, CUFFT_Z2Z, in, out, direction, place);
}
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* in, cufftDoubleComplex* out,
                         Place place) {
  return execute("cufftExecD2Z", plan, CUFFT_D2Z, in, out, CUFFT_FORWARD, place);
}
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleReal* out,
                         Place place) {
  return execute("cufftExecZ2D", plan, CUFFT_Z2D, in, out, CUFFT_INVERSE, place);
}
