"""The paper's study: six models, every method, every figure.

``python -m experiments --help`` shows the commands. Only the public surface of ``coremcmc`` is
used: its top-level names, ``coremcmc.optimizers``, ``coremcmc.diagnostics`` and the statistic of
``coremcmc.algorithm.hot_start``.
"""
