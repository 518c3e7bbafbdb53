"""Decisions of the page `decide`, with the question that each answers."""

from __future__ import annotations

from typing import Final

DECISIONS: Final = {
    "bottlenecks": "What would help: one part ideal, then the next one too",
    "why": "Why it differs from before, or from another machine",
    "uncertain": "Which uncertain value is worth measuring",
    "machines": "Which machine is best for this application",
    "scaling": "How far it scales, strong and weak",
    "layout": "Which decomposition and mapping is best",
    "pareto": "What time costs in energy, money or nodes",
    "budget": "What the power or the money of this machine buys elsewhere",
}
