// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

var (
	backquoted   = regexp.MustCompile("`([^`]+)`")
	quotedAdvice = regexp.MustCompile("\"[a-z][^\"\\n]*`[^\"\\n]*\"")
	plainExample = regexp.MustCompile(`"([A-Z_]+)": "((?:[A-Z_]+)=[^"]+)"`)
)

// advisedIn returns what a decision advises between backquotes, with the rule that does: a whole
// command, which policy must allow.
func advisedIn(d proposal.Decision) map[string]string {
	found := map[string]string{}
	for _, reason := range d.Reasons {
		for _, m := range backquoted.FindAllStringSubmatch(reason.Suggestion, -1) {
			found[m[1]] = reason.Rule
		}
	}
	return found
}

// checkAdvised holds that policy allows each advised command.
func checkAdvised(t *testing.T, advised map[string]string, atLeast int) {
	t.Helper()
	if len(advised) < atLeast {
		t.Errorf("only %d commands are advised: %v", len(advised), advised)
	}
	e := shipped(t)
	for command, from := range advised {
		if d := decide(t, e, command); d.Effect != proposal.Allow {
			t.Errorf("%s advises %q, which is refused: %s", from, command, whys(d))
		}
	}
}

// Advice that the policy's files have between backquotes is a command that the policy allows, and so is
// each example of a variable's value, which its denial shows.
func TestAdvisedCommands(t *testing.T) {
	lanetest.SkipShort(t)
	e := shipped(t)
	advised := map[string]string{}
	for _, dir := range []string{"command", "exec", "lib", "proposal", "snippet"} {
		files, err := policies.FS.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := policies.FS.ReadFile(dir + "/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range quotedAdvice.FindAllString(string(text), -1) {
				for _, m := range backquoted.FindAllStringSubmatch(line, -1) {
					if !strings.Contains(m[1], "%s") {
						advised[m[1]] = dir + "/" + f.Name()
					}
				}
			}
			for _, m := range plainExample.FindAllStringSubmatch(string(text), -1) {
				if dir != "lib" || f.Name() != "env.rego" {
					continue
				}
				advised[m[2]] = m[1]
				if d := decide(t, e, m[1]+"=';' make"); advisedIn(d)[m[2]] != "env.steering" {
					t.Errorf("the denial of %s does not show %q: %s", m[1], m[2], whys(d))
				}
			}
		}
	}
	checkAdvised(t, advised, 60)
}
