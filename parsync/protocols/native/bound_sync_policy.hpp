// Sync policies between Python and native code. The built-in ones are native, with classes in
// Python (bind_sync.cpp); native code asks one of a user's as a PythonSyncPolicy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <utility>

#include "shared_state/native/bound_fields.hpp"
#include "sync_policy.hpp"

namespace agora {

// A CheckedSyncPolicy (parsync/protocols/optimistic/sync/checked.py), which throws the error of a
// policy that breaks its contract. Used only while the interpreter's lock is held.
class PythonSyncPolicy final : public SyncPolicy {
 public:
  explicit PythonSyncPolicy(nanobind::object policy)
      : policy_(std::move(policy)),
        due_us_(policy_.attr("due_us")),
        partitions_(policy_.attr("partitions")),
        latest_(policy_.attr("latest")),
        at_every_attempt_(
            BoundValue<bool>::from(policy_.attr("at_every_attempt"), "at_every_attempt")),
        retry_us_(BoundValue<std::optional<int64_t>>::from(policy_.attr("retry_us"), "retry_us")),
        wants_feedback_(BoundValue<bool>::from(policy_.attr("wants_feedback"), "wants_feedback")) {}

  bool at_every_attempt() const override { return at_every_attempt_; }
  std::optional<int64_t> retry_us() const override { return retry_us_; }
  bool wants_feedback() const override { return wants_feedback_; }

  std::optional<int64_t> due_us(int64_t k) override {
    return BoundValue<std::optional<int64_t>>::from(due_us_(k), "due_us");
  }
  SharedColumn<int32_t> partitions(int64_t k) override {
    return BoundValue<SharedColumn<int32_t>>::from(partitions_(k), "partitions");
  }
  std::optional<int64_t> latest(int64_t now_us) override {
    return BoundValue<std::optional<int64_t>>::from(latest_(now_us), "latest");
  }

  void observe(const SyncFeedback& feedback) override {
    static const nanobind::handle made_of =
        nanobind::object(nanobind::module_::import_("parsync.protocols.optimistic.sync.policy")
                             .attr("SyncFeedback"))
            .release();
    policy_.attr("observe")(made_of(feedback.now_us, array_of(feedback.claims),
                                    array_of(feedback.conflicts), array_of(feedback.rows_changed),
                                    feedback.delay_us, feedback.queued,
                                    array_of(feedback.used_permille)));
  }

 private:
  const nanobind::object policy_;
  const nanobind::object due_us_, partitions_, latest_;  // its methods, looked up once
  // do not change during a run
  const bool at_every_attempt_;
  const std::optional<int64_t> retry_us_;
  const bool wants_feedback_;
};

// What make_checked_policy (checked.py) returned, as native code asks it: a native policy itself,
// which calls nothing of Python, else a PythonSyncPolicy. Keeps the Python object alive.
inline std::shared_ptr<SyncPolicy> sync_policy_from(nanobind::handle policy) {
  std::shared_ptr<SyncPolicy> native;
  if (nanobind::try_cast(policy, native, false) && native) return native;
  return std::make_shared<PythonSyncPolicy>(nanobind::borrow(policy));
}

}  // namespace agora
