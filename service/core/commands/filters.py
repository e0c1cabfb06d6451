"""The API's parameters as options of commands such as `traffic query` and `traffic report`."""

from typing import TYPE_CHECKING, Any, ClassVar

from typer.core import TyperOption

from service.core.commands.options import Command, value_name
from service.core.commands.printing import inform

if TYPE_CHECKING:
    from queries import Parameter


class WithParameters(Command):
    """A command with an option for each API parameter; its context object maps the parameters' names to their values.

    The options are created on demand, so that other commands start without importing the parameters.
    """

    left_out: ClassVar[tuple[str, ...]] = ()
    """Names of parameters without an option."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401  # of private types
        """Return all arguments and options, with `--help` last."""
        *own, help_option = super().get_params(ctx)
        options = [
            TyperOption(
                param_decls=[f"--{row.name.replace('_', '-')}"],
                default="",
                metavar=value_name(row.name),
                help=row.description,
            )
            for row in self._parameters()
        ]
        return [*own, *options, help_option]

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401  # of a private type
        """Run the command. Warn if only one of the two dates is given, since it has no effect."""
        ctx.obj = {row.name: ctx.params.pop(row.name) for row in self._parameters()}
        for given, missing in (("start", "end"), ("end", "start")):
            if ctx.obj[f"{given}_date"] and not ctx.obj[f"{missing}_date"]:
                inform(f"--{given}-date has no effect without --{missing}-date.")
        return super().invoke(ctx)

    def _parameters(self) -> "list[Parameter]":
        from queries import PARAMETERS

        return [row for name, row in PARAMETERS.items() if name not in self.left_out]
