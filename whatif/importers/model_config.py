"""Configuration files of model hubs, `config.json`, as the part of a transformer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from whatif.errors import did_you_mean
from whatif.importers.json_text import parse_json, shaped
from whatif.importers.text import read_text, reading, refuse
from whatif.schema.toml import shown_path
from whatif.schema.toml_text import file_text

_LARGEST: Final = 2**20
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "layer_count": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model", "n_embed"),
    "head_count": ("num_attention_heads", "n_head", "n_heads"),
    "kv_head_count": ("num_key_value_heads", "num_kv_heads", "n_head_kv"),
    "head_size": ("head_dim",),
    "feed_forward_size": ("intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim"),
    "vocabulary_size": ("vocab_size",),
    "expert_count": ("n_routed_experts", "num_local_experts", "num_experts"),
    "active_expert_count": ("num_experts_per_tok", "moe_topk"),
    "shared_expert_count": ("n_shared_experts", "num_shared_experts"),
    "expert_size": ("moe_intermediate_size",),
    "plain_expert_size": ("intermediate_size",),
    "shared_expert_size": ("shared_expert_intermediate_size",),
    "leading_dense_count": ("first_k_dense_replace",),
    "expert_interval": ("decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step"),
    "query_rank": ("q_lora_rank",),
    "kv_rank": ("kv_lora_rank",),
    "rotary_size": ("qk_rope_head_dim",),
    "value_size": ("v_head_dim",),
    "window": ("sliding_window",),
}
"""Names of a number in files of several programs, by the key of a transformer.

Other sizes of experts: `plain_expert_size` where no other is stated, `shared_expert_size` that of all shared ones.
"""
_REQUIRED: Final = ("layer_count", "hidden_size", "head_count", "vocabulary_size")
_LATENT: Final = ("query_rank", "kv_rank", "rotary_size", "value_size")
_EXPERTS: Final = tuple(key for key in _KEYS if "expert" in key or key == "leading_dense_count")
_PLAIN: Final = ("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu", "relu2")
"""Activations without a gate."""
_ACTIVATION: Final = ("hidden_act", "activation_function", "activation")
_UNSTATED: Final = {"falcon": "gelu", "bloom": "gelu", "mpt": "gelu", "gpt_neox": "gelu"}
"""Activations of models whose files may state none; a gate is assumed for all others."""
_GATED: Final = "gemma"
"""Beginning of the types of models that have a gate with any activation."""
_TIED: Final = ("gpt2", "gpt_neo", "gpt_bigcode", "opt", "bloom", "mpt", "gemma", "gemma2", "gemma3_text")
"""Types of models that have one matrix of embeddings unless their files state two."""
_USUAL_RATIO: Final = 4
"""Inner elements of a block without a gate over the hidden size, where a file states none, as in GPT-2 and Falcon."""


def read_model_config(path: Path) -> dict[str, Any]:
    """Values of a transformer, from a configuration file. Raise `InvalidFileError` for one that lacks its shape."""
    with reading(path, "a configuration of a transformer"):
        return _read(path, shown_path(path))


def encoder_warnings(path: Path) -> tuple[str, ...]:
    """Warning about a configuration of a model that has an encoder; empty for a decoder."""
    config = _config(path, shown_path(path))
    kind = str(config.get("model_type"))[:80]
    encodes = ("bert" in kind or kind == "electra") and config.get("is_decoder") is not True
    if not encodes and config.get("is_encoder_decoder") is not True:
        return ()
    return (f"warning: {shown_path(path)}: `{kind}` has an encoder; it is read as a decoder of the same sizes",)


def is_model_config(path: Path) -> bool:
    """Whether a file states two or more of the sizes that every transformer has, valid or not, or one and a type."""
    if path.suffix != ".json":
        return False
    config = _config(path, shown_path(path))
    return sum(any(name in config for name in _KEYS[key]) for key in _REQUIRED) + ("model_type" in config) > 1


def _read(path: Path, file: str) -> dict[str, Any]:
    config = _config(path, file)
    found = {key: number for key in _KEYS if (number := _number(config, key, file)) is not None}
    # Falcon states its heads also where all queries share one; its new architecture does not share.
    if config.get("multi_query") is True and config.get("new_decoder_architecture") is not True:
        found["kv_head_count"] = 1
    if missing := [key for key in _REQUIRED if key not in found]:
        names = ", ".join(" or ".join(_KEYS[key]) for key in missing)
        raise refuse(file, f"no configuration of a transformer: no {names}{_misspelt(config, missing)}")
    if "head_size" not in found and "kv_rank" not in found and found["hidden_size"] % max(found["head_count"], 1):
        heads = f"{found['head_count']} heads do not divide {found['hidden_size']} elements, and there is no head_dim"
        raise refuse(file, f"no configuration of a transformer: {heads}")
    return {"name": _name(config, path), **dict(_values(config, found))}


def _misspelt(config: Mapping[str, Any], missing: list[str]) -> str:
    """Hint at a key of a file that is nearly the name of a missing number; empty without any."""
    known = {name for names in _KEYS.values() for name in names}
    sought = [name for key in missing for name in _KEYS[key]]
    hints = ((name, did_you_mean(name, sought)) for name in config if name not in known)
    return next((f"; `{name[:80]}`: {hint.removeprefix('; ')}" for name, hint in hints if hint), "")


def _config(path: Path, file: str) -> dict[str, Any]:
    """Values of a file, those of the language model of one with pictures included."""
    config = shaped(parse_json(read_text(path, _LARGEST), file), dict[str, Any], file)
    text = config.get("text_config")
    return {**config, **text} if isinstance(text, dict) else config


def model_part(values: Mapping[str, Any], path: Path) -> str:
    """Text of the part of a transformer."""
    sources = {"*": {"grade": "datasheet", "source": f"configuration file {path.name}"}}
    return file_text({"part": "transformer", **values, "sources": sources})


def _number(config: Mapping[str, Any], key: str, file: str) -> int | None:
    """Number under one of its names; None if the file has no such name, or null."""
    for name in _KEYS[key]:
        value = config.get(name)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**40:
                raise refuse(file, f"`{str(value)[:40]}` is not a count", key=name)
            return value
    return None


def _name(config: Mapping[str, Any], path: Path) -> str:
    """Name of the model: as the file states it, else that of its folder, else of the file."""
    stated = config.get("_name_or_path") or config.get("model_type")
    return str(stated)[:80] if isinstance(stated, str) else path.resolve().parent.name or path.stem


def _values(config: Mapping[str, Any], found: Mapping[str, int]) -> Iterator[tuple[str, Any]]:
    """Keys of a transformer that the file decides."""
    latent = "kv_rank" in found
    sparse = found.get("expert_count", 0) > 0
    for key, value in found.items():
        if key in _EXPERTS or (key in _LATENT and not latent) or key in ("window", "head_size", "kv_head_count"):
            continue
        yield key, value
    yield from _attention(config, found, latent)
    kind = str(config.get("model_type"))
    activation = next((str(config[name]) for name in _ACTIVATION if config.get(name)), _UNSTATED.get(kind, "silu"))
    if activation in _PLAIN and not kind.startswith(_GATED):
        yield "gated", False
        if "feed_forward_size" not in found and not sparse:
            yield "feed_forward_size", _USUAL_RATIO * found["hidden_size"]
    if config.get("tie_word_embeddings", kind in _TIED) is True:
        yield "tied_embeddings", True
    if sparse:
        yield from _experts(config, found).items()


def _attention(config: Mapping[str, Any], found: Mapping[str, int], latent: bool) -> Iterator[tuple[str, Any]]:
    """Keys of attention."""
    if latent:
        yield "attention", "latent"
        if "query_rank" not in found:
            yield "query_rank", 0
        nope = config.get("qk_nope_head_dim")
        yield "head_size", found.get("rotary_size", 0) + (nope if isinstance(nope, int) else 0)
        return
    yield from ((key, found[key]) for key in ("kv_head_count", "head_size") if found.get(key))
    kinds = config.get("layer_types")
    share = [kind == "sliding_attention" for kind in kinds] if isinstance(kinds, list) and kinds else [True]
    if found.get("window") and any(share) and config.get("use_sliding_window", True):
        yield from {
            "attention": "window",
            "window": found["window"],
            "windowed_fraction": sum(share) / len(share),
        }.items()


def _experts(config: Mapping[str, Any], found: Mapping[str, int]) -> dict[str, Any]:
    """Keys of experts; those of the same size as dense blocks state no size of their own.

    Llama 4 states another size of dense blocks, and no number of shared experts, of which it has one; Qwen states the
    size of all shared experts.
    """
    values: dict[str, Any] = {"blocks": "experts"} | {key: found[key] for key in _EXPERTS if found.get(key)}
    whole, plain = (values.pop(key, 0) for key in ("shared_expert_size", "plain_expert_size"))
    size = values.get("expert_size") or plain or found.get("feed_forward_size")
    if size:
        values["expert_size"] = size
    if "shared_expert_count" not in values and whole and size:
        values["shared_expert_count"] = -(-whole // size)
    if str(config.get("model_type")).startswith("llama4"):
        values["shared_expert_count"] = 1
    return values
