// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// predicted reports whether one of the commands matches argv.
func predicted(commands []proposal.Command, argv []string) bool {
	for _, c := range commands {
		if len(c.Args) > 0 && matches(c, argv) {
			return true
		}
	}
	return false
}

func matches(c proposal.Command, argv []string) bool {
	if c.Function || path.Base(c.Program) != path.Base(argv[0]) {
		return false
	}
	for i, word := range c.Args[1:] {
		switch i++; {
		case !word.Static:
			return i >= len(argv) || strings.HasPrefix(argv[i], word.Value) || word.Value == ""
		case i >= len(argv) || argv[i] != word.Value:
			return false
		}
	}
	return len(argv) == len(c.Args)
}

// checkAgainstBash runs the canonical text and compares. It returns how many programs
// bash executed, or -1 if the text was refused and did not run.
func checkAgainstBash(t testing.TB, l lab, text string) int {
	t.Helper()
	analysis := Analyze(proposal.Proposal{Run: text})
	if len(analysis.Unknowns) > 0 || startsLogin(analysis) {
		return -1
	}
	executed := l.trace(t, analysis.Canonical)
	for _, argv := range executed {
		if !predicted(analysis.Commands, argv) {
			t.Errorf("bash ran %q, which is not among the commands of\n%s", argv, described(text, analysis))
		}
	}
	return len(executed)
}

func described(text string, analysis proposal.Analysis) string {
	var out strings.Builder
	describe(&out, text, analysis)
	return out.String()
}

// startsLogin reports whether a shell of the text reads the login profiles, which
// this package does not analyze: policy denies them.
func startsLogin(analysis proposal.Analysis) bool {
	return slices.ContainsFunc(analysis.Commands, func(c proposal.Command) bool {
		return shells[path.Base(c.Program)] && slices.ContainsFunc(c.Args, func(word proposal.Word) bool {
			return strings.HasPrefix(word.Value, "-") && strings.Contains(word.Value, "l")
		})
	})
}

// TestRandomTextsAgainstBash builds small scripts from tokens and compares what bash
// really executes with what Analyze found.
func TestRandomTextsAgainstBash(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	l := newLab(t)
	random := rand.New(rand.NewPCG(1, 2))
	compared, executed, rounds := 0, 0, sample.Rounds(t, 2000, 200, 100)
	for range 20000 {
		if compared == rounds {
			break
		}
		if n := checkAgainstBash(t, l, randomText(random)); n >= 0 {
			compared++
			executed += n
		}
	}
	t.Logf("%d texts compared, %d programs executed", compared, executed)
	if compared < rounds || executed < rounds/3 {
		t.Errorf("compared %d texts and %d programs: too few to mean anything", compared, executed)
	}
}

var tokens = strings.Fields(`id id whoami p p q r go git hidden hidden a=1 A=$x x y z $x "$x" ${x:-id} $(id) $(p) "$(q)" <(id) >(cat) 'p' "q" \p
	$'\x70' {p,q} {a,b} ; ; ; ; && && || | | |& & ( ) { } if then else fi while do done for in case esac ! time timeout env nice xargs
	bash sh -c 'id' 'p;q' "p|q" 'p␣#' # # ) )# \␤ \ ␤ ␤ ␤ > f 2>&1 <f <<<x <<E E <<'E' [[ ]] (( )) 1 5 -n -eq = == x=(1) x=(1)# f() { p; } ;;
	" ' $ $( ) $(( 1+1 )) $((1+1)) ${ } ${x# ${x% ${#x} ${x//a/b} * ? [a] ~ function coproc select until && true false then elif $" $'
	{ hidden; } (hidden) && hidden ; hidden | hidden  "a\"b" 'a\' "a\\" a\;b a#b ␤# -- exec command builtin cat <<-E >&2 &> f 3<f`)

func randomText(random *rand.Rand) string {
	var text strings.Builder
	for range 1 + random.IntN(9) {
		token := tokens[random.IntN(len(tokens))]
		token = strings.ReplaceAll(strings.ReplaceAll(token, "␤", "\n"), "␣", " ")
		text.WriteString(token)
		if random.IntN(8) > 0 {
			text.WriteByte(' ')
		}
	}
	return text.String()
}

// TestKnownDisagreements shows the two texts in which the parser and bash differ:
// bash runs a command that the parser does not see. Analyze must refuse them.
func TestKnownDisagreements(t *testing.T) {
	l := newLab(t)
	for name, text := range map[string]string{
		"comment that ends in a backslash": "p a # x \\\nhidden",
		"hash after an array":              "x=(1)#x ; hidden\nq",
	} {
		t.Run(name, func(t *testing.T) {
			file, err := parseText(text)
			if err != nil {
				t.Fatal(err)
			}
			analysis, _ := analyzeFile(proposal.Proposal{}, text, file, nil)
			seen := analysis.Commands
			missed := func(argv []string) bool { return !predicted(seen, argv) }
			if !slices.ContainsFunc(l.trace(t, text), missed) {
				t.Error("bash and the parser now agree: retire this case")
			}
			unknowns := Analyze(proposal.Proposal{Run: text}).Unknowns
			if len(unknowns) != 1 || unknowns[0].Code != "parse.ambiguous" {
				t.Errorf("got %+v, want parse.ambiguous", unknowns)
			}
		})
	}
}

// TestSamplesAgainstBash runs every text that Analyze understands.
func TestSamplesAgainstBash(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	l := newLab(t)
	compared, executed := 0, 0
	texts := sample.EveryNth(t, samples(t, "plain.txt", "nested.txt", "words.txt"), 6, 15)
	for _, s := range texts {
		if n := checkAgainstBash(t, l, s.text); n >= 0 {
			compared++
			executed += n
		}
	}
	t.Logf("%d texts compared, %d programs executed", compared, executed)
	if compared < len(texts)/4 || executed < len(texts)/4 {
		t.Errorf("compared %d texts and %d programs: too few to mean anything", compared, executed)
	}
}
