"""Suggestions of steppers for a system that the chosen one does not integrate."""

# By class name, the most special first, so that nothing needs to be imported to say it.
_MOVED_BY = {
    "Beam": "SymmetricPoissonIntegrator, GeneralizedAlpha, EnergyMomentum or VariationalIntegrator",
    "Assembly": "GeneralizedAlpha, EnergyMomentum or VariationalIntegrator",
    "HamiltonianSystem": "StormerVerlet, ImplicitMidpoint or GaussLegendre(2)",
    "PoissonSystem": "ImplicitMidpoint, DiscreteGradient or GaussLegendre(2)",
    "ConstrainedSystem": "RATTLE",
    "LagrangianSystem": "DiscreteLagrangian",
    "NonholonomicSystem": "NonholonomicMidpoint",
    "SecondOrderSystem": "GeneralizedAlpha",
    "RigidBodies": "GeneralizedAlpha",
    "Motion": "GeneralizedAlpha",
}


def wrong_system(method: type, system: object) -> TypeError:
    """The error for a system of another kind."""
    stepper, kind = method.__name__, method.moves.__name__
    needs = method.needs or f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"
    if isinstance(system, type):
        return TypeError(
            f"system: {stepper} needs {needs}, not the class {system.__name__} itself: make one"
        )
    name = type(system).__name__
    kinds = [base.__name__ for base in type(system).__mro__ if base.__name__ in _MOVED_BY]
    if kinds:
        hint = f"; that is moved by {_MOVED_BY[kinds[0]]}"
    elif name in ("Function", "Form"):
        hint = "; state a system first, such as PoissonSystem(state, energy, bracket, pairing)"
    else:
        hint = ""
    return TypeError(f"system: {stepper} needs {needs}, not {name}{hint}")
