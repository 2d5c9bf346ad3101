// SPDX-License-Identifier: MIT
#pragma once
#include "common/backend/simt/units/wmma.hpp"
#include "cuda_runtime.h"
