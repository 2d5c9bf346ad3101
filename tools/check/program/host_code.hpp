// SPDX-License-Identifier: MIT
// Addresses of code that only the host can use: a function's address that host code took, and the
// virtual function table of an object that host code constructed. In memory that the host gives to
// a kernel they become addresses in a range where nothing is mapped, so a kernel that uses one
// fails, as on a GPU. The host gets them back as they were.
#pragma once

#include <cstddef>
#include <string>

namespace cookbook::simt::program {

/// Of the words in `bytes` bytes at `at`. `device`: where they are on the device, which says where
/// a word begins.
void hide_host_code(void* at, size_t bytes, const void* device);
void show_host_code(void* at, size_t bytes, const void* device);

/// The host gets these bytes from the device: code whose address is among them is the device's.
void note_device_code(const void* device, size_t bytes);

/// What a kernel that uses this address does; "" if it is not a hidden one.
std::string describe_host_code(const void* address);
/// "the host variable 'n'", which this address is in; "" if it is in none of the program's.
std::string describe_host_variable(const void* address);
/// What to do about what was described since the last call; null: nothing was.
const char* remedy_of_host_code();

}  // namespace cookbook::simt::program
