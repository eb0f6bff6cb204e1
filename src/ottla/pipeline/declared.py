"""A file under Spark Declarative Pipelines (`--engine sdp`): the same functions, given to Spark's own engine.

Spark's program for that, `spark-pipelines`, has its server listen on a fixed port of all of the machine's addresses.
Here the server is a part of this process, on a free port of the loopback and behind a token that nobody else knows; the
file is loaded as always, and its functions are registered with the server one by one.

What that engine lacks is refused by its name before anything runs: expectations and dead letters, tables with keys,
retention, Delta's log, backfills. Each run reads what there is, and ends.

    <folder>/sdp/warehouse/<table>    rows, in Parquet
    <folder>/sdp/storage              the engine's own checkpoints
    <folder>/sdp/catalog              which tables there are, for the next run
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

import ottla.spark
from ottla.pipeline.definitions import Flow, Kind
from ottla.pipeline.errors import BadDefinition, FlowFailed
from ottla.pipeline.loading import PipelineFile
from ottla.pipeline.places import Places
from ottla.pipeline.planning import explained, first_line
from ottla.pipeline.reading import answering

_LOOPBACK: Final = "127.0.0.1"
_TOKEN: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - the name of a variable
#: What the engine says at the end of a good run.
_COMPLETED: Final = "Run is COMPLETED"
#: What `pyspark[pipelines]` brings and the engine cannot do without.
_NEEDED: Final = ("grpc", "grpc_status", "google.rpc", "yaml", "zstandard")


def check_declared(file: PipelineFile) -> None:
    """Raises BadDefinition for what the engine lacks."""
    for name in _NEEDED:
        if not _is_there(name):
            raise BadDefinition(f"--engine sdp needs {name}: pip install 'pyspark[pipelines]'")
    for flow in file.definitions.flows.values():
        lacking = {
            "expectations": bool(flow.rules),
            "keys": bool(flow.keys),
            "retain": flow.retain_ms is not None,
            'format="delta"': flow.delta,
            "dead_letters": bool(flow.dead_letters),
            "keep_record": flow.keep_record,
        }
        for name, there in lacking.items():
            if there:
                raise BadDefinition(
                    f"{flow.text} has {name}, which Spark Declarative Pipelines do not have: leave it out, or --engine"
                )


class DeclaredReads:
    """What functions read, as the engine knows it: by name, and not before it runs."""

    keeps_bad_rows = False

    def __init__(self, spark: Any, kafka: Mapping[str, str]) -> None:
        self._spark = spark
        self._kafka = kafka
        #: Whether the function that is being called reads a stream.
        self.is_stream = False

    def topic(self, topics: Sequence[str], starting: str, options: dict[str, str]) -> Any:
        self.is_stream = True
        given = {"subscribe": ",".join(topics), "startingOffsets": starting, "includeHeaders": "true"}
        return self._spark.readStream.format("ottla").options(**{**given, **self._kafka, **options}).load()

    def stream(self, name: str) -> Any:
        self.is_stream = True
        return self._spark.readStream.table(name)

    def snapshot(self, name: str) -> Any:
        return self._spark.read.table(name)


def run_declared(
    file: PipelineFile,
    places: Places,
    kafka: Mapping[str, str],
    *,
    master: str | None,
    config: Mapping[str, str],
    say: Callable[[str], None],
) -> None:
    """One run, up to what there is. Raises FlowFailed with what the engine said last."""
    check_declared(file)
    with places.held(file.name):
        folder = os.path.join(places.folder, "sdp")
        os.makedirs(os.path.join(folder, "storage"), exist_ok=True)
        server = ottla.spark.session(file.name, master=master, config={**_config(folder), **config})
        try:
            server.sparkContext.setLogLevel("ERROR")
            spark = _connected(server)
            try:
                _run(spark, file, kafka, f"file://{folder}/storage", say)
            finally:
                spark.stop()
        finally:
            server.stop()


def _config(folder: str) -> dict[str, str | int | bool]:
    os.environ.setdefault(_TOKEN, uuid.uuid4().hex)
    return {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": _LOOPBACK,
        "spark.connect.grpc.binding.port": 0,
        "spark.sql.artifact.isolation.enabled": True,
        "spark.sql.artifact.isolation.alwaysApplyClassloader": True,
        "spark.sql.warehouse.dir": f"file://{folder}/warehouse",
        # The next run finds its tables in no other.
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/catalog;create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={folder}/derby.log",
    }


def _connected(server: Any) -> Any:
    from pyspark.sql.connect.session import SparkSession

    service = getattr(server._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")  # noqa: SLF001
    port = getattr(service, "MODULE$").localPort()
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # `pyspark.sql.functions` asks this
    # By this name alone the client talks without TLS where there is a token.
    spark = SparkSession.builder.remote(f"sc://localhost:{port}").create()
    spark.dataSource.register(ottla.spark.OttlaDataSource)
    return spark


def _run(spark: Any, file: PipelineFile, kafka: Mapping[str, str], storage: str, say: Callable[[str], None]) -> None:
    from pyspark.pipelines.graph_element_registry import graph_element_registration_context
    from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
    from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, start_run

    graph = create_dataflow_graph(spark, default_catalog=None, default_database=None, sql_conf={})
    reads = DeclaredReads(spark, kafka)
    with graph_element_registration_context(SparkConnectGraphElementRegistry(spark, graph)), answering(reads):
        for flow in file.definitions.flows.values():
            with explained(flow):
                _register(flow, reads, kafka)
    said = ""
    try:
        for said in _events(
            start_run(spark, graph, full_refresh=None, full_refresh_all=False, refresh=None, dry=False, storage=storage)
        ):
            say(said)
    except Exception as error:
        # An answer of the server's that its own client does not know comes behind the end of a run with Python sources.
        if _COMPLETED not in said:
            raise FlowFailed(f"{file.name}: {first_line(error)}") from error


def _register(flow: Flow, reads: DeclaredReads, kafka: Mapping[str, str]) -> None:
    from pyspark import pipelines

    if flow.kind is Kind.SINK:
        pipelines.create_sink(flow.name, "ottla", {**kafka, **flow.options, "topic": str(flow.topic)})
        pipelines.append_flow(target=flow.name, name=f"{flow.name}_flow")(flow.function)
        return
    comment = flow.comment or None
    if flow.kind is Kind.VIEW:
        pipelines.temporary_view(name=flow.name, comment=comment)(flow.function)
        return
    reads.is_stream = False
    flow.function()  # for what it reads: the engine wants to know whether a table is a stream's before it calls this
    kind = pipelines.table if reads.is_stream else pipelines.materialized_view
    kind(name=flow.name, comment=comment, format="parquet")(flow.function)


def _events(answers: Iterator[Mapping[str, Any]]) -> Iterator[str]:
    for answer in answers:
        event = answer.get("pipeline_event_result")
        if event is not None:
            yield str(event.event.message)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its parent is not there
        return False
