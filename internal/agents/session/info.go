// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Info describes a session.
type Info struct {
	Name      string    `json:"name"`
	Session   string    `json:"session"` // the run's id in the report
	Log       string    `json:"log"`
	Workspace string    `json:"workspace"`
	PID       int       `json:"pid"`
	Started   time.Time `json:"started"`
	Proposals int       `json:"proposals"`
	Running   int       `json:"running"` // commands that run or wait
	// Killed means that the session's process ended without sealing the log.
	Killed bool `json:"killed,omitempty"`
}

// An Ended describes a session that has ended.
type Ended struct {
	Name   string            `json:"name"`
	Totals proposal.Totals   `json:"totals"`
	Log    string            `json:"log"`
	Key    string            `json:"key"` // that verifies the log
	Error  *proposal.Failure `json:"error,omitempty"`
}
