"""Commands as tests call them: in this process, by the words after ``COMMAND`` of the module."""

import json

import pytest

from discreet.cli.main import main


@pytest.fixture
def call(capsys, request):
    """Exit code, standard output and standard error of a command."""

    def answer(*arguments):
        code = main([str(each) for each in (*getattr(request.module, "COMMAND", ()), *arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return answer


@pytest.fixture
def refuses(call):
    """A call that must end with 2 and one line on standard error, which has these words."""

    def answer(*arguments, words):
        code, out, err = call(*arguments)
        assert (code, out) == (2, ""), out + err
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        for each in [words] if isinstance(words, str) else words:
            assert each in err, err
        return err

    return answer


@pytest.fixture
def document(call):
    """The one JSON object that a command prints with ``--json``."""

    def answer(*arguments, code=0):
        ended, out, err = call(*arguments, "--json")
        assert ended == code, out + err
        return json.loads(out)

    return answer


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
