// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"os"
	"sync/atomic"

	"github.com/fumehood/fumehood/internal/egress"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// helped reports that this program's main called Helper. Without the call, the
// gateway's process would be another run of the whole program, as root.
var helped atomic.Bool

// Helper runs the network gateway if this process was started as one, and returns its
// exit code and true; the program must then exit with that code. Otherwise it returns
// false at once. Call it first in main, before flags are read and files are opened.
func Helper() (code int, is bool) {
	helped.Store(true)
	if len(os.Args) != 2 || os.Args[1] != egress.DoorName {
		return 0, false
	}
	return egress.Main(os.Stderr), true
}

// gatewayArgv returns the command that starts the gateway's process.
func gatewayArgv(o Options) ([]string, error) {
	if len(o.Gateway) > 0 {
		return o.Gateway, nil
	}
	if !helped.Load() {
		return nil, &proposal.StopError{Code: "gateway.start",
			Message: "this program does not call gate.Helper, which starts the gateway's process",
			Hint:    "call gate.Helper first in main, as the documentation of package gate shows"}
	}
	return []string{"/proc/self/exe", egress.DoorName}, nil
}
