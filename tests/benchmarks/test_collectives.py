"""Collectives are found in a compiled step, each once, with its bytes."""

import pytest

from benchmarks import collectives
from benchmarks.collectives import Array, Collective

# Lines as the compilers for TPU and CPU write them, shortened.
HLO = """
HloModule jit_train_step, is_scheduled=true, num_partitions=256

%add (x: f32[], y: f32[]) -> f32[] {
  ROOT %sum = f32[]{:T(128)} add(%x, %y)
}

ENTRY %main {
  %all-reduce.1 = (f32[3,3,64,64]{3,2,1,0:T(8,128)}, /*index=1*/bf16[64]{0:T(128)(2,1)S(1)}) all-reduce(%a, %b), channel_id=1, replica_groups=[1,256]<=[256], use_global_device_ids=true, to_apply=%add, metadata={op_name="jit(train_step)/transpose/dot_general" source_line=3}
  %all-reduce-start.2 = f32[21,512]{1,0} all-reduce-start(%c), channel_id=2, replica_groups={{0,1,2,3},{4,5,6,7}}, to_apply=%add
  %all-reduce-done.2 = f32[21,512]{1,0} all-reduce-done(%all-reduce-start.2)
  %all-gather-start.3 = (f32[2,8]{1,0}, f32[4,8]{1,0}) all-gather-start(%d), channel_id=3, replica_groups=mesh['x'=4,'y'=2] {'y'}, dimensions={0}
  %all-gather-done.3 = f32[4,8]{1,0} all-gather-done(%all-gather-start.3)
  %reduce-scatter.4 = f32[16]{0} reduce-scatter(%e), replica_groups={{0,1}}, dimensions={0}, to_apply=%add
  %collective-permute.5 = pred[8]{0} collective-permute(%f), source_target_pairs={{0,1},{1,0}}
  %all-reduce.6 = s32[] all-reduce(%g), replica_groups={{0},{1}}, to_apply=%add
  ROOT %fusion = f32[21,512]{1,0} fusion(%all-reduce.1, %all-reduce-done.2), kind=kLoop, calls=%add
}
"""  # noqa: E501


def test_each_collective_is_found_once_with_its_group():
  found = collectives.find(HLO, devices=256)
  kinds = [(c.kind, c.group) for c in found]
  # The last all-reduce is between one device and itself.
  assert kinds == [
    ("all-reduce", 256),
    ("all-reduce", 4),
    ("all-gather", 2),
    ("reduce-scatter", 2),
    ("collective-permute", 2),
  ]
  assert found[0] == Collective(
    "all-reduce",
    (Array("f32", (3, 3, 64, 64)), Array("bf16", (64,))),
    256,
    "jit(train_step)/transpose/dot_general",
  )


def test_bytes_are_those_of_the_whole_array():
  assert collectives.by_kind(collectives.find(HLO, devices=256)) == {
    "all-reduce": {"number": 2, "bytes": 4 * 36864 + 2 * 64 + 4 * 21 * 512},
    "all-gather": {"number": 1, "bytes": 4 * 4 * 8},
    "reduce-scatter": {"number": 1, "bytes": 2 * 4 * 16},
    "collective-permute": {"number": 1, "bytes": 8},
  }


@pytest.mark.parametrize(
  ("spelling", "size"),
  [
    ("replica_groups={{0,2},{1,3}}", 2),
    ("replica_groups=[2,8]<=[16]", 8),
    ("replica_groups=[2,8]<=[8,2]T(1,0)", 8),
    ("replica_groups=mesh['axis_0'=16] {'axis_0'}", 16),
    ("replica_groups=mesh['a'=2,'b'=8] {'a','b'}", 16),
    ("replica_groups={}", 16),
    ("channel_id=1", 16),
  ],
)
def test_every_spelling_of_a_group_is_read(spelling, size):
  line = f"%x), channel_id=1, {spelling}, use_global_device_ids=true"
  assert collectives.group_size(line, devices=16) == size


def test_a_new_spelling_is_an_error_and_not_a_wrong_number():
  with pytest.raises(ValueError, match="unknown spelling"):
    collectives.group_size("replica_groups=<0,1>", devices=2)
