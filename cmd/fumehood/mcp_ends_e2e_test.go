// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"fmt"
	"strings"
	"testing"
)

// The end of the client's input ends the server and its running command, like a signal.
func TestE2EMCPEndOfInput(t *testing.T) {
	t.Parallel()
	checkMCPEnd(t, true, func(w wire) { w.in.Close() })
}

// A client that cancels a call can go on: the next command has the session's files.
func TestE2EMCPCancelledCall(t *testing.T) {
	t.Parallel()
	checkMCPEnd(t, true, func(w wire) {
		w.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		w.run(t, 2, "cat deps/made")
		if got := fmt.Sprint(w.answer(t, 2)); !strings.Contains(got, "made by set-up") {
			t.Errorf("the next command: %s", got)
		}
		w.in.Close()
	})
}
