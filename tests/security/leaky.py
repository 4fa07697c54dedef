"""An app whose handlers put their secret everywhere they can: into notes, results, errors, logs, spans and events."""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path
from typing import Annotated, Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from pydantic import SecretStr

from holdfast import Continue, Ctx, Env, Event, Fail, Holdfast
from holdfast.errors import Rejected
from holdfast.ops import OpsCtx, OpsRun

OUT = Path(os.environ.get("LEAKY_OUT", "."))
WAYS = (
    "result", "deep_result", "error", "cause", "outcome", "text_outcome", "cursor", "note", "log", "span", "exit",
    "argument", "masked", "password", "thread",
)  # fmt: skip

hf = Holdfast()
heard: list[Event] = []
Key = Annotated[SecretStr, Env("LEAKY_KEY")]


def export_spans() -> None:
    """Write spans to a file, in the worker and in its processes."""
    provider = TracerProvider()
    exporter = ConsoleSpanExporter(out=(OUT / f"spans-{os.getpid()}").open("w"), formatter=lambda span: span.to_json())
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)


if "LEAKY_OUT" in os.environ:
    export_spans()


@hf.on("work.*")
@hf.on("flow.*")
@hf.on("ops.*")
def hear(event: Event) -> None:
    heard.append(event)
    if "LEAKY_OUT" in os.environ:
        with (OUT / "events").open("a") as file:
            file.write(f"{event!r}\n")


@hf.task
def other(headers: dict[str, str]) -> None: ...


def leak(ctx: Ctx, way: str, key: Key = Env.supplied) -> Any:
    return _leaked(ctx, way, key.get_secret_value())


async def leak_on_loop(ctx: Ctx, way: str, key: Key = Env.supplied) -> Any:
    return _leaked(ctx, way, key.get_secret_value())


def leak_apart(ctx: Ctx, way: str, key: Key = Env.supplied) -> Any:
    return _leaked(ctx, way, key.get_secret_value())


TASKS = [hf.task(leak), hf.task(leak_on_loop), hf.task(cpu=True)(leak_apart)]
order = hf.flow("order")


@order.step
def quote(key: Key = Env.supplied) -> dict[str, str]:
    return {"header": f"Bearer {key.get_secret_value()}"}


@order.step(after=quote, retry=False)
def pay(ctx: Ctx, quote: dict[str, str], key: Key = Env.supplied) -> None:
    ctx.note(f"quoted {quote}", key=key.get_secret_value())
    raise ValueError(f"refused {json.dumps({'key': key.get_secret_value()})}")


@hf.ops("leak", retry=1)
def leak_of_program(ctx: OpsCtx, run: OpsRun, key: Key = Env.supplied) -> dict[str, object]:
    value = key.get_secret_value()
    match str(run.metadata["way"]):
        case "output":  # an argument, a variable, and output that two reads split at this byte
            ctx.shell("printf", "%s\\n", f"given {value}")
            ctx.bash('printf %s "$KEY"; printf \'key=%s\\n\' "$KEY" >>$HOLDFAST_OUTPUT', env={"KEY": value})
            for cut in range(1, len(value), 5):
                halves = {"ONE": value[:cut], "TWO": value[cut:]}
                ctx.bash('printf %s "$ONE"; sleep 0.3; echo "$TWO"', env=halves)
        case "failed":
            ctx.output(key=value)
            ctx.bash('echo "bad key $KEY" | tee -a $HOLDFAST_SUMMARY >&2; exit 3', env={"KEY": value})
        case "raised":
            ctx.note(f"using {value}", nested=[value])
            ctx.artifact("image", f"https://u:{value}@host/image", key=value)
            raise ValueError(f"refused {value}")
        case "named":  # nobody declared it, so only its place in the text shows that it is a secret
            raise ValueError("GET https://ann:hf-canary@host failed, sent {'Authorization': 'Bearer hf-canary'}")
        case "queued":
            hf.ops.queue("other", env="prod", metadata={"key": value, "token": "kept"}, kind="nobody")
    return {"result": value}


OPS_WAYS = ("output", "failed", "raised", "named", "queued")


def _leaked(ctx: Ctx, way: str, key: str) -> Any:  # noqa: C901, PLR0912, PLR0915 - one case per way
    match way:
        case "result":
            return key
        case "deep_result":
            return {"rows": [{"k": [1, f"<{key}>"]}], key: json.dumps({"again": key})}
        case "error":
            raise ValueError(f"GET https://u:{key}@host/?q={key} failed, sent {{'X-Key': {key!r}}}")
        case "cause":
            try:
                raise KeyError(key)
            except KeyError as error:
                failed = RuntimeError("later")
                failed.add_note(f"with {key}")
                raise failed from error
        case "outcome":
            raise Fail({"type": "Busy", "message": key, "headers": {"Authorization": "hidden by its name"}})
        case "text_outcome":
            raise Fail(f"with {key}")
        case "cursor":
            if ctx.cursor is None:
                raise Continue({"after": key})
            return {"cursor": ctx.cursor}
        case "note":
            ctx.note(f"using {key}", level="warn", nested={"k": [key]}, password="hidden by its name")
            ctx.skipped(f"because of {key}")
            return None
        case "log":
            ctx.log.warning("using %s", key, nested={"k": [key]}, error=ValueError(key), password="hidden by its name")
            logging.getLogger("shop").warning("using %s", key)
            try:
                raise ValueError(key)
            except ValueError:
                logging.getLogger("shop").exception("failed")
            return None
        case "span":
            trace.get_current_span().set_attribute("key", key)
            raise Rejected(f"refused {key}", headers={"Authorization": key})
        case "thread":
            failing = threading.Thread(target=int, args=[f"in a thread: {key}"])
            failing.start()
            failing.join()
            return None
        case "exit":
            raise SystemExit(key)
        case "argument":
            other.start(headers={"X-Key": key})
        case "masked":
            token = f"issued-{os.environ['LEAKY_TOKEN']}"
            ctx.mask(SecretStr(token))
            ctx.note(f"issued {token}")
            ctx.log.warning("issued %s", token)
            raise ValueError(f"used {token}")
        case "password":
            raise ValueError(f"could not connect with {os.environ['LEAKY_PASSWORD']}")
    raise AssertionError(way)
