// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A program that does not call Helper is not started a second time.
func TestHelperForgotten(t *testing.T) {
	was := helped.Swap(false)
	defer helped.Store(was)
	if argv, err := gatewayArgv(Options{}); argv != nil || err == nil || proposal.FailureOf(err).Code != "gateway.start" {
		t.Errorf("%q, %v", argv, err)
	}
	if argv, err := gatewayArgv(Options{Gateway: []string{"/x"}}); len(argv) != 1 || err != nil {
		t.Errorf("%q, %v", argv, err)
	}
	if code, is := Helper(); code != 0 || is {
		t.Errorf("Helper took a test for the gateway: %d", code)
	}
	if argv, err := gatewayArgv(Options{}); len(argv) != 2 || err != nil {
		t.Errorf("%q, %v", argv, err)
	}
}
