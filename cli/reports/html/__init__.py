"""A run as one HTML page that needs no network."""

from .report import MOST_RECORDS, Report, folder_of, make_report

__all__ = ["MOST_RECORDS", "Report", "folder_of", "make_report"]
