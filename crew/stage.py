"""What a crew runs on: the service and the storage backend, started together and stopped at the end."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from .files import files_storage
from .members import Place
from .memory import memory_storage
from .service import ServiceProcess, service_process
from .storage import StorageAddress, StorageName
from .yuanrong_worker import yuanrong_storage


@contextmanager
def stage(
    name: StorageName, url: str | None, folder: Path, console: Console
) -> Iterator[tuple[Place, ServiceProcess | None]]:
    """Where the crew works, and the service if it is started here: on `folder`, and where no `url` is given."""
    with ExitStack() as stack:
        # The service comes up while the storage does.
        service = None if url else stack.enter_context(service_process(folder / "service"))
        storage = stack.enter_context(_storage(name, folder / "storage"))
        if service:
            service.wait_ready()
        found = service.url if service else str(url)
        console.print(f"service {found}, storage {storage}", highlight=False, soft_wrap=True)
        yield Place(found, storage), service


def _storage(name: StorageName, folder: Path) -> AbstractContextManager[StorageAddress]:
    starts = {"memory": memory_storage, "files": files_storage, "yuanrong": yuanrong_storage}
    return starts[name](folder)
