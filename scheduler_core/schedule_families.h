// The generators behind the table in schedule.cc, one function per name. A
// generator checks the shape that it needs and says which one that is.
// Notation, here and in the sources: p ranks, m microbatches, v chunks (stages
// per rank), r from 0.
//
// In all of them r is the place of a stage in the pipeline. For one stage per
// rank that is the stage's own number, so that a pipeline whose stages stand
// on permuted ranks gets the order that fits it. None needs the stages to be a
// chain: edges go from a lower to a higher stage, so an order that suits the
// chain suits any graph with the same stages.
//
// Thread safety: pure functions.
#pragma once

#include "scheduler_core/schedule.h"

namespace rrfp {

// schedules_one_chunk.cc: one stage per rank.
Result<Schedule> make_gpipe(const Program& program, const ScheduleContext& context);
Result<Schedule> make_1f1b(const Program& program, const ScheduleContext& context);
Result<Schedule> make_eager_1f1b(const Program& program, const ScheduleContext& context);
Result<Schedule> make_zb_h1(const Program& program, const ScheduleContext& context);
Result<Schedule> make_zb_h2(const Program& program, const ScheduleContext& context);

// schedules_looped.cc: stage = chunk * p + r.
Result<Schedule> make_interleaved_1f1b(const Program& program, const ScheduleContext& context);
Result<Schedule> make_interleaved_1f1b_torch(const Program& program,
                                             const ScheduleContext& context);
Result<Schedule> make_interleaved_zb(const Program& program, const ScheduleContext& context);
Result<Schedule> make_looped_bfs(const Program& program, const ScheduleContext& context);

// schedules_v.cc: rank r holds stages r and 2p-1-r.
Result<Schedule> make_zb_v(const Program& program, const ScheduleContext& context);

// hints.cc: any program.
Result<Schedule> make_bf(const Program& program, const ScheduleContext& context);
Result<Schedule> make_bfw(const Program& program, const ScheduleContext& context);
Result<Schedule> make_fbw(const Program& program, const ScheduleContext& context);
Result<Schedule> make_critical_path(const Program& program, const ScheduleContext& context);
Result<Schedule> make_random(const Program& program, const ScheduleContext& context);

}  // namespace rrfp
