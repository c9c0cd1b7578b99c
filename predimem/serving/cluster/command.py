"""`predimem serve --ray`: connect to a cluster, start replicas, serve robots in front of them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from predimem.jobs.local_ray import start_local_ray
from predimem.serving.cluster import shown
from predimem.serving.cluster.gateway import Gateway
from predimem.serving.cluster.replica import Replica
from predimem.serving.cluster.router import SESSION_ROUTER
from predimem.serving.command import serve_until_stopped
from predimem.serving.config import ServeConfig
from predimem.serving.logs import log_as_json
from predimem.serving.pages import open_page
from predimem.serving.robot import Served

DEPLOYMENT = "replica"


def run_cluster(config: ServeConfig, make_served: Callable[[], Served]) -> None:
    """Blocks until SIGTERM or SIGINT. make_served: builds the models in each replica; it has to be picklable.

    Raises ValueError where there is no such cluster, or its replicas cannot be started.
    """
    config = cluster_config(config)
    log_as_json()
    _connect(config)
    gateway = Gateway(config, lambda: deploy(config, make_served))
    try:
        serve_until_stopped(gateway, open_page, shown.page)
    finally:
        _leave(config)


def cluster_config(config: ServeConfig) -> ServeConfig:
    """The settings that replicas run with. Raises ValueError where they cannot share their memory."""
    if config.state.place is None:
        raise ValueError(
            "a cluster needs --state-dir, a folder that all nodes see under the same path, or --store, the address of "
            "a PostgreSQL database. There the replicas share what robots remember, so that an episode survives the "
            "loss of its replica"
        )
    if config.state.folder is None:
        return config
    # WAL needs memory that all processes of a database share, which machines do not.
    return replace(
        config, state=replace(config.state, dir=os.path.abspath(config.state.folder), store=None, journal="rollback")
    )


def deploy(config: ServeConfig, make_served: Callable[[], Served]) -> Any:
    """The handle of the replicas, when the first ones are warm. Raises ValueError."""
    from ray import serve
    from ray.serve.config import AutoscalingConfig, RequestRouterConfig
    from ray.serve.schema import LoggingConfig

    cluster, limits = config.cluster, config.limits
    if cluster.join:
        try:
            return serve.get_deployment_handle(DEPLOYMENT, cluster.name)
        except Exception as error:
            raise ValueError(f"there is no application {cluster.name!r} on this cluster to join: {error}") from error
    size: dict[str, Any] = {"num_replicas": cluster.replicas}
    if cluster.max_replicas > cluster.replicas:
        size = {
            "autoscaling_config": AutoscalingConfig(
                min_replicas=cluster.replicas,
                max_replicas=cluster.max_replicas,
                target_ongoing_requests=cluster.target_ongoing_requests,
                downscale_delay_s=cluster.downscale_delay_s,
            )
        }
    router = RequestRouterConfig(
        request_router_class=SESSION_ROUTER,  # type: ignore[arg-type]
        request_router_kwargs={"sessions": 4 * limits.sessions * max(cluster.replicas, cluster.max_replicas)},
    )
    deployment: Any = serve.deployment(
        Replica,
        name=DEPLOYMENT,
        max_ongoing_requests=limits.connections + 4,
        max_queued_requests=limits.connections,
        ray_actor_options={"num_cpus": cluster.cpus_per_replica, "num_gpus": cluster.gpus_per_replica},
        health_check_period_s=5.0,
        health_check_timeout_s=15.0,
        graceful_shutdown_timeout_s=limits.drain_s,
        request_router_config=router,
        logging_config=LoggingConfig(enable_access_log=False),
        **size,
    )
    try:
        serve.start(proxy_location="Disabled")  # robots come through the gateway
        serve.run(deployment.bind(config, make_served), name=cluster.name, route_prefix=None)
    except RuntimeError as error:
        raise ValueError(f"the replicas cannot be started: {error}") from error
    return serve.get_deployment_handle(DEPLOYMENT, cluster.name)


def _connect(config: ServeConfig) -> None:
    try:
        import ray
        from ray import serve  # noqa: F401
    except ImportError as error:
        raise ValueError(f"a cluster needs Ray Serve ({error}): pip install 'predimem[cluster]'") from error
    cluster = config.cluster
    if cluster.address == "local":
        most = max(cluster.replicas, cluster.max_replicas)
        return start_local_ray(most * cluster.cpus_per_replica, most * cluster.gpus_per_replica)
    try:
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.WARNING)
    except ConnectionError as error:
        raise ValueError(
            f"no Ray cluster at {cluster.address!r}: {str(error).rstrip('.')}. `ray start --head` starts one"
        ) from error


def _leave(config: ServeConfig) -> None:
    import ray
    from ray import serve

    if config.cluster.address == "local":
        serve.shutdown()
    elif not config.cluster.join:
        serve.delete(config.cluster.name)
    ray.shutdown()
