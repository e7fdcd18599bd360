// What tests share that drive native agents on a cell: a random workload with gangs, and events
// that nobody would send.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "check.hpp"
#include "hand_driven.hpp"
#include "parsync/core/native/events.hpp"
#include "parsync/core/native/queue_parts.hpp"
#include "schedulers/native/contract.hpp"
#include "schedulers/native/placer.hpp"

inline constexpr size_t kMachines = 9, kPartitions = 3, kPerBatch = 4;

// The workload and the cell, which all agents share. Every batch is a job; every fifth is a gang.
// Views and cells of one resource are narrow.
struct AgentSetting {
  static constexpr int64_t kLimit = 6;  // of each machine, in each resource

  const size_t tasks, resources;
  std::vector<int64_t> request, gang, job, submit_us, duration_us, offsets{0, 3, 6, 9};
  std::vector<int32_t> preference = std::vector<int32_t>(tasks, 0);
  std::vector<int8_t> task_class = std::vector<int8_t>(tasks, 0);
  std::vector<int64_t> starts{0, 0}, none64{}, zero{0};
  std::vector<int32_t> none32{}, rack = std::vector<int32_t>(kMachines, 0);
  agora::Catalog catalog{{starts, none32, none64, starts, none32, none64, zero, zero, rack}};

  AgentSetting(Draws& draw, size_t of_tasks) : tasks(of_tasks), resources(1 + draw(2)) {
    for (size_t i = 0; i < tasks; ++i) {
      for (size_t r = 0; r < resources; ++r) request.push_back(1 + static_cast<int64_t>(draw(3)));
      job.push_back(static_cast<int64_t>(i / kPerBatch));
      gang.push_back(i / kPerBatch % 5 == 0 ? job.back() : agora::kNoGang);
      submit_us.push_back(static_cast<int64_t>(i / kPerBatch) * 60);
      duration_us.push_back(100 + static_cast<int64_t>(draw(300)));
    }
  }
  std::vector<int64_t> limit() const { return std::vector<int64_t>(kMachines * resources, kLimit); }
  agora::PreferenceColumns columns() const {
    return {starts, none32, none64, starts, none32, none64, zero, zero, rack};
  }
  agora::PlacingColumns placing() const {
    return {tasks,
            resources,
            request.data(),
            static_cast<int64_t>(resources),
            1,
            preference.data(),
            1,
            gang.data(),
            1};
  }
  agora::SharedTable<int64_t> requests() const {
    auto [table, values] = agora::SharedTable<int64_t>::make(tasks, resources);
    std::ranges::copy(request, values);
    return table;
  }
};

template <class Event>
agora::EventPtr shared_event(Event event) {
  return std::make_shared<const Event>(std::move(event));
}

// An event with odd contents of the kinds that every agent with a scheduler gets.
inline agora::EventPtr odd_agent_event(Draws& draw, size_t tasks) {
  const auto number = [&] { return static_cast<int64_t>(draw(300)) - 10; };
  const auto of_tasks = [&] { return odd_column<int64_t>(draw, tasks + 20); };
  switch (draw(7)) {
    case 0: {
      agora::TasksSubmitted event;
      event.task = of_tasks();
      return shared_event(std::move(event));
    }
    case 1: {
      agora::CommitResult result;
      result.sequence = number();
      result.reason = odd_column<int8_t>(draw, 180);
      result.allocation = of_tasks();
      result.rival = odd_column<int32_t>(draw, 180);
      result.age_us = of_tasks();
      result.version = of_tasks();
      agora::CommitReply event;
      event.result = std::make_shared<const agora::CommitResult>(std::move(result));
      return shared_event(std::move(event));
    }
    case 2: {
      agora::TasksEnded event;
      event.change = static_cast<int64_t>(draw(8)) - 1;
      const size_t rows = draw(4);  // of one length, so that nothing but the contents is odd
      const auto ids = [&] {
        auto [made, values] = agora::SharedColumn<int64_t>::make(rows);
        for (size_t i = 0; i < rows; ++i) values[i] = static_cast<int64_t>(draw(tasks + 5)) - 2;
        return made;
      };
      event.task = ids();
      event.allocation = ids();
      // one that the view shows, or one to come
      event.version = agora::SharedColumn<int64_t>::filled(rows, draw(2) ? 1 : 1'000'000);
      auto [machine, machines] = agora::SharedColumn<int32_t>::make(rows);
      for (size_t i = 0; i < rows; ++i) machines[i] = static_cast<int32_t>(draw(kMachines + 1));
      event.machine = machine;
      auto [request, requests] = agora::SharedTable<int64_t>::make(rows, 1 + draw(3));
      std::fill_n(requests, request.count(), 1);
      event.request = request;
      return shared_event(std::move(event));
    }
    case 3: {
      agora::TasksAdopted event;
      event.task = of_tasks();
      event.allocation = of_tasks();
      event.machine = odd_column<int32_t>(draw, 180);
      return shared_event(std::move(event));
    }
    case 4:
      return shared_event(agora::DecisionDone{});
    case 5:
      return shared_event(agora::SampleDue{});
    default:
      return shared_event(agora::QuotaGrant{});
  }
}
