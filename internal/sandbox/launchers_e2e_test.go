// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package sandbox

import "testing"

// What TestLaunchers checks holds for the programs that start others in repositories.
func TestE2ELaunchers(t *testing.T) {
	checkLaunchers(t, []launcherText{
		{"make", "printf 'x:\\n\\t@/opt/bin/canary\\n' > Makefile; make -s x"},
		{"npm", `echo '{"scripts":{"x":"/opt/bin/canary"}}' > package.json; npm run -s x`},
		{"node", `node -e 'process.stdout.write(require("child_process").execFileSync("/opt/bin/canary"))'`},
		{"python", `/usr/bin/python3 -c 'import subprocess; subprocess.run(["/opt/bin/canary"])'`},
		{"perl", `perl -e 'system("/opt/bin/canary")'`},
	})
}
