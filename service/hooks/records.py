"""Public records of hooks and deliveries. The OpenAPI schemas are generated from their fields."""

from typing import Annotated, Final, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, field

from service.core.clock import Time
from service.outgoing.connection import ERRORS

MAX_NAME_LENGTH: Final = 100
MAX_URL_LENGTH: Final = 2_048

Event = Literal[
    "job.created", "job.approved", "job.updated", "job.implementation_attached", "job.shipped", "job.not_measurable",
    "job.resolved", "job.dismissed", "job.reopened",
]  # fmt: skip
EVENTS: Final[tuple[Event, ...]] = get_args(Event)
"""The events that a hook can subscribe to."""
DEFAULT_EVENTS: Final[tuple[Event, ...]] = ("job.approved",)
"""The default events: automation acts on approved jobs."""
DeliveryStatus = Literal["pending", "delivered", "dead"]

HookName = Annotated[str, Meta(min_length=1, max_length=MAX_NAME_LENGTH, description="printable characters")]
_URL_RULE = "https, without a user or fragment; http only for networks that the operator configured"
HookUrl = Annotated[str, Meta(max_length=MAX_URL_LENGTH, description=_URL_RULE)]
HookEvents = Annotated[
    tuple[Event, ...],
    Meta(min_length=1, description="subscribed events", extra_json_schema={"default": [*DEFAULT_EVENTS]}),
]
_MEANINGS = "; ".join(f"{name}: {meaning}" for name, meaning in ERRORS.items())
HookActive = Annotated[bool, Meta(description="whether messages are sent")]


class NewHook(Struct, frozen=True, forbid_unknown_fields=True):
    """A hook to be created."""

    name: HookName
    url: HookUrl
    events: HookEvents = field(default_factory=lambda: DEFAULT_EVENTS)
    active: HookActive = True


class HookChanges(Struct, frozen=True, forbid_unknown_fields=True):
    """Changes to a hook."""

    name: HookName | UnsetType = UNSET
    url: HookUrl | UnsetType = UNSET
    events: HookEvents | UnsetType = UNSET
    active: HookActive | UnsetType = UNSET


class Hook(Struct, frozen=True, forbid_unknown_fields=True):
    """A hook without its secret."""

    id: str
    name: HookName
    url: HookUrl
    events: HookEvents
    active: HookActive
    created_at: Time
    created_by: Annotated[
        str | None, Meta(description="`sub` of the caller, or id of the key or session; null if unknown")
    ]
    secret_last4: Annotated[str, Meta(description="the last four characters of the secret")]
    secret_rotated_at: Time | None
    previous_secret_until: Annotated[
        Time | None, Meta(description="until then, messages are also signed with the previous secret")
    ]
    last_success_at: Time | None
    last_failure_at: Time | None
    consecutive_failures: Annotated[int, Meta(ge=0)]
    paused_until: Annotated[
        Time | None, Meta(description="nothing is sent until then: the receiver failed, or requested a pause")
    ]
    disabled_reason: Annotated[str | None, Meta(description="why the service disabled the hook")]


class HookWithSecret(Hook, frozen=True):
    """A hook with its secret, which is shown only once."""

    secret: Annotated[str, Meta(description="whsec_ and a key in base64")]


class Delivery(Struct, frozen=True, forbid_unknown_fields=True):
    """A message to a hook, and the outcome of its last attempt, without the body of the receiver's response."""

    id: Annotated[str, Meta(description="the message's webhook-id header")]
    hook_id: str
    event: Literal[Event, "hook.test"]
    job_id: str | None
    status: DeliveryStatus
    attempts: Annotated[int, Meta(ge=0)]
    status_code: Annotated[int | None, Meta(description="the status of the last response")]
    error: Annotated[
        str | None,
        Meta(description=f"why there was no response: {_MEANINGS}", extra_json_schema={"enum": [*ERRORS, None]}),
    ]
    ms: Annotated[int | None, Meta(description="duration of the last attempt")]
    created_at: Time
    attempted_at: Time | None
    next_attempt_at: Time | None


class StartedDelivery(Struct, frozen=True, forbid_unknown_fields=True):
    """The delivery that a test or replay has queued."""

    delivery_id: str
