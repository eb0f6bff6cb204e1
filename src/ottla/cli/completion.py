"""Print the code that completes `ottla` in a shell: verbs, options and the names of live topics.

bash: eval "$(ottla completion bash)"     in ~/.bashrc
zsh:  eval "$(ottla completion zsh)"      in ~/.zshrc, after compinit
fish: ottla completion fish | source      in ~/.config/fish/config.fish
"""

from __future__ import annotations

import argparse

from ottla.cli.faults import OK


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(options: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["ottla"], shell=options.shell))
    return OK
