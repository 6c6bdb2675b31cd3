"""Sizes as people write them, by the rule of src/base/size_text.h."""
import re
from fractions import Fraction

# No digit on either side of the point is no number; an exponent of four digits is none either.
_SIZE = re.compile(r"\s*((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?)\s*(?:([kmgtp])(i?b)?|b)?\s*", re.ASCII | re.IGNORECASE)


def parse_size(text: object) -> int:
    """Bytes of "2 GiB" or a number. ValueError in a sentence."""
    match = _SIZE.fullmatch(str(text))
    if match:
        number, prefix, suffix = match.groups()
        base = 1000 if (suffix or "").lower() == "b" else 1024
        factor = base ** ("kmgtp".index(prefix.lower()) + 1) if prefix else 1
        size = int(Fraction(number) * factor)
        if size < 2**64 - 1:
            return size
    raise ValueError(f'"{text}" is no size: it should be like "2 GiB" or "500 MB"')


def format_size(count: int) -> str:
    """Bytes as people read them: 1.5 MiB."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            break
        size /= 1024
    else:
        unit = "TiB"
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
