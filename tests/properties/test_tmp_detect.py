import time, pytest
from hypothesis import Phase, settings, HealthCheck
from hypothesis.stateful import run_state_machine_as_test
from properties.database import Database
from properties.mutants import EDITED
import properties.test_engine as t
@pytest.mark.timeout(6000)
def test_detect(dsn):
    d = Database(dsn)
    st = settings(settings.get_profile("ci"), phases=[Phase.generate], report_multiple_bugs=False)
    for m in EDITED:
        b = time.perf_counter()
        n = [0]
        def f():
            n[0] += 1
            return t.Engine(d)
        with m.installed(d.person):
            try:
                run_state_machine_as_test(f, settings=st)
                r = "SURVIVES"
            except BaseException as e:
                r = "caught " + type(e).__name__
        for k in list(d.workers):
            pass
        print(f"{m.name:45} {r:30} examples {n[0]} {time.perf_counter()-b:.1f}s", flush=True)
    d.close()
