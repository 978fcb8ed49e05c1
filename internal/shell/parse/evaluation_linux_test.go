// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

// payload runs hidden when bash evaluates it as an expression or expands it again.
const payload = "a[$(hidden)]"

// carriers bring the payload, or what may become one, into a variable §.
var carriers = []string{
	"§='¶'", "§='¶'; w=§; §=w", "w='¶'; §=$w", "w='¶'; §=w", "set -- '¶' '¶'; §=$1", "read -r § <<<'¶'", "printf -v § %s '¶'", "export §='¶'",
	"§=('¶' '¶')", "§=(1 2); §[0]='¶'", "declare -A §; §[k]='¶'; k=k", "declare -a §='($(hidden))'", "mapfile -t § <<<'¶'", "for § in '¶'; do :; done",
	": ${§:='¶'}", "§=1; §+='¶'", "§=$(printf %s '¶')", "§=1; w='¶'", "§='$(hidden)'", "§='-v ¶'", "§=-v; w='¶'", "declare §='¶'", "§='x[\\$(hidden)]'",
	"local §='¶'", "§=`printf %s '¶'`", "select § in '¶'; do break; done <<<1", "declare -i n; §='¶'", "[[ '¶' =~ (.*) ]]; §=${BASH_REMATCH[1]}",
	"§=1; k='¶'", "§=1; i='¶'", "declare -A §; k='¶'", "§=(1 2); k='¶'", "§='(¶)'", "§='(hidden)'", "getopts a: k -a'¶'; §=$OPTARG", "readonly §='¶'",
}

// readers use § where bash may evaluate it.
var readers = []string{
	"echo $((§))", "echo $((§+1))", "echo $(($§))", "echo $((${§}))", `echo $(("$§"))`, "((§))", "((§++))", "((w=§))", "let §", "let w=§", `let "w=§+1"`,
	"[[ $§ -eq 1 ]]", "[[ § -eq 1 ]]", `[[ 1 -lt "$§" ]]`, "[[ -v $§ ]]", "[[ -v § ]]", "[[ -v §[k] ]]", "[[ -v §[$k] ]]", "[ -v $§ ]", `[ -v "$§" ]`, `[ -v "§[$k]" ]`,
	"[ $§ ]", `[ "$§" ]`, "[ $§ $w ]", `[ "$§" "$w" ]`, "[ $§ -eq 1 ]", `[ "$§" -eq 1 ]`, "[ -n $§ ]", "test $§", "test x = $§", "echo ${a[§]}", "echo ${a[$§]}",
	`echo "${a[$§]}"`, "echo ${§[k]}", "echo ${§[$k]}", "echo ${§[0]}", "echo ${§[$i]}", "echo ${§[i]}", "echo ${a:§}", "w=abc; echo ${w:§:1}", "w=abc; echo ${w:$§}",
	"echo ${@:§}", "echo ${!§}", "echo ${§@P}", "echo ${§@Q} ${§@A}", "a[§]=1", "a[$§]=1", "§[$k]=1", "§[k]=1", "w=([§]=1)", "w=([$§]=1)", "declare w[§]=1", "declare -i w=§",
	"declare -i w=$§", "declare -i w; w=$§", "declare -i §; §=$§", `declare "$§"`, `declare "$§=1"`, "declare $§", "declare -a w=$§", `declare -a w="$§"`, `declare §="$§"`,
	`declare -A w="$§"`, "declare -n w=§; echo $w", "export $§", `readonly "$§"`, `unset "$§"`, "unset $§", "unset §[k]", `unset "§[$k]"`, "unset §", `read "$§" <<<1`, "read $§ <<<1",
	`read "§[$k]" <<<1`, `read -a "$§" <<<1`, `printf -v "$§" 1`, "printf -v $§ 1", `printf "$§" 1`, "printf $§ $w", "printf %d $§", `printf %d "$§"`, `mapfile "$§" <<<1`,
	`wait "$§"`, "wait -n $§", "wait $§ $w", `getopts a "$§"`, "for ((i=§;i<1;i++)); do :; done", "for ((;§;)); do break; done", "case $((§)) in *) ;; esac", "shift $§", `shift "$§"`,
	"f() { return $§; }; f", "(exit $§)", "while [ $§ ]; do break; done", "echo {§}>f", "exec {§}>f", "cat <<<$((§))", "cat <<E\n$((§))\nE", `eval "$§"`, "trap $§ EXIT", `trap "$§" EXIT`,
	"$§", `"$§"`, "bash -c 'echo $((§))'", `bash -c 'echo $((§))' _`, `bash -c "echo $§"`, "§=$§ bash -c '((§))'", "env §=$§ bash -c '((§))'", `env "§=$§" bash -c '((§))'`,
	"f() { echo $(($1)); }; f $§", `f() { echo $(($1)); }; f "$§"`, `f() { local n=$1; ((n)); }; f "$§"`, `f() { local n; n=$1; echo ${a[n]}; }; f "$§"`, "echo ${#§}", "echo ${#§[$k]}",
	"echo ${§/a/b}", "echo ${§%%a}", "echo ${w:-$((§))}", "echo ${w:-${a[§]}}", "echo $[§]", "echo $((a[§]))", "echo $((§[0]))", "echo $((§[$k]))", "((§[$k]++))", "((§[k]++))",
	"echo $((w=§,1))", "echo $((1?§:0))", "echo $((-§))", "ulimit -c $§", "umask $§", "kill -0 $§", "sleep $§", "hash $§", "type $§", "command -v $§", "echo $§", `echo "$§" > f`, "p $§",
	"[[ $§ == 1 ]]", `[[ "$§" =~ 1 ]]`, "[[ 1 -eq $§ || x ]]", "[[ -n $§ && -z $w ]]", `[[ -t $§ ]]`, "[ -t $§ ]", `[ -t "$§" ]`, `[ -o "$§" ]`, "printf '%*d' $§ 1", "printf '%(%s)T' $§",
	"coproc $§", "pushd +$§", "cd $§", "break $§", "history $§", "fc $§", "read -t $§ w <<<1", "read -n $§ w <<<1", "read -u $§ w", "mapfile -n $§ w <<<1", "exec 3<&$§", "echo 3>&$§",
}

// TestEvaluationAgainstBash tries every reader with every carrier, for every name
// that makes a difference. Analyze must refuse what bash evaluates implicitly.
func TestEvaluationAgainstBash(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	l := newLab(t)
	var texts []string
	for _, carrier := range carriers {
		for _, reader := range readers {
			texts = append(texts, strings.NewReplacer("¶", payload, "§", "v").Replace(carrier+"\n"+reader))
		}
	}
	understood, dangerous := 0, 0
	for _, text := range sample.EveryNth(t, texts, 11, 29) {
		if checkAgainstBash(t, l, text) >= 0 {
			understood++
		} else if ran(l.trace(t, text), "hidden") {
			dangerous++
		}
	}
	t.Logf("%d texts understood; of those refused, %d really run the hidden command", understood, dangerous)
	if understood < 50 || dangerous < 30 {
		t.Error("too few of either to mean anything")
	}
}

func ran(executed [][]string, program string) bool {
	for _, argv := range executed {
		if argv[0] == program {
			return true
		}
	}
	return false
}
