// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// withGrant refuses every file that is loaded as code, unless the command has the grant.
func withGrant(x proposal.Exec) proposal.ExecDecision {
	d := allow(x)
	if d.Cacheable = true; x.Loaded && !slices.Contains(x.Grants, points.ExecBuilt) {
		d.Effect, d.Reason = proposal.Deny, &proposal.Reason{Message: x.Layer}
	}
	return d
}

// loads lists what was loaded, or refused to be.
func (r *recorder) loads(kind string) (list []proposal.Exec) {
	for _, e := range r.kind(kind) {
		if e.Exec != nil && e.Exec.Loaded {
			list = append(list, *e.Exec)
		}
	}
	return list
}

// A file that a command can change does not become code in any way, unless policy allows it,
// and it is recorded. What does not work for a reason of gVisor's does not work with the
// grant either.
func TestLoad(t *testing.T) {
	t.Parallel()
	o, rec := gatedOptions(t)
	if err := os.WriteFile(filepath.Join(o.Workspace, "file"), readFile(t, filepath.Join(programsDir(t), "canary")), 0o644); err != nil {
		t.Fatal(err)
	}
	r := testRunner(t, o)
	type way struct {
		name, file string
		path       string // the refused path; "" if gVisor has no such way, with the grant or without
		layer      string
	}
	tests := []way{
		{name: "uselib", file: "/workspace/file"}, {name: "read implies exec", file: "/workspace/file"},
		{name: "remap pages", file: "/workspace/file"}, {name: "key", file: "/workspace/file"}, {name: "no name", file: "/workspace/file"},
		{"exec", "/tmp/file", "/tmp/file", proposal.LayerWritten},
		{"protect", "/tmp/file", "/tmp/file", proposal.LayerWritten},
		{"exec", "/dev/shm/file", "/dev/shm/file", proposal.LayerWritten},
		{"exec", "/home/fumehood/file", "/home/fumehood/file", proposal.LayerWritten},
		{"exec", "/workspace/written", "/workspace/written", proposal.LayerWritten},
		{"exec", "/workspace/hard", "/workspace/hard", proposal.LayerWritten},
		{"exec", "/workspace/link", "/workspace/file", proposal.LayerWorkspace},
		{"exec", "/tmp/directory/file", "/workspace/file", proposal.LayerWorkspace},
		{"write shared and protect", "/workspace/written", "/workspace/written", proposal.LayerWritten},
		{"memfd", "/workspace/file", "memfd:x", proposal.LayerMemory},
		{"deleted", "/workspace/file", "deleted", proposal.LayerMemory},
		{"segment", "/workspace/file", "SYSV", proposal.LayerMemory},
		{"segment and protect", "/workspace/file", "SYSV", proposal.LayerMemory},
		{"own mounts", "/workspace/file", "", proposal.LayerOther},
		{"own file system", "/workspace/file", "/usr/x", proposal.LayerOther},
		{"own root", "/workspace/file", "/file", proposal.LayerOther},
	}
	for _, name := range []string{"exec", "shared", "writable", "exec only", "locked", "offset", "protect", "protect a part", "protect nothing", "write and protect",
		"move and protect", "copy and protect", "protect in a fork", "replace code", "by descriptor", "by root", "exchanged"} {
		tests = append(tests, way{name, "/workspace/file", "/workspace/file", proposal.LayerWorkspace})
	}
	const prepare = "cp file /tmp/file; cp file /dev/shm/file; cp file ~/file; cp file written; ln -f written hard; ln -sf file link; ln -sfn /workspace /tmp/directory; "
	for _, test := range sample.EveryNth(t, tests, 4, 3) {
		t.Run(test.name+" "+test.file, func(t *testing.T) {
			text := prepare + "/opt/bin/tricks load '" + test.name + "' " + test.file
			rec.reset(withGrant)
			out, _ := play(t, r, text)
			refused := rec.loads(proposal.EventRefused)
			if strings.Contains(out, "CANARY") {
				t.Errorf("it became code: %s", out)
			}
			if test.layer == "" {
				if len(refused) > 0 {
					t.Errorf("refused %+v, which gVisor does not do", refused)
				}
			} else if !slices.ContainsFunc(refused, func(x proposal.Exec) bool {
				return strings.Contains(x.Path, test.path) && x.Layer == test.layer && x.From == tricks
			}) { // "exchanged" maps a program of the root, too, and may do so first
				t.Errorf("refused %d, first %+v; output %q", len(refused), refused[:min(1, len(refused))], out)
			}
			if len(rec.loads(proposal.EventLoad)) > 0 {
				t.Errorf("loaded %+v", rec.loads(proposal.EventLoad))
			}
			rec.reset(withGrant)
			out, _ = play(t, r, text, points.ExecBuilt)
			if works := strings.Contains(out, "CANARY"); works != (test.layer != "") {
				t.Errorf("with the grant: %q", out)
			}
			if len(rec.refused()) > 0 {
				t.Errorf("with the grant, refused %q", rec.refused())
			}
		})
	}
}

// Memory without a file, the libraries of the read-only root, and a process's own program are not
// asked about.
func TestLoadOfMemory(t *testing.T) {
	t.Parallel()
	r, rec := gated(t)
	rec.reset(withGrant)
	text := ""
	for _, name := range []string{"memory", "shared memory", "zeros", "shared zeros"} {
		text += "/opt/bin/tricks load '" + name + "' none; "
	}
	for _, name := range []string{"exec", "protect", "write and protect", "move and protect"} {
		text += "/opt/bin/tricks load '" + name + "' " + tricks + "; "
	}
	out, _ := play(t, r, text+"id")
	if strings.Count(out, "CANARY") != 8 {
		t.Errorf("output %q", out)
	}
	for _, x := range rec.asked {
		if x.Loaded {
			t.Errorf("asked about %s", x.Path)
		}
	}
}

// A process that maps another program of the read-only root, or a copy of one, starts it: that is
// decided each time, with the name that the program has there.
func TestLoadOfPrograms(t *testing.T) {
	t.Parallel()
	r, rec := gated(t)
	for _, name := range []string{"exec", "protect", "protect a part", "move and protect", "by root", "copied", "linked"} {
		t.Run(name, func(t *testing.T) {
			way, file, prepare := name, "/opt/bin/canary", ""
			switch name {
			case "copied":
				way, file, prepare = "exec", "/tmp/copy", "cp /opt/bin/canary /tmp/copy; "
			case "linked":
				way, file, prepare = "exec", "/tmp/link", "ln -sf /opt/bin/canary /tmp/link; "
			}
			text := prepare + "/opt/bin/tricks load '" + way + "' " + file
			rec.reset(func(x proposal.Exec) proposal.ExecDecision {
				d := allow(x)
				if x.Loaded {
					d.Effect, d.Reason = proposal.Deny, &proposal.Reason{Message: x.Path}
				}
				return d
			})
			out, _ := play(t, r, text, points.ExecBuilt)
			refused := rec.loads(proposal.EventRefused)
			if strings.Contains(out, "CANARY") || len(refused) == 0 || !refused[0].ELF.IsProgram() ||
				refused[0].Path != "/opt/bin/canary" && !slices.Equal(refused[0].Same, []string{"/opt/bin/canary"}) {
				t.Errorf("refused %+v; output %q", refused, out)
			}
			rec.reset(allow)
			if out, _ := play(t, r, text+"; /opt/bin/tricks load '"+way+"' "+file, points.ExecBuilt); strings.Count(out, "CANARY") != 2 {
				t.Errorf("allowed: %q", out)
			}
		})
	}
}

// An answer is used for one file of one command, and for its present content. What is allowed
// is recorded once.
func TestLoadIsAskedOnce(t *testing.T) {
	t.Parallel()
	r, rec := gated(t)
	rec.reset(withGrant)
	const twice = "/opt/bin/tricks load exec /tmp/a; /opt/bin/tricks load protect /tmp/a; "
	if out, _ := play(t, r, "cp /opt/bin/canary /tmp/a; "+twice+"echo >> /tmp/a; "+twice+"/opt/bin/tricks overwrite /tmp/a; "+twice, points.ExecBuilt); strings.Count(out, "CANARY") != 6 {
		t.Errorf("output %q", out)
	}
	digests := []string{}
	for _, x := range rec.loads(proposal.EventLoad) {
		digests = append(digests, x.Digest)
	}
	if len(digests) != 3 || len(slices.Compact(slices.Sorted(slices.Values(digests)))) != 3 {
		t.Errorf("%d loads of %q are recorded, want 3", len(digests), digests)
	}
	rec.reset(withGrant)
	if out, _ := play(t, r, twice); strings.Contains(out, "CANARY") || len(rec.loads(proposal.EventRefused)) != 2 {
		t.Errorf("without the grant: %q, refused %d times", out, len(rec.loads(proposal.EventRefused)))
	}
}
