"""How often do people see a doctor? A negative binomial regression from a formula.

The maximum-likelihood estimate of statsmodels stands beside the posterior: with 20,190 rows and
weak priors the two must agree.
"""
# ruff: noqa: T201

import pandas as pd
import statsmodels.formula.api as smf
from example_data import doctor_visits, parsed, some_rows

import coremcmc

FORMULA = "mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp"


def main(arguments: list[str] | None = None) -> tuple[coremcmc.Fit, pd.DataFrame]:
    """Fit both, and compare."""
    options = parsed(__doc__, arguments)
    table = some_rows(doctor_visits(), options.rows)

    fit = coremcmc.fit(
        *coremcmc.from_formula(FORMULA, table, family="negative_binomial"), options.coreset_size
    )
    print(fit.summary())

    classical = smf.negativebinomial(FORMULA, table).fit(disp=False, maxiter=200)
    names = list(fit.posterior)[:-1]  # all but the dispersion, which statsmodels inverts
    compared = pd.DataFrame(
        {
            "posterior mean": {name: fit.posterior[name].mean() for name in names},
            "posterior sd": {name: fit.posterior[name].std() for name in names},
            "statsmodels": classical.params[names],
            "standard error": classical.bse[names],
        }
    )
    print(f"\n{compared.round(4)}")
    return fit, compared


if __name__ == "__main__":
    main()
