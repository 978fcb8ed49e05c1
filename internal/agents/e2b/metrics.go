// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/localhttp"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// showUsage prints what a sandbox uses: processor time and memory as gVisor's kernel counts them, and disk.
const showUsage = "cat /proc/stat /proc/meminfo && df -B1 --output=used " + home

// A usage is what showUsage printed. The sandbox may have forged it: its client alone sees it.
type usage struct {
	busy, total          int64 // ticks of all processors
	free, cached, memory int64 // bytes
	disk                 int64
}

// parseUsage reads what showUsage printed. What is missing is 0.
func parseUsage(out string) (u usage) {
	number := func(text string) int64 { return max(0, parseNumber(text)) }
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		switch {
		case len(f) == 1:
			u.disk = number(f[0])
		case len(f) > 4 && f[0] == "cpu":
			for i, ticks := range f[1:] {
				if u.total += number(ticks); i != 3 && i != 4 { // idle, and waiting for a disk
					u.busy += number(ticks)
				}
			}
		case len(f) == 3 && f[0] == "MemTotal:":
			u.memory = number(f[1]) << 10
		case len(f) == 3 && f[0] == "MemFree:":
			u.free = number(f[1]) << 10
		case len(f) == 3 && f[0] == "Cached:":
			u.cached = number(f[1]) << 10
		}
	}
	return u
}

// parseNumber returns the number in text, or 0 if there is none, or a larger one than any real one.
func parseNumber(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 50)
	if err != nil {
		return 0
	}
	return n
}

// apiMetrics returns what the sandbox uses now, if that is within the time that is asked for. There is no history.
func (s *Server) apiMetrics(_ http.ResponseWriter, r *http.Request, user localhttp.User) (any, error) {
	b, err := s.findOwned(r.PathValue("id"), user.Name)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	q := r.URL.Query()
	if q.Has("start") && parseNumber(q.Get("start")) > now.Unix()+metricSlack ||
		q.Has("end") && parseNumber(q.Get("end")) < now.Unix()-metricSlack {
		return []any{}, nil
	}
	leave, err := b.enterRequest()
	if err != nil {
		return nil, err
	}
	defer leave()
	record, err := b.proposeAfterSetUp(r.Context(), b.runInBackground,
		proposal.Proposal{Run: showUsage, Why: "getMetrics of the E2B SDK"})
	if err == nil && !record.Runnable() {
		err = refuseRequest(permissionDenied, "policy refuses to measure: %s", reasonsOf(record).joinLines())
	}
	if err != nil {
		return nil, err
	}
	u := parseUsage(string(record.Result.Stdout.Head))
	b.mu.Lock()
	before := b.measured
	b.measured = u
	b.mu.Unlock()
	percent := 0.0 // since the last time
	if u.total > before.total && u.busy >= before.busy {
		percent = min(100, 100*float64(u.busy-before.busy)/float64(u.total-before.total))
	}
	return []any{map[string]any{"timestamp": now.UTC(), "timestampUnix": now.Unix(), "cpuCount": int(b.limits.CPUs),
		"cpuUsedPct": percent, "memTotal": u.memory, "memUsed": max(0, u.memory-u.free), "memCache": u.cached,
		"diskTotal": int64(b.limits.Disk), "diskUsed": u.disk}}, nil
}

const metricSlack = 10 // seconds by which clocks may differ
