"""For programs whose memory a test has the tool read: where Yama restricts that, only their parents may."""
import ctypes

PR_SET_PTRACER = 0x59616d61
PR_SET_PTRACER_ANY = ctypes.c_ulong(-1)


def by_all():
    """Lets every process of the user read the memory of this one, and of the program that it becomes. Fails without Yama."""
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
