// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"time"

	"github.com/fumehood/fumehood/internal/policy/bounds"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// A policy may be written to exhaust any process that reads it. Parsing and compiling
// cannot be canceled, so they are abandoned when they take too much: New returns an error,
// and the process ends.
const (
	compiling      = 10 // the time for compiling a layer, in multiples of a decision's deadline
	compileMemory  = 1 << 30
	decisionMemory = 512 << 20
)

// runWithinLimit waits for work, which compiles a layer other than the shipped one, as long as it
// uses at most limit of processor time. The meter in work's context counts that.
func runWithinLimit(ctx context.Context, limit time.Duration, layer string, work func(context.Context) error) error {
	inside, m := bounds.WithMeter(ctx)
	b := bounds.Bounds{Used: m.Used, Time: limit, Memory: compileMemory, Heap: bounds.HeapSize()}
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		defer module.RecoverPanic(layer, &err)
		err = work(inside)
	}()
	switch why, _ := b.Wait(ctx, func() {}, done); why {
	case bounds.Cancelled:
		return module.Stop(module.CodeDeadline, "reading the policy was interrupted", "try again", ctx.Err())
	case bounds.TooLong:
		return module.Stop(module.CodeDeadline,
			fmt.Sprintf("compiling the policy takes more than %v of processor time", limit), hintCompile, nil)
	case bounds.TooLarge:
		return module.Stop(module.CodeTooLarge,
			fmt.Sprintf("compiling the policy takes more than %d MiB", compileMemory>>20), hintCompile, nil)
	}
	return err
}

const hintCompile = "make it smaller: fewer rules, and expressions that nest less"
