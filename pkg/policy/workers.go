// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// idle is how long a lane waits for its next evaluation before it ends.
const idle = time.Second

// goOn runs job on a lane that waits for one, or on a new one. An evaluation must not
// run where its caller waits, since it may never end; and a fresh goroutine would
// spend a fifth of an answer's time on growing its stack.
func (e *Engine) goOn(job func()) {
	select {
	case e.jobs <- job:
	default:
		go e.lane(job)
	}
}

func (e *Engine) lane(job func()) {
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
