"""How often something is traced."""


def counted(agent, method, monkeypatch):
    """Counts calls of a method, which are those of tracing."""
    calls = []
    original = getattr(agent, method)

    def count(*arguments):
        calls.append(method)
        return original(*arguments)

    monkeypatch.setattr(agent, method, count)
    return calls
