"""How the adapter gets in: versions, pickles, the entry point of verl, the stand-in for the controller."""

import copy
import importlib.metadata
import os
import pickle
import subprocess
import sys
from typing import Any

import transfer_queue as tq
from omegaconf import OmegaConf

from batchmeta.transferqueue import AdapterError, BadSetting, UnsupportedTransferQueue, install, seam, uninstall
from batchmeta.transferqueue.server_info import HttpServerInfo
from batchmeta.transferqueue.stand_in import PATIENCE_S, StandIn

from .planes import info, ours, raised


def check_an_info_travels_without_its_connections(url: str) -> None:
    client = ours(url, job="travels")
    own = client._controller
    own.sampler["name"] = "lifo"
    conf = OmegaConf.merge(OmegaConf.create({}, flags={"allow_objects": True}), {"controller": {"zmq_info": own}})
    for arrived in (copy.deepcopy(own), pickle.loads(pickle.dumps(own)), conf.controller.zmq_info):
        assert isinstance(arrived, HttpServerInfo)
        assert (arrived.settings, arrived.sampler, arrived.is_polling) == (own.settings, {"name": "lifo"}, True)
        assert arrived._service is None or arrived is own
    client.close()


def check_unknown_versions_are_one_clear_line() -> None:
    known = tq.__version__
    try:
        for version in ("0.1.7", "0.2.0", "0.1.12.dev0"):
            tq.__version__ = version
            said = str(raised(UnsupportedTransferQueue, seam.check_version, False))
            assert version in said
            assert "\n" not in said
            seam.check_version(any_version=True)
    finally:
        tq.__version__ = known


def check_a_missing_name_is_one_clear_line() -> None:
    kind: Any = seam.their_client.AsyncTransferQueueClient
    gone = kind.async_kv_list
    del kind.async_kv_list
    try:
        error = raised(UnsupportedTransferQueue, seam.check_version, False)
        assert "AsyncTransferQueueClient.async_kv_list" in str(error)
    finally:
        kind.async_kv_list = gone


def check_bad_settings() -> None:
    for url in ("", "no url", "ftp://host", "http://", "http://user:secret@host:1"):
        raised(BadSetting, install, url)
    raised(BadSetting, install, "http://127.0.0.1:1", job="a~b")


def check_the_entry_point_of_verl() -> None:
    (entry,) = (each for each in importlib.metadata.entry_points(group="verl.plugins") if each.name == "batchmeta")
    program = (
        "import importlib.metadata, sys, os\n"
        "[each.load() for each in importlib.metadata.entry_points(group='verl.plugins') if each.name == 'batchmeta']\n"
        "print('transfer_queue' in sys.modules)\n"
        "from transfer_queue import interface\n"
        "print(getattr(interface.TransferQueueController, 'settings', None))\n"
    )
    assert entry.value == "batchmeta.transferqueue.verl_plugin"
    assert plugged(program, {}) == ["False", "None"]
    loaded, settings = plugged(program, {"BATCHMETA_URL": "http://127.0.0.1:8700/", "BATCHMETA_JOB": "j"})
    assert loaded == "True"
    assert "url='http://127.0.0.1:8700', job='j'" in settings
    _, refused = plugged(program, {"BATCHMETA_URL": "ftp://host"})
    assert "must be like http://" in refused


def plugged(program: str, environment: dict[str, str]) -> list[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BATCHMETA")}
    done = subprocess.run(
        [sys.executable, "-c", program], env={**kept, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def check_the_choice_of_the_controller(url: str) -> None:
    controllers = seam.their_interface.TransferQueueController
    install(url, job="choice")
    try:
        assert controllers.settings.job == "choice"
        install("http://127.0.0.1:1")
        error = raised(AdapterError, controllers.options(name="c").remote, sampler=tq.SequentialSampler)
        assert "no batchmeta service" in str(error)
    finally:
        uninstall()
    assert controllers.settings is None
    assert controllers.__ray_metadata__ is not None  # all else is TransferQueue's


def check_the_stand_in(url: str, partition: str) -> None:
    now = [0.0]
    actor = StandIn(info(url, job=partition), clock=lambda: now[0])
    assert actor.get_config() is None
    now[0] = PATIENCE_S + 1
    assert "init" in str(raised(AdapterError, actor.get_config))
    conf = OmegaConf.create({"controller": {"zmq_info": None}}, flags={"allow_objects": True})
    conf.controller.zmq_info = actor.get_zmq_server_info()
    actor.store_config(conf)
    actor.register_sampler(tq.GRPOGroupNSampler(n_samples_per_prompt=4))
    assert actor.get_config().controller.zmq_info.sampler["n_samples_per_prompt"] == 4
    assert (actor.create_partition("p"), actor.create_partition("p"), actor.list_partitions()) == (True, False, ["p"])
    assert actor.start_metrics() == url.removeprefix("http://")
