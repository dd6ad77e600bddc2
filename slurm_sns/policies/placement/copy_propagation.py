"""Numba's compiler, with the propagation of copies that it leaves out.

Numba gives each parameter of an inlined function a variable of its own. Ours are trees of a hundred arrays: at each use
of such a variable LLVM takes it apart into a thousand words, which took up to half of the time of a compilation.
Pass and compiler are written as numba's documentation says (Customizing the compiler).
"""

from collections import Counter
from collections.abc import Mapping

from numba.core import ir
from numba.core.compiler import CompilerBase, DefaultPassBuilder, StateDict
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.ir_utils import build_definitions, replace_vars
from numba.core.untyped_passes import ReconstructSSA


@register_pass(mutates_CFG=False, analysis_only=False)
class PropagateCopies(FunctionPass):
    """Use a variable in place of its copies: those that are assigned once, and from it.

    The code is in static single assignment form. What a phi node joins or assigns is left alone: numba assigns a phi
    node's variable right behind what it joins, so that an exchange of two values in a loop would lose one.
    """

    _name = "propagate_copies"

    def __init__(self) -> None:  # abstract in numba's class
        FunctionPass.__init__(self)

    def run_pass(self, state: StateDict) -> bool:
        """Change the function's code, and return whether it has changed."""
        blocks = state.func_ir.blocks
        assigned = [each for block in blocks.values() for each in block.find_insts(ir.Assign)]
        phis = [each for each in assigned if isinstance(each.value, ir.Expr) and each.value.op == "phi"]
        joined = {each.target.name for each in phis}
        joined.update(each.name for phi in phis for each in phi.value.incoming_values if isinstance(each, ir.Var))
        times = Counter(each.target.name for each in assigned)
        fixed = {name for name, count in times.items() if count == 1} - joined
        source = {
            each.target.name: each.value
            for each in assigned
            if isinstance(each.value, ir.Var) and {each.target.name, each.value.name} <= fixed
        }
        for block in blocks.values():
            block.body = [
                each for each in block.body if not (isinstance(each, ir.Assign) and each.target.name in source)
            ]
        replace_vars(blocks, {name: _original(variable, source) for name, variable in source.items()})
        state.func_ir._definitions = build_definitions(blocks)
        return bool(source)


def _original(variable: ir.Var, source: Mapping[str, ir.Var]) -> ir.Var:
    """Of a copy of a copy, what was copied first."""
    while variable.name in source:
        variable = source[variable.name]
    return variable


class PropagatingCompiler(CompilerBase):
    """Numba's compiler with this pass."""

    def define_pipelines(self) -> list[PassManager]:
        """The passes of a compilation."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(PropagateCopies, ReconstructSSA)
        passes.finalize()
        return [passes]
