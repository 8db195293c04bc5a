"""From a fit to the page: gather what each section shows, and fill in the template."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from coremcmc.report.chains import slowest_chains
from coremcmc.report.coreset import (
    check_coreset_table,
    heaviest_rows,
    weight_facts,
    weight_figures,
)
from coremcmc.report.facts import call_of, configuration_of, cost_of, facts_of
from coremcmc.report.formatting import MISSING, count, decimals_for, fixed, number
from coremcmc.report.intervals import agreement, forest
from coremcmc.report.marginals import marginals
from coremcmc.report.parameters import (
    FEWEST_ESS,
    MOST_RHAT,
    Parameter,
    beside_the_full_posterior,
    parameters_of,
    telling,
)
from coremcmc.report.training import training_figures
from coremcmc.report.verdict import headline_of, is_doubtful, key_numbers, remarks_of

__all__ = ["render_page"]

_MOST_IN_TABLE = 400
_DRAWS_IN_TABLE = 3_000_000  # of all parameters together
_MOST_IN_FIGURES = 24


@functools.cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("coremcmc.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html")


def render_page(
    fit: Any, title: str | None, coreset_table: Any, extra: Mapping[str, Any] | None
) -> str:
    """Render the whole report."""
    if coreset_table is not None:
        check_coreset_table(coreset_table, fit.coreset)
    with np.errstate(all="ignore"):  # traces may hold anything; what cannot be drawn is left out
        return _template().render(**_sections(fit, title, coreset_table, extra))


def _sections(
    fit: Any, title: str | None, coreset_table: Any, extra: Mapping[str, Any] | None
) -> dict[str, Any]:
    found, total = parameters_of(fit, _num_in_table(fit), is_telling=True)
    parameters = beside_the_full_posterior(fit, found)
    chosen = telling(parameters, _MOST_IN_FIGURES)
    beside = [forest(chosen), agreement(chosen, fit.verdict), slowest_chains(parameters)]
    certificate = fit.verdict
    return {
        "title": title or str(fit.config["model"]).split("(")[0],
        "headline": headline_of(fit),
        "key_numbers": key_numbers(fit, parameters),
        "remarks": remarks_of(fit, parameters),
        "facts": facts_of(fit, extra),
        "marginals": marginals(chosen, total),
        "posterior_figures": [figure for figure in beside if figure is not None],
        "table": [_table_row(parameter) for parameter in parameters],
        "num_parameters": total,
        "has_corrected": any(np.isfinite(p.corrected_mean) for p in parameters),
        "has_laplace": any(np.isfinite(p.laplace_mean) for p in parameters),
        "is_doubtful": certificate is not None and is_doubtful(certificate),
        "certificate": certificate,
        "coordinates": _certificate_rows(certificate),
        "weight_figures": weight_figures(fit.coreset),
        "weight_facts": weight_facts(fit.coreset),
        "heaviest": heaviest_rows(fit.coreset, coreset_table),
        "training_figures": training_figures(fit),
        "cost": cost_of(fit),
        "call": call_of(fit),
        "configuration": configuration_of(fit),
        "version": fit.config.get("versions", {}).get("coremcmc", ""),
    }


def _num_in_table(fit: Any) -> int:
    """Return for how many parameters ESS and R-hat are computed in a few seconds."""
    posterior = fit.posterior
    num_draws = int(np.prod(next(iter(posterior.values())).shape[:2])) if posterior else 1
    return int(np.clip(_DRAWS_IN_TABLE // max(num_draws, 1), _MOST_IN_FIGURES, _MOST_IN_TABLE))


def _table_row(parameter: Parameter) -> dict[str, Any]:
    decimals = decimals_for(parameter.sd)
    write = functools.partial(fixed, decimals=decimals)
    return {
        "name": parameter.name,
        "own": [write(getattr(parameter, name)) for name in ("mean", "sd", "low", "high")],
        "ess": count(parameter.ess),
        "is_few": bool(parameter.ess < FEWEST_ESS),
        "rhat": f"{parameter.rhat:.3f}" if np.isfinite(parameter.rhat) else MISSING,
        "is_apart": bool(parameter.rhat > MOST_RHAT),
        "corrected": [write(parameter.corrected_mean), write(parameter.corrected_sd)],
        "laplace": [write(parameter.laplace_mean), write(parameter.laplace_sd)],
    }


def _certificate_rows(certificate: Any) -> list[list[str]]:
    """Return what the certificate says of each coordinate, on the chains' own scale."""
    if certificate is None:
        return []
    shift, ratio = certificate.shift, certificate.sd_ratio
    rows = []
    for i, name in list(enumerate(certificate.names))[:_MOST_IN_TABLE]:
        write = functools.partial(fixed, decimals=decimals_for(certificate.sd[i]))
        rows.append(
            [
                str(name),
                write(certificate.mean[i]),
                write(certificate.sd[i]),
                write(certificate.corrected_mean[i]),
                write(certificate.corrected_sd[i]),
                number(shift[i], 2),
                f"{ratio[i]:.2f}",
            ]
        )
    return rows
