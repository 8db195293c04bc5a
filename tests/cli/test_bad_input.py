"""Bad input: one line that says what to do, exit code 2, no traceback, nothing written."""

import numpy as np
import pandas
import pytest

FORMULA = "late ~ hour + dist + C(origin)"
LOGISTIC = ["--family", "logistic", "--formula", FORMULA]


def refused(done, *words):
    """Check that the command ended with one line that has these words."""
    lines = done.stderr.strip().splitlines()
    assert done.exit_code == 2, done.output
    assert len([line for line in lines if line.startswith("error: ")]) == 1, done.stderr
    assert lines[-1].startswith("error: ")
    assert "Traceback" not in done.output
    assert done.stdout == ""
    for word in words:
        assert word in lines[-1], lines[-1]


@pytest.fixture
def fit(command, tmp_path):
    """Run ``coremcmc fit`` on a table or a file, and see that a refusal leaves no folder."""

    def run(data, *arguments):
        if isinstance(data, pandas.DataFrame):
            path = tmp_path / "data.parquet"
            data.to_parquet(path)
            data = path
        done = command("fit", data, "--out", tmp_path / "run", *(arguments or LOGISTIC))
        if done.exit_code:
            assert not (tmp_path / "run").exists()
        return done

    return run


# -- files ----------------------------------------------------------------------------------------


def test_a_file_that_is_not_there(fit, tmp_path):
    refused(fit(tmp_path / "nowhere.csv"), "nowhere.csv")
    refused(fit(tmp_path / "*.parquet"), "*.parquet")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather", "npz"])
def test_a_file_of_no_bytes(fit, tmp_path, suffix):
    path = tmp_path / f"empty.{suffix}"
    path.touch()
    refused(fit(path), f"empty.{suffix}")


@pytest.mark.parametrize("suffix", ["parquet", "feather", "npz"])
def test_a_file_cut_short(fit, tmp_path, small_table, suffix):
    path = tmp_path / f"cut.{suffix}"
    if suffix == "npz":
        columns = {name: small_table[name].to_numpy() for name in ("hour", "dist", "late")}
        np.savez(path, **columns)
    else:
        getattr(small_table, f"to_{suffix}")(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    refused(fit(path), f"cut.{suffix}")


def test_a_csv_cut_within_a_row(fit, tmp_path, csv):
    path = tmp_path / "cut.csv"
    lines = csv.read_text().splitlines()
    path.write_text("\n".join([*lines[:100], lines[100].split(",")[0]]))
    refused(fit(path), "cut.csv", "cut short")


def test_a_kind_of_file_that_nothing_reads(fit, tmp_path):
    path = tmp_path / "data.docx"
    path.write_bytes(b"PK")
    refused(fit(path), "data.docx")


def test_a_csv_that_is_not_text(fit, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(bytes(range(256)) * 20)
    refused(fit(path), "data.csv")


# -- columns --------------------------------------------------------------------------------------


def test_a_column_that_is_not_in_the_file(fit, csv):
    arguments = ["--family", "logistic", "--formula", "late ~ houre + dist"]
    refused(fit(csv, *arguments), "houre")
    refused(fit(csv, *LOGISTIC, "--columns", "late,hour,dust"), "dust")


def test_column_names_that_occur_twice(fit, tmp_path, csv):
    path = tmp_path / "twice.csv"
    lines = csv.read_text().splitlines()
    path.write_text("\n".join([lines[0].replace("dist", "hour"), *lines[1:]]))
    refused(fit(path, "--family", "logistic", "--formula", "late ~ hour"), "hour")


def test_a_column_that_is_missing_throughout(fit, small_table):
    table = small_table.assign(dist=np.nan)
    refused(fit(table), "dist")
    refused(fit(table, *LOGISTIC, "--drop-missing"), "dist")


def test_missing_values_are_refused_and_counted(fit, small_table):
    table = small_table.assign(hour=small_table["hour"].where(small_table.index >= 7))
    refused(fit(table), "hour", "7", "--drop-missing")


def test_a_column_of_numbers_and_words(fit, small_table, tmp_path):
    words = small_table["dist"].astype(object)
    words.iloc[5] = "far"
    path = tmp_path / "mixed.csv"
    small_table.assign(dist=words).to_csv(path, index=False)
    refused(fit(path), "dist", "far", "row 5")


def test_an_infinite_value(fit, small_table):
    table = small_table.assign(dist=small_table["dist"].where(small_table.index != 3, np.inf))
    refused(fit(table), "dist")


# -- the response ---------------------------------------------------------------------------------


def test_a_response_of_words(fit, small_table):
    refused(fit(small_table.assign(late="perhaps")), "late")
    several = small_table.assign(late=np.resize(["yes", "no", "perhaps"], 600))
    refused(fit(several), "late")


def test_a_response_of_one_class(fit, small_table):
    refused(fit(small_table.assign(late=0)), "late")


def test_a_response_of_another_kind(fit, small_table):
    refused(fit(small_table.assign(late=small_table["late"] + 0.5)), "late")
    negative = small_table.assign(late=-1)
    refused(fit(negative, "--family", "poisson", "--formula", "late ~ hour"), "late")


# -- the formula and the model --------------------------------------------------------------------


@pytest.mark.parametrize(
    "formula", ["late ~ hour +", "late ~ (hour", "~ hour", "late", "a ~ b ~ c"]
)
def test_a_formula_that_does_not_parse(fit, csv, formula):
    refused(fit(csv, "--family", "logistic", "--formula", formula), "ormula")


def test_a_function_in_the_formula_that_is_not_known(fit, csv):
    refused(fit(csv, "--family", "logistic", "--formula", "late ~ squiggle(hour)"), "squiggle")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--formula", FORMULA], ["--family is missing"]),
        (["--family", "logistic"], ["--formula is missing"]),
        ([*LOGISTIC, "--model", "m.py:model"], ["not both"]),
        (["--model", "m.py:model"], ["no file", "m.py"]),
        (["--model", "m.py"], ["file.py:name"]),
        ([*LOGISTIC, "--link", "log"], ["link", "logit"]),
        ([*LOGISTIC, "--prior", "beta=normal(wide)"], ["normal(wide)"]),
        ([*LOGISTIC, "--prior", "beta=horseshoe"], ["horseshoe"]),
        ([*LOGISTIC, "--prior", "beta=normal(-1)"], ["positive"]),
        ([*LOGISTIC, "--prior", "normal(wide)"], ["normal(wide)"]),
        ([*LOGISTIC, "--prior", "sigma=exponential(1)"], ["sigma", "beta, Intercept"]),
        ([*LOGISTIC, "--scale-prior", "exponential(1)"], ["sigma", "beta, Intercept"]),
        ([*LOGISTIC, *["--prior", "beta=cauchy"] * 2], ["prior of beta twice"]),
        ([*LOGISTIC, "--coreset-size", "many"], ["--coreset-size", "many"]),
        ([*LOGISTIC, "--coreset-size", "1"], ["coreset_size must be at least 2"]),
        ([*LOGISTIC, "--coreset-size", "1,000"], ["coreset_size must be at most 600"]),
        ([*LOGISTIC, "--coreset-size", "auto", "--preset", "paper"], ["auto", "paper"]),
        ([*LOGISTIC, "--coreset-size", "50", "--seed", "-1"], ["seed must lie in 0 to"]),
        ([*LOGISTIC, "--coreset-size", "50", "--chains", "1"], ["num_chains", "at least 2"]),
        ([*LOGISTIC, "--coreset-size", "50", "--iterations", "0"], ["num_iterations"]),
    ],
)
def test_arguments_that_cannot_be(fit, csv, arguments, words):
    refused(fit(csv, *arguments), *words)


def test_more_features_than_rows_of_the_coreset(fit, csv):
    refused(fit(csv, *LOGISTIC, "--coreset-size", "4"), "5 parameters", "4 rows", "--coreset-size")


def test_a_family_that_is_not_known(command, csv, tmp_path):
    done = command("fit", csv, "--family", "gamma", "--formula", FORMULA, "--out", tmp_path / "r")
    assert done.exit_code == 2
    assert "negative_binomial" in done.stderr
    assert "Traceback" not in done.output


# -- the folder -----------------------------------------------------------------------------------


def test_a_folder_must_be_named(command, csv):
    refused(command("fit", csv, *LOGISTIC), "--out is missing")


def test_a_folder_with_other_things_is_left_alone(command, csv, tmp_path):
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "thesis.tex").write_text("!")
    for flag in ([], ["--overwrite"]):
        refused(command("fit", csv, *LOGISTIC, "--out", other, *flag), "thesis", "new folder")
    assert [p.name for p in other.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("name", ["resume", "sample", "report", "summary"])
def test_what_is_no_run(command, tmp_path, name):
    refused(command(name, tmp_path), "holds no run", "coremcmc fit")
    refused(command(name, tmp_path / "none"), "does not exist")


def test_errors_are_json_too(command, csv):
    import json

    done = command("fit", csv, *LOGISTIC, "--json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["exit_code"] == 2
    assert "--out is missing" in json.loads(done.stdout)["error"]
