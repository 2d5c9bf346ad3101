// SPDX-License-Identifier: MIT
// cp.async as functions of C.
#pragma once

#include "cuda_pipeline_primitives.h"
