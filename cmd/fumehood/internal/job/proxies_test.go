// SPDX-License-Identifier: Apache-2.0

package job

import (
	"os"
	"strings"
	"testing"
)

// The process that runs as root gets the proxies of the step's environment, in no argument.
func TestProxyFlags(t *testing.T) {
	env := map[string]string{}
	j := &Job{dir: t.TempDir(), options: Options{Getenv: func(name string) string { return env[name] }}}
	if flags, err := j.proxyFlags(); len(flags) > 0 || err != nil {
		t.Errorf("without proxies: %q, %v", flags, err)
	}
	env["HTTPS_PROXY"] = "http://user:hidden@proxy.corp:3128"
	flags, err := j.proxyFlags()
	if err != nil || len(flags) != 2 || flags[0] != "--proxies" || strings.Contains(flags[1], "hidden") {
		t.Fatalf("%q, %v", flags, err)
	}
	if data, err := os.ReadFile(flags[1]); err != nil || !strings.Contains(string(data), env["HTTPS_PROXY"]) {
		t.Errorf("%s, %v", data, err)
	}
}
