"""What the tests that are going to run ask their fixtures for."""


def asked_for(request, fixture, **arguments):
    """Returns the combinations of arguments of a fixture's selected tests.

    A fixture that makes something for each of them in one go, in another
    process say, then makes nothing for tests that are left out.

    Args:
        request: pytest's, of the fixture, which is one of a module.
        fixture: str. Its name.
        **arguments: Names of the arguments, with what stands for each in
            tests that do not have it.

    Returns:
        list of tuples, without repetitions.
    """
    asked = {}
    for item in request.session.items:
        if item.path == request.path and fixture in item.fixturenames:
            own = item.callspec.params if hasattr(item, "callspec") else {}
            given = {**arguments, **own}
            asked[tuple(given[name] for name in arguments)] = None
    return list(asked)
