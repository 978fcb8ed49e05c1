// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Runtimes are started many times in one sandbox, with the gate deciding on each and
// the kernel recording. None of them crashes, and none is missing from the record.
func TestNightlySoak(t *testing.T) {
	for _, test := range []struct {
		name, command string
		times         int
	}{{"node", "node -e 0", 500}, {"python", "python3 -c 0", 200}, {"go", "go version >/dev/null", 50}} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			d.plan(t, fmt.Sprintf("i=0\nwhile [ $i -lt %d ]; do %s || echo crash $i; i=$((i+1)); done\necho done $i\n", test.times, test.command), "10m")
			code, report := d.run(t, "soak")
			r := result(t, report)
			if code != exitOK || string(r.Stdout.Head) != fmt.Sprintf("done %d\n", test.times) {
				t.Errorf("exit code %d, %d crashes, output %.2000q", code, strings.Count(string(r.Stdout.Head), "crash"), r.Stdout.Head)
			}
			wantRecorded(t, r, test.times)
		})
	}
}

// A Node test suite, run repeatedly: users have seen its runtime crash here.
func TestNightlySoakNodeSuite(t *testing.T) {
	const times = 5 // of 2,000 programs in 50 rounds, none crashed either
	d := newDesk(t)
	npmPackage("@fastify/merge-json-schemas@0.2.0")(t, d)
	d.plan(t, fmt.Sprintf("i=0\nwhile [ $i -lt %d ]; do node --test --test-reporter=tap >/dev/null || echo crash $i; i=$((i+1)); done\necho done $i\n", times), "10m")
	code, report := d.run(t, "soak")
	r := result(t, report)
	if code != exitOK || string(r.Stdout.Head) != fmt.Sprintf("done %d\n", times) {
		t.Errorf("exit code %d, output %.2000q, %s %s", code, r.Stdout.Head, r.Status, r.Limit)
	}
	wantRecorded(t, r, times)
}

func wantRecorded(t *testing.T, r *proposal.Result, least int) {
	t.Helper()
	o := r.Observations
	if o == nil || !o.Complete || o.Counts.Execs < least || o.Counts.Refused != 0 || o.Counts.Dropped != 0 {
		t.Errorf("recorded %+v, want at least %d programs, none refused, nothing dropped", o, least)
	}
	t.Logf("%d programs in %d ms", o.Counts.Execs, r.WallMS)
}
