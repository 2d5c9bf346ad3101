// SPDX-License-Identifier: MIT
// Prefill on Hopper: chapter 10's last three kernels with the tiles that suit the shape, the last
// wave divided, and the mask's bound computed once per query tile.
#pragma once

#include "chapters/10_flash_attention/level_11_max_of_bits.cuh"
#include "library/attention/key_chunks.cuh"

namespace cookbook::attention {

/// Calls f with the configuration for the problem: as with_split_softmax_config, and tiles of 160
/// keys where the padding shrinks by a twentieth of all keys, because every key tile costs more
/// than its keys. Without a mask and at head dimension 128 only.
template <class CaseT, class F>
void with_prefill_config(CaseT c, const Shape& shape, F&& f) {
  if constexpr (CaseT::kHeadDim == 128) {
    const int few = 160 * ceil_div(shape.seq_k, 160), many = 176 * ceil_div(shape.seq_k, 176);
    if (!shape.causal && many - few > many / 20) return f(PersistentConfig<CaseT, 2, 160>{});
  }
  with_split_softmax_config(c, shape, f);
}
/// {queries, keys} of its tiles.
inline std::pair<int, int> prefill_tile(const Problem& p) {
  return tile_of(p, [&](auto c, auto f) { with_prefill_config(c, p.shape, f); });
}

struct Prefill : MaxOfBits {
  static constexpr LevelText text{
      .name = "prefill",
      .changed = "tiles by shape; the last wave's keys divided; the mask's bound once per tile",
      .expect =
          "2 to 4 % with 16,384 tokens and no mask; 10 % or more where tiles of 160 keys leave "
          "less padding, or where query tiles do not fill a wave",
      .cost = "a list of chunks, partial outputs in device memory, one more tile size to compile",
  };

  struct Plan : MaxOfBits::Plan {
    DeviceMemory begin, list, partials, arrived;
    KeyChunks chunks{};
  };
  static Plan prepare(const Problem& p, const Buffers& at) {
    const Shape& s = p.shape;
    const auto [block_m, block_n] = prefill_tile(p);
    Plan plan{Persistent::prepare(p, at), {}, {}, {}, {}};
    plan.q_map = sequence_map(p, at.q, s.heads_q, s.seq_q, 64);  // per warpgroup
    plan.k_map = sequence_map(p, at.k, s.heads_kv, s.seq_k, block_n);
    plan.v_map = sequence_map(p, at.v, s.heads_kv, s.seq_k, block_n);
    // Under a mask query tiles take different times, and the short ones fill the last wave.
    if (s.causal || plan.schedule.tiles == 0 || s.seq_k == 0) return plan;
    const Division division =
        divide_last_wave(plan.schedule.tiles, ceil_div(s.seq_k, block_n), device_info().sm_count);
    if (division.begin.empty()) return plan;
    plan.schedule.tiles = division.whole_tiles;
    plan.blocks = device_info().sm_count;
    const auto upload = [](const auto& list, const char* name) {
      const size_t bytes = list.size() * sizeof list[0];
      DeviceMemory memory(bytes, name);
      memory.copy_from_host(list.data(), bytes);
      return memory;
    };
    plan.begin = upload(division.begin, "first chunks");
    plan.list = upload(division.chunks, "chunks");
    const size_t warps = division.chunks.size() * static_cast<size_t>(block_m / 16);
    plan.partials = DeviceMemory(warps * (p.head_dim / 8 + 1) * 32 * sizeof(float4), "partials");
    plan.arrived = DeviceMemory(warps * sizeof(unsigned), "arrived");
    plan.arrived.fill(0);
    plan.chunks = {plan.begin.template as<int>(), plan.list.template as<KeyChunk>(),
                   plan.partials.template as<float4>(), plan.arrived.template as<unsigned>()};
    return plan;
  }
  static Claims claims(const Problem& p) {
    Claims claims = cross_tile_claims(p, prefill_tile(p));
    claims.pop_back();
    return claims;
  }
  static void run(const Plan& plan, Stream stream) {
    with_launch<ChunkConfig>(
        plan, stream, [](auto c, const Shape& s, auto f) { with_prefill_config(c, s, f); },
        [&](auto config, auto start) { start_fastest(config, start, plan.chunks); });
  }
};

}  // namespace cookbook::attention
