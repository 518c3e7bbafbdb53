"""Matrix products and a transformer on one GPU, timed with torch: `python benchmarks/gpu_transformer.py [STEP ..]`.

Prints `step,model,batch,length,time [us]` for training steps, prompts and tokens of models with random weights, and
`product,precision,M,N,K,time [us]`. Times are medians of wall-clock times around synchronised runs. Each step, and
each product, repeats until the time of the run is long against the synchronisation. No part of whatif is imported.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Model:
    """Shape of a decoder, LLaMA's."""

    layers: int
    hidden: int
    heads: int
    key_heads: int
    feed_forward: int
    vocabulary: int


MODELS = {
    "tiny": Model(2, 64, 4, 2, 128, 256),
    "1b": Model(24, 2048, 16, 16, 5504, 32000),
    "3b": Model(28, 3072, 24, 8, 8192, 128256),
    "8b": Model(32, 4096, 32, 8, 14336, 128256),
}
PRODUCTS = [
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (16384, 16384, 1024),
    (1024, 8192, 8192),
    (4224, 4224, 4096),
    (4352, 4352, 4096),
    (128, 8192, 8192),
    (2048, 2048, 2048),
    (1024, 1024, 1024),
    (8192, 8192, 128),
]


class Layer(nn.Module):
    """Attention and gated feed-forward network; a cache holds keys and values of earlier tokens."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model, self.width = model, model.hidden // model.heads
        projected = (model.heads + 2 * model.key_heads) * self.width
        self.norms = nn.ModuleList(nn.RMSNorm(model.hidden) for _ in range(2))
        self.attend = nn.Linear(model.hidden, projected, bias=False)
        self.merge = nn.Linear(model.hidden, model.hidden, bias=False)
        self.rise = nn.Linear(model.hidden, 2 * model.feed_forward, bias=False)
        self.fall = nn.Linear(model.feed_forward, model.hidden, bias=False)

    def forward(self, x: Tensor, angles: Tensor, cache: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Output of the layer; keys and values of one token replace the last of a cache."""
        batch, length, _ = x.shape
        heads = self.attend(self.norms[0](x)).view(batch, length, -1, self.width).transpose(1, 2)
        q, k, v = heads.split([self.model.heads, self.model.key_heads, self.model.key_heads], dim=1)
        q, k = rotated(q, angles), rotated(k, angles)
        if cache is not None:
            cache[0][:, :, -1:], cache[1][:, :, -1:] = k, v
            k, v = cache
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=cache is None, enable_gqa=True)
        x = x + self.merge(y.transpose(1, 2).reshape(batch, length, -1))
        gate, up = self.rise(self.norms[1](x)).chunk(2, dim=-1)
        return x + self.fall(functional.silu(gate) * up)


def rotated(x: Tensor, angles: Tensor) -> Tensor:
    """Rotary position embedding; `angles` are cosines and sines of the tokens."""
    first, second = x.chunk(2, dim=-1)
    cosine, sine = angles
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class Decoder(nn.Module):
    """Embedding, layers, and the scores of the next token."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.embed = nn.Embedding(model.vocabulary, model.hidden)
        self.layers = nn.ModuleList(Layer(model) for _ in range(model.layers))
        self.norm = nn.RMSNorm(model.hidden)
        self.score = nn.Linear(model.hidden, model.vocabulary, bias=False)

    def forward(self, tokens: Tensor, angles: Tensor, caches: list | None = None, last: bool = False) -> Tensor:
        """Scores of the tokens that follow each token, or the last one."""
        x = self.embed(tokens)
        for index, layer in enumerate(self.layers):
            x = layer(x, angles, caches[index] if caches else None)
        return self.score(self.norm(x[:, -1:] if last else x))


def decoder(name: str, device: str) -> Decoder:
    """A model with random weights in bf16."""
    with torch.device("meta"):
        built = Decoder(MODELS[name]).bfloat16()
    built = built.to_empty(device=device)
    with torch.no_grad():
        for values in built.parameters():
            values.normal_(std=0.02)
    return built


def angles_of(name: str, positions: Tensor) -> Tensor:
    """Cosines and sines of the positions of tokens."""
    width = MODELS[name].hidden // MODELS[name].heads
    turns = positions[:, None] * 10000 ** (-torch.arange(width // 2, device=positions.device) / (width // 2))
    return torch.stack((turns.cos(), turns.sin())).bfloat16()


def wait(device: str) -> None:
    """Wait until a GPU is done."""
    if device == "cuda":
        torch.cuda.synchronize()


def timed(run: Callable[[], object], device: str, repetitions: int = 7, least: float = 0.02) -> float:
    """Median time of `run` in us, after two runs."""
    run(), run()
    wait(device)
    begin = time.perf_counter()
    run()
    wait(device)
    count = max(1, int(least / (time.perf_counter() - begin)))
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        for _ in range(count):
            run()
        wait(device)
        times.append((time.perf_counter() - begin) / count * 1e6)
    return median(times)


def training(name: str, batch: int, length: int, device: str) -> Callable[[], None]:
    """A step: forwards, backwards, AdamW in one kernel; weights and moments in bf16."""
    model = decoder(name, device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=device == "cuda")
    tokens = torch.randint(MODELS[name].vocabulary, (batch, length + 1), device=device)
    angles = angles_of(name, torch.arange(length, device=device))

    def step() -> None:
        scores = model(tokens[:, :-1], angles)
        functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def prompt(name: str, batch: int, length: int, device: str) -> Callable[[], object]:
    """The first token after a prompt."""
    model = decoder(name, device)
    tokens = torch.randint(MODELS[name].vocabulary, (batch, length), device=device)
    angles = angles_of(name, torch.arange(length, device=device))
    return torch.no_grad()(lambda: model(tokens, angles, last=True))


def token(name: str, batch: int, length: int, device: str) -> Callable[[], object]:
    """One token after `length` tokens of each request; replayed as a graph, without time of launches."""
    model, shape = decoder(name, device), MODELS[name]
    size = (batch, shape.key_heads, length, shape.hidden // shape.heads)
    caches = [tuple(torch.randn(size, device=device, dtype=torch.bfloat16) for _ in "kv") for _ in range(shape.layers)]
    tokens = torch.randint(shape.vocabulary, (batch, 1), device=device)
    angles = angles_of(name, torch.tensor([length], device=device))
    run = torch.no_grad()(lambda: model(tokens, angles, caches))
    if device == "cuda":
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            run(), run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        run = graph.replay
    return run


STEPS = {"training": training, "prompt": prompt, "token": token}
RUNS = [
    ("training", "1b", 4, 2048), ("training", "1b", 8, 2048), ("training", "3b", 2, 4096),
    ("prompt", "8b", 1, 512), ("prompt", "8b", 1, 2048), ("prompt", "8b", 4, 2048), ("prompt", "8b", 1, 8192),
    ("token", "8b", 1, 2048), ("token", "8b", 8, 2048), ("token", "8b", 32, 2048), ("token", "8b", 64, 2048),
    ("token", "8b", 8, 8192),
]  # fmt: skip


def products(device: str) -> None:
    """Print times of products of matrices by precision and shape."""
    torch.backends.cuda.matmul.allow_tf32 = False
    kinds = {"bf16": torch.bfloat16, "fp16": torch.float16, "tf32": torch.float32, "fp64": torch.float64}
    for precision, kind in kinds.items():
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        for m, n, k in PRODUCTS:
            a, b = torch.randn((m, k), device=device, dtype=kind), torch.randn((k, n), device=device, dtype=kind)
            c = torch.empty((m, n), device=device, dtype=kind)
            taken = timed(lambda a=a, b=b, c=c: torch.matmul(a, b, out=c), device)
            print(f"product,{precision},{m},{n},{k},{taken:.3f}", flush=True)


def main() -> None:
    """Print the times of the steps named on the command line, or of all."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    chosen = sys.argv[1:]
    if not chosen or "product" in chosen:
        products(device)
    for step, name, batch, length in RUNS:
        if not chosen or step in chosen:
            try:
                taken = f"{timed(STEPS[step](name, batch, length, device), device, 5, 0.1):.3f}"
            except torch.cuda.OutOfMemoryError:
                taken = "out of memory"
            print(f"{step},{name},{batch},{length},{taken}", flush=True)
            if device == "cuda":
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
