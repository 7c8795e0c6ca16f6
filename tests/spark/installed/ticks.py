"""An event-time type as a user's own package has it: seconds behind a T.

>>> read("T1.5")
1500000
"""


def read(text: str) -> int:
    """The instant of a text such as T12.5."""
    return round(float(text[1:]) * 1_000_000)
