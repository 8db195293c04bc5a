"""From a fit to the page: ask each section what it shows, and fill in the templates.

A new section is a function of a fit in a file of its own, and its line in ``SECTIONS``.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coremcmc.certificate.certificate import Certificate
from coremcmc.files import check_writable, replacing
from coremcmc.fitting.result import Fit
from coremcmc.report.chains import slowest_chains
from coremcmc.report.coreset import (
    check_coreset_table,
    heaviest_rows,
    weight_facts,
    weight_figures,
)
from coremcmc.report.facts import cost_of, facts_of, reproduction
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
from coremcmc.report.training import training
from coremcmc.report.verdict import headline_of, is_doubtful, key_numbers, remarks_of, warning_list

__all__ = ["SECTIONS", "Section", "Subject", "render", "write_report"]

_MOST_IN_TABLE = 400
_DRAWS_IN_TABLE = 3_000_000  # of all parameters together
_MOST_IN_FIGURES = 24


@dataclass(frozen=True, eq=False)
class Subject:
    """What a report is about, as each section gets it.

    Attributes
    ----------
    fit
        The fit.
    parameters
        Those of its posterior that are shown, with what the certificate says of them.
    num_parameters
        How many there are in all.
    remarks
        What the reader should be warned of.
    coreset_table, extra
        See :func:`coremcmc.report.write_report`.
    """

    fit: Fit
    parameters: list[Parameter]
    num_parameters: int
    remarks: list[str]
    coreset_table: Any = None
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes
    ----------
    name
        Its word in the list of sections, and its address on the page.
    title
        Its heading.
    content
        What it shows. The names are those of the macros that set them, in their order: ``note``,
        ``text``, ``facts``, ``figures``, ``numbers``, ``remarks``, ``blocks``; or those that
        ``templates/<name>.html`` asks for, where there is such a file.
    """

    name: str
    title: str
    content: Callable[[Subject], dict[str, Any]]


def write_report(
    fit: Fit,
    path: str | Path,
    *,
    title: str | None = None,
    coreset_table: Any = None,
    extra: Mapping[str, Any] | None = None,
) -> Path:
    """Write the report of a fit to an HTML file, whole or not at all.

    Parameters
    ----------
    fit
        A :class:`coremcmc.Fit`.
    path
        The file, which is replaced where it exists.
    title
        The heading; the model's name by default.
    coreset_table
        A DataFrame with a row for each of the coreset's, in their order, as
        ``fit.coreset.to_pandas(table)`` makes it: the heaviest rows are shown with its columns.
        The model's own columns by default.
    extra
        Further facts about the run, by name: the file, the formula, the command.

    Returns
    -------
    The path.
    """
    path = Path(path)
    check_writable(path, "path")
    text = render(fit, title=title, coreset_table=coreset_table, extra=extra)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")
    return path


def render(
    fit: Fit,
    *,
    title: str | None = None,
    coreset_table: Any = None,
    extra: Mapping[str, Any] | None = None,
    sections: Sequence[Section] | None = None,
) -> str:
    """Return the report as text; see :func:`write_report`. By default all ``SECTIONS``."""
    if coreset_table is not None:
        check_coreset_table(coreset_table, fit.coreset)
    sections = SECTIONS if sections is None else sections
    with np.errstate(all="ignore"):  # traces may hold anything; what cannot be drawn is left out
        found, total = parameters_of(fit, _num_in_table(fit), is_telling=True)
        parameters = beside_the_full_posterior(fit, found)
        remarks = remarks_of(fit, parameters)
        subject = Subject(fit, parameters, total, remarks, coreset_table, extra)
        return _environment().get_template("report.html").render(
            title=title or str(fit.config["model"]).split("(")[0],
            headline=headline_of(fit),
            key_numbers=key_numbers(fit, parameters),
            num_remarks=len(remarks),
            sections=sections,
            bodies={section.name: _body(section, subject) for section in sections},
            version=fit.config.get("versions", {}).get("coremcmc", ""),
        )  # fmt: skip


@functools.cache
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("coremcmc.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _body(section: Section, subject: Subject) -> str:
    content = section.content(subject)
    template = _environment().select_template([f"{section.name}.html", "section.html"])
    return template.render(**content, content=content)


def _num_in_table(fit: Fit) -> int:
    """Return for how many parameters ESS and R-hat are computed in a few seconds."""
    posterior = fit.posterior
    num_draws = int(np.prod(next(iter(posterior.values())).shape[:2])) if posterior else 1
    return int(np.clip(_DRAWS_IN_TABLE // max(num_draws, 1), _MOST_IN_FIGURES, _MOST_IN_TABLE))


def _posterior(subject: Subject) -> dict[str, Any]:
    parameters, certificate = subject.parameters, subject.fit.certificate
    chosen = telling(parameters, _MOST_IN_FIGURES)
    beside = [forest(chosen), agreement(chosen, certificate), slowest_chains(parameters)]
    return {
        "marginals": marginals(chosen, subject.num_parameters),
        "figures": [figure for figure in beside if figure is not None],
        "table": [_table_row(parameter) for parameter in parameters],
        "num_parameters": subject.num_parameters,
        "has_corrected": any(np.isfinite(p.corrected_mean) for p in parameters),
        "has_laplace": any(np.isfinite(p.laplace_mean) for p in parameters),
        "is_doubtful": certificate is not None and is_doubtful(certificate),
        "certificate": certificate,
        "coordinates": _certificate_rows(certificate),
    }


def _table_row(parameter: Parameter) -> dict[str, Any]:
    write = functools.partial(fixed, decimals=decimals_for(parameter.sd))
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


def _certificate_rows(certificate: Certificate | None) -> list[list[str]]:
    """Return what the certificate says of each coordinate, on the chains' own scale."""
    if certificate is None:
        return []
    columns = ("mean", "sd", "corrected_mean", "corrected_sd")
    shift, ratio = certificate.shift, certificate.sd_ratio
    rows = []
    for i, name in enumerate(certificate.names[:_MOST_IN_TABLE]):
        write = functools.partial(fixed, decimals=decimals_for(certificate.sd[i]))
        own = [write(getattr(certificate, column)[i]) for column in columns]
        rows.append([str(name), *own, number(shift[i], 2), f"{ratio[i]:.2f}"])
    return rows


def _coreset(subject: Subject) -> dict[str, Any]:
    coreset = subject.fit.coreset
    return {
        "weight_figures": weight_figures(coreset),
        "weight_facts": weight_facts(coreset),
        "heaviest": heaviest_rows(coreset, subject.coreset_table),
    }


SECTIONS = (
    Section("run", "What was run", lambda of: {"facts": facts_of(of.fit, of.extra)}),
    Section("posterior", "Posterior", _posterior),
    Section("coreset", "Coreset", _coreset),
    Section("training", "Training", lambda of: training(of.fit)),
    Section("cost", "Cost", lambda of: {"numbers": cost_of(of.fit)}),
    Section("warnings", "Warnings", lambda of: warning_list(of.remarks)),
    Section("reproduction", "Reproduction", lambda of: reproduction(of.fit)),
)
