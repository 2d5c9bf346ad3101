// SPDX-License-Identifier: MIT
// Functions, policies, pointers and iterators of Thrust.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>  // as Thrust does
#include <iterator>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../cuda_runtime.h"
#include "tools/check/program/library_call.hpp"

#define THRUST_VERSION 200700  // of CUDA 12.8

namespace thrust {

using std::advance;
using std::distance;
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
class device_ptr;
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
  device_reference& operator-=(const T& value) { return *this = T(*this) - value; }
  device_reference& operator*=(const T& value) { return *this = T(*this) * value; }
  auto operator&() const { return device_ptr<T>(at_); }
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
  if constexpr (requires { at - raw(like); }) {
    return like + (at - raw(like));
  } else {
    return at;  // it cannot go back, as a std::ostream_iterator
  }
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

}  // namespace thrust
