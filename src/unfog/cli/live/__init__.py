"""`unfog live`: decisions for real, from a shell.

Every command opens the store and closes it at the end; with --url it asks a service instead.
"""

import typer

from unfog.cli.live import decide, demo, problem, show, transfer
from unfog.cli.live.common import Anywhere, anywhere

EXAMPLE = "Examples: unfog live demo   |   unfog live create walks.unfog walks --terms walks.toml"

app = typer.Typer(
    help="Decisions for real: decide, reward, reveal, and nothing lost. JSON in and out, for shell scripts.",
    epilog=EXAMPLE,
    no_args_is_help=True,
    rich_markup_mode=None,
)

# Numbers may be negative: what begins with a dash and is no option is a value.
_NUMBERS = {"ignore_unknown_options": True}

app.command("create", cls=problem.Create, epilog=problem.CREATE_EXAMPLE)(anywhere(problem.create_command))
app.command("decide", cls=Anywhere, epilog=decide.EXAMPLE, context_settings=_NUMBERS)(
    anywhere(decide.command)
)
app.command("reward", cls=Anywhere, epilog=decide.REWARD, context_settings=_NUMBERS)(anywhere(decide.reward))
app.command("reveal", cls=Anywhere, epilog=decide.REVEAL)(anywhere(decide.reveal))
app.command("cancel", cls=Anywhere, epilog=decide.CANCEL)(anywhere(decide.cancel))
app.command("arms", cls=Anywhere, epilog=problem.ARMS)(anywhere(problem.arms))
app.command("pin", cls=Anywhere, epilog=problem.PIN)(anywhere(problem.pin))
app.command("unpin", cls=Anywhere, epilog=problem.UNPIN)(anywhere(problem.unpin))
app.command("shadow", cls=Anywhere, epilog=problem.SHADOW)(anywhere(problem.shadow))
app.command("show", cls=Anywhere, epilog=show.EXAMPLE)(anywhere(show.command))
app.command("log", cls=Anywhere, epilog=transfer.LOG)(anywhere(transfer.log))
app.command("replay", cls=Anywhere, epilog=transfer.REPLAY)(anywhere(transfer.replay))
app.command("export", cls=Anywhere, epilog=transfer.EXPORT)(anywhere(transfer.export))
app.command("import", cls=Anywhere, epilog=transfer.IMPORT)(anywhere(transfer.import_log))
app.command("erase", cls=Anywhere, epilog=problem.ERASE_EXAMPLE)(anywhere(problem.erase_command))
app.command("demo", epilog=demo.EXAMPLE)(demo.command)
