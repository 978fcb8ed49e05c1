// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

const (
	runsAtOnce    = 20
	killedAtOnce  = 4
	defaultRounds = 8
	// roundsVariable sets a different number of rounds, such as 50.
	roundsVariable = "FUMEHOOD_TEST_ROUNDS"
)

// Concurrent runs that start and end on one host do not affect each other, although
// others among them are killed, and leave nothing behind.
func TestNightlyRunsTogether(t *testing.T) {
	rounds := defaultRounds
	if text := os.Getenv(roundsVariable); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil || rounds < 1 {
			t.Fatalf("%s=%q is not a number of rounds", roundsVariable, text)
		}
	}
	d, before := newDesk(t), traces()
	d.write(t, "endless.yaml", "schema: fumehood.plan/v1\nproposals:\n  - {id: it, run: sleep 3000, timeout: 1h}\n")
	d.plan(t, "true", "10m")
	for round := range rounds {
		d.together(t, fmt.Sprint("round", round))
	}
	// What a killed run leaves behind is removed by a later run that has time to
	// clean up.
	for i := 0; i < 20 && len(d.leftovers()) > 0; i++ {
		d.run(t, fmt.Sprint("last", i))
	}
	d.checkNothingLeft(t, before)
}

// leftovers returns the temporary files and directories of this desk's runs on the host.
func (d desk) leftovers() []string {
	found, _ := filepath.Glob(d.path("tmp/*"))
	return slices.AppendSeq(found, maps.Values(jobtest.FindProcesses(d.dir)))
}

// together starts concurrent runs. Whenever some of them have ended, it kills
// another run, at whatever stage that is, and starts the next one to be killed.
func (d desk) together(t *testing.T, name string) {
	t.Helper()
	var all sync.WaitGroup
	ended := make(chan struct{}, runsAtOnce)
	for i := range runsAtOnce {
		all.Go(func() {
			d.succeed(t, fmt.Sprint(name, "-", i))
			ended <- struct{}{}
		})
	}
	for i := range killedAtOnce {
		victim := d.command(t.Context(), append(d.runArgs(fmt.Sprint(name, "-killed", i)), "--plan", d.path("endless.yaml"))...)
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		for range runsAtOnce / killedAtOnce {
			<-ended
		}
		_ = victim.Process.Kill()
		_ = victim.Wait()
	}
	all.Wait()
}

// succeed runs plan.yaml with a run that must succeed. Unlike run, it may be called
// from any goroutine.
func (d desk) succeed(t *testing.T, name string) {
	cmd := d.command(t.Context(), d.runArgs(name)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s", name, err, &stderr)
	}
}
