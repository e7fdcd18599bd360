// The cell without Python, for the sanitizers: random operations, and after each the invariants of
// cell.hpp recomputed from the allocations, whether or not the cell keeps narrow columns.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "shared_state/native/cell.hpp"
#include "shared_state/native/fields.hpp"

namespace {

using namespace agora;

struct Columns {
  explicit Columns(size_t n, size_t dimensions)
      : task(n), allocation(n), request(n * dimensions), version(n), machine(n), owner(n) {}
  AllocationColumns out() {
    return {task.data(),  machine.data(), allocation.data(),
            owner.data(), request.data(), version.data()};
  }

  std::vector<int64_t> task, allocation, request, version;
  std::vector<int32_t> machine, owner;
};

class Harness {
 public:
  Harness(uint64_t seed, size_t machines, size_t dimensions, size_t partitions)
      : random_(seed), dimensions_(dimensions), limit_(machines * dimensions) {
    const bool same = draw(2);
    for (int64_t& limit : limit_) limit = same ? 3 : draw(8);
    for (size_t p = 0; p <= partitions; ++p)
      offsets_.push_back(static_cast<int64_t>(p * machines / partitions));
    std::vector<int32_t> priority(draw(2) ? 64 : 0);
    for (int32_t& of_task : priority) of_task = static_cast<int32_t>(draw(3));
    cell_ = std::make_unique<Cell>(machines, dimensions, limit_, offsets_, priority);
    versions_ = cell_->versions();
  }

  void step() {
    switch (draw(10)) {
      case 0:
        release();
        break;
      case 1:
        set_machines();
        break;
      case 2:
        load();
        break;
      case 3:
        checkpoint();
        break;
      case 4:
        scan();
        break;
      case 5:
        hold();
        break;
      case 6:
        end_holds();
        break;
      default:
        commit();
    }
    check();
  }

 private:
  int64_t draw(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  int32_t any_machine() {
    return static_cast<int32_t>(draw(static_cast<int64_t>(cell_->machines())));
  }
  int64_t any_id() {
    return ids_.empty() ? 7 : ids_[static_cast<size_t>(draw(static_cast<int64_t>(ids_.size())))];
  }

  int64_t any_hold() {
    return holds_.empty() ? 7
                          : holds_[static_cast<size_t>(draw(static_cast<int64_t>(holds_.size())))];
  }

  void commit() {
    const auto k = static_cast<size_t>(draw(30)), e = static_cast<size_t>(draw(3) ? 0 : draw(6));
    std::vector<int64_t> task(k), request(k * dimensions_), synced(k), gang(k), allocation(k),
        age(k), version(k), evict, evicted(e);
    std::vector<int32_t> machine(k), rival(k);
    std::vector<uint32_t> seqnum(k);
    std::vector<int8_t> reason(k);
    for (size_t i = 0; i < k; ++i) {
      task[i] = draw(500);
      machine[i] = any_machine();
      gang[i] = draw(4) - 1;
      seqnum[i] =
          cell_->rows()[static_cast<size_t>(machine[i])].seqnum - static_cast<uint32_t>(draw(2));
    }
    for (int64_t& amount : request) amount = draw(4);
    for (size_t i = 0; i < e; ++i) evict.push_back(any_id());
    std::vector<int64_t> holds(static_cast<size_t>(draw(3) ? 0 : draw(6)));
    for (int64_t& hold : holds) hold = any_hold();
    const size_t before = cell_->live();
    Claims claims{static_cast<int32_t>(draw(3)),
                  draw(2) == 0,
                  5,
                  k,
                  task.data(),
                  machine.data(),
                  request.data(),
                  synced.data(),
                  draw(2) ? gang.data() : nullptr,
                  draw(2) ? seqnum.data() : nullptr,
                  evict,
                  holds};
    const Answer answer{reason.data(), allocation.data(), rival.data(),
                        age.data(),    version.data(),    evicted.data()};
    const size_t ended = cell_->commit(claims, answer);
    CHECK(ended <= e);
    for (const int64_t hold : holds) {
      const std::optional<Hold> left = cell_->holds().find(hold);
      CHECK(!left || left->holder != claims.scheduler);
    }
    for (size_t i = 0; i < k && !holds.empty(); ++i)
      CHECK(reason[i] != 0 || std::ranges::any_of(cell_->ended_holds(), [&](const Hold& hold) {
              return hold.machine == machine[i];
            }));
    size_t accepted = 0;
    for (size_t i = 0; i < k; ++i) {
      CHECK((reason[i] == 0) == (allocation[i] >= 0));
      if (reason[i] == 0) ids_.push_back(allocation[i]);
      accepted += reason[i] == 0;
    }
    CHECK(cell_->live() == before + accepted - ended);
    if (k) {
      machine[k - 1] = static_cast<int32_t>(cell_->machines());
      expect_refused([&] { cell_->commit(claims, answer); });
    }
  }

  void hold() {
    const auto k = static_cast<size_t>(draw(6));
    std::vector<int32_t> holder(k), machine(k);
    std::vector<int64_t> amount(k * dimensions_), ids(k);
    for (int32_t& of : holder) of = static_cast<int32_t>(draw(3));
    for (int32_t& row : machine) row = any_machine();
    for (int64_t& of : amount) of = draw(4);
    const auto hold = [&] {
      cell_->hold(k, holder.data(), machine.data(), amount.data(), ids.data());
    };
    const size_t before = cell_->holds().size();
    hold();
    size_t held = 0;
    for (const int64_t id : ids) {
      if (id < 0) continue;
      CHECK(holds_.empty() || id > holds_.back());
      holds_.push_back(id);
      ++held;
    }
    CHECK(cell_->holds().size() == before + held);
    for (size_t i = 0; i < k; ++i) {
      const auto row = static_cast<size_t>(machine[i]);
      for (size_t r = 0; r < dimensions_ && ids[i] >= 0; ++r)
        CHECK(amount[i * dimensions_ + r] == 0 ||
              cell_->taken_at(row, r) <= limit_[row * dimensions_ + r]);
    }
    if (k == 0) return;
    machine[0] = static_cast<int32_t>(cell_->machines());
    expect_refused(hold);
  }

  void end_holds() {
    std::vector<int64_t> ids{-1, INT64_MAX, INT64_MIN};
    for (int n = 0; n < 4; ++n) ids.push_back(any_hold());
    const size_t before = cell_->holds().size();
    std::vector<int64_t> hold(ids.size()), amount(ids.size() * dimensions_);
    std::vector<int32_t> holder(ids.size()), machine(ids.size());
    const HoldColumns out{hold.data(), holder.data(), machine.data(), amount.data()};
    const size_t ended = cell_->end_holds(ids, out);
    CHECK(cell_->holds().size() == before - ended);
    CHECK(cell_->end_holds(ids, out) == 0);
  }

  void release() {
    std::vector<int64_t> ids{-1, INT64_MAX, INT64_MIN, draw(INT64_MAX)};
    for (int n = 0; n < 8; ++n) ids.push_back(any_id());
    Columns out(ids.size(), dimensions_);
    const size_t before = cell_->live();
    const size_t released = cell_->release(ids, nullptr, out.out());
    CHECK(cell_->live() == before - released);
    CHECK(cell_->release(ids, nullptr, out.out()) == 0);
  }

  void set_machines() {
    const int32_t rows[] = {any_machine(), any_machine()};
    const bool up[] = {draw(3) == 0, true};
    Columns out(cell_->live(), dimensions_);
    cell_->set_machines(2, rows, up, out.out());
  }

  void load() {
    const int64_t task = 500 + loaded_++;
    const int32_t machine = any_machine(), owner = 1;
    std::vector<int64_t> request(dimensions_, 9);
    int64_t id = -1;
    const auto load = [&] { cell_->load(1, &task, &machine, request.data(), &owner, &id); };
    if (!cell_->rows()[static_cast<size_t>(machine)].up()) return expect_refused(load);
    load();
    ids_.push_back(id);
  }

  void checkpoint() {
    const std::string bytes = cell_->checkpoint();
    auto restored = std::make_unique<Cell>(cell_->machines(), dimensions_, limit_, offsets_);
    restored->restore(bytes);
    CHECK(restored->checkpoint() == bytes);
    cell_ = std::move(restored);
    Cell broken(cell_->machines(), dimensions_, limit_, offsets_);
    expect_refused([&] {
      broken.restore(std::span<const char>(
          bytes.data(), static_cast<size_t>(draw(static_cast<int64_t>(bytes.size())))));
    });
  }

  void scan() {
    const auto partition = static_cast<size_t>(draw(static_cast<int64_t>(cell_->partitions())));
    const int64_t from = draw(cell_->versions()[partition] + 1);
    const DeltaScan scan = cell_->scan(partition, from);
    std::vector<uint16_t> row(scan.count);
    std::vector<int16_t> used(scan.count * dimensions_);
    std::vector<uint32_t> seqnum(scan.count);
    const auto up = std::make_unique<bool[]>(scan.count);
    cell_->write_rows(scan, row.data());
    cell_->write_used(scan, used.data());
    cell_->write_state(scan, up.get(), seqnum.data());
    for (size_t i = 0; i < scan.count; ++i) {
      const auto machine = static_cast<size_t>(scan.first_row) + row[i];
      for (size_t r = 0; r < dimensions_; ++r)
        CHECK(used[i * dimensions_ + r] == cell_->taken_at(machine, r));
      CHECK(seqnum[i] == cell_->rows()[machine].seqnum &&
            up[i] == static_cast<bool>(cell_->rows()[machine].up()));
      CHECK(i == 0 || row[i - 1] < row[i]);
    }
    CHECK(from < cell_->versions()[partition] || from == 0 || scan.count == 0);
  }

  template <class Call>
  void expect_refused(Call call) {
    try {
      call();
    } catch (const std::invalid_argument&) {
      return;
    }
    CHECK(!"expected std::invalid_argument");
  }

  void check() {
    Columns all(cell_->live(), dimensions_);
    CHECK(cell_->allocations(-1, all.out()) == cell_->live());
    std::vector<int64_t> used(cell_->machines() * dimensions_);
    for (size_t i = 0; i < all.task.size(); ++i) {
      CHECK(cell_->rows()[static_cast<size_t>(all.machine[i])].up());
      for (size_t r = 0; r < dimensions_; ++r)
        used[static_cast<size_t>(all.machine[i]) * dimensions_ + r] +=
            all.request[i * dimensions_ + r];
    }
    std::vector<int64_t> taken = used, held(used.size());
    for (const Hold& hold : cell_->holds().all()) {
      const auto first = static_cast<size_t>(hold.machine) * dimensions_;
      CHECK(cell_->rows()[static_cast<size_t>(hold.machine)].up());
      for (size_t r = 0; r < dimensions_; ++r) {
        taken[first + r] += hold.amount[r];
        held[first + r] += hold.amount[r];
      }
    }
    int64_t of_first = 0;
    for (size_t machine = 0; machine < cell_->machines(); ++machine) {
      for (size_t r = 0; r < dimensions_; ++r)
        CHECK(cell_->used_at(machine, r) == used[machine * dimensions_ + r] &&
              cell_->held_at(machine, r) == held[machine * dimensions_ + r] &&
              cell_->taken_at(machine, r) == taken[machine * dimensions_ + r]);
      of_first += used[machine * dimensions_];
      bool has_room = false;
      for (size_t r = 0; r < dimensions_; ++r) {
        const size_t at = machine * dimensions_ + r;
        has_room |= cell_->rows()[machine].up() && taken[at] < limit_[at];
      }
      CHECK((cell_->rows_with_room(machine / 64) >> (machine % 64) & 1) == has_room);
    }
    const size_t words = (cell_->machines() + 63) / 64;
    CHECK(words * 64 == cell_->machines() ||
          cell_->rows_with_room(words - 1) >> (cell_->machines() % 64) == 0);
    CHECK(cell_->used_of_first() == of_first);
    if (draw(500) == 0)  // the cell is wide from now on
      CHECK(std::equal(taken.begin(), taken.end(), cell_->taken().begin(), cell_->taken().end()));
    was_narrow |= cell_->is_narrow();
    was_wide |= !cell_->is_narrow();
    std::sort(all.task.begin(), all.task.end());
    CHECK(std::adjacent_find(all.task.begin(), all.task.end()) == all.task.end());
    for (size_t p = 0; p < versions_.size(); ++p) {
      CHECK(cell_->versions()[p] >= versions_[p] && cell_->versions()[p] <= versions_[p] + 1);
    }
    versions_ = cell_->versions();
  }

  std::mt19937_64 random_;
  size_t dimensions_;
  std::vector<int64_t> limit_, offsets_, versions_, ids_, holds_;
  std::unique_ptr<Cell> cell_;
  int64_t loaded_ = 0;

 public:
  bool was_narrow = false, was_wide = false;
};

// A machine loaded beyond what a byte holds makes the column wide, and shows what it showed.
void a_cell_widens_when_it_must() {
  const std::vector<int64_t> limit{126, 3}, offsets{0, 2};
  Cell cell(2, 1, limit, offsets);
  CHECK(cell.is_narrow());
  for (int64_t task = 0; task < 2; ++task) {
    const int32_t machine = 0, owner = 1;
    const int64_t request = 100;
    int64_t id;
    cell.load(1, &task, &machine, &request, &owner, &id);
    CHECK(cell.is_narrow() == (task == 0));
    CHECK(cell.used_at(0, 0) == 100 * (task + 1) && cell.used_of_first() == 100 * (task + 1));
    const DeltaScan scan = cell.scan(0, task);
    int16_t used[2];
    cell.write_used(scan, used);
    CHECK(used[0] == 100 * (task + 1) && scan.largest >= used[0]);
  }
  const std::string bytes = cell.checkpoint();
  Cell restored(2, 1, limit, offsets);
  restored.restore(bytes);
  CHECK(!restored.is_narrow() && restored.taken()[0] == 200 && restored.checkpoint() == bytes);
  CHECK(!Cell(1, 1, std::vector<int64_t>{128}, std::vector<int64_t>{0, 1}).is_narrow());
  CHECK(!Cell(1, 2, std::vector<int64_t>{1, 1}, std::vector<int64_t>{0, 1}).is_narrow());
}

// Versions of more than four bytes, which no run reaches.
void row_versions_may_be_large() {
  constexpr size_t kRows = 150;
  constexpr int64_t kLargest32 = INT32_MAX;
  std::mt19937_64 random(5);
  for (const int64_t start : {int64_t{1}, kLargest32 - 40, int64_t{1} << 40}) {
    RowVersions versions(kRows);
    std::vector<int64_t> expected(kRows);
    for (int64_t version = start; version < start + 80; ++version) {
      const size_t row = random() % kRows;
      versions.set(row, version);
      expected[row] = version;
      CHECK(versions.all() == expected);
      for (const int64_t from : {int64_t{0}, version - 5, version, kLargest32}) {
        const size_t first = random() % kRows;
        const uint64_t changed = versions.changed_after(from, first);
        for (size_t i = first; i < std::min(first + 64, kRows); ++i)
          CHECK((changed >> (i - first) & 1) == (expected[i] > from));
      }
    }
  }
}

void check_packing() {
  const std::vector<int64_t> values{INT64_MIN, INT64_MAX, 0};
  std::string bytes;
  pack_column(values.data(), {'q', 0, 3}, bytes);
  pack_column(values.data(), {'q', 3, 1}, bytes);
  pack_column(nullptr, {'b', 0, 0}, bytes);
  CHECK(bytes.size() == 3 * kColumnHeaderBytes + 2 * 24);
}

}  // namespace

int main() {
  bool narrow = false, wide = false;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    Harness harness(seed, 5 + seed * 7, 1 + seed % 4, 1 + seed % 5);
    for (int step = 0; step < 400; ++step) harness.step();
    narrow |= harness.was_narrow;
    wide |= seed % 4 == 0 && harness.was_wide;
  }
  CHECK(narrow && wide);  // with one resource
  a_cell_widens_when_it_must();
  row_versions_may_be_large();
  check_packing();
  return 0;
}
