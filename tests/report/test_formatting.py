"""Numbers and names as a person reads them."""

from coremcmc.report.formatting import duration, fixed, number, shorten, tick_labels


def test_numbers_are_written_for_people():
    assert [number(x) for x in (0, 0.01234, 1234.5, 1.2e-7, float("nan"))] == [
        "0", "0.0123", "1,234", "1.20e-07", "–",
    ]  # fmt: skip
    assert fixed(-0.0001, 2) == "0.00"
    assert fixed(1234.5678, 1) == "1,234.6"
    assert [duration(s) for s in (0.84, 99.96, 271, 7_500)] == [
        "0.8 s", "1 min 40 s", "4 min 31 s", "2 h 5 min",
    ]  # fmt: skip
    assert tick_labels([-0.1, 0.0, 0.1]) == ["−0.1", "0.0", "0.1"]
    assert tick_labels([0.0, 2e7]) == ["0", "2·10⁷"]
    assert shorten("abcdefghij", 5) == "ab…ij"
    assert shorten("日本語", 6) == "日本語"
    assert shorten("日本語日本", 6) == "日…本"
