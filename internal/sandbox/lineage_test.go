// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/watch/lineage"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// following allows everything, and lets shells and launchers keep their lineage.
func following(x proposal.Exec) proposal.ExecDecision {
	d := allow(x)
	d.Cacheable = true
	if x.First || slices.Contains([]string{"env", "dash", "bash", "timeout", "xargs", "find", "unshare"}, path.Base(x.Path)) {
		d.Lineage = x.Lineage
	}
	return d
}

const id = "/usr/bin/id"

// lineagesOf returns the lineages of the processes that asked to run program.
func (r *recorder) lineagesOf(program string) (list []uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.asked {
		if x.Path == program {
			list = append(list, x.Lineage)
		}
	}
	return list
}

// The kernel knows each process's lineage, whatever forks and waits for whom.
func TestLineage(t *testing.T) {
	r, rec := gated(t)
	for _, test := range []struct {
		name, text string
		want       uint32
	}{
		{"a child", "id", 1},
		{"subshells", "( ( ( id; true ); true ); true )", 1},
		{"a process that was left to init", "( ( ( sleep 0.3; id; touch asked ) & ) & ); until [ -e asked ]; do sleep 0.1; done", 1},
		{"a pipe in the background", "true | id & wait", 1},
		{"an inner shell", "sh -c 'id; true'", 1},
		{"launchers", "echo | timeout 5 xargs env id", 1},
		{"find", `find . -maxdepth 0 -exec id \;`, 1},
		{"exec", "exec id", 1},
		{"a trap", "trap id EXIT", 1},
		{"a program's shell", "/opt/bin/testprogram run sh -c 'id; true'", 0},
		{"a script", "printf 'id\\n' > s; chmod +x s; ./s", 1}, // bash does it if the kernel does not
		{"a script with a first line", "printf '#!/opt/bin/testprogram script\\nid\\n' > m; chmod +x m; ./m", 0},
		{"vfork", "/opt/bin/tricks vfork /usr/bin/id; sleep 0.2", 0},
		{"a thread", "/opt/bin/tricks threads /usr/bin/id", 0},
		{"a program's grandchild", "/opt/bin/testprogram daemon /opt/bin/testprogram daemon id | cat", 0}, // cat waits for id
		{"another name space", "unshare -Ur id", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			rec.reset(following)
			out, _ := play(t, r, test.text)
			got := rec.lineagesOf(id)
			if len(got) == 0 || slices.ContainsFunc(got, func(l uint32) bool { return l != test.want }) {
				t.Errorf("lineages %v, want %d; output %q", got, test.want, out)
			}
		})
	}
}

// An answer to a program is not reused for a text's process, which is asked about
// each time; an answer to a program may be reused for programs.
func TestTextIsAskedEachTime(t *testing.T) {
	r, rec := gated(t)
	rec.reset(following)
	play(t, r, "/opt/bin/testprogram run sh -c 'id; id; id; true'; id; id; id")
	if got := rec.lineagesOf(id); !slices.Equal(got, []uint32{0, 1, 1, 1}) {
		t.Errorf("asked for lineages %v, want once for the program and each time for the text", got)
	}
}

// The first process of an argv is a program, unless it is a launcher.
func TestFirstProcess(t *testing.T) {
	r, rec := gated(t)
	lowered := testLimits()
	lowered.Files /= 2
	for _, test := range []struct {
		name  string
		x     Execution
		limit proposal.Limits
		want  uint32
	}{
		{"free program", Execution{Argv: []string{tricks, "vfork", id}, Free: true}, testLimits(), 0},
		{"tool", Execution{Argv: []string{tricks, "vfork", id}}, testLimits(), lineage.Tool},
		{"launcher", Execution{Argv: []string{"env", "id"}, Launches: true}, testLimits(), 1},
		{"launcher with lower limits", Execution{Argv: []string{"env", "id"}, Launches: true}, lowered, 1},
		{"text with lower limits", Execution{Text: "id"}, lowered, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			rec.reset(following)
			test.x.ID, test.x.Grant = "x", proposal.Grant{Limits: test.limit}
			if _, err := r.Run(t.Context(), test.x); err != nil {
				t.Fatal(err)
			}
			if got := rec.lineagesOf(id); !slices.Equal(got, []uint32{test.want}) {
				t.Errorf("lineages %v, want %d", got, test.want)
			}
		})
	}
}

// Everything that xargs passes at once is available for the decision, and so are the
// text's changes to the environment.
func TestWholeArgv(t *testing.T) {
	r, rec := gated(t)
	rec.reset(following)
	play(t, r, "export NEW=1 LANG=x; seq 100000 199999 | xargs -s 100000 echo > /dev/null")
	rec.mu.Lock()
	defer rec.mu.Unlock()
	var words int
	for _, x := range rec.asked {
		if path.Base(x.Path) != "echo" {
			continue
		}
		if words += len(x.Whole) - 1; x.Partial || x.EnvCut {
			t.Errorf("%d words, partial %v, environment cut %v", len(x.Whole), x.Partial, x.EnvCut)
		}
		if !slices.Equal(x.Variables, []string{"LANG", "NEW"}) && !slices.Equal(x.Variables, []string{"NEW", "LANG"}) {
			t.Errorf("changed variables %q", x.Variables)
		}
	}
	if words != 100000 {
		t.Errorf("%d words were shown, want all of 100000", words)
	}
}

// A shell that connects by itself is ended: no allowed redirection makes it connect.
// For a program that connects, the network's rules apply.
func TestStray(t *testing.T) {
	r, rec := gated(t)
	for _, test := range []struct {
		name, text string
		ended      bool
	}{
		{"a redirection", "f=/dev/tcp/127.0.0.1/9; cat < $f; sleep 600", true},
		{"in an inner shell", "bash -c ': > /dev/udp/127.0.0.1/9'; sleep 600", true},
		{"a program", "/opt/bin/testprogram connect 127.0.0.1:9; echo on", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			rec.reset(following)
			_, result := play(t, r, test.text)
			ended := result.Status == proposal.Signaled && strings.Contains(result.Detail, "127.0.0.1:9")
			if ended != test.ended {
				t.Errorf("%s, %q; want it ended: %v", result.Status, result.Detail, test.ended)
			}
		})
	}
}
