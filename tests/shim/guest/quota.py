"""quota.py DEVICE UID KIB: sets a user's limit of space on a mounted file system with quotas (ext4's
feature), by quotactl. Status 1 with the reason if that is not possible."""
import ctypes
import os
import sys

USRQUOTA, Q_SETQUOTA, QIF_BLIMITS = 0, 0x800008, 1


class DqBlk(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in
                ("bhardlimit", "bsoftlimit", "curspace", "ihardlimit", "isoftlimit", "curinodes", "btime", "itime")
                ] + [("valid", ctypes.c_uint32)]


device, user, kib = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
limits = DqBlk(bhardlimit=kib, bsoftlimit=kib, valid=QIF_BLIMITS)
libc = ctypes.CDLL(None, use_errno=True)
if libc.quotactl((Q_SETQUOTA << 8) | USRQUOTA, device.encode(), user, ctypes.byref(limits)):
    sys.exit(f"quotactl: {os.strerror(ctypes.get_errno())}")
