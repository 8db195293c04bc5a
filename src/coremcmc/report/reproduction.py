"""All that it takes to run the same fit again, as text to copy."""

import json
from typing import Any

__all__ = ["call_of", "configuration_of"]


def call_of(fit: Any) -> str:
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


def configuration_of(fit: Any) -> str:
    """Return settings, versions, model and data as JSON."""
    ended = {"iteration": fit.iteration, "stopped": fit.stopped}
    return json.dumps({**fit.config, **ended}, indent=2, ensure_ascii=False, default=str)
