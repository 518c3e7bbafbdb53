"""Inconsistent models: key-value heads that do not divide the query heads, and more active experts than experts."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("scenario", ["llama_training", "llama_serving"])
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (("kv_head_count=7",), "application.transformer.kv_head_count does not divide application.transformer.head"),
        (
            ("extends=mixtral-8x7b", "active_expert_count=9"),
            "application.transformer.active_expert_count exceeds application.transformer.expert_count; 9 needed, 8",
        ),
        (
            ("extends=mixtral-8x7b", "leading_dense_count=33"),
            "application.transformer.leading_dense_count exceeds application.transformer.layer_count; 33 needed, 32",
        ),
        (
            ("extends=mixtral-8x7b", "expert_interval=2"),
            "application.transformer.feed_forward_size is missing, which layers without experts need",
        ),
    ],
)
def test_inconsistent_models_are_infeasible(whatif_main, scenario, settings, reason):
    options = [word for setting in settings for word in ("--set", f"application.transformer.{setting}")]
    code, out, err = whatif_main("run", scenario, "--point", *options)
    assert code == 4, out
    assert f"infeasible: {reason}" in err
