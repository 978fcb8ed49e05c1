// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A project is a directory and the commands that are measured in it, one after the other.
type project struct {
	name     string
	fill     func(b testing.TB, dir string)
	commands []string
}

// workPath has the tools of workProjects, on the host and inside.
const workPath = "/usr/local/go/bin:/usr/bin:/bin"

// workEnv is the environment on the host and inside, besides HOME and PATH.
var workEnv = map[string]string{"GOTOOLCHAIN": "local", "GOPROXY": "off", "GOFLAGS": "-buildvcs=false",
	"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.checkStat", "GIT_CONFIG_VALUE_0": "minimal"}

func workProjects() []project {
	return []project{
		{"50,000 files", func(b testing.TB, dir string) { manyFiles(b, dir, 50_000) }, append(fileCommands, "rg -q never-found .")},
		goProject("golang.org/x/mod", "./semver ./module ./modfile ./sumdb/..."),
		goProject("github.com/google/go-cmp", "./..."),
		goProject("golang.org/x/text", "./language ./encoding/... ./unicode/..."),
		{"npm", npmProject, []string{"npm test", "npm test"}},
		{"pytest", pythonProject, []string{"python3 -m pytest -q toolz", "python3 -m pytest -q toolz"}},
		{"configure and make", madeProject, []string{"sh configure", "make -s -j2"}},
	}
}

// BenchmarkWork prints one table of real work: on the host, in a workspace that is a
// directory, and in one that is an image. In the sandboxes everything is on: cgroups, limits,
// gate, monitor, overlay and changes; the decisions are constant. Each way has a fresh copy of
// each project; "start" is that of the sandbox, with the making of the image. It needs npm,
// pytest and ripgrep, and fetches two packages.
//
//	go test ./internal/sandbox -run '^$' -bench Work -benchtime 1x -timeout 60m
func BenchmarkWork(b *testing.B) {
	for _, p := range workProjects() {
		b.Run(p.name, func(b *testing.B) {
			from := b.TempDir()
			p.fill(b, from)
			for b.Loop() {
				logLoad(b)
				native, directory, image := p.native(b, from), p.inside(b, from, math.MaxInt), p.inside(b, from, 1)
				for i, text := range append([]string{"start"}, p.commands...) {
					b.Logf("| %s | %s | %s | %s | %s | %.1f | %.1f | %.1f | %.1f |", p.name, text, native[i], directory[i], image[i],
						ratio(directory[i].wall, native[i].wall), ratio(image[i].wall, native[i].wall), ratio(directory[i].cpu, native[i].cpu), ratio(image[i].cpu, native[i].cpu))
				}
			}
		})
	}
}

func ratio(a, of time.Duration) float64 {
	if of == 0 {
		return 0
	}
	return a.Seconds() / of.Seconds()
}

func logLoad(b *testing.B) {
	b.Helper()
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("load %s", load)
}

// copyTree copies a project; git knows the copy's files, as it does those of a checkout.
func copyTree(b *testing.B, from, to string) {
	b.Helper()
	sh(b, to, "cp -a "+from+"/. . && if [ -e .git ]; then git status > /dev/null; fi")
}

// native measures the commands on the host; "start" takes nothing.
func (p project) native(b *testing.B, from string) []cost {
	b.Helper()
	dir, env := b.TempDir(), []string{"PATH=" + workPath, "HOME=" + b.TempDir()}
	copyTree(b, from, dir)
	for name, value := range workEnv {
		env = append(env, name+"="+value)
	}
	took := []cost{{}}
	for _, text := range p.commands {
		begin := time.Now()
		cmd := exec.Command("/bin/bash", "-c", text+" > /dev/null")
		cmd.Dir, cmd.Env = dir, env
		if err := cmd.Run(); err != nil && !findsNothing(text) {
			b.Fatalf("%s: %v", text, err)
		}
		took = append(took, cost{time.Since(begin), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()})
	}
	return took
}

// inside measures the commands in a workspace that is an image from so many files on.
func (p project) inside(b *testing.B, from string, imageFrom int) []cost {
	b.Helper()
	o, rec := gatedOptions(b)
	rec.reset(allow)
	o.Path, o.Env, o.ImageFrom, o.Events = workPath, workEnv, imageFrom, math.MaxInt32
	o.Limits.CPUs, o.Limits.Memory, o.Limits.Disk, o.Limits.Pids, o.Limits.Wall = 64, 8*proposal.GiB, 4*proposal.GiB, 2000, proposal.Duration(10*time.Minute)
	copyTree(b, from, o.Workspace)
	return sandboxCosts(b, o, p.commands)
}

// goProject tests a dependency of this module twice: with an empty build cache, and with what
// the first time left there.
func goProject(module, packages string) project {
	text := "go test -count=1 " + packages
	return project{module, func(b testing.TB, dir string) { copyModule(b, module, dir) }, []string{text, text}}
}

// npmProject is a package that includes its tests, with its dependencies.
func npmProject(b testing.TB, dir string) {
	b.Helper()
	sh(b, dir, `tar -xzf "$(npm pack --ignore-scripts --silent @fastify/merge-json-schemas@0.2.0)" --strip-components=1 && npm pkg set scripts.test='node --test' &&
		npm install --ignore-scripts --omit=dev --no-audit --no-fund >/dev/null`)
}

// pythonProject is a package of the distribution that includes its tests.
func pythonProject(b testing.TB, dir string) {
	b.Helper()
	sh(b, dir, "apt-get download -qq python3-toolz && dpkg-deb -x *.deb unpacked && mv unpacked/usr/lib/python3/dist-packages/* . && rm -r unpacked *.deb")
}

// madeUnits is how many checks configure makes, with 9 programs each, and how many files make
// compiles, with 3: 2,880 programs, and some for the library.
const madeUnits = 240

// madeProject is like a project of autoconf: a script that compiles a small program for each
// of its checks and works on text, and a Makefile.
func madeProject(b testing.TB, dir string) {
	b.Helper()
	const check = `echo 'int main(void) { return sizeof(%[1]s[%[2]d]) == 0; }' > conftest.c
gcc -c conftest.c -o conftest.o && size=$(expr %[2]d + 1) && cat conftest.c | sed s/main/check/ | grep check > conftest.out && uname > /dev/null && rm conftest.o && echo "#define CHECK_%[2]d $size" >> config.h
`
	var configure, objects strings.Builder
	for i := range madeUnits {
		fmt.Fprintf(&configure, check, []string{"char", "int", "long", "double"}[i%4], i)
		fmt.Fprintf(&objects, " unit%d.o", i)
		source := fmt.Sprintf("#include <stdio.h>\n#include \"config.h\"\nint unit%[1]d(void) { return printf(\"%%d\\n\", CHECK_%[1]d); }\n", i)
		write(b, filepath.Join(dir, fmt.Sprintf("unit%d.c", i)), source)
	}
	write(b, filepath.Join(dir, "configure"), "set -e\n"+configure.String())
	makefile := "libunits.a:" + objects.String() + "\n\tar cr $@ $^\n%.o: %.c config.h\n\tgcc -O1 -c $< -o $@\n"
	write(b, filepath.Join(dir, "Makefile"), makefile)
}
