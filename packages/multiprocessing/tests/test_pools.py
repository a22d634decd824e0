"""Pools: workers write to what the program handed in, whichever way it was."""

import mp_workers as workers
import pytest
import taeda_multiprocessing as mp

from taeda_registry.slots import tensor as tt

pytestmark = pytest.mark.usefixtures("nothing_left")

WAYS = {
    "apply": lambda pool, x: [pool.apply(workers.write_seven, (x[0],)) for _ in x],
    "apply_async": lambda pool, x: [pool.apply_async(workers.write_seven, kwds={"x": x[0]}).get()],
    "map": lambda pool, x: pool.map(workers.write_seven, x),
    "map_async": lambda pool, x: pool.map_async(workers.write_seven, (item for item in x)).get(),
    "starmap": lambda pool, x: pool.starmap(workers.write_seven, [(item,) for item in x]),
    "imap": lambda pool, x: list(pool.imap(workers.write_seven, x)),
    "imap_unordered": lambda pool, x: list(pool.imap_unordered(workers.write_seven, x)),
}


@pytest.mark.parametrize("way", WAYS)
def test_workers_write_to_the_tensors_of_the_program(way):
    with mp.get_context("fork").Pool(1) as pool:
        given = [tt.zeros(2, 2)]
        results = WAYS[way](pool, given)
        pool.close()
        pool.join()
    assert given[0].tolist() == [[7, 7], [7, 7]] and given[0].is_shared()
    assert [result.tolist() for result in results] == [[[8, 8], [8, 8]]]


def test_items_of_an_iterator_go_by_value():
    with mp.get_context("fork").Pool(1) as pool:
        given = tt.zeros(2)
        results = list(pool.imap(workers.write_seven, iter([given])))
        pool.close()
        pool.join()
    assert results[0].tolist() == [8, 8] and given.tolist() == [0, 0]


def test_pools_have_their_names():
    from taeda_multiprocessing.pool import Pool, ThreadPool

    with mp.Pool(1) as pool:
        assert isinstance(pool, Pool) and pool.map(abs, [-1, 2]) == [1, 2]
        pool.close()
        pool.join()
    with ThreadPool(1) as threads:
        assert threads.map(abs, [-3]) == [3]
