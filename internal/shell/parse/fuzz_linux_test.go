// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestMain runs fuzzing in its own network namespace, because the fuzzed text may
// connect to anything. This requires root, so only root can fuzz.
func TestMain(m *testing.M) {
	flag.Parse()
	if fuzzing() && os.Getenv("PARSE_FUZZ_ALONE") == "" {
		os.Exit(alone())
	}
	os.Exit(m.Run())
}

func fuzzing() bool { return flag.Lookup("test.fuzz").Value.String() != "" }

// alone runs the test binary again, without a network.
func alone() int {
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), "PARSE_FUZZ_ALONE=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if cmd.ProcessState == nil {
		os.Stderr.WriteString("fuzzing shells needs root: " + err.Error() + "\n")
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// FuzzBash compares what bash starts with what Analyze finds.
func FuzzBash(f *testing.F) { fuzzShell(f, checkAgainstBash) }

// FuzzDash does the same for sh -c and dash.
func FuzzDash(f *testing.F) { fuzzShell(f, checkAgainstDash) }

// fuzzShell reads its input as text, or after a leading NUL as tokens, one per byte.
func fuzzShell(f *testing.F, check func(testing.TB, lab, string) int) {
	l := newLab(f)
	seeds := samples(f, "plain.txt", "words.txt", "refused.txt")
	if !fuzzing() {
		seeds = seeds[:20]
	}
	for i, seed := range seeds {
		f.Add(seed.text)
		f.Add("\x00" + seed.text[:min(i%9+1, len(seed.text))])
	}
	f.Fuzz(func(t *testing.T, text string) {
		if tokens, ok := strings.CutPrefix(text, "\x00"); ok {
			text = fromTokens(tokens)
		}
		if len(text) < 400 {
			l.clean(t)
			check(t, l, text)
		}
	})
}

func fromTokens(bytes string) string {
	words := make([]string, len(bytes))
	for i := range len(bytes) {
		words[i] = strings.ReplaceAll(strings.ReplaceAll(fuzzTokens[int(bytes[i])%len(fuzzTokens)], "␤", "\n"), "␣", " ")
	}
	return strings.Join(words, "")
}

// fuzzTokens are the tokens of the random texts, most followed by a blank.
var fuzzTokens = func() []string {
	var out []string
	for _, token := range tokens {
		out = append(out, token+" ")
	}
	return append(out, strings.Fields("p q hidden x v $ ` ' \" \\ \\␤ ␤ # { } ( ) < > & | ; = [ ] ~ * ! @ - : / , % + ^ ␣ $( $(( ${ )) <( >( << <<< a[ f() case esac in do done")...)
}()
