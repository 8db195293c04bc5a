"""Bayesian coresets and posterior draws from them, with nothing to tune.

``coremcmc.fit(model, data, coreset_size)`` is all that a first fit needs. The public names are
listed in ``__init__.pyi``; each is loaded when it is first asked for, because JAX takes most of a
second to import, and the command's help and the shell's completion do not need it.
"""

import lazy_loader

from coremcmc.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
