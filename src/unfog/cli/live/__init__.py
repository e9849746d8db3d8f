"""`unfog live`: decisions for real, from a shell.

Every command opens the store and closes it at the end; with --url it asks a service instead.
"""

import typer

from unfog.cli.live import arms, decide, demo, erase, feedback, log, make, show, transfer
from unfog.cli.live.anywhere import Anywhere, anywhere

EXAMPLE = "Examples: unfog live demo   |   unfog live make walks.unfog walks --terms walks.toml"

app = typer.Typer(
    help="Decisions for real: decide, reward, reveal, and nothing lost. JSON in and out, for shell scripts.",
    epilog=EXAMPLE,
    no_args_is_help=True,
    rich_markup_mode=None,
)

# Numbers may be negative: what begins with a dash and is no option is a value.
_NUMBERS = {"ignore_unknown_options": True}

app.command("make", cls=Anywhere, epilog=make.EXAMPLE)(anywhere(make.command))
app.command("decide", cls=Anywhere, epilog=decide.EXAMPLE, context_settings=_NUMBERS)(
    anywhere(decide.command)
)
app.command("reward", cls=Anywhere, epilog=feedback.REWARD, context_settings=_NUMBERS)(
    anywhere(feedback.reward)
)
app.command("reveal", cls=Anywhere, epilog=feedback.REVEAL)(anywhere(feedback.reveal))
app.command("void", cls=Anywhere, epilog=feedback.VOID)(anywhere(feedback.void))
app.command("arms", cls=Anywhere, epilog=arms.ARMS)(anywhere(arms.arms))
app.command("freeze", cls=Anywhere, epilog=arms.FREEZE)(anywhere(arms.freeze))
app.command("thaw", cls=Anywhere, epilog=arms.THAW)(anywhere(arms.thaw))
app.command("shadow", cls=Anywhere, epilog=arms.SHADOW)(anywhere(arms.shadow))
app.command("show", cls=Anywhere, epilog=show.EXAMPLE)(anywhere(show.command))
app.command("log", cls=Anywhere, epilog=log.LOG)(anywhere(log.log))
app.command("replay", cls=Anywhere, epilog=log.REPLAY)(anywhere(log.replay))
app.command("export", cls=Anywhere, epilog=transfer.EXPORT)(anywhere(transfer.export))
app.command("import", cls=Anywhere, epilog=transfer.IMPORT)(anywhere(transfer.take_in))
app.command("erase", cls=Anywhere, epilog=erase.EXAMPLE)(anywhere(erase.command))
app.command("demo", epilog=demo.EXAMPLE)(demo.command)
