"""All verbs: what each does, and the module below `ottla.cli` that does it. Plain data, since every start reads it."""

from __future__ import annotations

#: Verb, module, what it does: in the order of the help.
VERBS = (
    ("up", "up", "start a broker on this host and print its address"),
    ("broker", "broker", "start a broker from a property file"),
    ("tree", "tree", "serve a tree of znodes for the brokers of one host"),
    ("tree dump", "tree_dump", "write a cluster's tree as JSON"),
    ("tree load", "tree_load", "write such JSON into another place"),
    ("topic list", "topic.list", "name the topics"),
    ("topic describe", "topic.describe", "show partitions, leaders, replicas and overrides"),
    ("topic create", "topic.create", "create topics"),
    ("topic alter", "topic.alter", "say how many partitions a topic has in all"),
    ("topic add-partitions", "topic.add_partitions", "add partitions to topics, so many to each"),
    ("topic delete", "topic.delete", "delete topics with all their records"),
    ("topic trim", "topic.trim", "delete the records below an offset"),
    ("topic confirm", "topic.confirm", "let topics that keep everything lose records again"),
    ("produce", "produce", "send lines or JSON envelopes to a topic"),
    ("consume", "consume", "print records of topics"),
    ("group list", "group.list", "name the groups of consumers"),
    ("group describe", "group.describe", "show groups: positions, lag, members, state"),
    ("group reset", "group.reset", "move where a group goes on"),
    ("group import", "group.importing", "take positions of Kafka 0.8's consumers over"),
    ("group delete", "group.delete", "delete groups, or their positions in a topic"),
    ("txn list", "txn.list", "name the transactional ids"),
    ("txn describe", "txn.describe", "show transactions: state, producer, partitions"),
    ("txn find-hanging", "txn.find_hanging", "find transactions that nobody will end"),
    ("txn abort", "txn.abort", "end a transaction that hangs in a partition"),
    ("config describe", "config.describe", "show the settings of a topic or a broker"),
    ("config alter", "config.alter", "change the settings of a topic or of brokers"),
    ("cluster describe", "cluster.describe", "show the brokers and the controller"),
    ("cluster health", "cluster.health", "say whether the cluster is healthy, and what is wrong"),
    ("cluster features", "cluster.features", "show the feature levels, or set one"),
    ("why", "why", "say what happened to a partition, and what is wrong now"),
    ("elect", "elect", "have the preferred leaders elected, or any"),
    ("reassign plan", "reassign.plan", "propose where partitions shall be"),
    ("reassign run", "reassign.run", "begin to move partitions as a file says"),
    ("reassign status", "reassign.status", "show the moves that are under way"),
    ("reassign cancel", "reassign.cancel", "call moves off that are under way"),
    ("log-dirs", "log_dirs", "show how many bytes each partition takes"),
    ("znode ls", "znode.ls", "name the children of a znode"),
    ("znode get", "znode.get", "print the data of a znode"),
    ("log dump", "log.dump", "print and check files of a log directory"),
    ("log import", "log.importing", "produce records from files of a log directory"),
    ("mirror", "mirror", "copy topics into another cluster, as MirrorMaker 2 does"),
    ("perf produce", "perf.produce", "measure how fast records are taken"),
    ("perf consume", "perf.consume", "measure how fast records are read"),
    ("pipeline init", "pipeline.init", "write an example of a pipeline"),
    ("pipeline prepare", "pipeline.prepare", "have Spark start faster from now on"),
    ("pipeline run", "pipeline.run", "keep the tables of a pipeline up to date"),
    ("pipeline status", "pipeline.status", "show what the flows of a pipeline have done"),
    ("pipeline replay", "pipeline.replay", "send dead letters again"),
    ("profile add", "profile.add", "name a cluster, with its addresses and settings"),
    ("profile use", "profile.use", "use a cluster that was named, from now on"),
    ("profile list", "profile.list", "name the clusters"),
    ("profile remove", "profile.remove", "forget a cluster's name"),
    ("sim", "sim", "run simulated clusters with faults"),
    ("version", "version", "print the versions of Ottla and of Python"),
    ("completion", "completion", "print the shell code that completes this command"),
)


def find(words: list[str]) -> tuple[str, str, list[str]] | None:
    """The verb that a command line begins with, its module, and the words behind it."""
    for length in (2, 1):
        name = " ".join(words[:length])
        for verb, module, _ in VERBS:
            if verb == name and len(words) >= length:
                return verb, module, words[length:]
    return None


def below(word: str) -> list[tuple[str, str]]:
    """The verbs of a group such as `topic`, with what they do."""
    return [(verb, summary) for verb, _, summary in VERBS if verb.startswith(f"{word} ")]
