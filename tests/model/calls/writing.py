"""What is written to rows, what is taken from them, and their removal at once."""

from collections.abc import Mapping, Sequence

from app.routes import production_render, samples_render
from core.operations import produce as production
from core.operations import revoke as revoking
from core.operations.delete import delete
from core.operations.produce import RowWrite
from core.reading.batch import View
from core.state.cells.json_cells import Column
from tests.core.world import Schema as SchemaIn
from tests.model.calls.call import Call, column, conditions, members, of, rows, schema, selected, selector
from tests.model.said import Chosen

PLAIN = View()


def insert(name: str, number: int | None, write: RowWrite, view: View = PLAIN) -> Call:
    include = None if view.include is None else sorted(view.include)
    how = {"expand": view.expand, "compact": view.compact, "share_columns": view.share}
    body = members(count=number, include=include) | rows(write) | how
    arguments = (name, number, write, view)
    return Call("POST", of(name, "samples"), body, production.insert, samples_render.inserted, arguments)


def produce(
    name: str,
    write: RowWrite,
    create: bool,
    schemas: Mapping[str, SchemaIn],
    backend: Mapping[str, Column],
    skip: bool = False,
) -> Call:
    body = rows(write) | {
        "create": create,
        "on_cleared": "skip" if skip else "refuse",
        "field_schema": {known: schema(said) for known, said in schemas.items()},
        "backend_meta": {known: column(said) for known, said in backend.items()},
    }
    arguments = (name, write, create, schemas, backend, skip)
    return Call("POST", of(name, "production"), body, production.produce, production_render.produced, arguments)


def patch_custom(name: str, write: RowWrite, if_revision: int | None) -> Call:
    body = rows(write) | members(if_revision=if_revision)
    operation, shown = production.patch_custom_meta, samples_render.patched_custom_meta
    return Call("PATCH", of(name, "custom-meta"), body, operation, shown, (name, write, if_revision))


def patch_backend(name: str, write: RowWrite, columns: Mapping[str, Column]) -> Call:
    body = rows(write) | {"backend_meta": {known: column(said) for known, said in columns.items()}}
    operation, shown = production.patch_backend_meta, production_render.patched_backend_meta
    return Call("PATCH", of(name, "backend-meta"), body, operation, shown, (name, write, columns))


def delete_samples(name: str, chosen: Chosen) -> Call:
    path, shown = of(name, "samples", "delete"), samples_render.deleted_samples(name)
    arguments = (name, selector(chosen), conditions(chosen.where))
    return Call("POST", path, selected(chosen), delete, shown, arguments)


def revoke(name: str, chosen: Chosen, fields: Sequence[str]) -> Call:
    body, shown = selected(chosen) | {"fields": list(fields)}, production_render.revoked(name)
    arguments = (name, selector(chosen), tuple(fields))
    return Call("POST", of(name, "production", "revoke"), body, revoking.revoke, shown, arguments)
