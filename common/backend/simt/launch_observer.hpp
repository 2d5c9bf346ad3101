// SPDX-License-Identifier: MIT
#pragma once

namespace cookbook::simt {

/// Called with true before each launch runs and with false after it, also where it fails; null: no
/// one is. For a grader, which closes device memory to host code in between.
void set_launch_observer(void (*observer)(bool begins));

}  // namespace cookbook::simt
