// SPDX-License-Identifier: Apache-2.0

// Package agent shows in the cluster what the logs of a node's pods say: a Kubernetes event for
// each refusal inside a pod and for each pod whose gate failed, and counts.
//
// It only reads. A node without it refuses the same, and its logs have the same; so it needs no
// rights but to create events, and may be restarted or be late. Every log is verified while it is
// read. What it shows is from inside pods, and untrusted: texts are quoted and bounded, and many
// equal ones become few events.
package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/fumehood/fumehood/internal/agents/health"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
)

// every is how often directories and files are looked at again.
const every = time.Second

// Options say what to read, and where to show it. Logs, Since, Metrics, Events and Warn are required.
type Options struct {
	Logs string // the directory of the node's logs
	// Since is when the agent began: older entries are neither counted nor shown, because the
	// agent before it did, and older logs are not read.
	Since   time.Time
	Metrics *health.Metrics
	Events  record.EventRecorder
	// Ended, if set, is called with the path of a log that is sealed and verified. Of one that was
	// sealed shortly before Since it may be called although the agent before this one did.
	Ended func(ctx context.Context, path string) error
	Warn  func(error)
}

// Run reads logs until ctx ends, and those that come meanwhile. The error says that Logs cannot be read.
func Run(ctx context.Context, o Options) error {
	if _, err := os.ReadDir(o.Logs); err != nil {
		return err
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	known := map[string]bool{}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		for _, path := range o.fresh(known) {
			reading.Go(func() {
				if err := o.read(ctx, path); err != nil && ctx.Err() == nil {
					o.Warn(err)
				}
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// fresh returns the logs that are not known, and makes known exactly those that there are.
func (o Options) fresh(known map[string]bool) (list []string) {
	paths, _ := filepath.Glob(filepath.Join(o.Logs, "*", "*.jsonl")) // the pattern is valid
	there := map[string]bool{}
	for _, path := range paths {
		if there[path] = true; !known[path] {
			known[path] = true
			if o.news(path) {
				list = append(list, path)
			}
		}
	}
	for path := range known {
		if !there[path] {
			delete(known, path)
		}
	}
	return list
}

// news reports whether something may be in the log that is to be shown.
func (o Options) news(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true // read says why it cannot be read
	}
	defer f.Close()
	goesOn, err := writing(f)
	info, statErr := f.Stat()
	return goesOn || errors.Join(err, statErr) != nil || info.ModTime().After(o.Since)
}

// podOf returns the pod whose log is at path: see docs/kubernetes/operate.md, "The log".
func podOf(path string) (*corev1.ObjectReference, error) {
	parts := strings.Split(filepath.Base(filepath.Dir(path)), "_") // no name in Kubernetes has one
	if len(parts) != 3 {
		return nil, fmt.Errorf("%s: the directory's name is not that of a pod's log", path)
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: parts[0], Name: parts[1],
		UID: types.UID(parts[2])}, nil
}

// read reads one log to its end.
func (o Options) read(ctx context.Context, path string) error {
	pod, err := podOf(path)
	if err != nil {
		return err
	}
	f, err := audit.OpenFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	o.Metrics.CountStartedElsewhere()
	defer o.Metrics.Ended()
	sum, err := audit.Scan(tail{ctx, f}, audit.Trust{}, func(e audit.Entry) error { return o.entry(pod, e) })
	var invalid *audit.VerifyError
	switch {
	case errors.As(err, &invalid):
		o.Events.Eventf(pod, corev1.EventTypeWarning, reasonLog, "%s",
			bounded("the pod's log is not valid: "+invalid.Error()))
		return fmt.Errorf("%s: %w", path, err)
	case err != nil:
		return err
	case sum.State != audit.Sealed:
		o.Events.Eventf(pod, corev1.EventTypeWarning, reasonLog, "the gate ended before it sealed the pod's log")
	case o.Ended != nil:
		return o.Ended(ctx, path)
	}
	return nil
}

// entry counts and shows one entry.
func (o Options) entry(pod *corev1.ObjectReference, e audit.Entry) error {
	if e.Time.Before(o.Since) {
		return nil
	}
	said, err := journal.Entry{Kind: e.Kind, Body: e.Body}.Decode()
	if err != nil {
		return err
	}
	o.Metrics.CountLogEvent(said)
	for _, m := range messages(said) {
		o.Events.Eventf(pod, corev1.EventTypeWarning, m.reason, "%s", m.text)
	}
	return nil
}
