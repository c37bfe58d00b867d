"""The cases: what Anthropic's own SDK must get from cotter, each on a replay server of its own.

`python cases.py COTTER [NAME…]` runs those whose names contain one of the words. One line for each; the status
is 1 if any has failed.
"""

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from claude_agent_sdk import ProcessError, ResultError

from server import Server, message, refusal

COTTER = os.path.abspath(sys.argv[1])
UUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
DEADLINE_SECS = 60


class Stage:
    """A workspace, a home, and what the program said on standard error."""

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="cotter-sdk-")).resolve()
        self.work, self.home = self.root / "work", self.root / "home"
        self.work.mkdir()
        self.home.mkdir()
        self.stderr = []

    def options(self, server, **more):
        """Options that lead to the server."""
        env = {
            "ANTHROPIC_API_KEY": "sk-ant-test-key", "ANTHROPIC_BASE_URL": server.url, "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.home / "state"), "XDG_CONFIG_HOME": str(self.home / "config"),
        } | more.pop("env", {})
        more = {"cwd": self.work, "cli_path": COTTER, "stderr": self.stderr.append} | more
        return ClaudeAgentOptions(env=env, **more)


CASES = []


def case(function):
    """Registers a case."""
    CASES.append(function)
    return function


async def collect(messages):
    return [each async for each in messages]


async def ask(options, prompt="Do it."):
    """All messages of one query."""
    return await collect(query(prompt=prompt, options=options))


async def fails(options, prompt="Do it."):
    """The messages of a query that fails, and its error."""
    messages = []
    try:
        async for each in query(prompt=prompt, options=options):
            messages.append(each)
    except Exception as error:
        return messages, error
    raise AssertionError(f"it did not fail: {messages}")


def of_kind(messages, kind):
    return [each for each in messages if isinstance(each, kind)]


def blocks(messages, kind):
    """The blocks of this kind in all messages."""
    found = []
    for each in messages:
        if isinstance(each, (AssistantMessage, UserMessage)) and isinstance(each.content, list):
            found += [block for block in each.content if isinstance(block, kind)]
    return found


def texts(messages):
    return [block.text for block in blocks(of_kind(messages, AssistantMessage), TextBlock)]


def result(messages):
    """The one result, which comes last."""
    results = of_kind(messages, ResultMessage)
    assert len(results) == 1, results
    assert messages[-1] is results[0], messages
    return results[0]


def system_text(body):
    system = body.get("system", "")
    return system if isinstance(system, str) else "\n\n".join(part["text"] for part in system)


def said(body):
    """Role and text of each message of a request that has a text."""
    out = []
    for each in body["messages"]:
        content = each["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = "".join(part["text"] for part in parts if part["type"] == "text")
        if text:
            out.append((each["role"], text))
    return out


def equal(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


async def as_stream(*texts_to_send):
    """A prompt as the SDK has it when it streams."""
    for text in texts_to_send:
        content = {"role": "user", "content": text}
        yield {"type": "user", "message": content, "parent_tool_use_id": None, "session_id": "default"}


# ---- one question ------------------------------------------------------------------------------------


@case
async def query_without_options(stage):
    with Server(message("Hello there.")) as server:
        messages = await ask(stage.options(server), "Say hello.")
        kinds = [type(each).__name__ for each in messages]
        equal(kinds, ["SystemMessage", "AssistantMessage", "ResultMessage"])
        init = messages[0]
        equal((init.subtype, init.data["cwd"]), ("init", str(stage.work)))
        assert "Read" in init.data["tools"], init.data
        equal(texts(messages), ["Hello there."])
        end = result(messages)
        equal((end.subtype, end.is_error, end.num_turns, end.result), ("success", False, 1, "Hello there."))
        assert UUID.match(end.session_id) and end.session_id == init.data["session_id"], end
        assert end.usage["input_tokens"] == 2500 and end.usage["output_tokens"] == 5, end.usage
        assert end.duration_ms >= 0 and end.duration_api_ms >= 0, end
        equal(said(server.bodies[0]), [("user", "Say hello.")])
        # Without a system prompt the SDK asks for none.
        equal(system_text(server.bodies[0]), "")


@case
async def query_with_a_tool(stage):
    (stage.work / "apple.py").write_text("print('apple')\n")
    replies = message("I look.", ("Read", {"file_path": "apple.py"}, "toolu_7")), message("It prints apple.")
    with Server(*replies) as server:
        messages = await ask(stage.options(server))
        (call,) = blocks(messages, ToolUseBlock)
        equal((call.id, call.name, call.input), ("toolu_7", "Read", {"file_path": "apple.py"}))
        (given,) = blocks(messages, ToolResultBlock)
        equal(given.tool_use_id, "toolu_7")
        assert "print('apple')" in json.dumps(given.content), given
        assert not given.is_error, given
        equal(texts(messages), ["I look.", "It prints apple."])
        equal(result(messages).num_turns, 2)


@case
async def query_with_a_stream_of_prompts(stage):
    with Server(message("One."), message("Two.")) as server:
        messages = await collect(query(prompt=as_stream("First.", "Second."), options=stage.options(server)))
        equal([each.result for each in of_kind(messages, ResultMessage)], ["One.", "Two."])
        expected = [("user", "First."), ("assistant", "One."), ("user", "Second.")]
        equal(said(server.bodies[1]), expected)


@case
async def model_and_its_short_name(stage):
    with Server(message("Ok.")) as server:
        await ask(stage.options(server, model="claude-opus-4-6"))
        equal(server.bodies[0]["model"], "claude-opus-4-6")
    with Server(message("Ok.")) as server:
        await ask(stage.options(server, model="sonnet"))
        assert server.bodies[0]["model"].startswith("claude-sonnet-"), server.bodies[0]["model"]


@case
async def fallback_model(stage):
    with Server(refusal(529, "overloaded_error", "Overloaded"), message("Ok.")) as server:
        more = {"extra_args": {"max-retries": "0"}, "model": "first-model", "fallback_model": "second-model"}
        messages = await ask(stage.options(server, **more))
        equal([body["model"] for body in server.bodies], ["first-model", "second-model"])
        equal(result(messages).result, "Ok.")
    with Server(refusal(529, "overloaded_error", "Overloaded"), message("Ok.")) as server:
        more = {"extra_args": {"max-retries": "0"}, "model": "opus", "fallback_model": "sonnet"}
        await ask(stage.options(server, **more))
        assert server.bodies[1]["model"].startswith("claude-sonnet-"), server.bodies[1]["model"]


# ---- system prompts ----------------------------------------------------------------------------------


@case
async def system_prompt_as_a_string(stage):
    with Server(message("Ok.")) as server:
        await ask(stage.options(server, system_prompt="Be brief."))
        equal(system_text(server.bodies[0]), "Be brief.")


@case
async def system_prompt_custom(stage):
    with Server(message("Ok.")) as server:
        await ask(stage.options(server, system_prompt={"type": "custom", "prompt": "Be brief."}))
        equal(system_text(server.bodies[0]), "Be brief.")


@case
async def system_prompt_preset(stage):
    preset = {"type": "preset", "preset": "claude_code"}
    with Server(message("Ok."), message("Ok.")) as server:
        await ask(stage.options(server, system_prompt=preset))
        await ask(stage.options(server, system_prompt=preset | {"append": "Speak Latin."}))
        plain, more = (system_text(body) for body in server.bodies)
        assert len(plain) > 100, plain
        equal(more, f"{plain}\n\nSpeak Latin.")


@case
async def system_prompt_from_a_file(stage):
    path = stage.root / "prompt.txt"
    path.write_text("From a file.\n")
    with Server(message("Ok.")) as server:
        await ask(stage.options(server, system_prompt={"type": "file", "path": str(path)}))
        equal(system_text(server.bodies[0]), "From a file.")


# ---- tools and permissions ---------------------------------------------------------------------------


@case
async def tools_that_exist(stage):
    with Server(message("Ok."), message("Ok."), message("Ok.")) as server:
        await ask(stage.options(server, tools=["Read", "Grep"]))
        await ask(stage.options(server, tools=[]))
        await ask(stage.options(server, tools={"type": "preset", "preset": "claude_code"}))
        named = [[each["name"] for each in body.get("tools", [])] for body in server.bodies]
        equal(named[0], ["Read", "Grep"])
        equal(named[1], [])
        assert {"Read", "Write", "Edit", "Bash"} <= set(named[2]), named[2]


@case
async def allowed_tools(stage):
    call = ("Write", {"file_path": "out.txt", "content": "x"})
    with Server(message(call), message("I may not.")) as server:
        messages = await ask(stage.options(server, allowed_tools=["Read"]))
        (given,) = blocks(messages, ToolResultBlock)
        assert given.is_error, given
        assert not (stage.work / "out.txt").exists()
        (denied,) = result(messages).permission_denials
        equal((denied["tool_name"], denied["tool_input"]), ("Write", call[1]))
    with Server(message(call), message("Done.")) as server:
        messages = await ask(stage.options(server, allowed_tools=["Read", "Write"]))
        equal((stage.work / "out.txt").read_text(), "x")
        assert not result(messages).permission_denials


@case
async def disallowed_tools(stage):
    with Server(message("Ok.")) as server:
        await ask(stage.options(server, disallowed_tools=["Bash", "Write"]))
        names = {each["name"] for each in server.bodies[0]["tools"]}
        assert names and not names & {"Bash", "Write"}, names


@case
async def permission_modes(stage):
    call = ("Write", {"file_path": "out.txt", "content": "x"})
    with Server(message(call), message("Only a plan.")) as server:
        messages = await ask(stage.options(server, permission_mode="plan"))
        assert blocks(messages, ToolResultBlock)[0].is_error
        assert not (stage.work / "out.txt").exists()
    for mode in ["default", "acceptEdits", "bypassPermissions", "auto"]:
        with Server(message(call), message("Done.")) as server:
            messages = await ask(stage.options(server, permission_mode=mode))
            equal((mode, (stage.work / "out.txt").read_text()), (mode, "x"))
            equal(result(messages).is_error, False)
        (stage.work / "out.txt").unlink()


@case
async def can_use_tool(stage):
    asked = []

    async def decide(name, given, context):
        asked.append((name, given, context.tool_use_id))
        if given["file_path"] == "no.txt":
            return PermissionResultDeny(message="not that one")
        return PermissionResultAllow(updated_input=given | {"content": "changed"})

    calls = [("Write", {"file_path": name, "content": "x"}, f"toolu_{name}") for name in ("no.txt", "yes.txt")]
    with Server(message(calls[0]), message(calls[1]), message("Done.")) as server:
        options = stage.options(server, can_use_tool=decide)
        messages = await collect(query(prompt=as_stream("Write both."), options=options))
        equal([(name, given["file_path"], use) for name, given, use in asked],
              [("Write", "no.txt", "toolu_no.txt"), ("Write", "yes.txt", "toolu_yes.txt")])
        refused, done = blocks(messages, ToolResultBlock)
        assert refused.is_error and "not that one" in json.dumps(refused.content), refused
        assert not done.is_error, done
        assert not (stage.work / "no.txt").exists()
        equal((stage.work / "yes.txt").read_text(), "changed")


@case
async def can_use_tool_that_interrupts(stage):
    async def decide(name, given, context):
        return PermissionResultDeny(message="stop here", interrupt=True)

    with Server(message(("Write", {"file_path": "a", "content": "x"}))) as server:
        options = stage.options(server, can_use_tool=decide)
        async with ClaudeSDKClient(options) as client:
            await client.query("Write it.")
            messages = await collect(client.receive_response())
            assert of_kind(messages, ResultMessage), messages
        assert not (stage.work / "a").exists()


@case
async def folders_and_environment(stage):
    other = stage.root / "other"
    other.mkdir()
    command = f"pwd; echo $SDK_WORD; echo y > {other}/made.txt"
    with Server(message(("Bash", {"command": command})), message("Done.")) as server:
        more = {"add_dirs": [other], "env": {"SDK_WORD": "swordfish"}}
        messages = await ask(stage.options(server, **more))
        shown = json.dumps(blocks(messages, ToolResultBlock)[0].content)
        assert "swordfish" in shown, shown
        equal((other / "made.txt").read_text(), "y\n")
        equal(of_kind(messages, SystemMessage)[0].data["cwd"], str(stage.work))


# ---- a client that goes on ---------------------------------------------------------------------------


@case
async def client_with_several_turns(stage):
    with Server(message("One."), message("Two.")) as server:
        async with ClaudeSDKClient(stage.options(server)) as client:
            assert isinstance(await client.get_server_info(), dict)
            await client.query("First.")
            first = await collect(client.receive_response())
            await client.query("Second.")
            second = await collect(client.receive_response())
        equal((result(first).result, result(second).result), ("One.", "Two."))
        equal(result(first).session_id, result(second).session_id)
        equal(said(server.bodies[1]), [("user", "First."), ("assistant", "One."), ("user", "Second.")])


@case
async def client_that_interrupts(stage):
    held = message("This is never finished.", held=True)
    with Server(held, message("Here again.")) as server:
        async with ClaudeSDKClient(stage.options(server)) as client:
            await client.query("Tell a long story.")
            await asyncio.to_thread(held.begun.wait, DEADLINE_SECS)
            await client.interrupt()
            broken = of_kind(await collect(client.receive_response()), ResultMessage)
            equal(len(broken), 1)
            held.released.set()
            await client.query("Still there?")
            equal(result(await collect(client.receive_response())).result, "Here again.")


@case
async def client_that_changes_model_and_mode(stage):
    call = ("Write", {"file_path": "out.txt", "content": "x"})
    with Server(message("One."), message(call), message("Planned.")) as server:
        async with ClaudeSDKClient(stage.options(server, model="model-a")) as client:
            await client.query("First.")
            await collect(client.receive_response())
            await client.set_model("model-b")
            await client.set_permission_mode("plan")
            await client.query("Second.")
            messages = await collect(client.receive_response())
            assert blocks(messages, ToolResultBlock)[0].is_error
        equal([body["model"] for body in server.bodies], ["model-a", "model-b", "model-b"])
        assert not (stage.work / "out.txt").exists()


@case
async def client_that_asks_for_what_is_not_there(stage):
    with Server(message("Still here.")) as server:
        async with ClaudeSDKClient(stage.options(server)) as client:
            for request in (client.rewind_files("x"), client.toggle_mcp_server("x", True)):
                try:
                    await request
                except Exception as error:
                    assert str(error), error
                else:
                    raise AssertionError("it was not refused")
            await client.query("And now?")
            equal(result(await collect(client.receive_response())).result, "Still here.")


# ---- sessions ----------------------------------------------------------------------------------------


@case
async def resume_continue_and_fork(stage):
    replies = [message(text) for text in ("One.", "Two.", "Three.", "Four.")]
    with Server(*replies) as server:
        first = result(await ask(stage.options(server), "First.")).session_id
        second = result(await ask(stage.options(server, resume=first), "Second.")).session_id
        equal(second, first)
        third = result(await ask(stage.options(server, continue_conversation=True), "Third.")).session_id
        equal(third, first)
        fourth = result(await ask(stage.options(server, resume=first, fork_session=True), "Fourth.")).session_id
        assert UUID.match(fourth) and fourth != first, fourth
        history = [("user", "First."), ("assistant", "One."), ("user", "Second."), ("assistant", "Two.")]
        equal(said(server.bodies[1]), history[:3])
        equal(said(server.bodies[2]), history + [("user", "Third.")])
        equal(said(server.bodies[3]), history + [("user", "Third."), ("assistant", "Three."), ("user", "Fourth.")])


@case
async def session_id_of_the_callers(stage):
    identity = "5a9c4a6e-4b51-4d0e-9a6e-0d7a3b1c2d3e"
    with Server(message("One."), message("Two.")) as server:
        equal(result(await ask(stage.options(server, session_id=identity))).session_id, identity)
        equal(result(await ask(stage.options(server, resume=identity))).session_id, identity)


@case
async def resume_of_what_is_not_there(stage):
    with Server() as server:
        _, error = await fails(stage.options(server, resume="5a9c4a6e-4b51-4d0e-9a6e-0d7a3b1c2d3f"))
        assert isinstance(error, ProcessError) and error.exit_code == 2, repr(error)


# ---- limits and errors -------------------------------------------------------------------------------


@case
async def max_turns(stage):
    with Server(message(("Glob", {"pattern": "*"}))) as server:
        messages, error = await fails(stage.options(server, max_turns=1))
        end = result(messages)
        equal((end.subtype, end.is_error, end.num_turns), ("error_max_turns", True, 1))
        assert isinstance(error, ResultError), repr(error)
        equal((error.exit_code, error.subtype), (20, "error_max_turns"))


@case
async def max_budget(stage):
    reply = message(("Glob", {"pattern": "*"}), usage=(1_000_000, 100_000))
    with Server(reply) as server:
        more = {"max_budget_usd": 0.01, "extra_args": {"price": "5,25"}}
        messages, error = await fails(stage.options(server, **more))
        end = result(messages)
        equal((end.subtype, end.is_error), ("error_max_budget_usd", True))
        # The reply is cut where its beginning tells what was read: a million tokens, and one was written.
        equal(end.total_cost_usd, 5.000025)
        equal(error.exit_code, 23)


@case
async def no_access(stage):
    with Server(refusal(401, "authentication_error", "invalid x-api-key")) as server:
        messages, error = await fails(stage.options(server))
        assert result(messages).is_error
        assert isinstance(error, ResultError), repr(error)
        equal(error.exit_code, 3)
        assert "invalid x-api-key" in str(error), error


@case
async def overloaded(stage):
    with Server(refusal(529, "overloaded_error", "Overloaded")) as server:
        messages, error = await fails(stage.options(server, extra_args={"max-retries": "0"}))
        assert result(messages).is_error
        equal(error.exit_code, 5)
        assert "overloaded" in str(error).lower(), error


@case
async def refused_request(stage):
    with Server(refusal(400, "invalid_request_error", "messages: too odd")) as server:
        messages, error = await fails(stage.options(server))
        assert result(messages).is_error
        equal(error.exit_code, 4)
        assert "too odd" in str(error), error


# ---- output ------------------------------------------------------------------------------------------


@case
async def partial_messages(stage):
    with Server(message("Bit by bit it grows.")) as server:
        messages = await ask(stage.options(server, include_partial_messages=True))
        events = [each.event for each in of_kind(messages, StreamEvent)]
        deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
        equal("".join(delta.get("text", "") for delta in deltas), "Bit by bit it grows.")
        assert len(deltas) > 1, deltas
        equal((events[0]["type"], events[-1]["type"]), ("message_start", "message_stop"))
        equal(texts(messages), ["Bit by bit it grows."])


SCHEMA = {
    "type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"],
    "additionalProperties": False,
}


@case
async def structured_output(stage):
    with Server(message('{"answer": 42}')) as server:
        options = stage.options(server, output_format={"type": "json_schema", "schema": SCHEMA})
        end = result(await ask(options))
        equal((end.subtype, end.structured_output), ("success", {"answer": 42}))


@case
async def structured_output_of_an_unknown_keyword(stage):
    with Server() as server:
        schema = {"type": "string", "contentEncoding": "base64"}
        options = stage.options(server, output_format={"type": "json_schema", "schema": schema})
        await fails(options)
        assert any("contentEncoding" in line for line in stage.stderr), stage.stderr


@case
async def thinking_and_effort(stage):
    with Server(message(("thinking", "Let me see."), "Done."), message("Ok."), message("Ok.")) as server:
        thinking = {"type": "enabled", "budget_tokens": 2048}
        messages = await ask(stage.options(server, thinking=thinking, model="claude-sonnet-4-5"))
        equal([block.thinking for block in blocks(messages, ThinkingBlock)], ["Let me see."])
        equal(server.bodies[0]["thinking"]["budget_tokens"], 2048)
        await ask(stage.options(server, effort="low", model="claude-opus-4-6"))
        equal(server.bodies[1]["output_config"]["effort"], "low")
        await ask(stage.options(server, thinking={"type": "disabled"}, model="claude-opus-4-6"))
        assert server.bodies[2].get("thinking", {"type": "disabled"})["type"] == "disabled", server.bodies[2]


@case
async def betas(stage):
    with Server(message("Ok.")) as server:
        await ask(stage.options(server, betas=["one-2025-01-01", "two-2025-01-02"]))
        equal(server.headers[0]["anthropic-beta"], "one-2025-01-01,two-2025-01-02")


@case
async def lines_of_standard_error(stage):
    with Server(message("Ok.")) as server:
        await ask(stage.options(server, extra_args={"debug-to-stderr": None}))
        assert all("\n" not in line for line in stage.stderr), stage.stderr


@case
async def images(stage):
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    source = {"type": "base64", "media_type": "image/png", "data": pixel}
    content = [{"type": "image", "source": source}, {"type": "text", "text": "What is it?"}]

    async def prompt():
        yield {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None}

    with Server(message("A pixel.")) as server:
        await collect(query(prompt=prompt(), options=stage.options(server)))
        parts = server.bodies[0]["messages"][0]["content"]
        equal([part["type"] for part in parts], ["image", "text"])
        equal(parts[0]["source"]["data"], pixel)


# ---- what is not there is said ------------------------------------------------------------------------


async def refuses(stage, word, **more):
    """A query with these options fails before anything is asked, and says why."""
    with Server() as server:
        try:
            await asyncio.wait_for(collect(query(prompt=as_stream("Do it."), options=stage.options(server, **more))), 30)
        except Exception as error:
            told = " ".join([str(error), *stage.stderr])
            assert word in told, told
        else:
            raise AssertionError("it was not refused")


@case
async def hooks_are_refused(stage):
    async def hook(given, use, context):
        return {}

    await refuses(stage, "hook", hooks={"PreToolUse": [HookMatcher(matcher="Bash", hooks=[hook])]})


@case
async def sdk_tools_are_refused(stage):
    @tool("greet", "Greets", {"name": str})
    async def greet(given):
        return {"content": [{"type": "text", "text": "hi"}]}

    await refuses(stage, "mcp", mcp_servers={"own": create_sdk_mcp_server("own", tools=[greet])})


@case
async def plugins_and_settings_are_refused(stage):
    await refuses(stage, "plugin-dir", plugins=[{"type": "local", "path": str(stage.work)}])
    await refuses(stage, "settings", settings='{"permissions": {}}')


@case
async def agents_are_refused(stage):
    from claude_agent_sdk import AgentDefinition

    await refuses(stage, "agent", agents={"one": AgentDefinition(description="d", prompt="p")})


@case
async def what_changes_nothing_is_accepted(stage):
    with Server(message("Ok.")) as server:
        more = {"strict_mcp_config": True, "include_hook_events": True, "setting_sources": []}
        equal(result(await ask(stage.options(server, **more))).result, "Ok.")


async def main():
    words = sys.argv[2:]
    chosen = [each for each in CASES if not words or any(word in each.__name__ for word in words)]
    failed = []
    for each in chosen:
        stage = Stage()
        try:
            await asyncio.wait_for(each(stage), DEADLINE_SECS)
            print(f"ok      {each.__name__}", flush=True)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failed.append(each.__name__)
            print(f"FAILED  {each.__name__}", flush=True)
            traceback.print_exc()
            for line in stage.stderr:
                print(f"        stderr: {line}", file=sys.stderr)
        finally:
            shutil.rmtree(stage.root, ignore_errors=True)
    print(f"{len(chosen) - len(failed)} of {len(chosen)} cases passed")
    return 1 if failed else 0


if __name__ == "__main__":
    # Nothing of the caller's own may decide where the requests go.
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_AUTH_TOKEN", "_BASE_URL")) or name.startswith(("ANTHROPIC_", "CLAUDE", "COTTER_")):
            del os.environ[name]
    sys.exit(asyncio.run(main()))
