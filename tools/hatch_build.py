"""Build hook: a wheel takes along the compiled code that `tools/compiled_wheel.py` made."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledCode(BuildHookInterface):
    """Without the folder the wheel is the plain one, for every platform."""

    def initialize(self, version, build_data):
        """Add the folder, and name the platform that its code was compiled for."""
        folder = os.environ.get("STEADYTREE_COMPILED_FOR_WHEEL")
        if folder and self.target_name == "wheel":
            build_data["force_include"][folder] = "steadytree/_compiled"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
