"""From logs as people have them to records."""

from .fields import Fields
from .log import Log, open_log

__all__ = ["Fields", "Log", "open_log"]
