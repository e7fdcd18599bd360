#include "events.hpp"

namespace agora {

void SyncReply::encode_for_log(EventEncoder&, std::string& out) const {
  msgpack::put_array_head(out, 2);
  msgpack::put_integer(out, epoch);
  msgpack::put_array_head(out, deltas.size());
  for (const PartitionDeltaPtr& delta : deltas) {
    msgpack::put_array_head(out, 3);
    msgpack::put_integer(out, delta->partition);
    msgpack::put_integer(out, delta->from_version);
    msgpack::put_integer(out, delta->to_version);
  }
}

}  // namespace agora
