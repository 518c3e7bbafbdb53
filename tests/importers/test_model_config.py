"""Configuration files of model hubs as parts of transformers."""

from __future__ import annotations

import json

import pytest
import tomli
from numpy.testing import assert_allclose

import whatif
from tests.paths import DATA, ROOT
from tests.transformers.steps_at_hand import terms
from whatif.errors import InvalidFileError
from whatif.importers.model_config import read_model_config
from whatif.schema.toml_text import toml_value

FOLDER = DATA / "importers" / "models"
DENSE = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "vocab_size": 100,
    "intermediate_size": 256,
}


def written(folder, **config):
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


def model_terms(part, values):
    """Terms of the training of a model with imported values in place of those of a part."""
    return terms(
        part, shape="\n".join(f"{key} = {toml_value(value)}" for key, value in values.items() if key != "name")
    )


def test_the_configuration_of_deepseek_v3_is_its_shipped_part():
    found = tomli.loads(whatif.import_model(FOLDER / "deepseek_v3.json").to_toml())
    shipped = tomli.loads((ROOT / "platforms" / "parts" / "deepseek-v3.toml").read_text(encoding="utf-8"))
    # An interval of 1 is the default.
    assert (found.pop("expert_interval"), found.pop("format")) == (1, 1)
    for part in (found, shipped):
        del part["name"], part["sources"]
    assert found == shipped


def test_latent_attention_may_have_no_latent_vector_of_queries(tmp_path):
    """DeepSeek V2 Lite: `q_lora_rank` is null; 15.7 and 2.4 billion parameters in all and of a token (its card)."""
    sizes = {
        "num_hidden_layers": 27, "hidden_size": 2048, "num_attention_heads": 16, "vocab_size": 102400,
        "intermediate_size": 10944, "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 64, "num_experts_per_tok": 6,
        "n_shared_experts": 2, "moe_intermediate_size": 1408, "first_k_dense_replace": 1,
    }  # fmt: skip
    values = read_model_config(written(tmp_path, **sizes))
    assert values["query_rank"] == 0
    found = model_terms("deepseek-v3", values)
    queries, latent = 2048 * 16 * 192, 2048 * 576 + 512 * 16 * 256 + 16 * 128 * 2048
    assert float(found["model.attention_parameters"]) == queries + latent
    assert_allclose(found["model.parameters"], 15.7e9, rtol=0.002, atol=0)
    assert_allclose(found["model.token_parameters"], 2.4e9, rtol=0.06, atol=0)


def test_the_configuration_of_llama_4_maverick_is_its_shipped_part(tmp_path):
    """Every second layer has experts, of another size than dense blocks, and a shared one that no key states."""
    text = {
        "model_type": "llama4_text", "num_hidden_layers": 48, "hidden_size": 5120, "num_attention_heads": 40,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
        "num_local_experts": 128, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "vocab_size": 202048,
    }  # fmt: skip
    values = read_model_config(written(tmp_path, model_type="llama4", text_config=text))
    shipped = tomli.loads((ROOT / "platforms" / "parts" / "llama-4-maverick.toml").read_text(encoding="utf-8"))
    del values["name"], values["head_size"], shipped["name"], shipped["part"], shipped["sources"]
    assert values == shipped


def test_shared_experts_may_be_stated_by_their_size(tmp_path):
    """Qwen2 57B-A14B: one shared expert as large as eight; 57.4 billion parameters (its card)."""
    sizes = {
        "model_type": "qwen2_moe", "num_hidden_layers": 28, "hidden_size": 3584, "num_attention_heads": 28,
        "num_key_value_heads": 4, "intermediate_size": 18944, "moe_intermediate_size": 2560, "num_experts": 64,
        "shared_expert_intermediate_size": 20480, "num_experts_per_tok": 8, "vocab_size": 151936,
    }  # fmt: skip
    values = read_model_config(written(tmp_path, **sizes))
    assert values["shared_expert_count"] == 8
    assert_allclose(model_terms("llama-3-8b", values)["model.parameters"], 57.4e9, rtol=0.001, atol=0)


def test_a_small_dense_model_with_wide_heads(tmp_path, monkeypatch):
    values = read_model_config(FOLDER / "minimind_qwen3.json")
    assert values == {
        "name": "qwen3", "layer_count": 8, "hidden_size": 768, "head_count": 8, "kv_head_count": 4, "head_size": 96,
        "feed_forward_size": 2432, "vocabulary_size": 6400, "tied_embeddings": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("stated", "plain"),
    [
        ({"hidden_act": "silu"}, False),
        ({"activation_function": "gelu_new"}, True),
        ({"activation": "gelu"}, True),
        ({"model_type": "falcon"}, True),
        ({"model_type": "falcon", "activation": None}, True),
        ({"model_type": "falcon", "activation": "silu"}, False),
        ({}, False),
    ],
)
def test_an_activation_without_a_gate_has_no_gate(stated, plain, tmp_path):
    assert (read_model_config(written(tmp_path, **DENSE, **stated)).get("gated") is False) == plain


# Parameters as published with the weights, without those of positions and norms.
PUBLISHED = {
    "gpt2": ({"n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257, "n_inner": None,
              "activation_function": "gelu_new"}, 124.4e6),
    "bloom": ({"n_layer": 70, "n_embed": 14336, "num_attention_heads": 112, "vocab_size": 250880}, 176.2e9),
    "mpt": ({"n_layers": 32, "d_model": 4096, "n_heads": 32, "vocab_size": 50432}, 6.65e9),
    "opt": ({"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "ffn_dim": 16384,
             "vocab_size": 50272, "activation_function": "relu"}, 6.66e9),
    "falcon": ({"num_hidden_layers": 32, "hidden_size": 4544, "num_attention_heads": 71, "multi_query": True,
                "vocab_size": 65024}, 7.217e9),
    "gemma": ({"num_hidden_layers": 28, "hidden_size": 3072, "num_attention_heads": 16, "num_key_value_heads": 16,
               "head_dim": 256, "intermediate_size": 24576, "vocab_size": 256000, "hidden_act": "gelu"}, 8.54e9),
    "llama": ({"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
               "intermediate_size": 14336, "vocab_size": 128256, "hidden_act": "silu"}, 8.03e9),
}  # fmt: skip


@pytest.mark.parametrize("kind", PUBLISHED)
def test_models_have_their_published_number_of_parameters(kind, tmp_path):
    config, published = PUBLISHED[kind]
    found = read_model_config(written(tmp_path, model_type=kind, **config))
    hidden, heads = found["hidden_size"], found["head_count"]
    size, kv_heads = found.get("head_size", hidden // heads), found.get("kv_head_count", heads)
    attention = 2 * hidden * size * (heads + kv_heads)
    blocks = (3 if found.get("gated", True) else 2) * hidden * found["feed_forward_size"]
    embeddings = (1 if found.get("tied_embeddings") else 2) * hidden * found["vocabulary_size"]
    assert found["layer_count"] * (attention + blocks) + embeddings == pytest.approx(published, rel=0.007)


def test_a_written_part_is_used_by_a_scenario(whatif_main, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, error = whatif_main("import", "model", str(FOLDER / "deepseek_v3.json"), "-o", "ours.toml")
    assert code == 0, error
    code, _, error = whatif_main("check", "ours.toml")
    assert code == 0, error
    plan = {"sequence_length": 4096, "global_batch": 8}
    lines = "\n".join(f"{key} = {value}" for key, value in plan.items())
    application = '[application]\nkind = "training"\nrank_count = 8\n[application.transformer]\nextends = "ours"\n'
    (tmp_path / "s.toml").write_text(f'platform = "dgx_h100"\n{application}[application.plan]\n{lines}\n')
    program = whatif.load(tmp_path / "s.toml").program
    assert program.parameters["application.transformer.expert_count"].value == 256
    assert float(terms("deepseek-v3")["model.parameters"]) > 6e11


@pytest.mark.parametrize(
    ("config", "values"),
    [
        ({**DENSE, "hidden_act": "gelu_new"}, {"gated": False}),
        ({**DENSE, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"]},
         {"attention": "window", "window": 128, "windowed_fraction": 0.5}),
        ({**DENSE, "num_local_experts": 8, "num_experts_per_tok": 2},
         {"blocks": "experts", "expert_count": 8, "active_expert_count": 2, "expert_size": 256}),
        ({**DENSE, "multi_query": True, "num_kv_heads": 4}, {"kv_head_count": 1}),
        ({**DENSE, "multi_query": True, "num_kv_heads": 2, "new_decoder_architecture": True}, {"kv_head_count": 2}),
        ({**DENSE, "multi_query": False, "num_kv_heads": 2}, {"kv_head_count": 2}),
        ({"text_config": DENSE, "vision_config": {}}, {"layer_count": 2}),
    ],
)  # fmt: skip
def test_kinds_of_blocks_and_attention(tmp_path, config, values):
    found = read_model_config(written(tmp_path, **config))
    assert {key: found[key] for key in values} == values


@pytest.mark.parametrize(
    ("config", "count"),
    [
        ({"model_type": "llama"}, 0),
        ({"model_type": "bert"}, 1),
        ({"model_type": "bert-generation", "is_decoder": True}, 0),
        ({"model_type": "xlm-roberta"}, 1),
        ({"model_type": "t5", "is_encoder_decoder": True}, 1),
    ],
)
def test_a_model_with_an_encoder_is_warned_about(tmp_path, config, count):
    found = whatif.import_model(written(tmp_path, **DENSE, **config))
    assert len(found.notes) == count
    assert all(f"`{config['model_type']}` has an encoder" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[1]", "Input should be a valid dictionary"),
        ("{}", "no configuration of a transformer: no num_hidden_layers or n_layer or num_layers or n_layers, "),
        ('{"num_hidden_layers": -1}', "`-1` is not a count"),
        ('{"num_hidden_layers": true}', "`True` is not a count"),
        ('{"hidden_size": 1e400}', "`inf` is not a count"),
        ("[" * 100_000, "not JSON"),
        # From Python 3.13 on, the parser says it itself.
        ('{"hidden_size": 8,\n "vocab_size": 100,}', r":2:\d+: not JSON: .* comma .*before (`}`|end of object)$"),
        ('{"hidden_size": 8,\n "vocab', r":2:\d+: not JSON: .*; is the file cut off\?$"),
        ('{"hidden_size" 8}', "not JSON: Expecting ':' delimiter$"),
    ],
)
def test_files_that_are_no_configuration(tmp_path, text, message):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(InvalidFileError, match=message):
        whatif.import_model(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_attention_heads": None}, "no num_attention_heads or n_head"),
        ({"vocab_size": "100"}, "`100` is not a count"),
        ({"num_attention_heads": 5}, "5 heads do not divide 64 elements, and there is no head_dim"),
    ],
)
def test_a_damaged_configuration_is_not_said_to_hold_runs(whatif_main, tmp_path, change, message):
    path = written(tmp_path, **DENSE | change)
    for words in (["model", path, "-o", "part.toml"], [path]):
        code, _, errors = whatif_main("import", *words)
        assert (code, message in errors, "import runs" in errors) == (3, True, False)
