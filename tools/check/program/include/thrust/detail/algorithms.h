// SPDX-License-Identifier: MIT
// The algorithms of Thrust. They run on the CPU while device memory is open to it.
#pragma once

#include "iterators.h"

namespace thrust {

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
  /// Element i of a range whose end nobody names.
  template <class T>
  bool from_element(T* first, ptrdiff_t i) {
    if (!cookbook::simt::program::is_in_device_memory(first)) return true;
    if (i < 0) return out_of_bounds("reads element " + std::to_string(i));
    return reads_behind(first, static_cast<size_t>(i) * sizeof(T), sizeof(T));
  }
  template <class T>
  bool to_element(T* first, ptrdiff_t i) {
    if (!cookbook::simt::program::is_in_device_memory(first)) return true;
    if (i < 0) return out_of_bounds("writes element " + std::to_string(i));
    return writes_behind(first, static_cast<size_t>(i) * sizeof(T), sizeof(T));
  }
  template <class It>
  bool from_element(It, ptrdiff_t) {
    return true;
  }
  template <class It>
  bool to_element(It, ptrdiff_t) {
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
      if (found != 0 && equal(from[i - 1], from[i])) {
        detail::raw(out)[found - 1] = f(detail::raw(out)[found - 1], of[i]);
      } else if (call.to_element(detail::raw(keys), found) &&
                 call.to_element(detail::raw(out), found)) {
        detail::raw(keys)[found] = from[i];
        detail::raw(out)[found++] = of[i];
      }
    }
  }
  return {keys + found, out + found};
}
COOKBOOK_POLICY(reduce_by_key)

// Of many values at once: where each belongs, as a number.
#define COOKBOOK_BOUNDS(NAME)                                                             \
  template <class It, class Values, class Out, class... F>                                \
  Out NAME(It first, It last, Values begin, Values end, Out out, F... f) {                \
    detail::Call call("thrust::" #NAME);                                                  \
    if (!call.in(detail::raw(first), detail::raw(last)) ||                                \
        !call.in(detail::raw(begin), detail::raw(end)) ||                                 \
        !call.to(detail::raw(out), end - begin)) {                                        \
      return out;                                                                         \
    }                                                                                     \
    for (ptrdiff_t i = 0; i < end - begin; ++i) {                                         \
      detail::raw(out)[i] =                                                               \
          std::NAME(detail::raw(first), detail::raw(last), detail::raw(begin)[i], f...) - \
          detail::raw(first);                                                             \
    }                                                                                     \
    return out + (end - begin);                                                           \
  }
COOKBOOK_BOUNDS(lower_bound)
COOKBOOK_BOUNDS(upper_bound)
#undef COOKBOOK_BOUNDS

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
COOKBOOK_OF_RANGE(binary_search, result)
COOKBOOK_OF_RANGE(lower_bound, detail::back(first, result))
COOKBOOK_OF_RANGE(upper_bound, detail::back(first, result))
COOKBOOK_OF_RANGE(stable_partition, detail::back(first, result))
COOKBOOK_OF_RANGE(minmax_element, std::make_pair(detail::back(first, result.first),
                                                 detail::back(first, result.second)))
#undef COOKBOOK_OF_RANGE

template <class It, class F, class T>
void replace_if(It first, It last, F f, const T& value) {
  detail::Call call("thrust::replace_if");
  if (!call.in(detail::raw(first), detail::raw(last))) return;
  if (!call.to(detail::raw(first), last - first)) return;
  std::replace_if(detail::raw(first), detail::raw(last), f, value);
}
COOKBOOK_POLICY(replace_if)
template <class It, class T>
void replace(It first, It last, const T& old, const T& value) {
  thrust::replace_if(
      first, last, [&](const auto& at) { return at == old; }, value);
}
COOKBOOK_POLICY(replace)
template <class It, class Out, class F>
Out adjacent_difference(It first, It last, Out out, F f) {
  detail::Call call("thrust::adjacent_difference");
  if (!call.in(detail::raw(first), detail::raw(last))) return out;
  if (!call.to(detail::raw(out), last - first)) return out;
  std::adjacent_difference(detail::raw(first), detail::raw(last), detail::raw(out), f);
  return out + (last - first);
}
template <class It, class Out>
Out adjacent_difference(It first, It last, Out out) {
  return thrust::adjacent_difference(first, last, out, std::minus<>());
}
COOKBOOK_POLICY(adjacent_difference)
template <class A, class B, class Out, class... F>
Out merge(A first_a, A last_a, B first_b, B last_b, Out out, F... f) {
  detail::Call call("thrust::merge");
  const ptrdiff_t n = (last_a - first_a) + (last_b - first_b);
  if (!call.in(detail::raw(first_a), detail::raw(last_a)) ||
      !call.in(detail::raw(first_b), detail::raw(last_b)) || !call.to(detail::raw(out), n)) {
    return out;
  }
  std::merge(detail::raw(first_a), detail::raw(last_a), detail::raw(first_b), detail::raw(last_b),
             detail::raw(out), f...);
  return out + n;
}
COOKBOOK_POLICY(merge)

template <class It, class Out, class F>
Out copy_if(It first, It last, Out out, F f) {
  detail::Call call("thrust::copy_if");
  if (!call.in(detail::raw(first), detail::raw(last))) return out;
  ptrdiff_t found = 0;
  for (auto it = detail::raw(first); it != detail::raw(last); ++it) {
    if (f(*it) && call.to_element(detail::raw(out), found)) detail::raw(out)[found++] = *it;
  }
  return out + found;
}
template <class It, class Flags, class Out, class F>
requires(!std::is_base_of_v<policy, It>) Out copy_if(It first, It last, Flags flags, Out out, F f) {
  detail::Call call("thrust::copy_if");
  if (!call.in(detail::raw(first), detail::raw(last))) return out;
  if (!call.in(detail::raw(flags), detail::raw(flags) + (last - first))) return out;
  ptrdiff_t found = 0;
  for (ptrdiff_t i = 0; i < last - first; ++i) {
    if (f(detail::raw(flags)[i]) && call.to_element(detail::raw(out), found)) {
      detail::raw(out)[found++] = detail::raw(first)[i];
    }
  }
  return out + found;
}
COOKBOOK_POLICY(copy_if)
template <class It, class Out>
Out unique_copy(It first, It last, Out out) {
  detail::Call call("thrust::unique_copy");
  if (!call.in(detail::raw(first), detail::raw(last))) return out;
  ptrdiff_t found = 0;
  for (ptrdiff_t i = 0; i < last - first; ++i) {
    if (i > 0 && detail::raw(first)[i] == detail::raw(first)[i - 1]) continue;
    if (call.to_element(detail::raw(out), found)) detail::raw(out)[found++] = detail::raw(first)[i];
  }
  return out + found;
}
COOKBOOK_POLICY(unique_copy)
template <class Map, class It, class Out>
Out gather(Map first, Map last, It from, Out out) {
  detail::Call call("thrust::gather");
  if (!call.to(detail::raw(out), last - first)) return out;
  for (ptrdiff_t i = 0; i < last - first; ++i) {
    const auto at = static_cast<ptrdiff_t>(detail::raw(first)[i]);
    if (call.from_element(detail::raw(from), at)) detail::raw(out)[i] = detail::raw(from)[at];
  }
  return out + (last - first);
}
COOKBOOK_POLICY(gather)
template <class It, class Map, class Out>
void scatter(It first, It last, Map map, Out out) {
  detail::Call call("thrust::scatter");
  for (ptrdiff_t i = 0; i < last - first; ++i) {
    const auto at = static_cast<ptrdiff_t>(detail::raw(map)[i]);
    if (call.to_element(detail::raw(out), at)) detail::raw(out)[at] = detail::raw(first)[i];
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
/// In another order than a GPU's.
template <class It, class Generator>
void shuffle(It first, It last, Generator&& generator) {
  detail::Call call("thrust::shuffle");
  if (call.in(detail::raw(first), detail::raw(last))) {
    std::shuffle(detail::raw(first), detail::raw(last), generator);
  }
}
COOKBOOK_POLICY(shuffle)
template <class It, class Out, class Generator>
void shuffle_copy(It first, It last, Out out, Generator&& generator) {
  thrust::copy(first, last, out);
  thrust::shuffle(out, out + (last - first), generator);
}
COOKBOOK_POLICY(shuffle_copy)
#undef COOKBOOK_POLICY

}  // namespace thrust
