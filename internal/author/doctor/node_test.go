// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/testprogram"
)

const answer = `[{"name": "sandbox", "state": "STATE", "detail": "it works"}]`

// An answer of the shim is whole, in time and agrees with its exit code, or it is refused.
func TestAskShim(t *testing.T) {
	lanetest.SkipShort(t)
	shim := filepath.Join(t.TempDir(), "shim")
	ok, bad := strings.Replace(answer, "STATE", OK, 1), strings.Replace(answer, "STATE", Missing, 1)
	for name, c := range map[string]struct{ script, name, state, detail string }{
		"good":               {"cat <<X\n" + ok + "\nX", "sandbox", OK, "it works"},
		"missing":            {"cat <<X\n" + bad + "\nX\nexit 1", "sandbox", Missing, "it works"},
		"fails":              {"cat <<X\n" + ok + "\nX\nexit 1", "shim", Missing, "exit status 1"},
		"no such flag":       {"echo flag provided but not defined: -json >&2; exit 2", "shim", Missing, "exit status 2 flag provided"},
		"garbage":            {"head -c 1000 /dev/urandom", "shim", Missing, "cannot read"},
		"nothing":            {"", "shim", Missing, "cannot read"},
		"empty":              {"echo []", "shim", Missing, "0 checks"},
		"two answers":        {"cat <<X\n" + ok + ok + "\nX", "shim", Missing, "cannot read"},
		"another state":      {"cat <<X\n" + strings.Replace(answer, "STATE", "fine", 1) + "\nX", "shim", Missing, `with state "fine"`},
		"name of a terminal": {"cat <<X\n" + strings.Replace(ok, "sandbox", `\\u001b[2J`, 1) + "\nX", "shim", Missing, "invalid check"},
		"100 MB":             {"head -c 100000000 /dev/zero", "shim", Missing, "printed more than 1048576 bytes"},
		"100 MB of errors":   {"head -c 100000000 /dev/zero >&2; echo '" + ok + "'", "shim", Missing, "printed more than 1048576 bytes"},
		"hangs":              {"echo '" + ok + "'; sleep 1000 & sleep 1000", "shim", Missing, "did not end in time"},
		"environment":        {`[ -z "$HOME$LD_PRELOAD" ] && echo '` + ok + `'`, "sandbox", OK, "it works"},
	} {
		testprogram.WriteExecutable(t, shim, "#!/bin/bash\n"+c.script+"\n")
		limit := time.Minute
		if name == "hangs" {
			limit = 300 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		began := time.Now()
		got := askShim(ctx, shim)
		cancel()
		if len(got) != 1 || got[0].Name != c.name || got[0].State != c.state || !strings.Contains(got[0].Detail, c.detail) || (got[0].Fix == "") != (c.name == "sandbox") {
			t.Errorf("%s: %+v", name, got)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s: it took %s", name, took)
		}
	}
	if err := os.Chmod(shim, 0o757); err != nil {
		t.Fatal(err)
	}
	if got := askShim(t.Context(), shim); len(got) != 1 || !strings.Contains(got[0].Detail, "another user can change") {
		t.Errorf("a shim that others can change: %+v", got)
	}
}

func TestRuntimePath(t *testing.T) {
	const good = Versions + "/0123456789abcdef0123456789abcdef/" + Shim
	for text, want := range map[string]string{
		"# x\n  runtime_path = \"" + good + "\"\n": "",
		"":                                "no line begins with runtime_path",
		"\nruntime_path = '" + good + "'": "line 2: ",
		"runtime_path = \"" + good + "\"\nruntime_path = \"" + good + "\"":          "line 2: ",
		"runtime_path = \"/home/x/" + Shim + "\"":                                   "line 1: ",
		"runtime_path = \"" + Versions + "/../x/" + Shim + "\"":                     "line 1: ",
		"runtime_path = \"" + strings.Replace(good, "0123", "0123/../..", 1) + "\"": "line 1: ",
		"runtime_path = \"" + good + "\" # x":                                       "line 1: ",
		"runtime_path =\n[x]":                                                       "line 1: ",
	} {
		got, err := runtimePath(text)
		if want == "" && (got != good || err != nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}
