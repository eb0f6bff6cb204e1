"""The splits of a batch: what there is, between which offsets, in how many tasks."""

from __future__ import annotations

from ottla.client.wire.cluster import Cluster
from ottla.spark.options import OptionError
from ottla.spark.source.bounds import Offsets
from ottla.spark.source.links import link
from ottla.spark.source.loss import LossPolicy
from ottla.spark.source.pushdown import PushedBounds
from ottla.spark.source.settings import Bound, SourceSettings
from ottla.spark.source.splits import Split, planned
from ottla.spark.source.topics import find_partitions


def batch_splits(settings: SourceSettings, pushed: PushedBounds | None = None) -> list[Split]:
    """From now on fixed: what comes later is not read, and what is missing is a loss."""
    return link(settings.client).run(lambda cluster: _planned(cluster, settings, pushed))


async def _planned(cluster: Cluster, settings: SourceSettings, pushed: PushedBounds | None) -> list[Split]:
    found = await find_partitions(cluster, settings.subscription)
    found.check_whole()
    offsets = Offsets(cluster, settings.consumer())
    loss = LossPolicy(fail=settings.fail_on_data_loss)
    there = await offsets.ends(found.partitions)
    starts = await offsets.resolved(settings.starting, there, group=settings.group, ids=found.ids, loss=loss)
    ends = await offsets.resolved(settings.ending, there, group=settings.group, ids=found.ids, loss=loss)
    for tp, start in starts.items():
        if start > ends[tp] and _is_exact(settings.starting) and _is_exact(settings.ending):
            raise OptionError(
                f"{settings.starting.option} is behind {settings.ending.option} in {tp}: {start} and {ends[tp]}"
            )
    if pushed is not None:
        starts, ends = await pushed.narrowed(offsets, starts, ends)
    return planned(
        starts,
        ends,
        found.ids,
        at_least=settings.min_partitions,
        records_max=settings.max_records_per_partition,
    )


def _is_exact(bound: Bound) -> bool:
    return bound.positions is not None
