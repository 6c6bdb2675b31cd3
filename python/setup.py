"""Made into a wheel by packaging/wheel.sh, which puts the portable folder into gpumemtrace/bundle.

The wheel is for any CPython of one kind of machine; GPUMEMTRACE_WHEEL_PLATFORM is its platform tag.
"""
import os

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", os.environ["GPUMEMTRACE_WHEEL_PLATFORM"]


class Binary(Distribution):
    def has_ext_modules(self):
        return True


setup(cmdclass={"bdist_wheel": Wheel}, distclass=Binary)
