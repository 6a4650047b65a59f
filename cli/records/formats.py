"""What a log was recognised as, in words."""

from functools import partial

from .arrow import ArrowFile
from .delimited import read_delimited
from .document import read_list
from .jsonl import read_lines
from .parquet import ParquetFile
from .source import Source
from .streams import Reader, StreamedFile, StreamedPipe

_TABLES = {",": "CSV", "\t": "TSV"}


def format_of(source: Source) -> str:
    """The name of a log's format, as `JSON Lines` or `JSON, list under 'results'`."""
    if isinstance(source, ParquetFile):
        return "Parquet"
    if isinstance(source, ArrowFile):
        return "Arrow"
    return _format_of_text(source.reader) if isinstance(source, (StreamedFile, StreamedPipe)) else "unknown"


def packing_of_source(source: Source) -> str | None:
    """`gzip` or `zstd` where the log is packed in one."""
    return source.packing if isinstance(source, (StreamedFile, StreamedPipe)) else None


def _format_of_text(reader: Reader) -> str:
    function, options = (reader.func, reader.keywords) if isinstance(reader, partial) else (reader, {})
    if function is read_lines:
        return "JSON Lines"
    if function is read_delimited:
        return _TABLES.get(options["delimiter"], f"table with {options['delimiter']!r} between its cells")
    if function is read_list:
        return f"JSON, list under {options['key']!r}" if options.get("key") else "JSON, a list"
    return f"JSON, columns {', '.join(options['keys'])}" if "keys" in options else "JSON, one object"
