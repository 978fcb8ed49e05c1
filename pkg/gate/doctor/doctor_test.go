// SPDX-License-Identifier: Apache-2.0

//go:build linux

package doctor

import (
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestCheckMachine(t *testing.T) {
	limits := proposal.Limits{Memory: 512 * proposal.MiB, CPUs: 1}
	for seen, want := range map[string]string{"MemTotal:         524288 kB\n2\n": "ok", "MemTotal:       24682736 kB\n8\n": "limited", "": "limited"} {
		if k := checkMachine(seen, limits); k.State != want || k.Detail == "" || (k.Fix == "") != (want == "ok") {
			t.Errorf("%q: %+v, want %s", seen, k, want)
		}
	}
}
