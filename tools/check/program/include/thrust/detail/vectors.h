// SPDX-License-Identifier: MIT
// The vectors of Thrust: device_vector owns device memory.
#pragma once

#include "iterators.h"

namespace thrust {

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
    if (at_ != nullptr) (void)cudaFree(at_);  // fails after cudaDeviceReset()
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
  (void)cudaFree(at.get());
}

}  // namespace thrust
