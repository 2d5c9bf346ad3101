// SPDX-License-Identifier: MIT
// Copies to shared memory by all threads of a group.
#pragma once

#include "../cooperative_groups.h"
#include "../cuda/pipeline"

namespace cooperative_groups {

template <class Group, class T, class Size>
__forceinline__ void memcpy_async(const Group& group, T* to, const T* from, Size bytes) {
  cuda::detail::copy_part(to, from, static_cast<size_t>(bytes), group.thread_rank(), group.size());
  __pipeline_commit();
}
/// Copies as many elements as both have.
template <class Group, class T>
__forceinline__ void memcpy_async(const Group& group, T* to, size_t room, const T* from,
                                  size_t count) {
  memcpy_async(group, to, from, sizeof(T) * (room < count ? room : count));
}
/// Until all but the latest kGroups copies have arrived, those of the other threads too.
template <unsigned kGroups, class Group>
__forceinline__ void wait_prior(const Group& group) {
  __pipeline_wait_prior(static_cast<int>(kGroups));
  group.sync();
}
template <class Group>
__forceinline__ void wait(const Group& group) {
  wait_prior<0>(group);
}

}  // namespace cooperative_groups
