"""The pages under Settings > Agent Hooks: each hook's settings and deliveries. Only editors see hooks."""

from collections.abc import Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from data import BadInput
from service.access.page_context import PageContext, PageLink
from service.access.sessions import Session
from service.core.http.errors import Forbidden
from service.core.pages.forms import form_fields
from service.hooks.outbox import HookConflict
from service.hooks.records import DEFAULT_EVENTS, EVENTS, Event, HookChanges
from service.hooks.registry import Hooks

PATH = "settings/agent-hooks"
EVENT_WORDS: Final[dict[Event, str]] = {
    "job.created": "A job was created",
    "job.approved": "A job was approved",
    "job.updated": "A job was updated",
    "job.implementation_attached": "An implementation was attached",
    "job.shipped": "An implementation was shipped",
    "job.not_measurable": "An outcome cannot be measured",
    "job.resolved": "A job was resolved",
    "job.dismissed": "A job was dismissed",
    "job.reopened": "A job was reopened",
}
"""The page's labels for the events."""
TABS = (PageLink(PATH, "Agent Hooks"),)


def routes(context: PageContext, hooks: Hooks) -> list[Route]:
    """Return the routes of the hook pages."""
    pages, root = _HookPages(context, hooks), f"{context.root}/{PATH}"
    one = f"{root}/{{id}}"
    return [
        Route(root, pages.hooks, methods=["GET", "POST"]),
        Route(one, pages.hook),
        Route(f"{one}/test", pages.test, methods=["POST"]),
        Route(f"{one}/secret", pages.rotate, methods=["POST"]),
        Route(f"{one}/active", pages.activate, methods=["POST"]),
        Route(f"{one}/delete", pages.delete, methods=["POST"]),
        Route(f"{one}/deliveries/{{delivery}}/replay", pages.replay, methods=["POST"]),
    ]


class _HookPages:
    def __init__(self, context: PageContext, hooks: Hooks) -> None:
        self._context = context
        self._hooks = hooks
        self._root = f"{context.root}/{PATH}"

    async def hooks(self, request: Request) -> Response:
        """Show the organization's hooks (GET), or create a hook and show its secret once (POST)."""
        session: Session = request.scope["session"]
        fields: dict[str, str] = {}
        hook, made, problem = None, None, ""
        may_write = session.caller.may_write
        if request.method == "POST":
            organization = _editor(request)
            fields = await form_fields(request)
            name, url = fields.get("name", "").strip(), fields.get("url", "").strip()
            events = [event for event in EVENTS if event in fields]
            try:
                hook, made = await self._hooks.database.write(
                    lambda: self._hooks.create(organization, name, url, events, created_by=session.caller.name)
                )
            except BadInput as error:
                problem = str(error)
        hooks = await self._hooks.database.read(self._hooks.of, session.organization) if may_write else []
        return await self._context.tab_page(
            request, PATH, "settings_agent_hooks.html",
            hooks=hooks, hook=hook, made=made, problem=problem, may_write=may_write, events=EVENTS,
            event_words=EVENT_WORDS,
            fields=fields if problem else dict.fromkeys(DEFAULT_EVENTS, "on"),
        )  # fmt: skip

    async def hook(self, request: Request, status: int = 200, problem: str = "", made: str | None = None) -> Response:
        """Show a hook and its deliveries, along with a form's problem or a new secret, if any."""
        organization, hook_id = _editor(request), request.path_params["id"]
        hook = await self._hooks.database.read(self._hooks.hook, organization, hook_id)
        deliveries = await self._hooks.database.read(self._hooks.deliveries, organization, hook_id)
        content: dict[str, Any] = {"hook": hook, "deliveries": deliveries, "problem": problem, "made": made}
        return await self._context.tab_page(request, PATH, "settings_agent_hook.html", status, **content)

    async def test(self, request: Request) -> Response:
        organization, hook_id = _editor(request), request.path_params["id"]
        return await self._queue_and_show(request, lambda: self._hooks.send_test(organization, hook_id))

    async def rotate(self, request: Request) -> Response:
        """Rotate a hook's secret, and show the new secret once."""
        organization, hook_id = _editor(request), request.path_params["id"]
        _, made = await self._hooks.database.write(lambda: self._hooks.rotate(organization, hook_id))
        return await self.hook(request, made=made)

    async def activate(self, request: Request) -> Response:
        organization, hook_id = _editor(request), request.path_params["id"]
        is_active = (await form_fields(request)).get("active") == "on"
        changes = HookChanges(active=is_active)
        await self._hooks.database.write(lambda: self._hooks.change(organization, hook_id, changes))
        return self._to_hook(request)

    async def delete(self, request: Request) -> Response:
        """Delete a hook if the form confirms the deletion."""
        organization, hook_id = _editor(request), request.path_params["id"]
        if (await form_fields(request)).get("confirmed") != "on":
            return await self.hook(request, problem="Nothing was deleted: tick the box to confirm.")
        await self._hooks.database.write(lambda: self._hooks.delete(organization, hook_id))
        return RedirectResponse(self._root, 303)

    async def replay(self, request: Request) -> Response:
        organization, ids = _editor(request), request.path_params
        return await self._queue_and_show(request, lambda: self._hooks.replay(organization, ids["id"], ids["delivery"]))

    async def _queue_and_show(self, request: Request, work: Callable[[], object]) -> Response:
        """Queue a message and show the hook's page, or show why the message was rejected."""
        try:
            await self._hooks.database.write(work)
        except HookConflict as error:
            return await self.hook(request, 409, str(error))
        return self._to_hook(request)

    def _to_hook(self, request: Request) -> Response:
        return RedirectResponse(f"{self._root}/{request.path_params['id']}", 303)


def _editor(request: Request) -> str:
    """Return the editor's organization. Raises Forbidden for viewers: hook URLs are often secrets themselves."""
    session: Session = request.scope["session"]
    if not session.caller.may_write:
        raise Forbidden("Viewers may neither see nor change hooks.", "Ask an editor to do it.")
    return session.organization
