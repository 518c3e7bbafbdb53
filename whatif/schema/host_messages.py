"""Whether the messages in a node of linked GPUs are those between main memories."""

from __future__ import annotations

from whatif.schema.network import Network
from whatif.schema.toml import KeyPath, Layers


def states_host_messages(network: Network, layers: Layers, platform: KeyPath = ()) -> bool:
    """Whether the file that states the links between GPUs states messages between main memories inside a node, too.

    Those that a file adds to a machine with links, such as a fit, or has before it gets them, are of another path.
    `platform` is the path of the platform in the layers.
    """
    keys = [key for key in ("intra_socket", "inter_socket") if getattr(network, key) is not None]
    links = layers.begun((*platform, "node", "peer_link"))
    return any(layers.begun((*platform, "network", key)) == links for key in keys)
