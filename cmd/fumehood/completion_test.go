// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// completeInBash loads the completion script, completes the command line in LINE, whose words
// are separated by spaces, and prints what is offered.
const completeInBash = `source <(fumehood completion bash) || exit
COMP_LINE=$LINE COMP_POINT=${#LINE} COMP_TYPE=9 COMP_KEY=9
IFS=' ' read -ra COMP_WORDS <<<"$LINE"
[[ $LINE == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
__start_fumehood 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"`

// bash loads the completion script and completes commands, flags, values and directories.
func TestCompletion(t *testing.T) {
	long(t)
	t.Parallel()
	checkCompletion(t, "bash", completeInBash)
}

func checkCompletion(t *testing.T, shell, program string) {
	t.Helper()
	for line, want := range map[string][]string{
		"fumehood ru":                        {"run"},
		"fumehood policy ex":                 {"explain"},
		"fumehood help policy bun":           {"bundle"},
		"fumehood run --pol":                 {"--policy", "--policy-key", "--policy-scope"},
		"fumehood run --life":                nil, // hidden
		"fumehood check -o ":                 {"text", "json", "markdown"},
		"fumehood export x.jsonl --to ":      {"decisions", "otlp"},
		"fumehood policy explain --phase se": {"setup"},
		"fumehood completion ":               {"bash", "zsh", "fish"},
		"fumehood policy docs dx":            nil,
	} {
		if got := completed(t, shell, program, line); !slices.Equal(got, want) {
			t.Errorf("%s completes %q with %q, want %q", shell, line, got, want)
		}
	}
}

// completed returns the words that a shell offers, without their descriptions.
func completed(t *testing.T, shell, program, line string) (words []string) {
	t.Helper()
	cmd := exec.Command(shell, "-c", program)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "LINE="+line, "PATH="+filepath.Dir(jobtest.FindProgram(t))+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	for offer := range strings.Lines(string(out)) {
		word, _, _ := strings.Cut(strings.TrimSpace(offer), " ")
		if word, _, _ = strings.Cut(strings.TrimRight(word, ":"), ":"); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// bash joins the pieces of --flag=value, and completes names of directories without the
// package bash-completion.
func TestCompletionPieces(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "workspace"), 0o755); err != nil {
		t.Fatal(err)
	}
	program := `cd "$DIR"; source <(fumehood completion bash) || exit
COMP_WORDS=(fumehood check --output = js) COMP_CWORD=4 COMP_LINE="fumehood check --output=js" COMP_POINT=26 COMP_TYPE=9 COMP_KEY=9
__start_fumehood 2>/dev/null; echo "${COMPREPLY[@]}"
COMP_WORDS=(fumehood run --workspace wo) COMP_CWORD=3 COMP_LINE="fumehood run --workspace wo" COMP_POINT=27
__start_fumehood 2>/dev/null; echo "${COMPREPLY[@]}"`
	cmd := exec.Command("bash", "-c", program)
	cmd.Env = append(os.Environ(), "DIR="+dir, "PATH="+filepath.Dir(jobtest.FindProgram(t))+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "json\nworkspace\n" {
		t.Errorf("%v: %q", err, out)
	}
}
