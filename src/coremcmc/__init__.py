"""Bayesian coresets and posterior draws from them, with nothing to tune.

``coremcmc.fit(model, data, coreset_size)`` is all that a first fit needs. The public names are
listed in ``coremcmc.surface``.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from coremcmc.version import __version__ as __version__

if TYPE_CHECKING:
    from coremcmc.surface import *  # noqa: F403
else:
    # JAX takes most of a second to import. The command's help and the shell's completion do not
    # need it, so the names are loaded when the first of them is asked for.

    def __getattr__(name: str) -> Any:
        if name == "__all__" or not name.startswith("__"):
            surface = importlib.import_module("coremcmc.surface")
            if name == "__all__" or name in surface.__all__:
                return getattr(surface, name)
            if name in globals():  # a module that the surface has imported
                return globals()[name]
        raise AttributeError(f"module 'coremcmc' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})

    class _Package(ModuleType):
        """Keeps ``coremcmc.fit`` the function when Python imports the module of that name."""

        def __setattr__(self, name: str, value: Any) -> None:
            if name not in ("fit", "coreset_mcmc") or not isinstance(value, ModuleType):
                super().__setattr__(name, value)

    sys.modules[__name__].__class__ = _Package
