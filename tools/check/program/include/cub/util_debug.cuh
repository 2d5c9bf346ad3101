// SPDX-License-Identifier: MIT
#pragma once
#include "cub.cuh"
