"""DeleteGroups (42), versions 0 to 2: deletes groups that have no members, with their offsets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import allowed_on_group, caller_of, steps_of_name
from ottla.handlers.calls.later import GatheredAnswers, Later
from ottla.model import ErrorCode
from ottla.protocol.generated.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.security.authorizer import Operation
from ottla.steps import Steps, pieces


def handle(call: Call, request: DeleteGroupsRequest) -> Steps[Later]:
    answer = Later()
    # Named twice is deleted once.
    group_ids: dict[str, None] = {}
    for piece in pieces(request.groups_names):
        group_ids.update(dict.fromkeys(piece))
        yield

    def done(results: list[DeletableGroupResult]) -> None:
        answer.set(DeleteGroupsResponse(throttle_time_ms=call.throttle_ms(), results=results))

    gathered = GatheredAnswers(len(group_ids), done)
    caller = caller_of(call)
    for index, group_id in enumerate(group_ids):
        reply = partial(_answer, gathered.place(index), group_id)
        if allowed_on_group(call, Operation.DELETE, group_id):
            yield from call.services.groups.shard_for(group_id).delete_group(caller, group_id, reply)
        else:
            reply(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        yield from steps_of_name(group_id)
    return answer


def _answer(give: Callable[[DeletableGroupResult], None], group_id: str, error: ErrorCode) -> None:
    give(DeletableGroupResult(group_id=group_id, error_code=error))
