"""Loaded by every Python process of a driver that shall be killed: see `tests.restart.kills`.

It costs nothing until a process has steps to listen to.
"""

import importlib.abc
import importlib.util
import os
import sys
from typing import Any

STEPS = "tidegate.store.steps"


class _AfterSteps(importlib.abc.MetaPathFinder):
    """Hangs the listener in when the steps are imported."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != STEPS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        loader: Any = spec.loader
        imported = loader.exec_module

        def exec_module(module: Any) -> None:
            from tests.restart.kills import Killer

            imported(module)
            module._listeners.append(Killer())

        loader.exec_module = exec_module
        return spec


if os.environ.get("KILL_AT"):
    sys.meta_path.insert(0, _AfterSteps())
