// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The texts below put a canary into every slot of the shells: each word and option of
// each builtin, each way to set each special variable, each expansion in each place
// for a word. In them ¶ is the canary, § the slot. Every program that a shell starts
// must be among the Commands, or the text must be refused.

// canaries start hidden when a shell runs or evaluates them, as payload does.
var canaries = []string{"hidden", "$(hidden)", "x;hidden", "-v", "-p" + payload, "-Chidden", "($(hidden))"}

// unseen sets a variable to the canary so that its value is known only at run time.
var unseen = []string{"read -r v w <<<'¶ " + payload + "'", "for v in x '¶'; do :; done; w='" + payload + "'", "v=$(printf %s '¶'); w=$v", "set -- '¶' '" + payload + "'; v=$1 w=$2"}

// builtinTexts returns the slots of one builtin.
func builtinTexts(name string) []string {
	texts := []string{"§ '¶'", "§ x '¶'", "§ '¶' x", "§ x y '¶'", "§ -- '¶'", "§ *", "§ x=¶", "§ 'x=¶'", "¶ § x", "x='¶' § x", "§ <<<'¶'", "command § '¶'", "builtin § '¶'"}
	for _, use := range []string{`§ "$v"`, "§ $v", `§ "$v" "$w"`, "§ $v $w", `§ x "$v" '` + payload + `'`, `§ "$v" -n`, `§ "$v" x`, `§ x=$v`, `§ "x$v"`, `§ "$@"`, `§ ]  "$v"`} {
		for _, carrier := range unseen {
			texts = append(texts, carrier+"\n"+use)
		}
	}
	for _, letter := range strings.Split("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "") {
		for _, use := range []string{"§ -L '¶'", "§ -L'¶'", "§ -L x '¶'", "§ -L '¶' x", "§ +L '¶'", "§ -L 1 -L '¶' x", "read -r v w <<<'-L ¶'\n§ $v $w x", "read -r v w <<<'-L ¶'\n" + `§ "$v" "$w"`,
			"w='¶'; w=$w\n" + `§ -L "$w"`, "w='¶'; w=$w\n§ -L $w x"} {
			texts = append(texts, strings.ReplaceAll(use, "L", letter))
		}
	}
	for i := range texts {
		texts[i] += "\np" // the builtin may have changed which program this is
	}
	return fill(texts, name)
}

// variableTexts returns the ways to set one variable, each before something that
// reads it.
func variableTexts(name string) []string {
	var texts []string
	for _, set := range []string{"§='¶'", "§+='¶'", "§=('¶' '¶')", "§[0]='¶'", "read -r § <<<'¶'", "read -r -a § <<<'¶'", "printf -v § %s '¶'", "for § in '¶'; do :; done", "mapfile -t § <<<'¶'",
		"declare §='¶'", "declare -i §='¶'", "typeset -x §='¶'", "export §='¶'", "readonly §='¶'", "f() { local §='¶'; p; }; f", "((§=1))", "let '§=1'", "[[ §=1 -eq 1 ]]", "printf '1234%n' §",
		": ${§:='¶'}", "unset §; §='¶'", "getopts a: § -a'¶'", "select § in '¶'; do break; done <<<1", "coproc § { p; }", "exec {§}>f", "§='¶' p", "§='¶' bash -c p", "§='¶' sh -c p", "env §='¶' bash -c p",
		"export '§=¶'", `x='¶'; x=$x; §=$x`, `x='¶'; x=$x; export §="$x"`, "wait -n -p §", "§=5", "§=1 § 2", "local §; §='¶'", "declare -u §='¶'"} {
		for _, use := range []string{":", "echo $§", "echo $((§))", "[[ § -eq 1 ]]", "set -x; p", "bash -c p", "sh -c p", "p & wait", "echo ${x[§]}", "p *"} {
			texts = append(texts, set+"\n"+use)
		}
	}
	return fill(texts, name)
}

// expansions are the forms of a variable v that may hold the canary, and those that
// contain the canary themselves.
var expansions = strings.Fields(`$v ${v} ${v:-x} ${v-x} ${v:+$v} ${v:=x} ${v:?} ${v#x} ${v##x} ${v%x} ${v%%x} ${v/x/y} ${v//x/y} ${v/#x/y} ${v/%x/y} ${v^} ${v^^} ${v,} ${v,,} ${v@Q}
	${v@E} ${v@P} ${v@A} ${v@K} ${v@k} ${v@a} ${v@u} ${v@U} ${v@L} ${!v} ${!v@} ${!v*} ${v[0]} ${v[@]} ${v[*]} ${!v[@]} ${#v} ${#v[@]} ${v:0} ${v:0:99} ${v:v} $v[0] x$v ${x-$v} ${x:-¶}
	${x:=¶} ${x:¶} ${x[¶]} ${x/¶/¶} ${x#¶} ${!¶} $((¶)) $[¶] $(¶) <(¶) $((v)) $((x[v])) $(($v)) ¶ a[¶] {¶,x} ~¶ $1 $@ $* ${*} ${@:1} ${1:-x} $'¶' ${x-'¶'}
	${x-"¶"} ${x-$'¶'} ${x#'¶'} ${x%"¶"} ${x/'¶'/y} ${x/y/"¶"} ${x+'¶'} ${x-'}¶'} ${x-\¶} ${x-${y-'¶'}} "${x-'¶'}" "${x-"'¶'"}" '¶' "¶" ${x['¶']} $(('¶')) $(("¶")) \'¶\' ${x[1<(¶)]}
	${x:1<(¶)} $((1<(¶))) ${x-<(¶)} "${x-<(¶)}" ${x#>(¶)} ${x/<(¶)/y} x<(¶) -¶ 1¶ {x}¶` + " `¶`")

// places are the contexts of a word.
var places = []string{"echo §", `echo "§"`, "((§))", "echo $((§))", "echo $((x+§))", "[[ § -eq 1 ]]", "[[ -v § ]]", "[[ § ]]", "[[ x =~ § ]]", "[ -v § ]", "[ § -eq 1 ]", `[ "§" ]`, `[ "§" "§" ]`,
	`[ x -a "§" '` + payload + `' ]`, "test § x", "let §", "let x=§", `let "x=§"`, "x[§]=1", "echo ${x[§]}", "echo ${x:§}", "echo ${x:-§}", `echo "${x:-§}"`, "declare -i n=§", "declare x[§]=1", "declare §",
	"unset §", "read § <<<1", "printf -v § 1", "printf § x", "case § in x) ;; esac", "case x in §) ;; esac", "for i in §; do :; done", "for i in §; do ((i)); done", "for ((i=§;0;)); do :; done",
	"cat <<E\n§\nE", "cat <<<§", "p > §", "p 2>&§", "p 2>&-§", "p <&-§", "p 2>&1§", "p >&§", "p 3§", "p §>f", "p >|§", "p &>§", "p <<E§\nx\nE", "p <<-§\nx\n§", "p < §", "trap § EXIT", `trap "§" EXIT`, "wait §", "shift §", "(exit §)", "kill §", "ulimit -n §", "cd §", "x=§; echo $((x))", "x=(§)", "x=([§]=1)",
	"export x=§", "f() { local x=§; ((x)); }; f", "select x in §; do break; done <<<1", "coproc §", "exec §", "§", "§ p", "p §", "command §", "{§}>f", `bash -c "§"`, "bash -c §", `sh -c "§"`, "sh -c §",
	"time §", "! §", "set -- §; echo $(($1))", "f() { [ $1 ]; }; f §", "eval §", "find . -name §", "xargs §", "env §", "timeout § p", "hash §", "jobs §", "mapfile §", "getopts § x", "pushd §", `y=(1); declare y="§"`, `y[0]=1; declare y="§"`, `: ${y[0]:=1}; declare y="§"`, `((y[0]=1)); readonly y="§"`, `coproc y { p; }; declare y="§"`,
	`mapfile <<<x; declare MAPFILE="§"`, `read -a y <<<1; typeset y="§"`, "y=(1); y=§", "y=(1); export y=§", "x=(1 2); echo ${x[@]:§}", "x=§ bash -c '((x))'"}

func expansionTexts() []string {
	var texts []string
	for _, place := range places {
		for _, expansion := range expansions {
			text := strings.ReplaceAll(place, "§", expansion)
			texts = append(texts, text, unseen[0]+"\n"+text, "v='¶'; w=x\n"+text, "f() { "+text+"\n}; f '¶'")
		}
	}
	return fill(texts, "")
}

// fill puts the payload and one more canary into each of texts.
func fill(texts []string, slot string) []string {
	var out []string
	for i, text := range texts {
		text = strings.ReplaceAll(text, "§", slot)
		out = append(out, strings.ReplaceAll(text, "¶", payload))
		if strings.Contains(text, "¶") {
			out = append(out, strings.ReplaceAll(text, "¶", canaries[(i+len(slot))%len(canaries)]))
		}
	}
	return out
}

// slotTexts returns all texts, in groups.
func slotTexts(t *testing.T) map[string][]string {
	t.Helper()
	groups := map[string][]string{"expansions": expansionTexts()}
	for _, name := range append(bashPrints(t, "compgen -b"), "chdir") {
		groups["builtins"] = append(groups["builtins"], builtinTexts(name)...)
	}
	names := append(sortedKeys(shellOwn), bashPrints(t, "compgen -v")...)
	slices.Sort(names)
	for _, name := range append(slices.Compact(names), "x", "BASH_FUNC_p%%", "LD_PRELOAD", "1", "@", "?") {
		groups["variables"] = append(groups["variables"], variableTexts(name)...)
	}
	return groups
}

func bashPrints(t *testing.T, text string) []string {
	t.Helper()
	tracing.Lock()
	defer tracing.Unlock()
	out, err := exec.Command("bash", "-c", text).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// TestSlots tries the slots in both shells.
func TestSlots(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	l := newLab(t)
	for group, texts := range slotTexts(t) {
		t.Run(group, func(t *testing.T) {
			texts, compared, executed := sample.EveryNth(t, seventh(texts), 28, 49), 0, 0
			for _, text := range texts {
				for _, n := range []int{checkAgainstBash(t, l, text), checkAgainstDash(t, l, text)} {
					compared, executed = compared+min(1, n+1), executed+max(0, n)
				}
			}
			t.Logf("%d texts tried, %d understood and compared, %d programs executed", len(texts), compared, executed)
			if compared < len(texts)/20 || executed < compared/5 {
				t.Error("too few to mean anything")
			}
		})
	}
}

// TestSlotsAreDangerous shows that the canaries work: for many refused texts, bash
// really runs the hidden program.
func TestSlotsAreDangerous(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	l := newLab(t)
	random := rand.New(rand.NewPCG(7, 8))
	texts, tried, alive := slices.Concat(slices.Collect(maps.Values(slotTexts(t)))...), 0, 0
	slices.Sort(texts)
	for rounds := sample.Rounds(t, 400, 100, 100); tried < rounds; {
		text := texts[random.IntN(len(texts))]
		if len(Analyze(proposal.Proposal{Run: text}).Unknowns) == 0 {
			continue
		}
		tried++
		if ran(l.trace(t, text), "hidden") {
			alive++
		}
	}
	t.Logf("%d of %d refused texts run the hidden program", alive, tried)
	if alive < tried/20 {
		t.Error("the canaries are dead")
	}
}

// checkAgainstDash is checkAgainstBash for text that sh -c reads.
func checkAgainstDash(t testing.TB, l lab, text string) int {
	t.Helper()
	analysis := Analyze(proposal.Proposal{Argv: []string{"sh", "-c", text}})
	if len(analysis.Unknowns) > 0 || startsLogin(analysis) {
		return -1
	}
	executed := l.traceDash(t, text)
	for _, argv := range executed {
		if !predicted(analysis.Commands, argv) {
			t.Errorf("dash ran %q, which is not among the commands of\n%s", argv, described(text, analysis))
		}
	}
	return len(executed)
}

// seventh returns the part of texts that the end-to-end tests try, since all of them
// take half an hour. FUMEHOOD_TEST_SLOTS=all selects all of them.
func seventh(texts []string) (some []string) {
	if os.Getenv("FUMEHOOD_TEST_SLOTS") == "all" {
		return texts
	}
	for i := 0; i < len(texts); i += 7 {
		some = append(some, texts[i])
	}
	return some
}
