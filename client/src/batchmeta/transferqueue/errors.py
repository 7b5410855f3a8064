"""What the adapter raises beside what the client does. All are RuntimeError too, as the errors of TransferQueue are.

AdapterError
├── NoService                no batchmeta service answers at the URL
├── ServiceFailed            a call was refused or lost; its `__cause__` is the client's error
├── NotEnoughData            a fetch that does not poll found too few samples in time
├── BadCall                  arguments that TransferQueue's controller would refuse
├── FieldConflict            a field is of another dtype, rank or kind than the partition has; nothing was written
├── LateWrite                samples were cleared before their data was reported; their bytes are deleted
├── UnsupportedTransferQueue this version of TransferQueue is not known, or a name is missing in it
├── UnsupportedSampler       the service has no sampler like it
└── BadSetting               a URL or a name of a job that cannot be used
"""

from ..errors import BatchmetaError


class AdapterError(BatchmetaError, RuntimeError):
    """Base of the adapter's errors."""


class NoService(AdapterError):
    """No batchmeta service answers at the URL, or something else does."""


class ServiceFailed(AdapterError):
    """The service refused a call, or no answer came within the time allowed."""


class NotEnoughData(AdapterError, TimeoutError):
    """Too few samples are ready for the task, and the time to wait for them is up. Nothing was handed out."""


class BadCall(AdapterError, ValueError):
    """Arguments that make no sense together. Nothing was done."""


class FieldConflict(AdapterError, ValueError):
    """The data of a field has another dtype, rank or kind than the partition's. Nothing was written."""


class LateWrite(AdapterError):
    """Samples were cleared while their data was written: the bytes are deleted again. Others of the call are written.

    `global_indexes`: the samples that are gone.
    """

    def __init__(self, text: str, global_indexes: tuple[int, ...] = ()) -> None:
        super().__init__(text)
        self.global_indexes = global_indexes

    def __reduce__(self) -> tuple[type["LateWrite"], tuple[str, tuple[int, ...]]]:
        return type(self), (str(self), self.global_indexes)


class UnsupportedTransferQueue(AdapterError):
    """The installed TransferQueue is none that the adapter knows."""


class UnsupportedSampler(AdapterError):
    """A sampler of TransferQueue's that the service has no counterpart of."""


class BadSetting(AdapterError, ValueError):
    """A setting that cannot be used; the text names it."""
