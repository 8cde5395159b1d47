"""Figures and pages, from result files only."""

from discreet.report.demo_figure import curves_png, curves_svg
from discreet.report.demo_page import page

__all__ = ["curves_png", "curves_svg", "page"]
