// SPDX-License-Identifier: MIT
// The common parts of Thrust: vectors in device memory, and algorithms that run on the CPU while
// device memory is open to it.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../cuda_runtime.h"
#include "tools/check/program/library_call.hpp"

namespace thrust {

using std::get;
using std::make_pair;
using std::make_tuple;
using std::pair;
using std::tie;
using std::tuple;

using std::bit_and;
using std::bit_or;
using std::bit_xor;
using std::divides;
using std::equal_to;
using std::greater;
using std::greater_equal;
using std::less;
using std::less_equal;
using std::logical_and;
using std::logical_or;
using std::minus;
using std::modulus;
using std::multiplies;
using std::negate;
using std::not_equal_to;
using std::plus;
template <class T = void>
struct maximum {
  T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <class T = void>
struct minimum {
  T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
template <>
struct maximum<void> {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
template <>
struct minimum<void> {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};
template <class T = void>
struct identity {
  const T& operator()(const T& a) const { return a; }
};
template <class T = void>
struct square {
  T operator()(const T& a) const { return a * a; }
};
template <class A, class R>
struct unary_function {
  using argument_type = A;
  using result_type = R;
};
template <class A, class B, class R>
struct binary_function {
  using first_argument_type = A;
  using second_argument_type = B;
  using result_type = R;
};

/// thrust::device, thrust::host, thrust::cuda::par.on(stream): all the same here.
struct policy {
  template <class Stream>
  policy on(Stream) const {
    return {};
  }
  template <class Allocator>
  policy operator()(const Allocator&) const {
    return {};
  }
};
inline constexpr policy device, host, seq;
namespace cuda {
inline constexpr policy par, par_nosync;
}

// ---- pointers and iterators ----

/// An element of device memory, as the host sees it.
template <class T>
class device_reference {
 public:
  explicit device_reference(T* at) : at_(at) {}
  operator std::remove_const_t<T>() const {
    std::remove_const_t<T> value;
    if (cudaMemcpy(&value, at_, sizeof(T), cudaMemcpyDefault)) std::abort();
    return value;
  }
  device_reference& operator=(const T& value) {
    if (cudaMemcpy(at_, &value, sizeof(T), cudaMemcpyDefault)) std::abort();
    return *this;
  }
  device_reference& operator=(const device_reference& other) { return *this = T(other); }
  device_reference& operator+=(const T& value) { return *this = T(*this) + value; }
  device_reference& operator++() { return *this = T(*this) + 1; }

 private:
  T* at_;
};

template <class T>
class device_ptr {
 public:
  using value_type = std::remove_const_t<T>;
  using difference_type = ptrdiff_t;
  using reference = device_reference<T>;
  using pointer = T*;
  using iterator_category = std::random_access_iterator_tag;
  device_ptr() = default;
  explicit device_ptr(T* at) : at_(at) {}
  operator device_ptr<const T>() const { return device_ptr<const T>(at_); }
  T* get() const { return at_; }
  reference operator*() const { return reference(at_); }
  reference operator[](ptrdiff_t i) const { return reference(at_ + i); }
  device_ptr& operator+=(ptrdiff_t n) { return at_ += n, *this; }
  device_ptr& operator-=(ptrdiff_t n) { return at_ -= n, *this; }
  device_ptr& operator++() { return *this += 1; }
  device_ptr& operator--() { return *this -= 1; }
  device_ptr operator++(int) { return device_ptr(at_++); }
  friend device_ptr operator+(device_ptr a, ptrdiff_t n) { return a += n; }
  friend device_ptr operator-(device_ptr a, ptrdiff_t n) { return a -= n; }
  friend ptrdiff_t operator-(device_ptr a, device_ptr b) { return a.at_ - b.at_; }
  friend auto operator<=>(const device_ptr&, const device_ptr&) = default;

 private:
  T* at_ = nullptr;
};
template <class T>
device_ptr<T> device_pointer_cast(T* at) {
  return device_ptr<T>(at);
}
template <class T>
T* raw_pointer_cast(T* at) {
  return at;
}
template <class T>
T* raw_pointer_cast(device_ptr<T> at) {
  return at.get();
}

namespace detail {

/// The iterator with which an algorithm runs.
template <class It>
It raw(It it) {
  return it;
}
template <class T>
T* raw(device_ptr<T> it) {
  return it.get();
}
template <class It>
using Raw = decltype(raw(std::declval<It>()));
template <class It>
using Value = typename std::iterator_traits<Raw<It>>::value_type;
/// An iterator of the kind of `like`, at the same place as `at`.
template <class It, class R>
It back(It like, R at) {
  return like + (at - raw(like));
}

/// Arithmetic of an iterator that only knows how to move and what it refers to.
template <class Self, class T, class Reference>
struct Random {
  using value_type = T;
  using difference_type = ptrdiff_t;
  using reference = Reference;
  using pointer = void;
  using iterator_category = std::random_access_iterator_tag;
  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }
  Self& operator+=(ptrdiff_t n) { return self().move(n), self(); }
  Self& operator-=(ptrdiff_t n) { return self().move(-n), self(); }
  Self& operator++() { return *this += 1; }
  Self& operator--() { return *this += -1; }
  Self operator++(int) {
    const Self old = self();
    *this += 1;
    return old;
  }
  Self operator--(int) {
    const Self old = self();
    *this += -1;
    return old;
  }
  Reference operator[](ptrdiff_t n) const { return *(self() + n); }
  friend Self operator+(Self a, ptrdiff_t n) { return a += n; }
  friend Self operator+(ptrdiff_t n, Self a) { return a += n; }
  friend Self operator-(Self a, ptrdiff_t n) { return a += -n; }
  friend ptrdiff_t operator-(const Self& a, const Self& b) { return a.distance_to(b); }
  friend bool operator==(const Self& a, const Self& b) { return a - b == 0; }
  friend bool operator!=(const Self& a, const Self& b) { return a - b != 0; }
  friend bool operator<(const Self& a, const Self& b) { return a - b < 0; }
};

}  // namespace detail

template <class T>
class counting_iterator : public detail::Random<counting_iterator<T>, T, T> {
 public:
  explicit counting_iterator(T at = T()) : at_(at) {}
  T operator*() const { return at_; }
  void move(ptrdiff_t n) { at_ = static_cast<T>(at_ + n); }
  ptrdiff_t distance_to(const counting_iterator& from) const {
    return static_cast<ptrdiff_t>(at_) - static_cast<ptrdiff_t>(from.at_);
  }

 private:
  T at_;
};
template <class T>
counting_iterator<T> make_counting_iterator(T at) {
  return counting_iterator<T>(at);
}

template <class T>
class constant_iterator : public detail::Random<constant_iterator<T>, T, T> {
 public:
  explicit constant_iterator(T value, ptrdiff_t at = 0) : value_(value), at_(at) {}
  T operator*() const { return value_; }
  void move(ptrdiff_t n) { at_ += n; }
  ptrdiff_t distance_to(const constant_iterator& from) const { return at_ - from.at_; }

 private:
  T value_;
  ptrdiff_t at_;
};
template <class T>
constant_iterator<T> make_constant_iterator(T value) {
  return constant_iterator<T>(value);
}

template <class F, class It>
class transform_iterator
    : public detail::Random<transform_iterator<F, It>,
                            std::decay_t<std::invoke_result_t<F, detail::Value<It>>>,
                            std::invoke_result_t<F, detail::Value<It>>> {
 public:
  transform_iterator(It at, F f) : at_(detail::raw(at)), f_(f) {}
  auto operator*() const { return f_(*at_); }
  void move(ptrdiff_t n) { at_ += n; }
  ptrdiff_t distance_to(const transform_iterator& from) const { return at_ - from.at_; }
  transform_iterator& operator=(const transform_iterator& other) {
    at_ = other.at_;  // a lambda cannot be assigned; it is the same one
    return *this;
  }
  transform_iterator(const transform_iterator&) = default;

 private:
  detail::Raw<It> at_;
  F f_;
};
template <class It, class F>
transform_iterator<F, It> make_transform_iterator(It at, F f) {
  return {at, f};
}

template <class... Its>
class zip_iterator
    : public detail::Random<zip_iterator<Its...>, std::tuple<detail::Value<Its>...>,
                            std::tuple<decltype(*std::declval<detail::Raw<Its>>())...>> {
 public:
  explicit zip_iterator(std::tuple<Its...> at)
      : at_(std::apply([](auto... it) { return std::make_tuple(detail::raw(it)...); }, at)) {}
  auto operator*() const {
    return std::apply([](auto... it) { return std::tuple<decltype(*it)...>(*it...); }, at_);
  }
  void move(ptrdiff_t n) {
    std::apply([n](auto&... it) { ((it += n), ...); }, at_);
  }
  ptrdiff_t distance_to(const zip_iterator& from) const {
    return std::get<0>(at_) - std::get<0>(from.at_);
  }

 private:
  std::tuple<detail::Raw<Its>...> at_;
};
template <class... Its>
zip_iterator<Its...> make_zip_iterator(std::tuple<Its...> at) {
  return zip_iterator<Its...>(at);
}
template <class... Its>
zip_iterator<Its...> make_zip_iterator(Its... at) {
  return zip_iterator<Its...>(std::make_tuple(at...));
}

// ---- vectors ----

template <class T>
using host_vector = std::vector<T>;

template <class T>
class device_vector {
 public:
  using value_type = T;
  using iterator = device_ptr<T>;
  using const_iterator = device_ptr<const T>;
  using size_type = size_t;
  using reference = device_reference<T>;
  device_vector() = default;
  explicit device_vector(size_t n, const T& value = T()) { resize(n, value); }
  template <class Other>
  device_vector(const std::vector<Other>& other) {
    *this = other;
  }
  device_vector(const device_vector& other) { *this = other; }
  device_vector(device_vector&& other) noexcept { swap(other); }
  device_vector(std::initializer_list<T> values) { *this = std::vector<T>(values); }
  template <class It, class = typename std::iterator_traits<It>::iterator_category>
  device_vector(It first, It last) {
    assign(first, last);
  }
  ~device_vector() { release(); }

  device_vector& operator=(const device_vector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  device_vector& operator=(device_vector&& other) noexcept {
    swap(other);
    return *this;
  }
  template <class Other>
  device_vector& operator=(const std::vector<Other>& other) {
    assign(other.begin(), other.end());
    return *this;
  }
  template <class It>
  void assign(It first, It last) {
    const auto n = static_cast<size_t>(last - first);
    if (n > capacity_) {
      release();
      allocate(n);
    }
    size_ = n;
    const cookbook::simt::program::LibraryCall call("device_vector", nullptr, {});
    std::copy(detail::raw(first), detail::raw(last), at_);
    mark_written();
  }
  void resize(size_t n, const T& value = T()) {
    if (n > capacity_) {
      device_vector larger;
      larger.allocate(n);
      larger.size_ = size_;
      const cookbook::simt::program::LibraryCall call("device_vector", nullptr, {});
      std::copy(at_, at_ + size_, larger.at_);
      swap(larger);
    }
    const cookbook::simt::program::LibraryCall call("device_vector", nullptr, {});
    for (size_t i = size_; i < n; ++i) at_[i] = value;
    size_ = n;
    mark_written();
  }
  void reserve(size_t) {}
  void clear() { size_ = 0; }
  void shrink_to_fit() {}
  void push_back(const T& value) { resize(size_ + 1, value); }
  void swap(device_vector& other) {
    std::swap(at_, other.at_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  iterator data() { return iterator(at_); }
  const_iterator data() const { return const_iterator(at_); }
  iterator begin() { return data(); }
  iterator end() { return data() + static_cast<ptrdiff_t>(size_); }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + static_cast<ptrdiff_t>(size_); }
  const_iterator cbegin() const { return data(); }
  const_iterator cend() const { return end(); }
  reference operator[](size_t i) { return data()[static_cast<ptrdiff_t>(i)]; }
  device_reference<const T> operator[](size_t i) const { return data()[static_cast<ptrdiff_t>(i)]; }
  reference front() { return (*this)[0]; }
  reference back() { return (*this)[size_ - 1]; }
  operator std::vector<T>() const {
    std::vector<T> copy(size_);
    if (size_ != 0 && cudaMemcpy(copy.data(), at_, size_ * sizeof(T), cudaMemcpyDefault))
      std::abort();
    return copy;
  }

 private:
  void allocate(size_t n) {
    if (n != 0 && cudaMalloc({&at_, "device_vector"}, n * sizeof(T))) throw std::bad_alloc();
    capacity_ = n;
  }
  void release() {
    if (at_ != nullptr) cudaFree(at_);
    at_ = nullptr;
    size_ = capacity_ = 0;
  }
  /// Inside of a call.
  void mark_written() { cookbook::simt::program::mark_written_by_host(at_, size_ * sizeof(T)); }

  T* at_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

template <class T>
device_ptr<T> device_malloc(size_t n) {
  T* at = nullptr;
  if (cudaMalloc({&at, "device_malloc"}, n * sizeof(T))) throw std::bad_alloc();
  return device_ptr<T>(at);
}
template <class T>
void device_free(device_ptr<T> at) {
  cudaFree(at.get());
}

// ---- algorithms ----

namespace detail {

/// The line that calls an algorithm: rewrite.py makes it the first argument.
struct Here : policy {
  static inline cookbook::simt::program::Place last;
  Here(const char* file, int line) { last = {file, line}; }
};

/// Device memory is open to the host. A range that an algorithm is given by pointers is checked.
class Call : public cookbook::simt::program::LibraryCall {
 public:
  explicit Call(const char* name) : LibraryCall(name, nullptr, Here::last) {}
  template <class T>
  bool in(T* first, T* last) {
    return !cookbook::simt::program::is_in_device_memory(first) ||
           reads(first, static_cast<size_t>(last - first) * sizeof(T));
  }
  template <class It>
  bool in(It, It) {
    return true;
  }
  template <class T>
  bool to(T* first, ptrdiff_t n) {
    return !cookbook::simt::program::is_in_device_memory(first) ||
           writes(first, static_cast<size_t>(n) * sizeof(T));
  }
  template <class It>
  bool to(It, ptrdiff_t) {
    return true;
  }
};

}  // namespace detail

// With a policy in front, the same.
#define COOKBOOK_POLICY(NAME)                \
  template <class... A>                      \
  auto NAME(const policy&, A... arguments) { \
    return thrust::NAME(arguments...);       \
  }

template <class It, class T>
void fill(It first, It last, const T& value) {
  detail::Call call("thrust::fill");
  if (call.to(detail::raw(first), last - first)) {
    std::fill(detail::raw(first), detail::raw(last), value);
  }
}
COOKBOOK_POLICY(fill)
template <class It, class N, class T>
It fill_n(It first, N n, const T& value) {
  thrust::fill(first, first + static_cast<ptrdiff_t>(n), value);
  return first + static_cast<ptrdiff_t>(n);
}
COOKBOOK_POLICY(fill_n)
template <class It, class T = detail::Value<It>>
void sequence(It first, It last, T value = T(0), T step = T(1)) {
  detail::Call call("thrust::sequence");
  if (!call.to(detail::raw(first), last - first)) return;
  for (auto it = detail::raw(first); it != detail::raw(last); ++it, value = value + step)
    *it = value;
}
COOKBOOK_POLICY(sequence)
template <class It, class F>
void tabulate(It first, It last, F f) {
  detail::Call call("thrust::tabulate");
  if (!call.to(detail::raw(first), last - first)) return;
  for (ptrdiff_t i = 0; i < last - first; ++i) detail::raw(first)[i] = f(i);
}
COOKBOOK_POLICY(tabulate)
template <class It, class F>
void generate(It first, It last, F f) {
  detail::Call call("thrust::generate");
  if (call.to(detail::raw(first), last - first)) {
    std::generate(detail::raw(first), detail::raw(last), f);
  }
}
COOKBOOK_POLICY(generate)
template <class It, class Out>
Out copy(It first, It last, Out out) {
  detail::Call call("thrust::copy");
  if (!call.in(detail::raw(first), detail::raw(last)) || !call.to(detail::raw(out), last - first)) {
    return out;
  }
  return detail::back(out, std::copy(detail::raw(first), detail::raw(last), detail::raw(out)));
}
COOKBOOK_POLICY(copy)
template <class It, class N, class Out>
Out copy_n(It first, N n, Out out) {
  return thrust::copy(first, first + static_cast<ptrdiff_t>(n), out);
}
COOKBOOK_POLICY(copy_n)
template <class It, class F>
It for_each(It first, It last, F f) {
  detail::Call call("thrust::for_each");
  if (call.in(detail::raw(first), detail::raw(last))) {
    for (auto it = detail::raw(first); it != detail::raw(last); ++it) {
      auto&& value = *it;
      f(value);
    }
  }
  return last;
}
COOKBOOK_POLICY(for_each)
template <class It, class N, class F>
It for_each_n(It first, N n, F f) {
  return thrust::for_each(first, first + static_cast<ptrdiff_t>(n), f);
}
COOKBOOK_POLICY(for_each_n)
template <class It, class Out, class F>
Out transform(It first, It last, Out out, F f) {
  detail::Call call("thrust::transform");
  if (!call.in(detail::raw(first), detail::raw(last)) || !call.to(detail::raw(out), last - first)) {
    return out;
  }
  return detail::back(out,
                      std::transform(detail::raw(first), detail::raw(last), detail::raw(out), f));
}
template <class It, class Second, class Out, class F>
Out transform(It first, It last, Second second, Out out, F f) {
  const ptrdiff_t n = last - first;
  detail::Call call("thrust::transform");
  if (!call.in(detail::raw(first), detail::raw(last)) ||
      !call.in(detail::raw(second), detail::raw(second) + n) || !call.to(detail::raw(out), n)) {
    return out;
  }
  return detail::back(out, std::transform(detail::raw(first), detail::raw(last),
                                          detail::raw(second), detail::raw(out), f));
}
COOKBOOK_POLICY(transform)
template <class It, class T, class F = std::plus<>>
T reduce(It first, It last, T value, F f = {}) {
  detail::Call call("thrust::reduce");
  if (!call.in(detail::raw(first), detail::raw(last))) return value;
  for (auto it = detail::raw(first); it != detail::raw(last); ++it) value = f(value, *it);
  return value;
}
template <class It>
detail::Value<It> reduce(It first, It last) {
  return thrust::reduce(first, last, detail::Value<It>());
}
COOKBOOK_POLICY(reduce)
template <class It, class Map, class T, class F>
T transform_reduce(It first, It last, Map map, T value, F f) {
  detail::Call call("thrust::transform_reduce");
  if (!call.in(detail::raw(first), detail::raw(last))) return value;
  for (auto it = detail::raw(first); it != detail::raw(last); ++it) value = f(value, map(*it));
  return value;
}
COOKBOOK_POLICY(transform_reduce)
template <class It, class Second, class T, class F = std::plus<>, class Map = std::multiplies<>>
T inner_product(It first, It last, Second second, T value, F f = {}, Map map = {}) {
  detail::Call call("thrust::inner_product");
  if (!call.in(detail::raw(first), detail::raw(last)) ||
      !call.in(detail::raw(second), detail::raw(second) + (last - first))) {
    return value;
  }
  return std::inner_product(detail::raw(first), detail::raw(last), detail::raw(second), value, f,
                            map);
}
COOKBOOK_POLICY(inner_product)
template <class It, class Out, class F = std::plus<>>
Out inclusive_scan(It first, It last, Out out, F f = {}) {
  detail::Call call("thrust::inclusive_scan");
  if (!call.in(detail::raw(first), detail::raw(last)) || !call.to(detail::raw(out), last - first)) {
    return out;
  }
  return detail::back(out,
                      std::partial_sum(detail::raw(first), detail::raw(last), detail::raw(out), f));
}
COOKBOOK_POLICY(inclusive_scan)
template <class It, class Out, class T, class F = std::plus<>>
Out exclusive_scan(It first, It last, Out out, T value, F f = {}) {
  detail::Call call("thrust::exclusive_scan");
  if (!call.in(detail::raw(first), detail::raw(last)) || !call.to(detail::raw(out), last - first)) {
    return out;
  }
  return detail::back(
      out, std::exclusive_scan(detail::raw(first), detail::raw(last), detail::raw(out), value, f));
}
template <class It, class Out>
Out exclusive_scan(It first, It last, Out out) {
  return thrust::exclusive_scan(first, last, out, detail::Value<It>());
}
COOKBOOK_POLICY(exclusive_scan)
template <class It, class F = std::less<>>
void stable_sort(It first, It last, F f = {}) {
  detail::Call call("thrust::sort");
  if (call.in(detail::raw(first), detail::raw(last))) {
    std::stable_sort(detail::raw(first), detail::raw(last), f);
  }
}
COOKBOOK_POLICY(stable_sort)
template <class... A>
void sort(A... arguments) {
  thrust::stable_sort(arguments...);
}
template <class It, class Values, class F = std::less<>>
void stable_sort_by_key(It first, It last, Values values, F f = {}) {
  const ptrdiff_t n = last - first;
  detail::Call call("thrust::sort_by_key");
  const auto keys = detail::raw(first);
  const auto of = detail::raw(values);
  if (!call.in(keys, detail::raw(last)) || !call.in(of, of + n)) return;
  std::vector<std::pair<detail::Value<It>, detail::Value<Values>>> both;
  for (ptrdiff_t i = 0; i < n; ++i) both.emplace_back(keys[i], of[i]);
  std::stable_sort(both.begin(), both.end(),
                   [&](const auto& a, const auto& b) { return f(a.first, b.first); });
  for (ptrdiff_t i = 0; i < n; ++i) {
    keys[i] = both[static_cast<size_t>(i)].first;
    of[i] = both[static_cast<size_t>(i)].second;
  }
}
COOKBOOK_POLICY(stable_sort_by_key)
template <class... A>
void sort_by_key(A... arguments) {
  thrust::stable_sort_by_key(arguments...);
}
template <class It, class Values, class Keys, class Out, class Equal = std::equal_to<>,
          class F = std::plus<>>
std::pair<Keys, Out> reduce_by_key(It first, It last, Values values, Keys keys, Out out,
                                   Equal equal = {}, F f = {}) {
  detail::Call call("thrust::reduce_by_key");
  const auto from = detail::raw(first);
  const auto of = detail::raw(values);
  ptrdiff_t found = 0;
  if (call.in(from, detail::raw(last)) && call.in(of, of + (last - first))) {
    for (ptrdiff_t i = 0; i < last - first; ++i) {
      if (found != 0 && equal(detail::raw(keys)[found - 1], from[i])) {
        detail::raw(out)[found - 1] = f(detail::raw(out)[found - 1], of[i]);
      } else if (call.to(detail::raw(keys) + found, 1) && call.to(detail::raw(out) + found, 1)) {
        detail::raw(keys)[found] = from[i];
        detail::raw(out)[found++] = of[i];
      }
    }
  }
  return {keys + found, out + found};
}
COOKBOOK_POLICY(reduce_by_key)

// Algorithms that read a range and give a number, or a place in it.
#define COOKBOOK_OF_RANGE(NAME, PLACE)                                                     \
  template <class It, class... A>                                                          \
  requires(!std::is_same_v<It, policy>) auto NAME(It first, It last, A... arguments) {     \
    detail::Call call("thrust::" #NAME);                                                   \
    const bool all = call.in(detail::raw(first), detail::raw(last));                       \
    const auto end = all ? detail::raw(last) : detail::raw(first);                         \
    [[maybe_unused]] const auto result = std::NAME(detail::raw(first), end, arguments...); \
    return PLACE;                                                                          \
  }                                                                                        \
  COOKBOOK_POLICY(NAME)
COOKBOOK_OF_RANGE(count, result)
COOKBOOK_OF_RANGE(count_if, result)
COOKBOOK_OF_RANGE(any_of, result)
COOKBOOK_OF_RANGE(all_of, result)
COOKBOOK_OF_RANGE(none_of, result)
COOKBOOK_OF_RANGE(is_sorted, result)
COOKBOOK_OF_RANGE(min_element, detail::back(first, result))
COOKBOOK_OF_RANGE(max_element, detail::back(first, result))
COOKBOOK_OF_RANGE(find, detail::back(first, result))
COOKBOOK_OF_RANGE(find_if, detail::back(first, result))
COOKBOOK_OF_RANGE(unique, detail::back(first, result))
COOKBOOK_OF_RANGE(remove, detail::back(first, result))
COOKBOOK_OF_RANGE(remove_if, detail::back(first, result))
COOKBOOK_OF_RANGE(partition, detail::back(first, result))
COOKBOOK_OF_RANGE(minmax_element, std::make_pair(detail::back(first, result.first),
                                                 detail::back(first, result.second)))
#undef COOKBOOK_OF_RANGE

template <class It, class Out, class F>
Out copy_if(It first, It last, Out out, F f) {
  detail::Call call("thrust::copy_if");
  if (!call.in(detail::raw(first), detail::raw(last))) return out;
  ptrdiff_t found = 0;
  for (auto it = detail::raw(first); it != detail::raw(last); ++it) {
    if (f(*it) && call.to(detail::raw(out) + found, 1)) detail::raw(out)[found++] = *it;
  }
  return out + found;
}
COOKBOOK_POLICY(copy_if)
template <class Map, class It, class Out>
Out gather(Map first, Map last, It from, Out out) {
  detail::Call call("thrust::gather");
  if (!call.to(detail::raw(out), last - first)) return out;
  for (ptrdiff_t i = 0; i < last - first; ++i) {
    detail::raw(out)[i] = detail::raw(from)[detail::raw(first)[i]];
  }
  return out + (last - first);
}
COOKBOOK_POLICY(gather)
template <class It, class Map, class Out>
void scatter(It first, It last, Map map, Out out) {
  detail::Call call("thrust::scatter");
  for (ptrdiff_t i = 0; i < last - first; ++i) {
    const auto at = detail::raw(out) + detail::raw(map)[i];
    if (call.to(at, 1)) *at = detail::raw(first)[i];
  }
}
COOKBOOK_POLICY(scatter)
template <class It, class Second>
bool equal(It first, It last, Second second) {
  detail::Call call("thrust::equal");
  return call.in(detail::raw(first), detail::raw(last)) &&
         std::equal(detail::raw(first), detail::raw(last), detail::raw(second));
}
COOKBOOK_POLICY(equal)
template <class It>
void reverse(It first, It last) {
  detail::Call call("thrust::reverse");
  if (call.in(detail::raw(first), detail::raw(last))) {
    std::reverse(detail::raw(first), detail::raw(last));
  }
}
COOKBOOK_POLICY(reverse)
#undef COOKBOOK_POLICY

}  // namespace thrust
