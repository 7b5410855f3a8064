"""The engine of the service. It knows no HTTP and no environment; time, randomness and the journal are given to it.

Layout, from the top floor to the ground; a floor imports only from those below it (`scripts/check` holds it to that):

    runtime/      the thread that owns the engine, calls that wait, replay after a start
    operations/   one file per noun of the contract: what each call of the HTTP API does
    reading/      how rows are selected and described        writing/   how a write is checked and becomes events
    samplers/     which rows a claim takes                   engine.py  the state with `commit`
    apply/        what each event does to the state
    snapshot/     the whole state as bytes, and back; the files of checkpoints
    state/        the state: partitions, rows, tasks, leases; state/cells/ what is known of samples x fields,
                  state/supply/ what a task can take
    journal/      where changes are kept                     events.py  what a change is made of
    slices.py     how work that takes long is written, so that other calls run between its steps

The life of one call, `POST /v1/partitions/train@0/production`:

1. `app` decodes the body and awaits `runtime.executor.Executor.submit(operations.produce.produce, …)`.
2. The engine's thread runs `produce(engine, …)`. `writing.draft` finds the rows and whatever is wrong with the call,
   and collects events. A refusal changes nothing.
3. `Engine.commit` gives the change its revision; `apply` changes the state by each of its events.
4. The reply is rendered to bytes at once, before another call changes the state.
5. Calls that wait for this partition are tried again (`runtime.parking_lot`).
6. All changes of this drain go into the journal with one append; only then are the replies sent.
"""
