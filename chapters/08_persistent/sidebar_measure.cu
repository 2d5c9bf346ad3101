// SPDX-License-Identifier: MIT
// needs: cuda sm_90a
// Sidebar: times every kernel that supports a shape, for each shape of a list: cold L2, interleaved
// with cuBLAS. One line of JSON per shape. Usage: chapter-8-measure LIST OUT [ROUNDS]
// LIST has lines "M N K LAYOUT"; # begins a comment.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "chapters/06_tma/sweep.hpp"
#include "chapters/08_persistent/level_6_any_shape.cuh"
#include "common/harness/arguments.hpp"

namespace cookbook::gemm::all_kernels {

using namespace any_shape;

struct Candidate {
  std::string name;
  std::function<any_shape::Plan()> prepare;
};

struct Shape {
  Size size;
  bool a_transposed, b_transposed;
};

const char* name_of(Tiles tiles) {
  constexpr const char* kNames[] = {
      "one_64x64",      "one_64x128",     "turned_64x96",   "turned_64x160",  "turned_64x192",
      "turned_128x96",  "turned_128x112", "turned_128x128", "turned_128x144", "turned_128x176",
      "turned_128x208", "loop_128x256",   "ping_64x256",    "ping_128x192"};
  return kNames[static_cast<int>(tiles)];
}
const char* name_of(SplitTiles tiles) {
  constexpr const char* kNames[] = {"split_k_64x32", "split_k_128x96", "split_k_128x160",
                                    "split_k_128x256"};
  return kNames[static_cast<int>(tiles)];
}

/// The name of the candidate that bf3e2e9 chooses: the cascade of AnyShape::prepare.
std::string chosen(const Problem& p, const Buffers& at) {
  const int sms = device_info().sm_count;
  const Gemv g = gemv_of(p, at);
  if (p.m == 1 || p.n == 1) return loads_vectors(g) ? "gemv_8" : "gemv_1";
  if (has_short_k(g)) return "short_k";
  if (is_skinny(g, sms)) return "skinny";
  const RowsOfB rows_of_b = rows_of_b_in(p, at);
  const TileKernel& kernel = choose_kernel(p.m, p.n, p.k, sms, rows_of_b);
  const double tiles_us = predicted_us(kernel, p.m, p.n, p.k, sms, rows_of_b);
  const bool many_vectors = g.batch > kFewVectors;
  const bool tma_stores_c = rows_are_16_byte_aligned(at.c, p.ldc) && tma_stores_rows_of(p.n);
  const double stream_k_us = tma_stores_c && many_vectors
                                 ? predicted_stream_k_us(p.m, p.n, p.k, sms, rows_of_b)
                                 : std::numeric_limits<double>::infinity();
  const double us = std::min(tiles_us, stream_k_us);
  const Splitting in_cluster = choose_splitting(p.m, p.n, p.k, sms);
  const SplitKernel& split = choose_split_kernel(p.m, p.n, p.k, sms);
  const Splitting through_l2 = predicted_splitting(split, p.m, p.n, p.k, sms);
  if (through_l2.us < std::min(us, in_cluster.us)) {
    return name_of(split.tiles) + std::string("/") + std::to_string(through_l2.splits);
  }
  if (many_vectors && in_cluster.us < us) {
    return "skinny_64/" + std::to_string(in_cluster.splits);
  }
  if (stream_k_us < tiles_us) return "large/stream_k";
  if (tma_stores_c && many_vectors) return name_of(kernel.tiles);
  const Prediction guesses[] = {predict<Large>(p), predict<Medium>(p), predict<Small>(p)};
  constexpr const char* kNames[] = {"large", "medium", "small"};
  int best = 0;
  for (int i = 1; i < 3; ++i) {
    const auto clocks = [&](int of) { return std::min(guesses[of].whole, guesses[of].shared); };
    if (clocks(i) < clocks(best)) best = i;
  }
  return kNames[best] + std::string(guesses[best].shared < guesses[best].whole ? "/stream_k" : "");
}

template <class C>
void add_cut(std::vector<Candidate>& all, const char* name, const Problem& p, const Buffers& at) {
  const Prediction guess = predict<C>(p);
  all.push_back({name, [=] { return prepare_with<C>(p, at, 0); }});
  if (guess.tiles_to_share > 0) {
    all.push_back({name + std::string("/stream_k"),
                   [=] { return prepare_with<C>(p, at, guess.tiles_to_share); }});
  }
}

/// skinny.cuh with tiles of kVectors vectors and every supported number of splits.
template <int kVectors, Major kW, Major kX>
void add_skinny(std::vector<Candidate>& all, const Problem& p, const Buffers& at, const Gemv& g,
                int sms) {
  const std::int64_t tiles = (g.outputs + 63) / 64 * ((g.batch + kVectors - 1) / kVectors);
  const std::int64_t k_blocks = (g.depth + 63) / 64;
  const std::string name = "skinny_" + std::to_string(kVectors);
  for (int splits = 1; splits <= 8 && splits <= k_blocks; ++splits) {
    if (tiles * splits > 2 * sms && splits > 1) break;
    if (kVectors < 64 && (splits & (splits - 1)) != 0) continue;
    all.push_back({name + "/" + std::to_string(splits), [=] {
                     return prepare_skinny_in<SkinnyConfig<kVectors, kW, kX>>(p, at, splits);
                   }});
  }
}

template <Major kW>
void add_skinny_of(std::vector<Candidate>& all, const Problem& p, const Buffers& at, const Gemv& g,
                   int sms) {
  const auto loop = [&](auto vectors, auto major) {
    all.push_back({"skinny_loop_" + std::to_string(vectors.value), [=] {
                     return prepare_skinny_in<SkinnyConfig<vectors.value, kW, major.value, true>>(
                         p, at);
                   }});
  };
  using K = std::integral_constant<Major, Major::k>;
  using MN = std::integral_constant<Major, Major::mn>;
  if (g.x_step != 1) {
    add_skinny<64, kW, Major::mn>(all, p, at, g, sms);
    if (g.batch <= 64) loop(std::integral_constant<int, 64>{}, MN{});
    return;
  }
  add_skinny<64, kW, Major::k>(all, p, at, g, sms);
  if (g.batch > 64) return;
  add_skinny<8, kW, Major::k>(all, p, at, g, sms);
  add_skinny<16, kW, Major::k>(all, p, at, g, sms);
  add_skinny<32, kW, Major::k>(all, p, at, g, sms);
  loop(std::integral_constant<int, 16>{}, K{});
  loop(std::integral_constant<int, 32>{}, K{});
}

/// Every kernel that supports the GEMM.
std::vector<Candidate> candidates(const Problem& p, const Buffers& at) {
  std::vector<Candidate> all;
  const int sms = device_info().sm_count;
  const Gemv g = gemv_of(p, at);
  const auto whole = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  if (g.batch == 1) {
    if (loads_vectors(g)) all.push_back({"gemv_8", [=] { return prepare_gemv<8>(p, at); }});
    all.push_back({"gemv_1", [=] { return prepare_gemv<1>(p, at); }});
  }
  if (g.batch >= 2 && g.batch <= 16 && g.depth <= 128 && loads_vectors_of_w(g)) {
    all.push_back({"short_k", [=] { return prepare_short_k(p, at, g); }});
  }
  if (g.batch >= 2 && g.batch <= kFewVectors) {
    all.push_back({"skinny", [=] { return prepare_skinny(p, at); }});
  }
  const bool few_tiles = whole(g.outputs, 64) * whole(g.batch, 64) <= 2 * sms;
  if (g.batch <= 64 || few_tiles) {
    g.w_rows_are_outputs ? add_skinny_of<Major::k>(all, p, at, g, sms)
                         : add_skinny_of<Major::mn>(all, p, at, g, sms);
  }
  for (const SplitKernel& kernel : kSplitKernels) {
    const std::int64_t tiles = whole(g.outputs, kernel.outputs) * whole(g.batch, kernel.vectors);
    const auto most = static_cast<int>(std::min(sms / tiles, whole(g.depth, 64)));
    std::set<int> wanted{predicted_splitting(kernel, p.m, p.n, p.k, sms).splits};
    for (int splits : {most, most / 2, most / 4, 2, 3, 4}) wanted.insert(splits);
    for (int splits : wanted) {
      if (splits < 2 || splits > most) continue;
      all.push_back({name_of(kernel.tiles) + std::string("/") + std::to_string(splits),
                     [=] { return prepare_split_k(kernel.tiles, p, at, splits); }});
    }
  }
  if (g.batch == 1) return all;
  add_cut<Large>(all, "large", p, at);
  add_cut<Medium>(all, "medium", p, at);
  add_cut<Small>(all, "small", p, at);
  if (!rows_are_16_byte_aligned(at.c, p.ldc) || !tma_stores_rows_of(p.n)) return all;
  for (const TileKernel& kernel : kTileKernels) {
    if (whole(p.m, kernel.m) * whole(p.n, kernel.n) > std::int64_t{32} * sms && !kernel.loop) {
      continue;
    }
    const Tiles tiles = kernel.tiles;
    all.push_back({name_of(tiles), [=] { return prepare_tiles(tiles, p, at); }});
    if (!kernel.loop) continue;
    for (int group : {4, 8, 16}) {
      all.push_back({name_of(tiles) + std::string("/group_") + std::to_string(group), [=] {
                       any_shape::Plan plan = prepare_tiles(tiles, p, at);
                       plan.work.group = group;
                       return plan;
                     }});
    }
  }
  return all;
}

std::vector<Shape> read_shapes(const char* path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(std::string("cannot read ") + path);
  std::vector<Shape> shapes;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::int64_t m, n, k;
    std::string layout;
    if (!(words >> m)) continue;
    if (!(words >> n >> k >> layout) || layout.size() != 2) {
      throw std::runtime_error("not \"M N K LAYOUT\": " + line);
    }
    shapes.push_back({{m, n, k}, layout[0] == 'T', layout[1] == 'T'});
  }
  return shapes;
}

/// Some elements of the first and of the last row of C.
std::vector<float> sample(const DeviceMemory& c, const Problem& p) {
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(std::min<std::int64_t>(p.n, 4096)));
  std::vector<float> values;
  for (std::int64_t row : {std::int64_t{0}, p.m - 1}) {
    c.copy_to_host(bits.data(), bits.size() * 2, static_cast<std::size_t>(row * p.ldc) * 2);
    for (std::uint16_t b : bits) {
      const std::uint32_t wide = std::uint32_t{b} << 16;
      float value;
      std::memcpy(&value, &wide, 4);
      values.push_back(value);
    }
  }
  return values;
}

bool same(const std::vector<float>& got, const std::vector<float>& expected, double k) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!(std::fabs(got[i] - expected[i]) <= 0.05 * (std::sqrt(k) / 3))) return false;
  }
  return true;
}

int measure_all(const std::vector<Shape>& shapes, const char* out_path, int rounds) {
  std::FILE* out = std::fopen(out_path, "w");
  if (!out) throw std::runtime_error(std::string("cannot write ") + out_path);
  std::int64_t a_most = 1, b_most = 1, c_most = 1;
  for (const Shape& s : shapes) {
    a_most = std::max(a_most, s.size[0] * s.size[2]);
    b_most = std::max(b_most, s.size[2] * s.size[1]);
    c_most = std::max(c_most, s.size[0] * s.size[1]);
  }
  const DeviceMemory a = random_matrix(a_most, 1, "a"), b = random_matrix(b_most, 2, "b");
  DeviceMemory c(static_cast<std::size_t>(c_most) * 2, "c");
  const Buffers at{a.as<bf16>(), b.as<bf16>(), c.as<bf16>()};
  CublasGemm<bf16>::Plan library = CublasGemm<bf16>::prepare(Problem{}, at);
  int status = 0;
  const auto time_all = [](std::vector<Contender> contenders, int times) {
    BenchOptions options;
    options.min_rounds = options.max_rounds = times;
    options.hot = false;
    return measure(contenders, options, nullptr);
  };
  std::fprintf(out, "{\"device\": \"%s\", \"rounds\": %d}\n", device_info().name.c_str(), rounds);
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const Problem p =
        Problem::make_layout(shapes[s].size, {}, shapes[s].a_transposed, shapes[s].b_transposed);
    library.problem = p;
    std::vector<Contender> contenders{
        {"cuBLAS", [&](Stream stream) { CublasGemm<bf16>::run(library, stream); }},
        {"today", [plan = std::make_shared<any_shape::Plan>(AnyShape::prepare(p, at))](
                      Stream stream) { AnyShape::run(*plan, stream); }}};
    contenders[0].run({});
    synchronize();
    const std::vector<float> expected = sample(c, p);
    for (const Candidate& each : candidates(p, at)) {
      try {
        auto plan = std::make_shared<any_shape::Plan>(each.prepare());
        c.fill(0xff);
        AnyShape::run(*plan, {});
        synchronize();
        if (!same(sample(c, p), expected, static_cast<double>(p.k))) {
          throw std::runtime_error("differs from cuBLAS");
        }
        contenders.push_back({each.name, [plan](Stream stream) { AnyShape::run(*plan, stream); }});
      } catch (const std::exception& error) {
        std::printf("%s of %s: %s\n", each.name.c_str(), p.layout().c_str(), error.what());
        status = 1;
      }
    }
    const auto coarse = time_all(contenders, 2);
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i < coarse.size(); ++i) {
      if (coarse[i].error.empty()) best = std::min(best, coarse[i].cold.median);
    }
    const std::string today = chosen(p, at);
    std::vector<Contender> close;
    std::fprintf(out, "{\"shape\": [%lld, %lld, %lld], \"layout\": \"%s\", \"today\": \"%s\"",
                 static_cast<long long>(p.m), static_cast<long long>(p.n),
                 static_cast<long long>(p.k), p.layout().c_str(), today.c_str());
    std::fprintf(out, ", \"coarse_us\": {");
    const char* comma = "";
    for (std::size_t i = 0; i < coarse.size(); ++i) {
      if (!coarse[i].error.empty()) {
        std::printf("%s: %s\n", contenders[i].name.c_str(), coarse[i].error.c_str());
        status = 1;
        continue;
      }
      const bool wanted = i < 2 || contenders[i].name == today;
      if (wanted || coarse[i].cold.median <= 1.3 * best) close.push_back(contenders[i]);
      std::fprintf(out, "%s\"%s\": %.2f", comma, contenders[i].name.c_str(), coarse[i].cold.median);
      comma = ", ";
    }
    std::fprintf(out, "}, \"us\": {");
    const auto fine = time_all(close, rounds);
    comma = "";
    for (std::size_t i = 0; i < fine.size(); ++i) {
      if (!fine[i].error.empty()) continue;
      std::fprintf(out, "%s\"%s\": %.2f", comma, close[i].name.c_str(), fine[i].cold.median);
      comma = ", ";
    }
    std::fprintf(out, "}}\n");
    std::fflush(out);
    if (s % 50 == 49) std::printf("%zu of %zu shapes\n", s + 1, shapes.size());
    std::fflush(stdout);
  }
  std::fclose(out);
  return status;
}

}  // namespace cookbook::gemm::all_kernels

int main(int argc, char** argv) {
  using namespace cookbook;
  const auto rounds = argc == 4 ? positive_number(argv[3]) : std::optional<std::int64_t>(11);
  if (argc < 3 || argc > 4 || !rounds) {
    refuse_argument(argv, "LIST OUT [ROUNDS]", argc > 1 ? argv[argc - 1] : "");
  }
  try {
    return gemm::all_kernels::measure_all(gemm::all_kernels::read_shapes(argv[1]), argv[2],
                                          static_cast<int>(*rounds));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
}
