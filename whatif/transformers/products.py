"""Products of tokens with the parameters of layers on one rank, and what they need of the platform."""

from __future__ import annotations

from typing import Final

from whatif.core.energy import gpu_rate
from whatif.core.parameter_paths import GPU
from whatif.core.term import Reference, parameters_in
from whatif.models import transformer_layers as layers
from whatif.models import transformer_steps as steps
from whatif.models.gemm import gemm_efficiency, tile_efficiency
from whatif.transformers.model_parts import MODEL, NO_BYTES, ONCE, PLAN, ModelParts, number
from whatif.vocabulary import PRODUCT_PRECISIONS, Precision, ProductPrecision

DRAM: Final = f"{GPU}.dram_bandwidth"
TENSOR: Final = f"{PLAN}.tensor_size"


def check_platform(parts: ModelParts, what: str, **precisions: ProductPrecision) -> None:
    """Raise `InvalidFileError` for a platform without what transformers need, and for what they do not take; require a
    GPU for each rank. `precisions` are those of the plan, by key."""
    context = parts.context
    wiring, gpu, name = context.wiring, context.scenario.platform.node.gpu, context.scenario.platform.name
    if gpu is None or not context.on_gpus:
        wiring.refuse("application.kind", f"{name} has no GPUs, which {what} needs (`[platform.node.gpu]`)")
    if context.buffers == "host":
        wiring.problem("application.buffers", f"{what} sends between GPUs: {context.device_buffers_need}")
    if context.is_simulated:
        wiring.problem("application.communication", f"{what} has closed forms and cannot be simulated")
    if parts.model.feed_forward_size is None and not parts.has_experts:
        wiring.problem(f"{MODEL}.feed_forward_size", "missing key, needed by dense blocks")
    for key, needed in dict.fromkeys([*precisions.items(), ("precision", "bf16")]):
        rate = f"matrix_rates.{PRODUCT_PRECISIONS[needed]}"
        if f"{GPU}.{rate}" not in wiring.parameters:
            wiring.problem(f"{PLAN}.{key}", f"{gpu.name} states no `{rate}`, which {needed} needs")
    wiring.raise_problems()
    reason = f"ranks of {what} share no GPU (application.ranks_per_gpu, application.ranks_per_node)"
    wiring.require_fit("placement.ranks_on_gpu", reason, context.ranks_on_gpu, ONCE)


class Products:
    """Wiring of products in one precision, with `passes` over every matrix."""

    def __init__(self, parts: ModelParts, precision: ProductPrecision, passes: float, element_size: Reference) -> None:
        self.parts = parts
        self.passes = number(passes)
        self.element_size = element_size
        self.precision = precision

    @property
    def share(self) -> Reference:
        """Share of the peak that large products sustain."""
        return f"{GPU}.transformer.{self.precision}"

    def peak(self, precision: Precision) -> str:
        """Peak rate of the matrix units."""
        return gpu_rate(self.parts.context, f"matrix_rates.{precision}")

    def efficiency(self, name: str, shape: dict[str, Reference], share: Reference) -> str:
        """Share of the peak of products of a shape: that of large ones times that of their tiles."""
        device = parameters_in(GPU, "tile_extent", "multiprocessor_count")
        tiles = self.parts.add(f"{name}.tile_efficiency", tile_efficiency, **shape, **device)
        return self.parts.add(f"{name}.efficiency", gemm_efficiency, large_efficiency=share, tile_efficiency=tiles)

    def divided(self, name: str, parameters: Reference, width: Reference, tokens: Reference, count: Reference) -> str:
        """Time of `count` products with parameters that tensor ranks divide, to tokens of a width."""
        columns = self.parts.quotient(f"{name}.column_count", width, TENSOR)
        shape: dict[str, Reference] = {"m": tokens, "n": columns, "batch_count": ONCE}
        return self.timed(name, parameters, width, count, self.efficiency(name, shape, self.share),
                          {"token_count": tokens, "tensor_size": TENSOR})  # fmt: skip

    def timed(
        self, name: str, parameters: Reference, width: Reference, count: Reference, efficiency: str,
        divided: dict[str, Reference], read: Reference = "",
    ) -> str:  # fmt: skip
        """Time of `count` products.

        `divided` are the tokens and the ranks that divide the products; `read` are the parameters that are read, where
        they are others than those that a token is multiplied by.
        """
        counts = {**divided, "passes": self.passes}
        work = self.parts.add(f"{name}.operations", layers.product_operations, parameter_count=parameters, **counts)
        moved = self.parts.add(f"{name}.moved_size", layers.product_size, hidden_size=f"{MODEL}.hidden_size",
                               width=width, parameter_count=read or parameters, element_size=self.element_size,
                               **counts)  # fmt: skip
        return self.parts.add(name, steps.pass_time, operations=work, moved_size=moved, efficiency=efficiency,
                              peak_rate=self.peak(PRODUCT_PRECISIONS[self.precision]), dram_bandwidth=DRAM,
                              pass_count=count)  # fmt: skip

    def computed(
        self, name: str, work: Reference, share: Reference, count: Reference, *, moved: Reference = NO_BYTES,
        precision: Precision = "bf16",
    ) -> str:  # fmt: skip
        """Time of `count` passes of other operations at a share of a peak."""
        return self.parts.add(name, steps.pass_time, operations=work, moved_size=moved, efficiency=share,
                              peak_rate=self.peak(precision), dram_bandwidth=DRAM, pass_count=count)  # fmt: skip

    def moved(self, name: str, size: Reference, count: Reference) -> str:
        """Time of `count` passes that move data as norms and activations do."""
        return self.parts.add(name, steps.moving_time, moved_size=size, dram_bandwidth=DRAM, pass_count=count,
                              efficiency=f"{PLAN}.pointwise_fraction")  # fmt: skip
