"""launch/k8s.yaml: what the Kubernetes schema asks for, and what it misses."""

import pathlib
import re

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
FILE = ROOT / "launch" / "k8s.yaml"
VERSIONS = ("1.31", "1.34")  # podFailurePolicy is stable since 1.31.


def documents() -> dict[str, dict]:
  found = list(yaml.safe_load_all(FILE.read_text()))
  assert [d["kind"] for d in found] == ["Service", "Job"]
  return {d["kind"]: d for d in found}


def job() -> tuple[str, dict, dict, dict]:
  """The job's name, its spec, its pods' spec and their only container."""
  document = documents()["Job"]
  pod = document["spec"]["template"]["spec"]
  (container,) = pod["containers"]
  return document["metadata"]["name"], document["spec"], pod, container


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["Service", "Job"])
def test_the_schema_allows_it(kind, version):
  validator = pytest.importorskip("kubernetes_validate")
  validator.validate(documents()[kind], version, strict=True)


def test_every_pod_is_one_process_that_is_never_restarted_in_place():
  _, spec, pod, _ = job()
  assert spec["completionMode"] == "Indexed"
  assert spec["completions"] == spec["parallelism"]
  assert pod["restartPolicy"] == "Never"
  assert pod["terminationGracePeriodSeconds"] >= 60


def test_a_preempted_pod_is_no_failure_and_a_wrong_setting_is_final():
  rules = job()[1]["podFailurePolicy"]["rules"]
  codes = {
    code: rule["action"]
    for rule in rules
    for code in rule.get("onExitCodes", {}).get("values", [])
  }
  assert codes == {75: "Ignore", 2: "FailJob"}
  assert {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
  } in rules


def test_pods_find_each_other_by_name():
  name, _, pod, _ = job()
  service = documents()["Service"]
  assert service["metadata"]["name"] == pod["subdomain"]
  assert service["spec"]["clusterIP"] == "None"
  assert service["spec"]["publishNotReadyAddresses"] is True
  assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": name}


def test_processes_get_the_variables_that_the_code_reads():
  name, spec, pod, container = job()
  env = {e["name"]: e for e in container["env"]}
  code = (ROOT / "comen_jax" / "process" / "distributed.py").read_text()
  assert set(env) == set(re.findall(r"COMEN_[A-Z_]+", code))
  address, port = env["COMEN_COORDINATOR"]["value"].split(":")
  assert address == f"{name}-0.{pod['subdomain']}"
  assert 1024 < int(port) < 32768
  assert env["COMEN_NUM_PROCESSES"]["value"] == str(spec["completions"])
  path = env["COMEN_PROCESS_ID"]["valueFrom"]["fieldRef"]["fieldPath"]
  annotation = "batch.kubernetes.io/job-completion-index"
  assert path == f"metadata.annotations['{annotation}']"


def test_what_is_mounted_is_there_and_holds_the_run():
  _, _, pod, container = job()
  volumes = {v["name"] for v in pod["volumes"]}
  mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
  assert set(mounts) == volumes
  workdir = container["command"][container["command"].index("--workdir") + 1]
  assert workdir.startswith(tuple(f"{m}/" for m in mounts.values()))
