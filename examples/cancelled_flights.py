"""Which flights are cancelled? A logistic regression with rare positives.

Of 298,000 flights 2% were cancelled, so that a uniform coreset of 500 rows would hold ten of them.
The default chooses rows by how much they say about the posterior.
"""
# ruff: noqa: T201

from example_data import flights, parsed, some_rows

import coremcmc

COLUMNS = ["cancelled", "hour", "distance", "temp", "precip", "visib", "wind_speed", "origin"]


def main(arguments: list[str] | None = None) -> coremcmc.Fit:
    """Fit, and show what the coreset is made of."""
    options = parsed(__doc__, arguments)
    table = some_rows(flights(COLUMNS), options.rows)
    print(f"{len(table):,} flights, {table['cancelled'].mean():.1%} of them cancelled")

    model, data = coremcmc.from_formula(
        "cancelled ~ hour + distance + temp + precip + visib + wind_speed + C(origin)",
        table,
        family="logistic",
    )
    fit = coremcmc.fit(model, data, options.coreset_size)
    print(fit.summary())

    coreset = fit.coreset.to_pandas(table)
    by_class = coreset.groupby("cancelled")["weight"].agg(["count", "sum"])
    print(f"\nrows of the coreset and the rows that they stand for:\n{by_class.round()}")
    print(f"\nthe heaviest:\n{coreset.nlargest(5, 'weight').round(2).to_string(index=False)}")
    return fit


if __name__ == "__main__":
    main()
