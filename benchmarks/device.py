"""A fit of the default preset on whatever device JAX finds: wall time with and without compilation.

python benchmarks/device.py                        # a GPU where there is one
JAX_PLATFORMS=cpu NPROC=1 python benchmarks/device.py
"""

import time

import jax

import coremcmc

SIZES = (1_000_000, 10_000_000)


def main() -> None:
    print(jax.devices())
    for num_rows in SIZES:
        data = coremcmc.logistic_data(num_rows=num_rows)
        for seed, what in ((0, "with compilation"), (1, "without")):
            began = time.monotonic()
            fit = coremcmc.fit(
                coremcmc.LogisticRegression(),
                data,
                coreset_size=1_000,
                seed=seed,
                certificate=False,
                progress=False,
            )
            seconds = time.monotonic() - began
            print(f"{num_rows:>12,} rows, {what}: {seconds:.1f} s, {fit.iteration:,} iterations")


if __name__ == "__main__":
    main()
