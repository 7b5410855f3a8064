"""The controller's actor as TransferQueue's users find it: its configuration, and samplers registered later."""

import ray
import transfer_queue as tq
from omegaconf import DictConfig


def config() -> DictConfig:
    """The configuration with which TransferQueue runs, as a worker asks for it."""
    return ray.get(_actor().get_config.remote())


def register(sampler: tq.BaseSampler) -> None:
    """Clients that are made from now on claim by this sampler."""
    ray.get(_actor().register_sampler.remote(sampler))


def new_client() -> tq.TransferQueueClient:
    """A client beside that of `transfer_queue.init`, made as the streaming data set makes its own."""
    conf = config()
    client = tq.TransferQueueClient("flow", conf.controller.zmq_info)
    client.initialize_storage_manager(conf.backend.storage_backend, conf.backend[conf.backend.storage_backend])
    return client


def _actor() -> ray.actor.ActorHandle:
    return ray.get_actor("TransferQueueController", namespace="transfer_queue")
