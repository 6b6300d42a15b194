// A prepared case is data that the executor runs as well; it stands in traces.
#pragma once

#include "traces/prepared_case.h"
