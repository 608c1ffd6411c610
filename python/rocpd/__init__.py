"""The rocpd modules of rocmProfileData that rpd provides: schema, and the passes over a trace as `python3 -m rocpd.NAME`.

ROCm 7 has another package of this name. Where that one is installed as well, it is the one that is imported, because programs that
know it must find it; rpd's are then reached through `python3 -m rpd VERB` and `rpd.schema`.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec


def _another():
    """The other package of this name that stands behind this one on the path, if there is one."""
    own = os.path.dirname(os.path.realpath(__file__))
    others = [path for path in sys.path if os.path.realpath(os.path.join(path, "rocpd")) != own]
    spec = PathFinder.find_spec("rocpd", others)
    return spec if spec is not None and spec.origin else None


def _give_way(spec):
    import warnings

    warnings.warn(
        f"rocpd is the package in {os.path.dirname(spec.origin)} (ROCm's); rpd's own are `python3 -m rpd VERB` and rpd.schema",
        stacklevel=3,
    )
    module = module_from_spec(spec)
    # The import system takes what stands here when this module has run.
    sys.modules[__name__] = module
    spec.loader.exec_module(module)


_spec = _another()
if _spec is not None:
    _give_way(_spec)
