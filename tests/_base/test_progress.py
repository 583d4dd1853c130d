"""What is shown while a computation takes its time."""

import io

import pytest
from rich.console import Console

from steadytree._base.parallel import fan_out
from steadytree._base.progress import Progress, following, report_compiling


def double(item):
    return 2 * item


def terminal():
    return Console(file=io.StringIO(), force_terminal=True, width=120)


def test_a_step_a_bar_and_the_time_left_are_shown_in_a_terminal():
    console = terminal()
    with Progress(console=console) as progress:
        progress.update("fitting", 0.25)
        progress._timer.cancel()
        progress._start()  # as the timer does after 2 seconds
        progress.update("measuring", 0.5)
        progress._bar.refresh()
    shown = console.file.getvalue()
    assert "fitting" in shown
    assert "measuring" in shown
    assert "-:--:--" in shown or "0:00" in shown  # the time left


def test_nothing_is_shown_in_a_file_or_after_the_end():
    quiet = Console(file=io.StringIO())
    with Progress(console=quiet) as progress:
        progress._start()
    late = Progress(console=terminal())
    with late:
        pass
    late._start()
    assert quiet.file.getvalue() == late._console.file.getvalue() == ""


def test_compiling_is_said_beside_the_step():
    with Progress() as progress:
        progress.update("fitting")
        report_compiling("find_leaves")
        assert progress.text.startswith("fitting (first use: compiling find_leaves, loop 1;")
        report_compiling(None)
        assert progress.text == "fitting"
    report_compiling("after the end")  # heard by nobody


def test_a_kernel_says_that_it_is_compiled():
    from steadytree._base.jit import njit

    heard = []
    with Progress() as progress:
        progress.compiling = heard.append
        njit(lambda x: x + 1)(1.0)
    assert heard[-1] is None
    assert any(heard)


def test_a_function_hears_every_message_and_true_false_and_none_are_taken():
    heard = []
    with following(heard.append) as on_progress:
        on_progress("one", 0.5)
    assert heard == ["one"]
    for progress in (True, False, None):
        with following(progress) as on_progress:
            on_progress("two")
    with pytest.raises(TypeError, match="must be True, False, None or a function"):
        following("yes").__enter__()


def test_refits_are_counted():
    heard = []
    found = fan_out(double, [1, 2, 3], on_progress=lambda text, share: heard.append((text, share)))
    assert found == [2, 4, 6]
    assert heard[-1] == ("refit 3 of 3", 1.0)
