"""Without pandas the command says what to install, before anything is trained."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("words", [["evaluate", "synthetic", "--steps", "1"], ["report", "ucr"]])
def test_the_error_comes_first_and_names_the_extra(words):
    code = "import sys; sys.modules['pandas'] = None; sys.argv = ['dicot', *sys.argv[1:]]; "
    code += "from dicot.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "dicot[report]" in done.stderr and "Traceback" not in done.stderr
    assert "to fit" not in done.stdout
