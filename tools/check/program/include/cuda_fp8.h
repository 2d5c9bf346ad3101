// SPDX-License-Identifier: MIT
#pragma once
#include "common/backend/simt/language/fp8_types.hpp"
#include "cuda_runtime.h"
