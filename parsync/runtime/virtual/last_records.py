"""The end of an arm in virtual time: what its participants still hold."""

from __future__ import annotations

from collections.abc import Mapping

from parsync.core.participant import Participant
from parsync.runtime.effects import RecordListener
from parsync.runtime.protocol_faults import ProtocolPart, blame


def hand_out_last_records(
    participants: Mapping[int, Participant],
    parts: Mapping[int, ProtocolPart],
    now_us: int,
    on_record: RecordListener,
    broken: bool,
) -> None:
    """Hand out the measurements that participants still hold, by address.

    Args:
        participants: By address.
        parts: Those of the participants that are of protocols which users brought.
        now_us: The end of the run.
        on_record: Called with every Record.
        broken: Whether the run has ended with an error. What then goes wrong in a protocol of a
            user follows from that error and is passed over.

    Raises:
        ProtocolBroken: A participant of a protocol that users brought raises.
    """
    for address in sorted(participants):
        participant = participants[address]
        try:
            for record in participant.finish(now_us):
                on_record(record)
        except Exception as error:
            part = parts.get(address)
            if broken and part is not None:
                continue
            blame(error, part, participant, None)
            raise
