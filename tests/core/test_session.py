

def test_default_range_stays_within_the_domain():
    session = Session.start(Scenario.open("jacobi2d")).sweep("platform.site.power_usage_effectiveness", None)
    axis = session.grid.axes[0]
    assert axis.texts["platform.site.power_usage_effectiveness"].startswith("1 ..")
