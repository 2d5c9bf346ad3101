# SPDX-License-Identifier: MIT
# Thin: every target goes to CMake. BACKEND=simt|cuda overrides what ./run would choose.
ifndef BACKEND
BACKEND := $(shell ./run --print-backend)
endif
BUILD := build/$(BACKEND)

.PHONY: all test docs plots clean
all: $(BUILD)/CMakeCache.txt
	cmake --build $(BUILD)

$(BUILD)/CMakeCache.txt:
	cmake --preset $(BACKEND) || { rm -f $@; exit 1; }

# make chapter-3: build it; make run-3: build and run it
chapter-%: $(BUILD)/CMakeCache.txt
	cmake --build $(BUILD) --target chapter-$*

run-%:
	BACKEND=$(BACKEND) ./run $*

test docs plots:
	BACKEND=$(BACKEND) ./run $@

clean:
	rm -rf build
