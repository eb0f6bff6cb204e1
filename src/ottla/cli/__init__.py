"""The `ottla` command: one file a verb; nothing that a verb does not use is imported.

- `main.py`      finds the verb, runs it, and turns what went wrong into one line and an exit code (`faults.py`)
- `verbs.py`     the table of all verbs; `top_help.py` what `ottla --help` prints from it
- `parser.py`    argparse in this program's manner; `options.py` the options that many verbs share
- `output.py`    tables, JSON and YAML; `progress.py` bars
- `connecting.py` from `--bootstrap-server` and `--command-config` to a client
- everything else is a verb: `arguments(parser)` declares its options, `run(options)` returns an exit code
"""
