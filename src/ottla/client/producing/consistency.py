"""What a producer's settings mean together, checked before anything is made of them."""

from __future__ import annotations

from dataclasses import replace

from ottla.client.errors import SettingsError
from ottla.client.settings import IDEMPOTENT_IN_FLIGHT_MAX, ProducerSettings
from ottla.records.compression import LEVELS, codec_name


def consistent(settings: ProducerSettings) -> ProducerSettings:
    """The settings with `enable_idempotence` decided: it is on unless something else was asked for."""
    idempotent = settings.enable_idempotence
    faults = []
    if settings.acks != -1:
        faults.append("acks must be all")
    if settings.max_in_flight_requests_per_connection > IDEMPOTENT_IN_FLIGHT_MAX:
        faults.append(f"max.in.flight.requests.per.connection must be at most {IDEMPOTENT_IN_FLIGHT_MAX}")
    if not settings.retries:
        faults.append("retries must not be 0")
    if settings.transactional_id is not None:
        if idempotent is False:
            faults.append("enable.idempotence must not be false")
        if faults:
            raise SettingsError(f"transactional.id is set, so {' and '.join(faults)}")
    if idempotent and faults:
        raise SettingsError(f"enable.idempotence is on, so {' and '.join(faults)}")
    _check_levels(settings)
    if settings.delivery_timeout_ms < settings.linger_ms + settings.request_timeout_ms:
        raise SettingsError("delivery.timeout.ms must be at least linger.ms + request.timeout.ms")
    return replace(settings, enable_idempotence=not faults if idempotent is None else idempotent)


def _check_levels(settings: ProducerSettings) -> None:
    """A level that a codec does not have would be found with the first batch that is compressed."""
    for codec, (low, high, default) in LEVELS.items():
        name = codec_name(codec)
        level: int | None = getattr(settings, f"compression_{name}_level")
        if level is not None and level != default and not low <= level <= high:
            raise SettingsError(f"compression.{name}.level must be {default} or from {low} to {high}, not {level}")
