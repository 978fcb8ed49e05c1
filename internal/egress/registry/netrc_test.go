// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseNetrc(t *testing.T) {
	got := map[string]string{}
	for host, user := range parseNetrc(`# machine commented.example login a password b
machine One.example login ada password s3cret
machine two.example
  login bob
  account x
  password p#1
macdef init
machine inmacro.example login a password b

machine one.example login later password ignored
machine nopassword.example login x
default login anonymous password everywhere
machine last.example login`) {
		got[host] = user.String()
	}
	want := map[string]string{"one.example": "ada:s3cret", "two.example": "bob:p%231"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// ends reports whether a process ends within a minute.
func ends(pid string) bool {
	for range 1200 {
		state, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}
