// SPDX-License-Identifier: MIT
// The roofs of further element types. They are no enumerators of Roof, because its header is part
// of the source hash of every level: results that were measured would count as old.
#pragma once

#include "common/harness/level.hpp"

namespace cookbook {

inline constexpr Roof kRoofFp64{static_cast<int>(Roof::own) + 1};  ///< FMA
inline constexpr Roof kRoofMmaTf32{static_cast<int>(Roof::own) + 2};
inline constexpr Roof kRoofMmaInt8{static_cast<int>(Roof::own) + 3};
inline constexpr Roof kRoofWgmmaTf32{static_cast<int>(Roof::own) + 4};
inline constexpr Roof kRoofWgmmaFp8{static_cast<int>(Roof::own) + 5};  ///< e4m3
inline constexpr Roof kRoofWgmmaInt8{static_cast<int>(Roof::own) + 6};

}  // namespace cookbook
