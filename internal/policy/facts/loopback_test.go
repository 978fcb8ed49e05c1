// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"
	"testing"
)

// shown is how the words were read: the kind, the option, and = before a value in the same word.
func shown(words []LoopbackWord) string {
	var all []string
	for _, w := range words {
		sign := ":"
		if w.Attached {
			sign = "="
		}
		all = append(all, fmt.Sprintf("%s %s%s%s", w.Kind, w.Option, sign, w.Value))
	}
	return strings.Join(all, ", ")
}

// Words are read as the tool reads them, and what no table lists is unknown.
func TestReadLoopback(t *testing.T) {
	for _, c := range []struct{ tool, words, want string }{
		{"curl", "-fsS|localhost", "flag --show-error:-fsS, operand :localhost"},
		{"curl", "-so|x|--data|@y", "file --output:x, body --data:@y"},
		{"curl", "-ox", "unknown -ox:-ox"},
		{"curl", "--output=x", "unknown --output=x:--output=x"},
		{"curl", "-sK|x", "unknown -sK:-sK, operand :x"},
		{"curl", "-X|-K", "text --request:-K"},
		{"curl", "-X", "unknown --request:-X"},
		{"wget", "-qO-|--tries=3|-nv", "file --output-document=-, number --tries=3, flag --no-verbose:-nv"},
		{"wget", "-T5", "unknown -T5:-T5"},
		{"redis-server", "--rename-command|LOAD||--dir|/tmp", "name --rename-command:LOAD, empty --rename-command:, tmpdir --dir:/tmp"},
		{"mysqld", "--datadir=/tmp/x|--datadir|/tmp/x", "tmp --datadir=/tmp/x, unknown --datadir:--datadir, operand :/tmp/x"},
		{"initdb", "--lc-collate=C|--lc-|C", "word --lc-collate=C, unknown --lc-:--lc-, operand :C"},
		{"pg_ctl", "-m|fast|-m|slow", "flag -m:fast, unknown -m:slow"},
		{"pg_ctl", "-o|-p 5 -k '' --fsync=off -D /x", "digits -p:5, socket -k:, setting --fsync=off, unknown -D:-D, unknown :/x"},
		{"cat", "-n", ""},
	} {
		if got := shown(ReadLoopback(c.tool, strings.Split(c.words, "|"))); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.tool, c.words, got, c.want)
		}
	}
}

// A mistake in a table is an error, with its line.
func TestLoopbackMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"x on loopback\n\t-o:", "line 2: x: -o: has no kind"},
		{"x on loopback\n\t-a -a", "line 2: x: -a is no option, or listed twice"},
		{"x, y on loopback\n\t-a\n# z\ny on loopback\n\tb", "line 5: y: b is no option, or listed twice"},
	} {
		if _, err := readPlaceTables(c.text, loopbackMark); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// An option that a client of a granted host must not have is found in each spelling that the client accepts.
func TestRefusedOptions(t *testing.T) {
	for _, c := range []struct{ tool, word string }{
		{"curl", "-K"}, {"curl", "-Kx.conf"}, {"curl", "-sKx"}, {"curl", "-sn"}, {"curl", "--config=x"}, {"curl", "--conf"}, {"curl", "--netrc-file"},
		{"curl", "-Ex"}, {"curl", "--unix-sock"}, {"wget", "-euse_askpass=./x"}, {"wget", "-qix"}, {"wget", "--use-askp=./x"}, {"wget", "-b"},
		{"wget", "--input"}, {"nc", "-ve"}, {"ncat", "--exe"}, {"ncat", "-w5c"},
		{"ssh", "-F"}, {"ssh", "-4vFx"}, {"ssh", "-oProxyCommand=./x"}, {"ssh", "-qoproxycommand ./x"}, {"ssh", "PROXYCOMMAND=./x"}, {"ssh", "-oLocalForward=1 a:2"},
		{"ssh", `"Match" exec ./x`}, {"ssh", `-o "KnownHostsCommand" ./x`}, {"ssh", "-Ax"}, {"dig", "-f"}, {"dig", "-4fx"}, {"kdig", "+tls"}, {"kdig", "+tls-ca=x"},
		{"delv", "-ax"}, {"drill", "-Dw"}, {"telnet", "-8n"},
	} {
		if got := RefusedOptions(c.tool, []string{"x", c.word}); len(got) != 1 || got[0] != c.word {
			t.Errorf("%s %s: %q", c.tool, c.word, got)
		}
	}
	for _, c := range []struct{ tool, word string }{
		{"curl", "-sS"}, {"curl", "-HContent-Type: application/json"}, {"curl", "-oKnown"}, {"curl", "--proxy"}, {"curl", "--connect-timeout=3"},
		{"curl", "--compressed"}, {"curl", "--data"}, {"wget", "-qO-"}, {"wget", "-nv"}, {"wget", "-Pbin"}, {"wget", "--timeout=3"}, {"nc", "-vz"}, {"nc", "-w5"},
		{"ssh", "-oBatchMode=yes"}, {"ssh", "-p22"}, {"ssh", "-iForward"}, {"ssh", "git@h"}, {"ssh", "-tt"}, {"ssh", "command"}, {"dig", "+short"}, {"dig", "-xfe80::1"},
		{"kdig", "+short"}, {"drill", "-Tb1"}, {"telnet", "-lnobody"},
		{"cat", "-e"}, {"curl", "-"}, {"curl", "--"}, {"curl", "n"},
	} {
		if got := RefusedOptions(c.tool, []string{c.word}); len(got) != 0 {
			t.Errorf("%s: %q", c.tool, got)
		}
	}
}
