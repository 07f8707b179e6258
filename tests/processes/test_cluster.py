"""Tasks on a cluster: lost ones are handed out again, errors of ours come back, what never comes is refused."""

from types import SimpleNamespace

import pytest

from dicot.core.errors import InputError
from dicot.core.processes.cluster import Cluster, Share


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause):
        super().__init__("a long traceback")
        self.cause = cause


class Ray:
    """As much of Ray as is used, in this process. `dies` says which (task, number of the process) is lost."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, room=2, dies=lambda task, process: False):
        self.room, self.dies, self.made, self.running, self.asked = room, dies, 0, set(), {}

    def cluster_resources(self):
        return {"CPU": self.room}

    def nodes(self):
        return [{"Alive": True, "Resources": {"CPU": self.room}}, {"Alive": False, "Resources": {"CPU": 9, "GPU": 9}}]

    def remote(self, kind):
        ray = self

        def make(*args):
            ray.made += 1
            return Process(ray, kind(*args), ray.made)

        def options(**asked):
            ray.asked = asked
            return SimpleNamespace(remote=make)

        return SimpleNamespace(options=options)

    def wait(self, streams, num_returns):
        for stream in streams:
            stream.start()
        ready = [stream for stream in streams if stream.process.number in self.running]
        assert ready, "nothing that is waited for can ever start"
        return ready[:1], []

    def get(self, answer):
        if isinstance(answer, Exception):
            raise answer
        return answer

    def kill(self, process):
        self.running.discard(process.number)


class Process:
    """An actor. It waits where all room is taken."""

    def __init__(self, ray, actor, number):
        self.ray, self.actor, self.number = ray, actor, number
        self.do = SimpleNamespace(options=lambda num_returns: SimpleNamespace(remote=self._stream))

    def _stream(self, task):
        return Stream(self, task)


class Stream:
    def __init__(self, process, task):
        self.process, self.task, self.answers = process, task, None
        self.start()

    def start(self):
        running = self.process.ray.running
        if self.process.number not in running and len(running) < self.process.ray.room:
            running.add(self.process.number)

    def __next__(self):
        if self.process.ray.dies(self.task, self.process.number):
            return RayError("the actor died")
        self.answers = self.answers or self.process.actor.do(self.task)
        try:
            return next(self.answers)
        except StopIteration:
            raise
        except Exception as error:
            return RayTaskError(error)


def twice():
    def work(task):
        if task == "bad":
            raise InputError("bad is no task.")
        yield task
        yield task

    return work


def test_every_task_is_answered_and_a_lost_one_again():
    ray = Ray(dies=lambda task, process: process == 2)
    answers = list(Cluster(ray).answers(twice, range(6), Share()))
    assert sorted(answers) == sorted([(n, n) for n in range(6)] * 2)
    assert ray.made == 3 and not ray.running  # one was lost, and all are ended
    one_at_a_time = Ray()
    assert len(list(Cluster(one_at_a_time).answers(twice, range(6), Share(), most=1))) == 12
    assert one_at_a_time.made == 1


def test_only_what_is_left_of_a_lost_task_is_done_again():
    left, told = {"a": 2, "b": 0}, []
    ray = Ray(room=1, dies=lambda task, process: process == 1 and bool(told))

    def some():
        def work(count):
            told.append(count)
            yield from range(count)

        return work

    for task, _ in Cluster(ray).answers(some, left, Share(), payload=lambda task: left[task] or None):
        left[task] -= 1
    assert told == [2, 1] and left == {"a": 0, "b": 0}


def test_an_error_of_ours_comes_back_as_it_was_and_ends_the_run():
    ray = Ray()
    with pytest.raises(InputError, match="^bad is no task.$"):
        list(Cluster(ray).answers(twice, [1, 2, "bad", 3], Share()))
    assert not ray.running


def test_processes_have_their_threads_and_see_no_gpu_of_others(monkeypatch):
    monkeypatch.setenv("DICOT_DATA", "/some/where")
    ray = Ray()
    list(Cluster(ray).answers(twice, [1], Share(2)))
    said = ray.asked["runtime_env"]["env_vars"]
    assert said["OMP_NUM_THREADS"] == "2" and said["CUDA_VISIBLE_DEVICES"] == "" and said["DICOT_DATA"] == "/some/where"
    list(Cluster(ray).answers(twice, [1], Share(1, 0.25)))
    assert "CUDA_VISIBLE_DEVICES" not in ray.asked["runtime_env"]["env_vars"] and ray.asked["num_gpus"] == 0.25
