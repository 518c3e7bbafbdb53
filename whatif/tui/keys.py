"""The keys of the pages: they work wherever the focus is on the desk, while their page is in sight."""

from __future__ import annotations

from typing import Final

from textual.binding import Binding


def _key(page: str, name: str, key: str, action: str, word: str, tooltip: str) -> Binding:
    """A key of a page; without a word it is not in the footer. `action`: a method `action_..` of the page."""
    method, _, arguments = action.partition("(")
    rest = f", {arguments}" if arguments else ")"
    call = f"page('{page}', '{method}'{rest}"
    return Binding(key, call, word, show=bool(word), tooltip=tooltip, id=f"{page}.{name}")


PAGE_KEYS: Final = (
    _key("explore", "next_curve", "y", "curve(1)", "curve", "Draw the next column or phase"),
    _key("explore", "last_curve", "Y", "curve(-1)", "", "Draw the previous column or phase"),
    _key("explore", "y_scale", "o", "turn('y_scale')", "", "y axis: automatic, linear, logarithmic"),
    _key("explore", "x_scale", "O", "turn('x_scale')", "", "x axis: automatic, linear, logarithmic"),
    _key("explore", "second", "m", "turn('second')", "", "Two swept leaves: curves or a heat map"),
    _key("explore", "swap", "x", "swap", "", "Exchange the two axes"),
    _key("explore", "bands", "B", "bands", "band", "Samples of the uncertain values: the band of the result, or none"),
    _key("explore", "spread", "percent_sign", "turn('spread')", "", "Let assumed values vary too, then data sheets"),
    _key("explore", "table", "v", "table", "table", "The plot, or the table of its numbers"),
    _key("explore", "parts", "p", "turn('breakdown')", "", "Break the time down by phase or by category"),
    _key("compare", "sort", "o", "sort(1)", "sort", "Sort by the next column"),
    _key("compare", "turn", "O", "reverse", "", "Sort the other way round"),
    _key("compare", "mark", "m", "mark", "mark", "Mark the machine, to draw only marked ones"),
    _key("compare", "against", "x", "against", "against", "Compare all with this machine"),
    _key("compare", "next_curve", "y", "curve(1)", "curve", "Draw the next column or phase"),
    _key("compare", "table", "v", "table", "table", "The plot, or the table of its numbers"),
    _key("roofline", "second", "x", "second(1)", "second GPU", "Lay the GPU of the next platform beside it"),
    _key("roofline", "table", "v", "table", "table", "The roofs, or the table of the kernels"),
    _key("messages", "phase", "y", "phase(1)", "phase", "The next phase that sends messages"),
    _key("messages", "plane", "x", "plane(1)", "plane", "The next plane of a grid with three dimensions"),
    _key("messages", "table", "v", "table", "table", "The curves, or the table of their numbers"),
    _key("messages", "half", "m", "half", "picture", "Curves or placement, where there is no room for both"),
    _key("timeline", "table", "v", "table", "table", "The bars, or the table of their times"),
    _key("why", "next_result", "y", "result(1)", "result", "Explain the next result"),
    _key("why", "last_result", "Y", "result(-1)", "", "Explain the previous result"),
    _key("why", "half", "m", "half", "leverage", "The tree or the elasticities, where there is no room for both"),
    _key("why", "table", "v", "table", "table", "The elasticities as bars, or as a table"),
    _key("fit", "open", "n", "open", "measurements", "Read measurements: files or folders of OSU, IMB, Netgauge .."),
    _key("fit", "columns", "N", "columns", "", "Say what the columns of CSV files hold"),
    _key("fit", "model", "y", "model", "model", "The next form of the time that the measurements allow"),
    _key("fit", "distance", "d", "turn('fit_distance')", "", "The next distance that the measurements are of"),
    _key("fit", "buffers", "m", "buffers", "", "The next kind of buffers that was measured"),
    _key("fit", "limit", "x", "limit", "limit", "Choose the other protocol limit"),
    _key("fit", "lower", "comma", "move(-1)", "lower", "Move the limit to the measured size below"),
    _key("fit", "higher", "full_stop", "move(1)", "higher", "Move the limit to the measured size above"),
    _key("fit", "automatic", "r", "automatic", "find", "Find the limits automatically again"),
    _key("fit", "accept", "a", "accept", "accept", "Take the fitted values into this study"),
    _key("fit", "write", "A", "write", "platform", "Write a platform with the fitted values, and take it"),
    _key("fit", "table", "v", "table", "table", "The picture, or the table of the points"),
    _key("files", "new", "n", "new", "new", "A new scenario from a template"),
    _key("files", "copy", "D", "duplicate", "duplicate", "Copy the file under another name"),
    _key("files", "difference", "d", "difference", "difference", "What differs between the open scenario and its file"),
    _key("ranks", "rank", "y", "rank(1)", "rank", "Choose the next rank: its messages are marked"),
    _key("ranks", "last_rank", "Y", "rank(-1)", "", "Choose the previous rank"),
    _key("ranks", "critical", "x", "critical(1)", "critical", "Choose the next rank on the critical path"),
    _key("ranks", "last_critical", "X", "critical(-1)", "", "Choose the previous rank on the critical path"),
    _key("ranks", "zoom_in", "plus,z", "zoom(0.5)", "zoom", "Look at half as long a part of the run"),
    _key("ranks", "zoom_out", "minus,Z", "zoom(2)", "", "Look at twice as long a part of the run"),
    _key("ranks", "whole", "home", "whole", "", "Look at the whole run"),
    _key("ranks", "earlier", "left,h", "pan(-0.25)", "", "Look at what was before"),
    _key("ranks", "later", "right,l", "pan(0.25)", "", "Look at what comes next"),
    _key("ranks", "up", "up,k", "scroll(-1)", "", "Bring the rank above into sight"),
    _key("ranks", "down", "down,j", "scroll(1)", "", "Bring the rank below into sight"),
    _key("ranks", "page_up", "pageup,ctrl+u", "page(-1)", "", "Go up by a screen of ranks"),
    _key("ranks", "page_down", "pagedown,ctrl+d", "page(1)", "", "Go down by a screen of ranks"),
    _key("ranks", "first", "g", "scroll(-1000000000)", "", "Go to the first ranks"),
    _key("ranks", "last", "G", "scroll(1000000000)", "", "Go to the last ranks"),
    _key("ranks", "half", "m", "half", "summary", "The picture, or what the run time is made of"),
    _key("ranks", "table", "v", "table", "table", "The picture, or the table of the times of each rank"),
    _key("ranks", "iterations", "I", "iterations", "more", "Play more iterations of a scenario"),
    _key("hpl", "part", "m", "part", "part", "The next part alone; after the last one, all that there is room for"),
    _key("hpl", "more", "plus,z", "panels(1)", "panels", "The time line of more panels"),
    _key("hpl", "fewer", "minus,Z", "panels(-1)", "", "The time line of fewer panels"),
    _key("hpl", "line", "x", "line(1)", "next row", "The time line of the next process row or column"),
    _key("hpl", "last_line", "X", "line(-1)", "", "The time line of the process row or column before"),
    _key("hpl", "across", "y", "across", "columns", "The time line of a process column, or of a process row"),
    _key("hpl", "up", "up,k", "scroll(-1)", "", "Bring the process above into sight"),
    _key("hpl", "down", "down,j", "scroll(1)", "", "Bring the process below into sight"),
    _key("hpl", "table", "v", "table", "table", "The curves of the rate, or the table of their numbers"),
    _key("profile", "open", "n", "open", "profile", "Read a profile: nvprof, Nsight Systems, rocprof or Kineto"),
    _key("profile", "side", "m", "turn('profile_side')", "side", "Projection, sizes of copies, streams or kernels"),
    _key("profile", "table", "v", "table", "table", "The picture, or the table of its numbers"),
    _key("profile", "latencies", "x", "latencies", "latencies", "The next machine whose latencies were measured"),
    _key("profile", "zoom_in", "plus,z", "zoom(0.5)", "zoom", "Look at half as long a part of the time line"),
    _key("profile", "zoom_out", "minus,Z", "zoom(2)", "", "Look at twice as long a part of the time line"),
    _key("profile", "whole", "home", "whole", "", "Look at the whole time line"),
    _key("profile", "earlier", "left,h", "pan(-0.25)", "", "Look at what was before"),
    _key("profile", "later", "right,l", "pan(0.25)", "", "Look at what comes next"),
)
