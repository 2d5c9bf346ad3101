// SPDX-License-Identifier: MIT
#include "tests/layout_cases.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/backend/device_bytes.hpp"
#include "common/harness/run/options.hpp"

namespace cookbook {
namespace {

/// The pitch of a tensor. Rows of `aligned` ones begin at multiples of eight elements.
enum class Pitch { tight, odd, two, four, aligned, aligned_far };
/// Where a buffer begins.
enum class Base { aligned, one_element, eight_bytes, sixteen_bytes };

struct Factor {       // of a tensor, or of several tensors that share a pitch
  std::size_t index;  // of the tensor, among all of the problem's
  std::string tensor;
  std::size_t width;
};

/// Elements to add to a pitch of `cols`.
std::int64_t extra_pitch(Pitch pitch, std::int64_t cols) {
  static constexpr struct {
    std::int64_t least, remainder, of;
  } kPitches[] = {{0, 0, 1}, {1, 1, 2}, {100, 2, 4}, {1, 4, 8}, {0, 0, 8}, {72, 0, 8}};
  const auto& [least, remainder, of] = kPitches[static_cast<int>(pitch)];
  std::int64_t at = cols + least;
  while (at % of != remainder) ++at;
  return at - cols;
}

std::int64_t misalign_elements(Base base, std::size_t width) {
  const auto element = static_cast<std::int64_t>(width);
  const std::int64_t bytes[] = {0, element, 8, 16};
  return bytes[static_cast<int>(base)] / element;
}

class Cases {
 public:
  explicit Cases(const Ladder& ladder) : ladder_(ladder) {
    const auto specs = ladder.make_problem(ladder.trace_size, {})->tensors();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      tensors_.push_back({i, specs[i].name, dtype_bytes(specs[i].dtype)});
      Variant variant;
      variant.tensors[specs[i].name].extra_pitch = 1;
      const auto changed = ladder.make_problem(ladder.trace_size, variant)->tensors();
      bool has_pitch = false;
      for (std::size_t j = 0; j < specs.size(); ++j) {
        has_pitch = has_pitch || changed[j].pitch != specs[j].pitch;
      }
      if (has_pitch) pitched_.push_back(tensors_.back());
    }
    find_sizes();
  }

  double work(const Size& size) const {
    const auto problem = ladder_.make_problem(size, {});
    return problem->bytes() + problem->flops();
  }

  /// Whether every output's rows are whole units of 16 bytes.
  bool has_whole_rows(const Size& size) const {
    const auto specs = ladder_.make_problem(size, {})->tensors();
    return std::all_of(specs.begin(), specs.end(), [](const TensorSpec& spec) {
      return spec.role == Role::input ||
             spec.cols * static_cast<std::int64_t>(dtype_bytes(spec.dtype)) % 16 == 0;
    });
  }

  const std::vector<Size>& small() const { return small_; }
  const std::vector<Size>& large() const { return large_; }
  const std::vector<Factor>& tensors() const { return tensors_; }
  const std::vector<Factor>& pitched() const { return pitched_; }

  /// A case; `pitch` and `base` are in the order of pitched() and tensors().
  LayoutCase make(const Size& size, const std::vector<Pitch>& pitch, const std::vector<Base>& base,
                  InputKind kind, int sm_count, int schedule) const {
    LayoutCase result{size, {}, kind, sm_count, schedule};
    const auto specs = ladder_.make_problem(size, {})->tensors();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      result.variant.tensors[tensors_[i].tensor].misalign_elements =
          misalign_elements(base[i], tensors_[i].width);
    }
    for (std::size_t i = 0; i < pitched_.size(); ++i) {
      const auto& [index, name, width] = pitched_[i];
      result.variant.tensors[name].extra_pitch = extra_pitch(pitch[i], specs[index].cols);
    }
    return result;
  }

 private:
  void find_sizes() {
    const double limit = work(ladder_.trace_size) / 4;
    const auto add = [&](const Size& size) {
      std::vector<Size>& list = work(size) <= limit ? small_ : large_;
      if (std::find(list.begin(), list.end(), size) == list.end()) list.push_back(size);
    };
    for (const Size& size : ladder_.test_sizes) add(size);
    // Odd extents; for every other size only those that leave the outputs' rows whole, because a
    // level that stores by TMA supports no others.
    bool keep_rows = false;
    for (const Size& size : ladder_.test_sizes) {
      Size odd = size;
      for (std::size_t dim = 0; dim < size.size(); ++dim) {
        if (size[dim] < 4 || size[dim] % 2 != 0) continue;
        --odd[dim];
        try {
          const bool whole = has_whole_rows(odd);
          if (keep_rows && has_whole_rows(size) && !whole) ++odd[dim];
        } catch (const BadSize&) {
          ++odd[dim];
        }
      }
      keep_rows = !keep_rows;
      if (work(odd) <= limit) add(odd);
    }
    if (small_.empty()) std::swap(small_, large_);
  }

  const Ladder& ladder_;
  std::vector<Factor> tensors_, pitched_;
  std::vector<Size> small_, large_;
};

constexpr InputKind kKinds[] = {InputKind::integers, InputKind::cancellation, InputKind::normal};
constexpr int kSmCounts[] = {7, 1, 4};  // 4 is the default, and does not share work as odd ones do
constexpr int kSchedules = 3;

}  // namespace

std::vector<std::vector<int>> pairwise(const std::vector<int>& counts) {
  const std::size_t factors = counts.size();
  // open[i][j]: the pairs of factors i < j that no row has yet.
  std::vector<std::vector<std::vector<bool>>> open(factors);
  std::size_t left = 0;
  for (std::size_t i = 0; i < factors; ++i) {
    open[i].resize(factors);
    for (std::size_t j = i + 1; j < factors; ++j) {
      open[i][j].assign(static_cast<std::size_t>(counts[i] * counts[j]), true);
      left += open[i][j].size();
    }
  }
  const auto pair = [&](const std::vector<int>& row, std::size_t i, std::size_t j) {
    return open[i][j][static_cast<std::size_t>(row[i] * counts[j] + row[j])];
  };
  std::vector<std::vector<int>> rows;
  if (factors == 1) {
    for (int value = 0; value < counts[0]; ++value) rows.push_back({value});
  }
  std::uint64_t random = 1;
  while (left > 0) {
    // The best of some random rows that all begin with an open pair.
    std::size_t first = 0, second = 1;
    std::size_t most = 0;
    for (std::size_t i = 0; i < factors; ++i) {
      for (std::size_t j = i + 1; j < factors; ++j) {
        const auto open_pairs =
            static_cast<std::size_t>(std::count(open[i][j].begin(), open[i][j].end(), true));
        if (open_pairs > most) most = open_pairs, first = i, second = j;
      }
    }
    const auto& pairs = open[first][second];
    const auto at = static_cast<int>(std::find(pairs.begin(), pairs.end(), true) - pairs.begin());
    std::vector<int> best;
    std::size_t best_gain = 0;
    for (int candidate = 0; candidate < 30; ++candidate) {
      std::vector<int> row(factors);
      for (std::size_t i = 0; i < factors; ++i) {
        random = mix_bits(random);
        row[i] = static_cast<int>(random % static_cast<std::uint64_t>(counts[i]));
      }
      row[first] = at / counts[second];
      row[second] = at % counts[second];
      std::size_t gain = 0;
      for (std::size_t i = 0; i < factors; ++i) {
        for (std::size_t j = i + 1; j < factors; ++j) gain += pair(row, i, j);
      }
      if (gain > best_gain) best_gain = gain, best = row;
    }
    for (std::size_t i = 0; i < factors; ++i) {
      for (std::size_t j = i + 1; j < factors; ++j) {
        open[i][j][static_cast<std::size_t>(best[i] * counts[j] + best[j])] = false;
      }
    }
    left -= best_gain;
    rows.push_back(std::move(best));
  }
  return rows;
}

std::string LayoutCase::text() const {
  std::string text = fmt::format("{}, {} inputs", size_text(size), input_kind_name(kind));
  for (const auto& [name, layout] : variant.tensors) {
    if (layout.extra_pitch != 0) text += fmt::format(", {} pitch +{}", name, layout.extra_pitch);
    if (layout.misalign_elements != 0) {
      text += fmt::format(", {} base +{}", name, layout.misalign_elements);
    }
  }
  static const char* const schedules[] = {"late", "early", "random"};
  return text + fmt::format(", {} SMs, copies {}", sm_count, schedules[schedule]);
}

std::vector<LayoutCase> layout_cases(const Ladder& ladder) {
  const Cases cases(ladder);
  const std::size_t pitches = cases.pitched().size(), bases = cases.tensors().size();
  std::vector<LayoutCase> result;
  // A row of a covering array: pitches, bases, kind, SMs, schedule, size.
  const auto add = [&](const std::vector<int>& row, const std::vector<Pitch>& pitch_values,
                       const std::vector<Base>& base_values, const std::vector<Size>& sizes) {
    std::vector<Pitch> pitch;
    std::vector<Base> base;
    std::size_t at = 0;
    for (; at < pitches; ++at) pitch.push_back(pitch_values[static_cast<std::size_t>(row[at])]);
    for (; at < pitches + bases; ++at) {
      base.push_back(base_values[static_cast<std::size_t>(row[at])]);
    }
    const auto* rest = &row[at];
    result.push_back(cases.make(sizes[static_cast<std::size_t>(rest[3])], pitch, base,
                                kKinds[rest[0]], kSmCounts[rest[1]], rest[2]));
  };
  const auto counts = [&](int pitch_count, int base_count, std::size_t sizes, int others) {
    std::vector<int> all(pitches, pitch_count);
    all.insert(all.end(), bases, base_count);
    all.insert(all.end(), 2, others);  // inputs and SMs
    all.push_back(std::min(others, kSchedules));
    all.push_back(static_cast<int>(sizes));
    return all;
  };

  // 1. Aligned.
  const std::vector<Pitch> aligned = {Pitch::aligned, Pitch::aligned_far};
  const std::vector<Base> aligned_bases = {Base::aligned, Base::sixteen_bytes};
  for (const auto& row : pairwise(counts(2, 2, cases.small().size(), 2))) {
    add(row, aligned, aligned_bases, cases.small());
  }
  int turn = 0;
  std::vector<int> row(pitches + bases + 4);
  for (const Size& size : cases.large()) {
    for (std::size_t i = 0; i < pitches + bases + 3; ++i) {
      row[i] = static_cast<int>(mix_bits(static_cast<std::uint64_t>(turn * 64) + i) % 2);
    }
    add(row, aligned, aligned_bases, {size});
    ++turn;
  }

  // 2. One tensor is off.
  const auto one_off = [&](std::size_t factor, int value) {
    std::fill(row.begin(), row.end(), 0);
    row[factor] = value;
    row[pitches + bases + 1] = turn % 3;
    row[pitches + bases + 3] =
        static_cast<int>(static_cast<std::size_t>(turn) % cases.small().size());
    add(row, {Pitch::aligned, Pitch::odd, Pitch::two, Pitch::four},
        {Base::aligned, Base::one_element, Base::eight_bytes}, cases.small());
    turn += 5;
  };
  for (std::size_t i = 0; i < pitches; ++i) {
    for (const int value : {1, 2, 3}) one_off(i, value);
  }
  for (std::size_t i = 0; i < bases; ++i) {
    for (const int value : {1, 2}) one_off(pitches + i, value);
  }

  // 3. Any.
  std::vector<Size> some;
  for (std::size_t i = 0; i < cases.small().size(); i += 1 + cases.small().size() / 5) {
    some.push_back(cases.small()[i]);
  }
  for (const auto& any : pairwise(counts(5, 4, some.size(), 3))) {
    add(any, {Pitch::tight, Pitch::odd, Pitch::two, Pitch::four, Pitch::aligned},
        {Base::aligned, Base::one_element, Base::eight_bytes, Base::sixteen_bytes}, some);
  }
  return result;
}

std::vector<LayoutCase> far_row_cases(const Ladder& ladder) {
  const Cases cases(ladder);
  // The least work among sizes where every tensor has some rows of some columns.
  const auto rank = [&](const Size& size) {
    std::int64_t least = 24;
    const auto specs = ladder.make_problem(size, {})->tensors();
    for (const Factor& factor : cases.pitched()) {
      least = std::min({least, 8 * specs[factor.index].rows, specs[factor.index].cols});
    }
    return std::pair{-least, cases.work(size)};
  };
  // One size with and one without whole rows: both paths of a level compute addresses.
  std::vector<LayoutCase> result;
  for (const bool whole : {false, true}) {
    std::vector<Size> sizes;
    std::copy_if(cases.small().begin(), cases.small().end(), std::back_inserter(sizes),
                 [&](const Size& size) { return cases.has_whole_rows(size) == whole; });
    if (sizes.empty()) continue;
    const Size size =
        *std::min_element(sizes.begin(), sizes.end(),
                          [&](const Size& a, const Size& b) { return rank(a) < rank(b); });
    const auto specs = ladder.make_problem(size, {})->tensors();
    for (const Factor& factor : cases.pitched()) {
      result.push_back(cases.make(size, std::vector<Pitch>(cases.pitched().size(), Pitch::tight),
                                  std::vector<Base>(cases.tensors().size(), Base::aligned),
                                  InputKind::normal, 4, 0));
      for (const auto& [index, name, width] : cases.pitched()) {
        // Rows begin at multiples of 16 bytes, for TMA, and of eight elements.
        const std::int64_t unit = std::max<std::int64_t>(8, 16 / static_cast<std::int64_t>(width));
        const std::int64_t tight = specs[index].pitch;
        const std::int64_t least = name == factor.tensor ? (std::int64_t{1} << 31) + 1 : tight;
        result.back().variant.tensors[name].extra_pitch = (least + unit - 1) / unit * unit - tight;
      }
    }
  }
  return result;
}

std::vector<LayoutCase> traced_layout_cases(const Ladder& ladder) {
  const Cases cases(ladder);
  const double limit = cases.work(ladder.trace_size) / 8;
  // Odd extents first, then the most work within the limit.
  std::vector<Size> sizes = cases.small();
  const auto rank = [&](const Size& size) {
    const auto odd = std::count_if(size.begin(), size.end(), [](auto e) { return e % 2 != 0; });
    const double work = cases.work(size);
    return std::pair{work <= limit, static_cast<double>(odd) * 1e15 + work};
  };
  std::sort(sizes.begin(), sizes.end(),
            [&](const Size& a, const Size& b) { return rank(a) > rank(b); });
  const Size& first = sizes.front();
  // The next, with whole rows if any other has them.
  const auto next = std::find_if(sizes.begin() + (sizes.size() > 1), sizes.end(),
                                 [&](const Size& size) { return cases.has_whole_rows(size); });
  const Size& second = next != sizes.end() ? *next : sizes[sizes.size() > 1];
  const auto all = [&](Pitch pitch, Base base, const Size& size) {
    return cases.make(size, std::vector<Pitch>(cases.pitched().size(), pitch),
                      std::vector<Base>(cases.tensors().size(), base), InputKind::normal, 7, 0);
  };
  std::vector<LayoutCase> result = {
      all(Pitch::tight, Base::aligned, first), all(Pitch::aligned, Base::sixteen_bytes, first),
      all(Pitch::odd, Base::one_element, second), all(Pitch::aligned_far, Base::aligned, second)};
  // The longest in one direction, in which a ring of stages comes round more than once.
  const auto extent = [](const Size& size) { return *std::max_element(size.begin(), size.end()); };
  result.push_back(
      all(Pitch::aligned, Base::aligned,
          *std::max_element(sizes.begin(), sizes.end(),
                            [&](const Size& a, const Size& b) { return extent(a) < extent(b); })));
  // One tensor is off: only the tracer sees all accesses that are not on their natural boundaries.
  const auto little = [&](const Size& size) {
    const double work = cases.work(size);
    return std::pair{work <= limit / 4, work <= limit / 4 ? work : -work};
  };
  const Size small =
      *std::max_element(sizes.begin(), sizes.end(),
                        [&](const Size& a, const Size& b) { return little(a) < little(b); });
  for (const Factor& factor : cases.pitched()) {
    LayoutCase off = all(Pitch::aligned, Base::aligned, small);
    off.variant.tensors[factor.tensor].extra_pitch += 1;
    result.push_back(off);
  }
  for (const Factor& factor : cases.tensors()) {
    LayoutCase off = all(Pitch::aligned, Base::aligned, small);
    off.variant.tensors[factor.tensor].misalign_elements = 1;
    result.push_back(off);
  }
  int turn = 0;
  for (LayoutCase& layout : result) layout.schedule = turn++ % kSchedules;
  return result;
}

}  // namespace cookbook
