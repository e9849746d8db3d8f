"""`unfog live`: decisions for real, from a shell. Every command opens the store, and closes it at the end."""

import typer

from unfog.cli.live import arms, decide, demo, erase, feedback, log, make, show, transfer

EXAMPLE = "Examples: unfog live demo   |   unfog live make walks.unfog walks --terms walks.toml"

app = typer.Typer(
    help="Decisions for real: decide, reward, reveal, and nothing lost. JSON in and out, for shell scripts.",
    epilog=EXAMPLE,
    no_args_is_help=True,
    rich_markup_mode=None,
)

# Numbers may be negative: what begins with a dash and is no option is a value.
_NUMBERS = {"ignore_unknown_options": True}

app.command("make", epilog=make.EXAMPLE)(make.command)
app.command("decide", epilog=decide.EXAMPLE, context_settings=_NUMBERS)(decide.command)
app.command("reward", epilog=feedback.REWARD, context_settings=_NUMBERS)(feedback.reward)
app.command("reveal", epilog=feedback.REVEAL)(feedback.reveal)
app.command("void", epilog=feedback.VOID)(feedback.void)
app.command("arms", epilog=arms.ARMS)(arms.arms)
app.command("freeze", epilog=arms.FREEZE)(arms.freeze)
app.command("thaw", epilog=arms.THAW)(arms.thaw)
app.command("shadow", epilog=arms.SHADOW)(arms.shadow)
app.command("show", epilog=show.EXAMPLE)(show.command)
app.command("log", epilog=log.LOG)(log.log)
app.command("replay", epilog=log.REPLAY)(log.replay)
app.command("export", epilog=transfer.EXPORT)(transfer.export)
app.command("import", epilog=transfer.IMPORT)(transfer.take_in)
app.command("erase", epilog=erase.EXAMPLE)(erase.command)
app.command("demo", epilog=demo.EXAMPLE)(demo.command)
