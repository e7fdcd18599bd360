// The tables that native participants add rows to, with the bytes of each column
// (parsync/metrics/tables.py).
#pragma once

#include <vector>

#include "parsync/metrics/native/measurements.hpp"

// Of an agent.
inline const std::vector<agora::TableLayout> kAgentTables{
    {"tasks", {8, 8, 4, 4, 8, 8, 8, 4, 1, 1, 1, 8, 8}},
    {"commits", {4, 8, 8, 8, 8, 1, 4, 4, 4, 4, 4, 4, 4, 4, 4}},
    {"job_attempts", {4, 8, 8, 8, 8, 8, 8, 8}},
    {"rejections", {8, 4, 8, 4, 1, 4, 8, 8, 8}},
    {"syncs", {4, 4, 8, 8, 4}},
    {"agents", {8, 4, 8, 8, 1, 8, 8, 8}},
    {"unplaceable", {8, 4, 8, 1}},
    {"waiting", {8, 4, 1, 8, 4, 8, 8}},
    {"holds", {8, 4, 8, 8, 8}},
    {"rounds", {8, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}},
};

// Of the participants beside the cell.
inline const std::vector<agora::TableLayout> kCellTables{
    {"submissions", {4, 8, 8, 8, 8}}, {"ends", {8, 4, 4, 8, 1, 1}},         {"cell", {8, 8, 8, 8}},
    {"quota_use", {8, 4, 4, 8}},      {"quota_shares", {8, 4, 4, 8, 8, 8}},
};
