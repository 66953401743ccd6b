"""Running studies with the program parley."""

import json
import os
import subprocess
import tempfile

from ._results import Results


class ParleyError(RuntimeError):
    """The program said no: its message, and its exit code in ``code``.

    Codes are those of docs/reference/errors.md.
    """

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


def _program(program):
    return program or os.environ.get("PARLEY") or "parley"


def run(plan, out, program=None, progress=None):
    """Run a study in one process, and return its Results.

    plan      path of the plan; its ``local`` section names the data
    out       directory for the results. A run that was stopped there goes on,
              with the same bits; one that has ended is not computed again
    program   path of parley; else that of the variable PARLEY, else on PATH
    progress  called with each line of progress, such as ``print``

    Raises ParleyError with the program's own message. Interrupting Python
    stops the program; call again to continue.
    """
    command = [_program(program), "run", os.fspath(plan), "--out", os.fspath(out), "--json"]
    try:
        # Standard output goes to a file, so that nothing waits on a full pipe.
        with tempfile.TemporaryFile("w+", encoding="utf-8") as answer:
            with subprocess.Popen(
                command, stdout=answer, stderr=subprocess.PIPE, encoding="utf-8", errors="replace"
            ) as child:
                lines = []
                try:
                    for line in child.stderr:
                        lines.append(line)
                        if progress:
                            progress(line.rstrip("\n"))
                    code = child.wait()
                except BaseException:
                    child.terminate()
                    child.wait()
                    raise
            answer.seek(0)
            if code == 0:
                return Results(json.load(answer)["results"])
    except FileNotFoundError as e:
        if e.filename != command[0]:
            raise
        raise ParleyError(
            f"there is no program {command[0]!r}\n"
            "  hint: put parley on PATH, set the variable PARLEY, or give program=",
            127,
        ) from None
    said = "".join(lines)
    _, error, message = said.rpartition("parley: error: ")
    raise ParleyError((message if error else said).strip(), code)
