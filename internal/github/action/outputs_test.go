// SPDX-License-Identifier: Apache-2.0

package action

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// emptyFile makes a file as the runner does before each step.
func emptyFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "set_output_1")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func contents(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var hostileValues = []string{
	"", "\n", "\n\n", "a", "a\n", "a\nb", " a ", "EOF\nconclusion=success\nx<<EOF", "_GitHubActionsFileCommandDelimeter_\nconclusion=success",
	"x<<y", "x=y", "\r\n", "\r", "a\rb=c", "fumehood_ABCDEFGHIJKLMNOPQRSTU00001", "fumehood_ABCDEFGHIJKLMNOPQRSTU00002\nconclusion=success\n",
	"\ufeffx", "\u2028conclusion=success", "\u0085conclusion=success", "::set-output name=conclusion::success", strings.Repeat("x\n", 1000),
}

func TestOutputsAreReadAsWritten(t *testing.T) {
	path := emptyFile(t)
	o := Outputs{Path: path, Random: rand0()}
	var want []output
	for _, value := range hostileValues {
		if err := o.Set("report", value); err != nil {
			t.Fatalf("Set(%q): %v", value, err)
		}
		want = append(want, output{"report", value})
	}
	got, err := readOutputs(contents(t, path))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(output{})); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
}

func TestOutputsRefuse(t *testing.T) {
	tests := []struct{ name, output, value string }{
		{"empty name", "", "x"}, {"a name with a newline", "a\nb", "x"}, {"a name with equals", "a=b", "x"}, {"a name with <<", "a<<b", "x"},
		{"capitals", "PATH", "x"}, {"a dot", "a.b", "x"}, {"a digit", "a1", "x"}, {"a long name", strings.Repeat("a", 61), "x"},
		{"NUL", "a", "x\x00y"}, {"no UTF-8", "a", "x\xffy"}, {"too long", "a", strings.Repeat("x", maxOutput+1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := emptyFile(t)
			if err := (&Outputs{Path: path}).Set(tt.output, tt.value); err == nil {
				t.Error("it was written")
			}
			if got := contents(t, path); got != "" {
				t.Errorf("the file holds %q", got)
			}
		})
	}
}

func TestOutputsNeedARandomDelimiter(t *testing.T) {
	for name, random := range map[string]func() string{
		"always the same, and in the value": func() string { return "ABCDEFGHIJKLMNOPQRSTUVWXYZ" },
		"too short":                         func() string { return "A" },
		"with a newline":                    func() string { return "ABCDEFGHIJKLMNOPQRST\nUVWXYZ" },
	} {
		t.Run(name, func(t *testing.T) {
			path := emptyFile(t)
			err := (&Outputs{Path: path, Random: random}).Set("a", "x fumehood_ABCDEFGHIJKLMNOPQRSTUVWXYZ y")
			if err == nil || contents(t, path) != "" {
				t.Errorf("error %v, file %q", err, contents(t, path))
			}
		})
	}
}

func TestOutputsDrawADelimiterEachTime(t *testing.T) {
	path := emptyFile(t)
	o := Outputs{Path: path}
	for range 2 {
		if err := o.Set("a", "x"); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(contents(t, path), "\n")
	if len(lines) != 7 || lines[0] == lines[3] || len(lines[0]) < 30 {
		t.Errorf("file: %q", lines)
	}
}

// Other text in the file would change how the runner reads the outputs: an
// unfinished line would swallow a name, and an unfinished value would swallow an
// output or be ended by one.
func TestOutputsWantTheFileToThemselves(t *testing.T) {
	for name, before := range map[string]string{
		"an unfinished line": "x=1", "an unfinished value": "conclusion<<EOF\n", "a whole output": "a=1\n", "a byte order mark": "\ufeff",
	} {
		t.Run(name, func(t *testing.T) {
			path := emptyFile(t)
			if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := (&Outputs{Path: path}).Set("a", "EOF\nconclusion=success"); err == nil || contents(t, path) != before {
				t.Errorf("error %v, file %q", err, contents(t, path))
			}
		})
	}
	t.Run("written between two of ours", func(t *testing.T) {
		path := emptyFile(t)
		o := Outputs{Path: path}
		if err := o.Set("a", "1"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(contents(t, path)+"b<<EOF\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if o.Set("c", "2") == nil {
			t.Error("it was written")
		}
	})
}

func TestRunnersFilesMustBeTheirOwn(t *testing.T) {
	dir := t.TempDir()
	target := emptyFile(t)
	link, hard, missing, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "hard"), filepath.Join(dir, "missing"), filepath.Join(dir, "fifo")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	second := emptyFile(t)
	if err := os.Link(second, hard); err != nil {
		t.Fatal(err)
	}
	makeFIFO(t, fifo)
	for name, path := range map[string]string{
		"a symlink": link, "a second name": hard, "missing": missing, "a folder": dir, "a pipe": fifo, "a device": "/dev/null", "none": "",
	} {
		t.Run(name, func(t *testing.T) {
			if err := (&Outputs{Path: path}).Set("a", "x"); err == nil {
				t.Error("an output was written")
			}
			if err := (Summary{Path: path}).Write("x"); err == nil {
				t.Error("a summary was written")
			}
		})
	}
	if contents(t, target) != "" || contents(t, second) != "" {
		t.Error("something was written through a link")
	}
	if _, err := os.Lstat(missing); err == nil {
		t.Error("a file was made")
	}
}

func TestSummary(t *testing.T) {
	const long = 700_000
	path := emptyFile(t)
	s := Summary{Path: path}
	for range 2 {
		if err := s.Write(strings.Repeat("a line of text\n", long/15)); err != nil {
			t.Fatal(err)
		}
	}
	got := contents(t, path)
	if len(got) > MaxSummary || len(got) < MaxSummary-1000 {
		t.Errorf("summary has %d bytes, at most %d are shown", len(got), MaxSummary)
	}
	body, found := strings.CutSuffix(got, summaryCut)
	if !found || !strings.HasSuffix(body, "\na line of text") {
		t.Errorf("the summary ends in %q", got[len(got)-150:])
	}
	if err := s.Write(strings.Repeat("more ", 100)); err == nil || contents(t, path) != got {
		t.Error("more was written into a full summary")
	}
}

func TestSummaryFits(t *testing.T) {
	tests := []struct {
		name, markdown string
		room           int64
		want           string
		ok             bool
	}{
		{"whole", "a\nb", 4, "a\nb\n", true},
		{"whole with its newline", "a\nb\n", 4, "a\nb\n", true},
		{"cut at a line", "a\nbbbb" + strings.Repeat("c", 100), int64(len(summaryCut)) + 4, "a" + summaryCut, true},
		{"one long line is cut at a character", strings.Repeat("é", 100), int64(len(summaryCut)) + 3, "é" + summaryCut, true},
		{"no room for the note", strings.Repeat("a", 100), int64(len(summaryCut)) - 1, "", false},
		{"no room at all", "a", -5, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := truncateMarkdown(tt.markdown, tt.room)
			if got != tt.want || ok != tt.ok || ok && int64(len(got)) > tt.room {
				t.Errorf("fit = %q, %v", got, ok)
			}
		})
	}
}

func TestSummaryAppends(t *testing.T) {
	path := emptyFile(t)
	s := Summary{Path: path}
	for _, part := range []string{"a", "b\n", "c\xff"} {
		if err := s.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := contents(t, path), "a\n\n\nb\n\n\nc\uFFFD\n"; got != want {
		t.Errorf("summary is %q, want %q", got, want)
	}
}

// FuzzSet: whatever the values are, the runner reads exactly the names and values
// that were set.
func FuzzSet(f *testing.F) {
	for _, value := range hostileValues {
		f.Add("conclusion", value, "DENY")
		f.Add(value, value, value)
	}
	path := emptyFile(f)
	f.Fuzz(func(t *testing.T, name, first, second string) {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		o := Outputs{Path: path, Random: rand0()}
		var want []output
		for _, pair := range []output{{name, first}, {"verdict", second}} {
			if o.Set(pair.name, pair.value) == nil {
				want = append(want, pair)
			}
		}
		got, err := readOutputs(contents(t, path))
		if err != nil {
			t.Fatalf("the runner cannot read it: %v", err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(output{})); diff != "" {
			t.Fatalf("outputs (-want +got):\n%s", diff)
		}
	})
}
