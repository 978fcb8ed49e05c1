// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"

	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/cache"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// maxPatterns limits the compiled patterns that are kept. OPA's own cache has room for a
// hundred, fewer than the shipped policy has patterns, and compiling one again costs more
// than most evaluations.
const maxPatterns = 2000

// evalOptions returns the options that all evaluations of e have in common.
func (e *Engine) evalOptions() []rego.EvalOption {
	most := maxPatterns
	values := cache.NewInterQueryValueCache(context.Background(), &cache.Config{
		InterQueryBuiltinValueCache: cache.InterQueryBuiltinValueCacheConfig{MaxNumEntries: &most},
	})
	return []rego.EvalOption{
		rego.EvalSortSets(true), // so that the order of reasons is always the same
		rego.EvalMetrics(metrics.NoOp()),
		rego.EvalInterQueryBuiltinValueCache(values),
	}
}

// A contextCancel ends an evaluation when its context is over, without the goroutine that OPA
// would start to wait for it.
type contextCancel struct{ context.Context }

func (u contextCancel) Cancel() {}

func (u contextCancel) Cancelled() bool { return u.Err() != nil }

const hintDeadline = "find the rule that loops over a large product or range, and limit it"

// evalStop is the error of an evaluation without a result.
func evalStop(ctx context.Context, layer, point string, err error) error {
	where := "layer " + layer + ", package " + point
	if ctx.Err() != nil || topdown.IsCancel(err) || errors.Is(err, context.DeadlineExceeded) {
		return module.Stop(module.CodeDeadline, "the evaluation was interrupted in "+where, hintDeadline, nil)
	}
	return module.Stop(module.CodeEval, "the evaluation stopped in "+where, "fix the rule at this place", err)
}

// listenerOptions returns the options of an evaluation that call Options.OnRule.
func (e *Engine) listenerOptions(l *layer) []rego.EvalOption {
	if e.onRule == nil {
		return nil
	}
	return []rego.EvalOption{rego.EvalQueryTracer(module.Listener{Layer: l.name, Held: e.onRule})}
}
