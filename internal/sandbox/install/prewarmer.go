// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed prewarmer.c.txt
var prewarmerSource []byte

const prewarmerCost = "each sandbox starts 8 to 16 ms later"

// compilers are tried in this order; CC is ignored because it may name anything.
var compilers = []string{"cc", "gcc", "clang"}

// buildPrewarmer compiles the prewarmer into dir. If no compiler works, it is
// left out, with no other effect, and the note says what that costs.
func buildPrewarmer(ctx context.Context, dir string) (note string) {
	tried := "no C compiler was found (" + strings.Join(compilers, ", ") + ")"
	for _, name := range compilers {
		cc, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if err := compilePrewarmer(ctx, cc, dir); err != nil {
			tried = fmt.Sprintf("%s cannot build it: %v", name, err)
			continue
		}
		return ""
	}
	return "without the prewarmer " + prewarmerCost + ": " + tried +
		"; install gcc and remove this installation to rebuild it"
}

// compilePrewarmer leaves the binary in dir only if a test run shows that it
// works.
func compilePrewarmer(ctx context.Context, cc, dir string) error {
	out := filepath.Join(dir, prewarmerName+".new")
	defer os.Remove(out)
	cmd := exec.CommandContext(ctx, cc, "-x", "c", "-", "-o", out, "-Os", "-s", "-static", "-nostdlib",
		"-ffreestanding", "-fno-stack-protector", "-fno-pie", "-no-pie", "-Wl,--build-id=none")
	cmd.Stdin, cmd.Env = bytes.NewReader(prewarmerSource), buildEnv()
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %s", err, outputTail(text))
	}
	probe := exec.CommandContext(ctx, out, filepath.Join(dir, runscName), runscName, "--version")
	if text, err := probe.CombinedOutput(); err != nil || !bytes.Contains(text, []byte(GVisorVersion)) {
		return fmt.Errorf("it does not start %s: %v: %s", runscName, err, outputTail(text))
	}
	return os.Rename(out, filepath.Join(dir, prewarmerName))
}

// Compilers returns the names of the C compilers that may build the prewarmer, in
// the order in which they are tried.
func Compilers() []string { return slices.Clone(compilers) }
