// SPDX-License-Identifier: Apache-2.0

// Command probe runs in the guest of TestNightlyGuest: it runs the commands of a file of JSON
// steps, and writes a line of JSON for each one to a port that the test reads.
//
//	probe STEPS PORT
//
// It judges nothing. The test has the checks.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A step is a command to run.
type step struct {
	Name string
	Argv []string
}

// An outcome is what a step did.
type outcome struct {
	Name           string
	Exit           int // -1 if it was killed or did not start
	Stdout, Stderr string
	MS             int64
	Left           []string // of fumehood: cgroups, mounts, directories and processes that are still there
}

// stepTime is for a machine with other work: on an idle one a step takes some seconds.
const stepTime = 5 * time.Minute

func main() {
	log.SetFlags(0)
	port, err := os.OpenFile(os.Args[2], os.O_WRONLY, 0)
	if err != nil {
		log.Fatal(err)
	}
	var steps []step
	data, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = json.Unmarshal(data, &steps)
	}
	for i := 0; err == nil && i < len(steps); i++ {
		err = json.NewEncoder(port).Encode(steps[i].run())
	}
	if err != nil {
		log.Fatal(err)
	}
}

func (s step) run() outcome {
	ctx, cancel := context.WithTimeout(context.Background(), stepTime)
	defer cancel()
	log.Print("probe: ", s.Name)
	cmd := exec.CommandContext(ctx, s.Argv[0], s.Argv[1:]...)
	cmd.Dir, cmd.WaitDelay = "/root", time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	if err := cmd.Run(); cmd.ProcessState == nil {
		stderr.WriteString(err.Error())
	}
	return outcome{s.Name, cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(began).Milliseconds(), left()}
}

// left lists what a run has left on the host.
func left() []string {
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "fumehood-") {
			found = append(found, path)
		}
		return nil
	})
	for _, pattern := range []string{"/run/fumehood-*", "/tmp/fumehood-*", "/var/tmp/fumehood-*"} {
		paths, _ := filepath.Glob(pattern)
		found = append(found, paths...)
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "fumehood-") {
			found = append(found, "mount "+line)
		}
	}
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		comm, _ := os.ReadFile(name)
		for _, of := range []string{"fumehood", "runsc", "gvisor"} {
			if strings.Contains(string(comm), of) {
				found = append(found, "process "+strings.TrimSpace(string(comm)))
			}
		}
	}
	return found
}
