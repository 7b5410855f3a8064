"""The HTTP edge of batchmeta: it decodes calls, hands them to the engine's thread, and sends the replies.

No state of samples lives here. Layout:

    __main__.py, settings.py, process.py, verify.py   start, run, and look through a data folder
    connection.py, guard.py, headers.py               a request before any route sees it
    application.py, edge.py                           the ASGI application, and what all routes share
    contract.py, incoming.py, pieces.py, convert.py   what each route is built on: decode, hand on, convert
    keys.py, etags.py                                 Idempotency-Key; entity tags
    routes/                                           per resource its routes, and beside them the renderers of replies
    reply.py, errors.py                               a reply; a refusal as a problem
    snapshots/                                        snapshots and checkpoints while the service runs
    openapi.py, reference.py, static/                 the OpenAPI, the generated pages, the docs page
    own_samplers.py                                   the samplers that an operator adds
    memory.py, scheduling.py                          how the process uses memory and processors
"""
