// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/roottest"
)

func init() {
	if os.Args[0] == Init {
		runtime.LockOSThread() // as fumehood-init does
	}
}

// TestMain runs the tests. As a sandbox's init it compares each listing of the kernel with what system calls
// return: see TestListing of package sandbox.
func TestMain(m *testing.M) {
	if os.Args[0] != Init {
		roottest.RunTests(m)
		return
	}
	if err := runComparing(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runComparing(args []string) error {
	if !strings.HasPrefix(args[1], "{") {
		return Limit(args[1:])
	}
	var c Config
	if err := json.Unmarshal([]byte(args[1]), &c); err != nil {
		return err
	}
	s, err := startServer(c)
	if err != nil {
		return err
	}
	s.tree.list = compareListers(listWritten, walkUpper(upperOf(0)))
	s.tree.total.list = s.tree.list
	return s.serve(os.Stdin, os.Stdout)
}
