// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// controlWrites change a control place each, without the words of a command showing it in most of
// them: gl and hub are links that lead there.
var controlWrites = []string{
	"echo x > .git/new", "echo x >> .git/config", ": > .git/hooks/pre-commit", "echo x > .github/new", "cd .git/hooks; echo x > new", "echo x > /workspace/sub/../.git/new",
	"echo x > gl/new", "echo x > gl/hooks/new", "echo x > sub/up/.git/new", "echo x > hub/new", "echo x > dangling", "echo x > /proc/self/cwd/.git/new", "echo x > /proc/self/root/workspace/gl/new",
	"exec 3< .git/config; echo x > /proc/self/fd/3", "exec 3< .git; echo x > /dev/fd/3/new", "dd if=/dev/zero of=gl/new count=1", "mkdir gl/new", "mkdir .github/workflows/new", "mkfifo gl/new",
	"mv a gl/new", "mv sub .git/", "mv -T .git other", "mv .github other", "ln a gl/new", "ln -s /workspace/a gl/new", "ln .git/config own; echo x > own", "ln -f gl/config own",
	"rm .git/config", "rm -r .git", "rmdir gl/empty", "truncate -s 0 gl/config", "chmod 777 gl/config", "install a gl/new", "cp a gl/new", "cp -r sub gl/new", "tee gl/new < a >/dev/null",
	"sed -n 'w gl/new' a", "awk '{ print > \"gl/new\" }' a", "tar xf control.tar", "tar xf a.tar --transform 's,^,gl/,'", "sort -o gl/new a", "split a gl/new", "touch gl/new", "cd sub; echo x > ../.git/new",
	"rm -rf /tmp/w; ln -s /workspace /tmp/w; echo x > /tmp/w/.git/new", "touch -c -d 2001-01-01 gl/config", "git log -1 --output=gl/new", "git archive -o hub/new HEAD",
	"/opt/bin/tricks control .git/config >&2", "/opt/bin/tricks bind gl/new >&2", "/opt/bin/tricks bind /workspace/hub/workflows/new >&2", "cd sub; /opt/bin/tricks bind ../.git/new >&2",
	"mkdir -p /tmp/m; unshare -rm sh -c 'mount --bind .git /tmp/m; echo x > /tmp/m/new'", "mkdir -p /tmp/m; unshare -rm sh -c 'mount --bind . /tmp/m; rm /tmp/m/.git/config'",
	"mkdir -p /tmp/m; unshare -rm sh -c 'mount --bind . /tmp/m; cd /tmp/m; echo x > .git/new'",
}

// A command that may not run the repository's code changes nothing in .git and .github, by whatever
// path, and one that may does. git itself changes its own files in both.
func TestControlPlaces(t *testing.T) {
	t.Parallel()
	t.Run("workspace", func(t *testing.T) { checkControlPlaces(t, false) })
	t.Run("home", func(t *testing.T) { checkControlPlaces(t, true) })
}

func checkControlPlaces(t *testing.T, userHome bool) {
	o, rec := gatedOptions(t)
	o.UserHome = userHome
	prepare := exec.Command("bash", "-ec", `git init -q; mkdir -p .git/empty .github/workflows sub; echo one | tee a sub/b > .github/workflows/ci.yml; git add -A; git -c user.name=a -c user.email=a@example.com commit -qm x
		ln -s .git gl; ln -s sub/../.github hub; ln -s gl/new dangling; ln -s .. sub/up; tar cf a.tar a; mkdir -p /tmp/$$/.git/hooks; echo x > /tmp/$$/.git/hooks/new; tar cf control.tar -C /tmp/$$ .git/hooks; rm -r /tmp/$$; chown -R --reference=. .git .github`)
	prepare.Dir = o.Workspace
	if out, err := prepare.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := testRunner(t, o)
	rec.reset(allow)
	const state = "; find .git .github -printf '%p %y %m %s %l %T@\\n' 2>&1 | sort | sha256sum"
	before, _ := play(t, r, "true"+state)
	for _, text := range sample.EveryNth(t, controlWrites, 4, 3) {
		out, result := play(t, r, "("+text+") 2>/tmp/error"+state+"; cat /tmp/error; rm -rf own other")
		if !strings.HasPrefix(out, strings.TrimSpace(before)) || !strings.Contains(strings.ToLower(out), "permission denied") {
			t.Errorf("%s: %s %+v", text, out, result.Status)
		}
	}
	rec.reset(allow)
	workspace := map[bool]string{false: Workspace, true: UserHome}[userHome]
	_, _ = play(t, r, "echo x > gl/hooks/new; echo x > gl/hooks/new; mv a hub/new")
	written, renamed := rec.kind(proposal.EventWrite), rec.kind(proposal.EventRename)
	if len(written) != 1 || written[0].Path != workspace+"/.git/hooks/new" || written[0].Errno != "EACCES" || len(renamed) != 1 || renamed[0].Path != workspace+"/.github/new" {
		t.Errorf("recorded %+v, %+v", written, renamed)
	}
	for _, text := range []string{
		"/opt/bin/tricks bind socket; /opt/bin/tricks bind /tmp/socket; cat gl/config .github/workflows/ci.yml; ls -R .git hub; cp -r .git /tmp/copy; echo x > /tmp/copy/config; mkdir -p sub/.github; echo x > sub/.github/x; echo x > .gitignore; echo x > gitx",
		"git -c user.name=a -c user.email=a@example.com commit -qam y --allow-empty; git checkout -qb other; git status; git tag v1; git stash -q; git rm -q --cached a; git reset -q --hard; git rev-parse v1 && test -f .github/workflows/ci.yml",
	} {
		if out, result := play(t, r, text); !result.Succeeded() || strings.Contains(out, "denied") {
			t.Errorf("%s: %s", text, out)
		}
	}
	for _, text := range sample.EveryNth(t, controlWrites, 8, 1) {
		if out, _ := play(t, r, text, points.ExecBuilt); strings.Contains(strings.ToLower(out), "permission denied") {
			t.Errorf("with the grant, %s: %s", text, out)
		}
	}
}
