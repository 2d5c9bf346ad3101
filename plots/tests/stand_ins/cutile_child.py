# SPDX-License-Identifier: MIT
"""A child of the search whose second configuration ends its process, whose third never ends, and whose fourth is wrong
and takes the CUDA context along."""
import contextlib
import json
import os
import sys
import time
import types

from contestants import cutile

sys.modules["torch"] = torch = types.ModuleType("torch")
lost = []
torch.cuda = types.SimpleNamespace(get_device_properties=lambda i: types.SimpleNamespace(multi_processor_count=4),
                                   synchronize=lambda: [].pop() if lost else None, empty_cache=lambda: None)
torch.empty, torch.int8 = lambda *a, **k: None, None
sys.modules["cuda"] = types.ModuleType("cuda")
sys.modules["cuda"].tile = sys.modules["cuda.tile"] = types.ModuleType("cuda.tile")
sys.modules["cuda.tile"].compiler_timeout = lambda seconds: contextlib.nullcontext()
cutile.HANG_SECONDS, cutile.COMPILE_SECONDS = 0.5, 0
cutile.make_tensors = lambda problem: (None, None)
cutile.configs_of = lambda problem, sms: [cutile.Config(name, (8,), (), (1, 1, 1), (), name in "ad") for name in "abcde"]


def measure(problem, config, *_):
    print("a package talks")
    if config.kernel == "b":
        os.abort()
    if config.kernel == "c":
        time.sleep(60)
    if config.kernel == "d":
        lost.append(config)
    return {"reason": "WRONG"} if lost else {"ms": {"a": 2.0, "e": 1.0}[config.kernel]}


cutile.measure = measure
status = cutile.child(json.loads(sys.argv[1]))
sys.stdout.flush()
os._exit(status)
