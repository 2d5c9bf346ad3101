// SPDX-License-Identifier: MIT
// The generators of Thrust are those of C++. Their distributions may differ from a GPU's.
#pragma once

#include <random>

#include "detail/thrust.h"

namespace thrust {
namespace random {
using std::minstd_rand;
using std::minstd_rand0;
using std::normal_distribution;
using std::ranlux24;
using std::ranlux48;
using std::uniform_int_distribution;
using std::uniform_real_distribution;
using default_random_engine = std::minstd_rand;
}  // namespace random
using namespace random;
}  // namespace thrust
