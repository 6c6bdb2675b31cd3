#!/usr/bin/env python3
"""swell.py ARCHIVE NEW AT: a copy of an archive whose 64-bit number at byte AT says 15 GiB."""
import sys

with open(sys.argv[1], "rb") as archive:
    data = bytearray(archive.read())
at = int(sys.argv[3])
data[at:at + 8] = (15 << 30).to_bytes(8, sys.byteorder)
with open(sys.argv[2], "wb") as archive:
    archive.write(data)
