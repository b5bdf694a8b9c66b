"""Documentation of the action plugin weaklink.cluster.apply; all of the work is done there."""

DOCUMENTATION = r"""
module: apply
short_description: Bring one area of a node to its desired state
description:
  - Observes the node, plans, changes what differs, and looks again.
  - The plan is the same in check mode and in the real run, so that what check mode and diff mode say is what happens.
  - The program runs on the node with the Python standard library alone; it is staged by content hash below
    C(/var/cache/weaklink), which is not reported as a change.
author: weaklink
options:
  area:
    description: What to look after.
    type: str
    required: true
    choices: [accounts, database, files, install, keys, mounts, nccl, networks, rdma, verify]
  desired:
    description: The desired state; its form depends on the area.
    type: dict
    required: true
  allow_disruptive:
    description: Whether changes that jobs can feel may be made while jobs run on the node.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Predicts exactly what the next run changes.
  diff_mode:
    support: full
    description: Shows unified diffs of files and before and after of everything else; never a secret.
"""

EXAMPLES = r"""
- name: Own directory
  weaklink.cluster.apply:
    area: files
    desired:
      directories:
        - {path: /etc/weaklink, mode: "0755"}
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: always
  type: list
  elements: dict
pending:
  description: Disruptive changes that wait because jobs run on the node; the task fails and says so.
  returned: always
  type: list
  elements: dict
facts:
  description: What the area has to tell beyond changes.
  returned: always
  type: dict
"""
