// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// signatures are recorded outputs of tools in internal/watch/diagnose/testdata, one for each way in
// which something is missing, with what the kernel saw of the command.
var signatures = []struct {
	name, programs string
	address, errno string // of a call that failed, "" for none
}{
	{"npm_test", "npm node dash", "", ""},
	{"node_require", "node", "", ""},
	{"go_test", "go", "", ""},
	{"go_toolchain", "go", "", ""},
	{"py_requests", "python3.11", "", ""},
	{"pip_pep668", "pip python3", "", ""},
	{"cargo_test", "cargo", "", ""},
	{"mvn_offline", "mvn java", "", ""},
	{"bash_127", "", "", ""},
	{"py_resolver", "python3", "udp 127.0.0.1:53", "ECONNREFUSED"},
	{"curl_dns", "curl", "udp 127.0.0.1:53", "ECONNREFUSED"},
	{"cargo_online", "cargo", "udp 127.0.0.1:53", "ECONNREFUSED"},
	{"psql_refused", "psql", "tcp 127.0.0.1:5432", "ECONNREFUSED"},
	{"node_mysql", "node", "tcp 127.0.0.1:3306", "ECONNREFUSED"},
}

var recording = regexp.MustCompile(`(?s)^\$ ([^\n]*)\nexit (\d+)\n-- stdout --\n(.*)-- stderr --\n(.*)$`)

// What the comment says first, for each signature. It names what is missing and what to do,
// and none of them is a failure.
func TestSignatures(t *testing.T) {
	var all strings.Builder
	for _, s := range signatures {
		data, err := os.ReadFile(filepath.Join("../../../internal/watch/diagnose/testdata", s.name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		m := recording.FindStringSubmatch(string(data))
		if m == nil {
			t.Fatalf("%s is not a recording", s.name)
		}
		exit, _ := strconv.Atoi(m[2]) // digits
		var seen []proposal.Event
		if s.address != "" {
			kind := proposal.EventConnect
			if strings.HasPrefix(s.address, "udp") {
				kind = proposal.EventSend
			}
			seen = append(seen, failingCall("it", "/usr/bin/"+strings.Fields(s.programs)[0], kind, s.address, s.errno))
		}
		page := Page{Parts: []Part{{Report: diagnosed(unready("it", m[1], exit, m[3], m[4], s.programs, seen...))}}}
		said := page.verdictHeading() + "\n\n" + strings.Join(page.verdictLines(levels[0]), "\n<br>") + "\n"
		fmt.Fprintf(&all, "$ %s\n\n%s\n", m[1], strings.ReplaceAll(said, "<br>", "\n<br>"))
		if check := page.Check(); check.Conclusion != "neutral" || strings.Contains(said, "❌") {
			t.Errorf("%s: %s\n%s", s.name, check.Conclusion, said)
		}
	}
	golden.Compare(t, filepath.Join(folder, "signatures.md"), []byte(all.String()))
}
