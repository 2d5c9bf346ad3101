// SPDX-License-Identifier: MIT
#pragma once

#include <complex>

#include "detail/thrust.h"

namespace thrust {
using std::abs;
using std::arg;
using std::complex;
using std::conj;
using std::exp;
using std::log;
using std::norm;
using std::polar;
using std::pow;
using std::proj;
using std::sqrt;
}  // namespace thrust
