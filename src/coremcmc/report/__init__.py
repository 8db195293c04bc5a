"""The report of a fit: one HTML file that needs no network, no script and no other file."""

from coremcmc.report.page import render, write_report

__all__ = ["render", "write_report"]
