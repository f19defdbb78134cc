"""The text of a run while it is written: that of all its steps, and what belongs to one request or one step."""

from gateway.messages import PARAGRAPH
from gateway.runs.context import RunOutput


class AnswerText:
    """Appends to a run's text. A resumed run begins with the text that it sent to earlier requests."""

    def __init__(self, output: RunOutput) -> None:
        self._output = output
        self._recorded = len(output.text)  # length of the text that output.messages already contains
        self._request_start = len(output.text)

    @property
    def of_request(self) -> str:
        """The text of this request."""
        return self._output.text[self._request_start :]

    @property
    def unrecorded(self) -> str:
        """The text of the current step."""
        return self._output.text[self._recorded :]

    def step_recorded(self) -> None:
        """Note that the messages now contain the text of the step."""
        self._recorded = len(self._output.text)

    def append(self, text: str) -> str:
        """Append a piece of a step's text and return what to send. The texts of steps become separate paragraphs."""
        before, gap = self._output.text, ""
        if text and before and len(before) == self._recorded and not (before[-1].isspace() or text[0].isspace()):
            gap = PARAGRAPH
            self._recorded += len(gap)
        self._output.text += gap + text
        if len(before) == self._request_start:  # the client's text does not begin with the gap
            self._request_start += len(gap)
            return text
        return gap + text
