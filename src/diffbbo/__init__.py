"""diffbbo: batch black-box optimisation with an ensemble of conditional diffusion models.

Public names load on first use, so that importing the package is quick and needs no heavy library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .acquisition import Acquisition, FixedWeight, RandomWeight, UaE
    from .backends import Processes, Serial
    from .default import DiffBBO
    from .diffusion.config import EnsembleConfig
    from .optimizer import Optimizer, Proposal
    from .own_tasks import CommandTask, TableTask
    from .registry import make_optimizer, make_task
    from .spaces import Space
    from .storage import Storage
    from .study import Study
    from .task import FunctionTask, Task
    from .types import Batch, DiffBBOError, InputError
    from .variables import Categorical, Integer, Real, Sequence

__version__ = "0.1.0"

_HOME = {
    "Acquisition": "acquisition",
    "Batch": "types",
    "Categorical": "variables",
    "CommandTask": "own_tasks",
    "DiffBBO": "default",
    "DiffBBOError": "types",
    "EnsembleConfig": "diffusion.config",
    "FixedWeight": "acquisition",
    "FunctionTask": "task",
    "InputError": "types",
    "Integer": "variables",
    "Optimizer": "optimizer",
    "Processes": "backends",
    "Proposal": "optimizer",
    "RandomWeight": "acquisition",
    "Real": "variables",
    "Sequence": "variables",
    "Serial": "backends",
    "Space": "spaces",
    "Storage": "storage",
    "Study": "study",
    "TableTask": "own_tasks",
    "Task": "task",
    "UaE": "acquisition",
    "make_optimizer": "registry",
    "make_task": "registry",
}
__all__ = [  # noqa: RUF022  (grouped by what they are for)
    "Space", "Real", "Integer", "Categorical", "Sequence",
    "DiffBBO", "EnsembleConfig", "Acquisition", "UaE", "FixedWeight", "RandomWeight",
    "Optimizer", "Proposal", "Batch", "make_optimizer",
    "Task", "FunctionTask", "TableTask", "CommandTask", "make_task", "Study", "Storage", "Serial", "Processes",
    "DiffBBOError", "InputError",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'diffbbo' has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
