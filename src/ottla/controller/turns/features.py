"""The controller's turn that sets feature levels: checked in Kafka's order, and written all together or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.controller.core import ControllerCore, log
from ottla.controller.interface import FeatureUpdate, UpgradeType
from ottla.coordination.interface import SetData
from ottla.coordination.znodes import FEATURE, decode_features, encode_features
from ottla.metadata.features import (
    GROUP_VERSION,
    TRANSACTION_LEVEL_MAX,
    TRANSACTION_VERSION,
    UnknownLevel,
    transaction_level,
)
from ottla.model import ErrorCode

_FAILED: Final = "The update failed for all features since the following feature had an error: "
_NO_TYPE: Final = "The controller does not support the given upgrade type."
_NEGATIVE: Final = "A feature version cannot be less than 0."
_IS_A_SETTING: Final = "It follows the setting group.coordinator.rebalance.protocols."
_DOWN: Final = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)
_UP: Final = "Can't downgrade to a newer version."
_TYPES: Final = frozenset(UpgradeType)


class FeatureTurns:
    def __init__(self, core: ControllerCore) -> None:
        self._core = core

    async def update(self, updates: Sequence[FeatureUpdate], *, validate_only: bool) -> tuple[ErrorCode, str | None]:
        """One that is refused has all of them refused. The last one counts of those with the same name."""
        core = self._core
        data, stat = await core.coordination.get(FEATURE)
        levels = decode_features(FEATURE, data)
        try:
            present = transaction_level(levels)
        except UnknownLevel as unknown:
            return ErrorCode.FEATURE_UPDATE_FAILED, str(unknown)
        wanted = {update.feature: update for update in updates}
        for update in wanted.values():
            refusal = self._refusal(update, present)
            if refusal is not None:
                why = f"{_FAILED}Invalid update version {update.level} for feature {update.feature}. {refusal}"
                return ErrorCode.INVALID_UPDATE_VERSION, why
        changed = wanted.get(TRANSACTION_VERSION)
        if validate_only or changed is None or changed.level == present:
            return ErrorCode.NONE, None
        written = encode_features({**levels, TRANSACTION_VERSION: changed.level})
        (fault,) = await core.writes.write([[SetData(FEATURE, written, stat.version)]])
        if fault is not None:
            return ErrorCode.FEATURE_UPDATE_FAILED, str(fault)
        log.info("a feature level is set", feature=TRANSACTION_VERSION, level=changed.level, before=present)
        return ErrorCode.NONE, None

    def _refusal(self, update: FeatureUpdate, present: int) -> str | None:
        if update.upgrade_type not in _TYPES:
            return _NO_TYPE
        if update.level < 0:
            return _NEGATIVE
        if update.feature == GROUP_VERSION:
            return _IS_A_SETTING
        controller = f"Local controller {self._core.settings.broker_id}"
        if update.feature != TRANSACTION_VERSION and update.level == 0:
            return f"Feature {update.feature} not found."
        if update.feature != TRANSACTION_VERSION:
            return f"{controller} does not support this feature."
        if update.level > TRANSACTION_LEVEL_MAX:
            return f"{controller} only supports versions 0-{TRANSACTION_LEVEL_MAX}"
        if update.level < present and update.upgrade_type == UpgradeType.UPGRADE:
            return _DOWN
        if update.level > present and update.upgrade_type != UpgradeType.UPGRADE:
            return _UP
        return None
