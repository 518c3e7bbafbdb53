"""Names and synonyms of commands for the palette: words that a user may type to find them.

A command is named by the label of its key, `Undo` for `undo`. `_NAMES` has the names of those whose label is too short
away from the footer, by binding id; `_SYNONYMS` has other words for a command, by its name in small letters.
"""

from __future__ import annotations

from typing import Final

from textual.binding import Binding

_NAMES: Final = {
    "screen.pin": "Set baseline",
    "screen.tree": "Show parameters",
    "screen.message": "Whole message",
    "screen.stop": "Stop",
    "app.copy_command": "Copy command",
    "parameter.edit": "Edit value",
    "parameter.less": "Decrease",
    "parameter.more": "Increase",
    "parameter.much_less": "Decrease a lot",
    "parameter.much_more": "Increase a lot",
    "parameter.revert": "Revert value",
    "parameter.fold": "Fold table",
    "parameter.range": "Sweep range",
    "parameter.also_range": "Add axis with range",
    "parameter.seek": "Seek target",
    "parameter.find": "Find parameter",
    "explore.next_curve": "Next result",
    "explore.last_curve": "Previous result",
    "explore.y_scale": "Log scale of y",
    "explore.x_scale": "Log scale of x",
    "phase.form": "Edit the phase as a form",
    "compare.sort": "Sort machines",
    "compare.turn": "Reverse order",
    "compare.mark": "Mark machine",
    "compare.against": "Reference machine",
    "compare.next_curve": "Next result",
    "why.next_result": "Next result",
    "why.last_result": "Previous result",
    "roofline.table": "Table of kernels",
    "decide.question": "Next question",
    "decide.result": "Next result",
    "decide.last_result": "Previous result",
    "fit.open": "Read measurements",
    "fit.write": "Write platform",
    "runs.open": "Read runs",
    "runs.pin": "Set baseline model",
    "profile.open": "Read profile",
    "study.open": "Open study",
    "study.edit": "Change value of the study",
    "study.view": "Next table of the study",
    "study.save": "Save study",
    "study.reset": "Reset study",
    "files.copy": "Duplicate file",
}

_SYNONYMS: Final = {
    "undo": "step back, revert",
    "redo": "do again, repeat",
    "save": "write, store",
    "save as": "write to, another file, rename",
    "export": "csv, svg, png, picture, image, figure, save, data",
    "screenshot": "svg, picture, image, export",
    "copy command": "clipboard, command line, cli",
    "copy toml": "clipboard, patch, edits",
    "platform": "machine, system, cluster, computer",
    "report": "html, export, document",
    "journal": "log, history, commands, replay, export",
    "quit": "exit, close, end, leave, bye",
    "reset": "revert, discard, restore, original, defaults",
    "revert value": "reset, restore, default, original",
    "set baseline": "pin, compare, reference, before",
    "show parameters": "hide, tree, panel, inputs",
    "marker": "braille, ascii, blocks, dots, pixels, graphics, sixel, kitty",
    "help": "keys, explain, manual, shortcuts",
    "stop": "cancel, interrupt, abort, clear",
    "theme": "colours, colors, dark, light, appearance",
    "edit value": "change, set, type, modify",
    "sweep": "vary, scan, range, plot over",
    "add axis": "second parameter, sweep also, 2d",
    "seek target": "goal, threshold, solve, meet, inverse",
    "best": "minimise, minimum, minimize, optimum, optimise, optimize, fastest, maximum, maximise, maximize",
    "worst": "opposite, slowest, least",
    "editor": "open in editor, vim, emacs, toml, file, external",
    "add phase": "new phase, insert, kernel, builder",
    "edit the phase as a form": "fields, keys, optional, all values, dialog",
    "find parameter": "search, filter, look up",
    "bands": "uncertainty, band, error bars, interval, samples, monte carlo",
    "spread": "uncertainty, vary assumed values",
    "samples": "uncertainty, band, monte carlo",
    "log scale of y": "logarithmic, linear scale, axis",
    "log scale of x": "logarithmic, linear scale, axis",
    "heat map": "contour, two parameters, 2d, colour map",
    "table": "numbers, values, csv, data",
    "breakdown": "phases, categories, parts, bars",
    "new scenario": "create, template, add, first run, own machine, guided, builder",
    "new": "create, template, add",
    "bottlenecks": "ladder, what would help, limit",
    "scaling": "strong, weak, speedup, efficiency, nodes",
    "machines": "platforms, procurement, best machine, ranking",
    "layout": "decomposition, mapping, placement",
    "pareto": "trade-off, energy, cost, front, minimum",
    "budget": "power, money, price",
    "uncertain": "uncertainty, sensitivity, measure",
    "full screen": "zoom panel, enlarge, maximize",
}


def command_name(binding: Binding) -> str:
    """Name of a command: its own, else the label of its key, else what it does."""
    label = binding.description or binding.tooltip
    return _NAMES.get(str(binding.id)) or label[:1].upper() + label[1:]


def synonyms(name: str) -> str:
    """Other words for a command, separated by commas."""
    return _SYNONYMS.get(name.lower(), "")
