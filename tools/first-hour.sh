#!/usr/bin/env bash
# The README's commands in a clean clone of this repository's HEAD, by one Python; CC=false stands for no C compiler.
#
#   bash tools/first-hour.sh python3.13
#   CC=false bash tools/first-hour.sh python3.13
set -euo pipefail
python=${1:?name a Python}
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
clone=$(mktemp -d)
broker=
finish() {
    if [[ -n "$broker" ]]; then kill -KILL "$broker" 2>/dev/null || true; fi
    rm -rf "$clone"
}
trap finish EXIT

git clone --quiet "$repository" "$clone/ottla"
cd "$clone/ottla"
"$python" -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check .
.venv/bin/python - <<'END'
import sys
from ottla.native import compiled_run
print(f"Python {sys.version.split()[0]}, compiled code: {'yes' if compiled_run() is not None else 'no'}")
END

.venv/bin/ottla up --port 0 --data "$clone/data" >"$clone/said" 2>"$clone/log" &
broker=$!
for _ in $(seq 600); do
    grep -q '^Ottla is listening on ' "$clone/said" && break
    kill -0 "$broker" 2>/dev/null || { cat "$clone/log" >&2; exit 1; }
    sleep 0.1
done
OTTLA_BOOTSTRAP_SERVER=$(sed -n 's/^Ottla is listening on //p' "$clone/said")
export OTTLA_BOOTSTRAP_SERVER
.venv/bin/ottla topic create greetings --partitions 3
echo "hello" | .venv/bin/ottla produce greetings
said=$(.venv/bin/ottla consume greetings --offset start --max-messages 1)
[[ "$said" == hello ]] || { echo "consume said: $said" >&2; exit 1; }
kill -TERM "$broker"
wait "$broker"
broker=
echo "all of the README's commands did what it says"
