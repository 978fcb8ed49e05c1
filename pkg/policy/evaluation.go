// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"

	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown/cache"
)

// mostPatterns bounds the compiled patterns that are kept. OPA's own cache has a
// hundred, fewer than the shipped policy has patterns, and compiling one anew costs
// more than most evaluations.
const mostPatterns = 2000

// evaluation is what every evaluation of e has in common.
func (e *Engine) evaluation() []rego.EvalOption {
	most := mostPatterns
	values := cache.NewInterQueryValueCache(context.Background(), &cache.Config{
		InterQueryBuiltinValueCache: cache.InterQueryBuiltinValueCacheConfig{MaxNumEntries: &most},
	})
	return []rego.EvalOption{
		rego.EvalSortSets(true), // so that reasons stand in one order
		rego.EvalMetrics(metrics.NoOp()),
		rego.EvalInterQueryBuiltinValueCache(values),
	}
}

// An until ends an evaluation when its context is over, without the goroutine that OPA
// would start to wait for it.
type until struct{ context.Context }

func (u until) Cancel() {}

func (u until) Cancelled() bool { return u.Err() != nil }
