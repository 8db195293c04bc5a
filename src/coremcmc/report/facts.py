"""What was run, on what, what it cost, and all that it takes to run it again."""

import json
import re
from collections.abc import Mapping
from typing import Any

from coremcmc.fitting.result import Fit
from coremcmc.report.formatting import cell, count, duration, number

__all__ = ["STOPPED", "cost_of", "facts_of", "hot_start_of", "reproduction"]

STOPPED = {
    "finished": "all iterations done",
    "settled": "settled: neither the residual nor the posterior mean moved any more",
    "interrupted": "interrupted before its end",
    "failed": "failed; this is the last good state",
    "running": "still running; this is a checkpoint of it",
}

Facts = list[tuple[str, str]]


def facts_of(fit: Fit, extra: Mapping[str, Any] | None) -> Facts:
    """Return names and values, the user's own first."""
    config, settings = fit.config, fit.config["settings"]
    facts = [(str(name), cell(value, 300)) for name, value in (extra or {}).items()]
    facts += [
        ("Model", str(config["model"])),
        ("Data", f"{count(fit.coreset.num_rows)} rows (N): {_columns(config['data'])}"),
        ("Coreset", f"{count(len(fit.coreset))} rows (M)"),
        ("Seed", str(config["seed"])),
        ("Preset", str(config["preset"])),
        (
            "Iterations",
            f"{count(fit.iteration)} of at most {count(settings['num_iterations'])}"
            if settings.get("stops_early")
            else f"{count(fit.iteration)} of {count(settings['num_iterations'])}",
        ),
        ("Ended", _ended(fit)),
        ("Hot start", hot_start_of(fit)),
        (
            "Markov chains",
            f"{settings['num_chains']} while training, moved by "
            f"{settings['kernel'] or 'the kernel that suits the model'}",
        ),
        (
            "Rows and weights",
            f"selection {_plain(settings['selection'])}, first weights "
            f"{_plain(settings['initial_weights'])}, returned weights "
            f"{settings['returned_weights']}",
        ),
        (
            "Optimizer",
            f"{_plain(settings['optimizer'])}, on subsamples of "
            f"{count(settings['subsample_size'])} rows",
        ),
        ("Posterior draws", _draws(fit)),
        ("Computed on", str(config.get("device", "unknown"))),
    ]
    return facts


def _columns(data: Any) -> str:
    """Turn ``{"['x']": 'float64[100, 4]'}`` into words."""
    if not isinstance(data, Mapping):
        return str(data)
    shapes = data.get("shapes")
    if not isinstance(shapes, Mapping):
        return ", ".join(f"{key} {value}" for key, value in data.items())
    parts = []
    for name, shape in shapes.items():
        name = re.sub(r"^\['(.*)'\]$", r"\1", str(name))
        parts.append(f"{name} {shape}")
    return ", ".join(parts)


def _ended(fit: Fit) -> str:
    """Say why the run ended, with the numbers that decided it where they are known."""
    return fit.stop_reason or STOPPED.get(fit.stopped, str(fit.stopped))


def _plain(value: Any) -> str:
    return str(value).strip("'")


def hot_start_of(fit: Fit) -> str:
    """Say how the hot start went."""
    if fit.config["settings"]["hot_start"] is None:
        return "off"
    passed_at = fit.hot_start["passed_at"]
    if passed_at < 0:
        return "not passed yet"
    text = f"passed at iteration {count(passed_at)}"
    return text + " (forced by its cap)" if fit.hot_start["is_forced"] else text


def _draws(fit: Fit) -> str:
    posterior = fit.posterior
    if not posterior:
        return "none"
    chains, draws = next(iter(posterior.values())).shape[:2]
    how = "at fixed weights" if fit.sampled else "made while the weights moved (latter half)"
    return f"{chains} chains × {count(draws)}, {how}"


def cost_of(fit: Fit) -> list[tuple[str, str, str]]:
    """Return name, number and explanation of what the training took."""
    evaluations, iteration = fit.traces["num_evaluations"], fit.traces["iteration"]
    done, recorded = (int(x[-1]) if len(x) else 0 for x in (evaluations, iteration))
    subsampled = fit.iteration * int(fit.config["settings"]["subsample_size"])
    return [
        ("Time", duration(fit.seconds), "wall time in all: passes, training, draws, compiling"),
        ("Iterations", count(fit.iteration), fit.stopped),
        (
            "Evaluations",
            count(done),
            "of the coreset's log density by the kernels"
            + (f", {number(done / recorded, 3)} an iteration" if recorded else ""),
        ),
        (
            "Rows subsampled",
            count(subsampled),
            f"{number(subsampled / fit.coreset.num_rows, 3)} times the data",
        ),
    ]


def reproduction(fit: Fit) -> dict[str, Any]:
    """All that it takes to run the same fit again, as text to copy."""
    return {
        "note": "The same call, with the same data and versions on the same kind of device, gives "
        "the same numbers. One click selects a block.",
        "blocks": [
            ("The call", _call(fit)),
            ("The configuration, all settings and versions", _configuration(fit)),
        ],
    }


def _call(fit: Fit) -> str:
    """Return the call as Python, with what the model and the data were."""
    config, settings = fit.config, fit.config["settings"]
    versions = config.get("versions", {})
    iterations = "auto" if settings.get("stops_early") else settings["num_iterations"]
    data = config["data"]
    digest = data.get("digest", "") if isinstance(data, dict) else ""
    model = " ".join(str(config["model"]).split())
    lines = [
        f"# {', '.join(f'{name} {version}' for name, version in versions.items())}",
        "fit = coremcmc.fit(",
        f"    model,  # {model}",
        f"    data,  # {fit.coreset.num_rows:,} rows{f', digest {digest}' if digest else ''}",
        f"    coreset_size={len(fit.coreset)},",
        f"    seed={config['seed']},",
        f"    preset={config['preset']!r},",
        f"    num_iterations={iterations!r},",
        ")  # and what else you set: see settings below",
    ]
    return "\n".join(lines)


def _configuration(fit: Fit) -> str:
    """Return settings, versions, model and data as JSON."""
    ended = {"iteration": fit.iteration, "stopped": fit.stopped}
    return json.dumps({**fit.config, **ended}, indent=2, ensure_ascii=False, default=str)
