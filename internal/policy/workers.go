// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// idle is how long a worker waits for its next evaluation before it ends.
const idle = time.Second

// runJob runs job on an idle worker, or on a new one. An evaluation must not run in its
// caller's goroutine, since it may never end. A new goroutine for each would spend a fifth
// of the time on growing its stack.
func (e *Engine) runJob(job func()) {
	select {
	case e.jobs <- job:
	default:
		go e.runWorker(job)
	}
}

func (e *Engine) runWorker(job func()) {
	rest := time.NewTimer(idle)
	defer rest.Stop()
	for {
		job()
		rest.Reset(idle)
		select {
		case job = <-e.jobs:
		case <-rest.C:
			return
		}
	}
}
