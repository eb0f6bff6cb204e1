"""Clusters by name, with their settings, in one file: `$XDG_CONFIG_HOME/ottla/profiles.yaml`.

Its shape is that of rpk's `rpk.yaml`, with the client's settings beside:

    version: 1
    current_profile: staging
    profiles:
      - name: staging
        description: the cluster of the tests
        kafka_api:
          brokers: [10.0.0.5:9092, 10.0.0.6:9092]
        settings:
          request.timeout.ms: 5000

What else is in it stays as it is when the file is written, but for comments.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from ottla.cli.faults import FAILED, NOT_FOUND, CommandFault

#: More is no list of clusters that anybody has written.
FILE_BYTES_MAX: Final = 1 << 20
_VERSION: Final = 1


def path_of_profiles() -> str:
    named = os.environ.get("OTTLA_PROFILES")
    if named:
        return named
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(home, "ottla", "profiles.yaml")


class Profile:
    """One cluster, as the file has it."""

    def __init__(self, path: str, found: dict[str, Any]) -> None:
        self._path = path
        self.found = found
        self.name: str = found["name"]

    @property
    def _kafka(self) -> dict[str, Any]:
        kafka = self.found.get("kafka_api") or {}
        if not isinstance(kafka, dict):
            raise self._fault("kafka_api is not a mapping")
        return kafka

    @property
    def brokers(self) -> list[str]:
        """To connect to. Raises CommandFault where that cannot be done as the profile says."""
        kafka = self._kafka
        for unknown in ("tls", "sasl"):
            if kafka.get(unknown):
                raise self._fault(
                    f"kafka_api.{unknown} cannot be used: there is no encryption and no authentication yet"
                )
        return self.addresses

    @property
    def addresses(self) -> list[str]:
        """The same, to be shown."""
        brokers = self._kafka.get("brokers") or []
        if not isinstance(brokers, list) or not all(isinstance(one, str) for one in brokers):
            raise self._fault("kafka_api.brokers is not a list of addresses")
        return brokers

    @property
    def settings(self) -> dict[str, str]:
        settings = self.found.get("settings") or {}
        if not isinstance(settings, dict):
            raise self._fault("settings is not a mapping")
        for name, value in settings.items():
            if value is None or isinstance(value, (list, dict)):
                raise self._fault(f"the value of {name} is no text and no number")
        return {str(name): _plain(value) for name, value in settings.items()}

    @property
    def description(self) -> str:
        return str(self.found.get("description") or "")

    def _fault(self, what: str) -> CommandFault:
        return CommandFault(f"{self._path}, profile {self.name}: {what}")


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Profiles:
    def __init__(self, path: str, document: dict[str, Any]) -> None:
        self.path = path
        self._document = document

    def names(self) -> list[str]:
        return [profile.name for profile in self.all()]

    def all(self) -> list[Profile]:
        listed = self._document.get("profiles") or []
        if not isinstance(listed, list) or not all(_is_profile(one) for one in listed):
            raise CommandFault(f"{self.path}: profiles is not a list in which each has a name")
        return [Profile(self.path, one) for one in listed]

    @property
    def current(self) -> str | None:
        found = self._document.get("current_profile")
        return found if isinstance(found, str) and found else None

    def named(self, name: str) -> Profile:
        for profile in self.all():
            if profile.name == name:
                return profile
        from difflib import get_close_matches

        near = get_close_matches(name, self.names(), n=1)
        hint = f"did you mean {near[0]}?" if near else "`ottla profile list` names them"
        raise CommandFault(f"there is no profile {name} in {self.path}; {hint}", NOT_FOUND)

    def put(self, found: dict[str, Any]) -> None:
        """Adds it at the end, or in the place of the one of this name."""
        listed = [profile.found for profile in self.all()]
        names = [one["name"] for one in listed]
        if found["name"] in names:
            listed[names.index(found["name"])] = found
        else:
            listed.append(found)
        self._document["profiles"] = listed

    def remove(self, name: str) -> None:
        gone = self.named(name)
        self._document["profiles"] = [one.found for one in self.all() if one.name != gone.name]
        if self.current == name:
            self._document["current_profile"] = ""

    def use(self, name: str) -> None:
        self._document["current_profile"] = self.named(name).name

    def write(self) -> None:
        """All or nothing: a reader has the file as it was, or as it is, and so has a start after a crash."""
        import yaml

        from ottla.ports.real.whole_file import write_file

        self._document = {"version": _VERSION, "current_profile": "", **self._document}
        text = yaml.safe_dump(self._document, sort_keys=False, allow_unicode=True, default_flow_style=False)
        try:
            os.makedirs(_folder_of(self.path), mode=0o700, exist_ok=True)
            write_file(self.path, text.encode(), 0o600)
        except OSError as error:
            raise CommandFault(f"cannot write {self.path}: {error.strerror or error}", FAILED) from error


def _folder_of(path: str) -> str:
    """Where the file is, not a link to it."""
    return os.path.dirname(os.path.realpath(path))


def _is_profile(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("name"), str) and bool(one["name"])


def read_profiles() -> Profiles:
    """Those of the file; none where it is not there."""
    path = path_of_profiles()
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return Profiles(path, {})
    except OSError as error:
        raise CommandFault(f"cannot read {path}: {error.strerror or error}") from error
    if len(data) > FILE_BYTES_MAX:
        raise CommandFault(f"{path} has more than {FILE_BYTES_MAX} bytes")
    return Profiles(path, _document(path, data))


@contextmanager
def changed_profiles() -> Iterator[Profiles]:
    """Those of the file, which are written at the end of the block. Who changes them meanwhile waits, so that neither
    writes over what the other has added."""
    folder: int | None = None
    # Where this is refused the write says so, or the file system cannot hold a folder.
    with suppress(OSError):
        os.makedirs(_folder_of(path_of_profiles()), mode=0o700, exist_ok=True)
        folder = os.open(_folder_of(path_of_profiles()), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        profiles = read_profiles()
        yield profiles
        profiles.write()
    finally:
        if folder is not None:
            os.close(folder)


def _document(path: str, data: bytes) -> dict[str, Any]:
    import yaml

    try:
        found = yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: numbers and dates that are none
        raise CommandFault(f"{path} is not YAML: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise CommandFault(f"{path} is not made as `ottla profile add` makes it: it begins with no name")
    return found


def chosen_profile(named: str | None) -> Profile | None:
    """That of --profile, of $OTTLA_PROFILE, or the current one of the file; None without any."""
    wanted = named or os.environ.get("OTTLA_PROFILE")
    if not wanted and not os.path.exists(path_of_profiles()):
        return None  # without YAML, which takes longer to load than all else
    profiles = read_profiles()
    wanted = wanted or profiles.current
    return profiles.named(wanted) if wanted else None
