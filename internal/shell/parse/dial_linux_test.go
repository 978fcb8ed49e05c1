// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"context"
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The texts below bring the name of a network connection, ¶, into the target of a
// redirection in every way that a value can get there. Bash really connects, to a
// listener on loopback, unless Analyze refuses the text or names the target.

var dialCarriers = []string{
	"v='¶'", "v='¶'; v=$v", "w='¶'; v=$w; w=x", "v=x; v='¶'", "for v in '¶'; do :; done", "for v in a ¶; do :; done", "for v in a {b,¶}; do :; done", "read -r v <<<'¶'", "printf -v v %s '¶'",
	"v=$(printf %s '¶')", "set -- '¶'; v=$1", "set -- a '¶'; v=$2", "v=/dev; v+=/tcp/127.0.0.1/PORT", "v=('¶'); v=${v[0]}", "declare v='¶'", "export v='¶'", "declare \"v=¶\"", ": ${v:='¶'}",
	"v='a ¶'; set -- $v; v=$2", "v='a ¶'; v=$v; for w in $v; do v=$w; done", "mapfile -t v <<<'¶'", "v=x¶; v=$v; v=${v#x}", "v=¶x; v=$v; v=${v%x}", "v=\"$(echo x)\"; v=${v/x/¶}",
	"select v in '¶'; do break; done <<<1", "f() { v=$1; }; f '¶'", "d=/dev; d=$d; v=$d/tcp/127.0.0.1/PORT", "cd /dev; v=$PWD/tcp/127.0.0.1/PORT", "HOME=/dev; v=~/tcp/127.0.0.1/PORT", "v=' ¶'; v=$v",
	"v=$'\\x2fdev/tcp/127.0.0.1/PORT'; v=$v", "v=/DEV/TCP/127.0.0.1/PORT; v=$v; v=${v,,}", "v=$(basename /)dev/tcp/127.0.0.1/PORT", "v=${x-¶}", "v=${PWD:+¶}", "v=/d*; v=$v; for v in $v/../dev; do v=/${v##*/}/tcp/127.0.0.1/PORT; done",
	"a=('x ¶'); a=(${a[0]}); v=${a[1]}", "v=${PWD%%[!/]*}dev/tcp/127.0.0.1/PORT", "coproc v { :; }; v='¶'", "v=; v=$(mktemp -u /dev/tcp/127.0.0.1/PORTXXX); v=${v%???}", "cd /dev; v=$(pwd)/tcp/127.0.0.1/PORT",
}

var dialTargets = []string{
	"$v", `"$v"`, "${v}", `"${v:-x}"`, `"${x:-$v}"`, `"${v%x}"`, `"${v##x}"`, `"${v/x}"`, `"${v:0}"`, `"${v[0]}"`, `"${v[@]}"`, `"$(echo "$v")"`, "/dev/${v#/dev/}", "{$v,}", "/dev/tcp/127.0.0.1/$((PORT))",
	"/dev/tcp/127.0.0.1/${p-PORT}", "/d${x-ev}/tcp/127.0.0.1/PORT", "~+/tcp/127.0.0.1/PORT", `"$PWD/tcp/127.0.0.1/PORT"`, "~/tcp/127.0.0.1/PORT", `"${v@U}"`, `"$OLDPWD$v"`, "$'\\x2fdev'/tcp/127.0.0.1/PORT", "./$v", "x$v",
}

var dialUses = []string{
	"cat < §", ": > §", ": >> §", ": <> §", ": &> §", ": >& §", ": <& §", "exec 3<>§", "x=$(<§)", "while read -r l; do break; done < §", "{ :; } > §", "f() { :; } < §; f", "[[ x ]] < §", "((1)) > §", "(:) < §", "if :; then :; fi 3<> §",
	"exec {fd}<> §", "for i in a; do :; done > §", "cat <<E <§\nE", "> §", "coproc cat < §; wait", "echo $(: < §)", "cat <(: < §)", "bash -c 'cat < \"$0\"' §", "trap ': < §' EXIT",
}

// TestDials tries every target with every carrier, each in one use. It reaps every
// child, so it must not run in parallel with other tests.
func TestDials(t *testing.T) {
	lanetest.SkipShort(t)
	l := newLab(t)
	port, dialed := listen(t)
	var texts []string
	for i, carrier := range dialCarriers {
		for j, target := range dialTargets {
			for k, use := range dialUses {
				if (i+j+k)%3 == 0 {
					text := carrier + "\n" + strings.ReplaceAll(use, "§", target)
					texts = append(texts, strings.NewReplacer("¶", "/dev/tcp/127.0.0.1/"+port, "PORT", port).Replace(text))
				}
			}
		}
	}
	understood, live := 0, 0
	for _, text := range sample.EveryNth(t, texts, 20, 28) {
		analysis := Analyze(proposal.Proposal{Run: text})
		if namesNetwork(analysis) {
			continue
		}
		l.run(t, text)
		connected := dialed() > 0
		switch {
		case len(analysis.Unknowns) > 0 && connected:
			live++
		case len(analysis.Unknowns) == 0 && connected:
			t.Errorf("bash connects, which is not in the commands of %q", text)
		case len(analysis.Unknowns) == 0:
			understood++
		}
	}
	t.Logf("%d texts understood, %d of those refused connect", understood, live)
	if understood < 20 || live < 100 {
		t.Error("too few of either to mean anything")
	}
}

// namesNetwork reports whether a redirection of the analysis names the connection, for
// policy to judge.
func namesNetwork(analysis proposal.Analysis) bool {
	for _, c := range analysis.Commands {
		for _, r := range c.Redirects {
			if r.Target.Static && strings.HasPrefix(r.Target.Value, "/dev/tcp/") {
				return true
			}
		}
	}
	return false
}

// listen accepts and closes connections to a port on loopback. The returned function
// counts the connections since its last call: those ahead of its own in the
// listener's queue.
func listen(t *testing.T) (string, func() int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	from := make(chan string, 64)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
			from <- conn.RemoteAddr().String()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port, func() (n int) {
		own, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		for ; <-from != own.LocalAddr().String(); n++ {
		}
		return n
	}
}

// run runs text with bash until bash and the processes it left behind have ended. A
// process that still holds bash's standard error is still running.
func (l lab) run(t *testing.T, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/bash", "--norc", "--noprofile", "-c", text)
	cmd.Dir, cmd.Env, cmd.Stderr = l.dir, []string{"PATH=" + l.path + ":/usr/bin:/bin", "HOME=" + l.dir}, io.Discard
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: l.as}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
}
