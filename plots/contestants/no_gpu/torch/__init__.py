# SPDX-License-Identifier: MIT
"""Stands for PyTorch where TileGym's kernels are compiled ahead (prepare_cutile.sh): what their modules ask for while
they are imported, and an H100 or H200 that is not there."""
from types import SimpleNamespace

SMS = 132


class Tensor:
    pass


class device:
    pass


class dtype:
    pass


autograd = SimpleNamespace(Function=object)
cuda = SimpleNamespace(get_device_capability=lambda *_: (9, 0),
                       get_device_properties=lambda *_: SimpleNamespace(multi_processor_count=SMS))
