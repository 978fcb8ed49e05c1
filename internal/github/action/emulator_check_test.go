// SPDX-License-Identifier: Apache-2.0

package action

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The emulator must recognize everything that the runner does, or the other tests
// prove nothing.
func TestEmulatorFindsCommands(t *testing.T) {
	tests := []struct {
		name, output string
		want         []command
	}{
		{"plain", "hello\n", nil},
		{"newer grammar", "::error file=a.go,line=3,title=x%3A y::bad%0Athing\n",
			[]command{{"error", map[string]string{"file": "a.go", "line": "3", "title": "x: y"}, "bad\nthing"}}},
		{"leading blanks", " \t\u00a0::warning::w\n", []command{{"warning", nil, "w"}}},
		{"any case", "::ERROR::w\n", []command{{"error", nil, "w"}}},
		{"unknown name", "::nothing::w\n", nil},
		{"text before", "x ::error::w\n", nil},
		{"older grammar with text before", "x ##[error file=b;line=2]w%5D\n", []command{{"error", map[string]string{"file": "b", "line": "2"}, "w]"}}},
		{"after a lone carriage return", "x\r::error::w\n", []command{{"error", nil, "w"}}},
		{"invisible characters between", ":\u200b:error::w\n", []command{{"error", nil, "w"}}},
		{"stopped", "::stop-commands::tok123456\n::error::w\n##[error]w\n::TOK123456::\n::notice::n\n", []command{{"notice", nil, "n"}}},
		{"stop token that is a command", "::stop-commands::error\n::error::w\n", []command{{"error", nil, "w"}}},
		{"percent is unescaped last", "::notice::%250A\n", []command{{"notice", nil, "%0A"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, readLog(tt.output).commands, cmp.AllowUnexported(command{})); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEmulatorMasksTokensAndSecrets(t *testing.T) {
	l := readLog("::add-mask::hunter2\nit is hunter2\n::stop-commands::tok123456\nx\n::tok123456::\n")
	want := []string{"it is ***", "::stop-commands::***", "x", "::***::"}
	if diff := cmp.Diff(want, l.shown); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestEmulatorReadsOutputs(t *testing.T) {
	got, err := readOutputs("a=1\n\nb<<E\nx\n\ny\nE\nc<<E\nE\nd=<<e\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []output{{"a", "1"}, {"b", "x\n\ny"}, {"c", ""}, {"d", "<<e"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(output{})); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"x\n", "x<<E\ny\n", "<<E\nE\n", "x<<\n"} {
		if _, err := readOutputs(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	// A fixed delimiter would be unsafe: the value's own line ends it.
	forged, err := readOutputs("v<<EOF\nDENY\nEOF\nv=ALLOW\nx<<EOF\nEOF\n")
	if err != nil || len(forged) != 3 || forged[1] != (output{"v", "ALLOW"}) {
		t.Errorf("the emulator does not see a forged output: %v %v", forged, err)
	}
}
