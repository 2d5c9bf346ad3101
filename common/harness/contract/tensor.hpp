// SPDX-License-Identifier: MIT
// Types and extents of a problem's buffers, and their host-side copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cookbook {

/// References are doubles: an i64 beyond 2^53 is compared after rounding to one. e4m3 and e5m2 are
/// the FP8 formats of the OCP specification: e4m3 has no infinity and one magnitude of NaN.
enum class DType { f32, f16, bf16, i32, f64, u32, i64, i8, e4m3, e5m2 };

/// Bytes of one element.
std::size_t dtype_bytes(DType dtype);
/// "f32", "f16", "bf16", "i32" and so on, as written in the JSON.
const char* dtype_name(DType dtype);
bool is_integer(DType dtype);
/// Distance from 1 to the next larger value divided by two: the relative error of one rounding.
double unit_roundoff(DType dtype);
/// Half the distance between `value` and its neighbour in `dtype` (denormals included).
double half_ulp(DType dtype, double value);
/// Whether numbers beyond the largest one become the largest, infinity included, as CUDA's
/// conversions to these types do: i8, e4m3 and e5m2.
bool saturates(DType dtype);
/// `value` rounded to `dtype` (to the nearest, ties to even), as HostTensor::set stores it. Beyond
/// the largest number: infinity, or the largest if the type saturates. As i8, NaN is 0.
double rounded(DType dtype, double value);
/// Largest finite value.
double largest(DType dtype);

enum class Role { input, output, in_out };

struct HostTensor;

/// One buffer of a problem: a matrix of `rows` x `cols` elements with a leading dimension of
/// `pitch` elements. Tensors of higher rank are flattened: every index but the last becomes a row.
struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t pitch = 0;  ///< elements from one row to the next, at least `cols`
  Role role = Role::input;
  /// Fills an input that is not a matrix of numbers (lengths, index lists). Null: the harness draws
  /// it.
  std::function<void(HostTensor&, std::uint64_t seed)> fill = nullptr;

  std::int64_t elements() const { return rows == 0 ? 0 : (rows - 1) * pitch + cols; }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * dtype_bytes(dtype); }
};

/// A tensor in host memory, bit for bit as on the device (padding between rows included).
struct HostTensor {
  TensorSpec spec;
  std::vector<std::byte> storage;

  HostTensor() = default;
  explicit HostTensor(TensorSpec tensor_spec);

  /// Element (row, col) as a double.
  double at(std::int64_t row, std::int64_t col) const;
  /// Elements (row, 0) to (row, count - 1) as doubles. Faster than at() for each of them.
  void read_row(std::int64_t row, std::int64_t count, double* to) const;
  /// Rounds `value` to the tensor's type and stores it.
  void set(std::int64_t row, std::int64_t col, double value);
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(storage.data());
  }
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(storage.data());
  }
};

/// Sorts the elements [begin, end) of row `row`, bit for bit; NaNs come last. For
/// Problem::normalise.
void sort_elements(HostTensor& tensor, std::int64_t row, std::int64_t begin, std::int64_t end);

/// The host copies of a problem's buffers, in the order of `Problem::tensors()`.
struct HostTensors {
  std::vector<HostTensor> list;
  /// The tensor called `name`; throws std::out_of_range when there is none.
  const HostTensor& operator[](const std::string& name) const;
  HostTensor& operator[](const std::string& name);
};

}  // namespace cookbook
