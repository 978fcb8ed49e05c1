// SPDX-License-Identifier: Apache-2.0

package results

import (
	"fmt"

	"github.com/fumehood/fumehood/internal/kit/keep"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Mode says what is done with kept results. The zero Mode does nothing.
type Mode int

// The modes.
const (
	Off   Mode = iota
	Read       // use them
	Write      // use them, and keep those of this run
)

// Modes are the names of the modes, in order.
var Modes = []string{"off", "read", "write"}

// ParseMode returns the mode of that name; "" is off. Its error is a *proposal.StopError
// (results.mode).
func ParseMode(name string) (Mode, error) {
	for i, known := range Modes {
		if name == known || name == "" {
			return Mode(i), nil
		}
	}
	return Off, &proposal.StopError{Code: "results.mode", Message: fmt.Sprintf("invalid mode of kept results %q", name),
		Hint: "use off, read or write"}
}

// String returns the name of m.
func (m Mode) String() string {
	if m < Off || m > Write {
		return Modes[Off]
	}
	return Modes[m]
}

// InJob returns the mode in which a process with this environment may use results: unless
// keep.Allowed, none of this run is kept. read reads the event's file.
func (m Mode) InJob(getenv func(string) string, read func(string) ([]byte, error)) Mode {
	if m == Write && !keep.IsAllowed(getenv, read) {
		return Read
	}
	return m
}
