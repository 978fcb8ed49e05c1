// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/fumehood/fumehood/internal/github"
)

// A world runs several jobs over one conversation. Every request waits for its turn.
type world struct {
	*conversation
	jobs    []*turn
	arrived chan *turn
	// free disables the assumption about time, which is that a settling job waits
	// longer than requests that were in progress when it began to settle.
	free    bool
	windows int
}

// A turn is one job's place in the order, with its next request.
type turn struct {
	world   *world
	name    string
	op      string // "" before the first request, "end" after the last
	effect  func()
	resume  chan struct{}
	ended   bool
	crashed bool
	window  int          // nonzero between reading and writing
	waits   map[int]bool // the windows that were open when the job began to settle
	past    maphash.Hash // everything that the job has seen
	outcome Outcome
	job     func(*Keeper) Outcome
}

type crash struct{}

// await makes a job's request wait for its turn.
func (t *turn) await(op string, effect func()) {
	t.op, t.effect = op, effect
	t.world.arrived <- t
	<-t.resume
	if t.crashed {
		panic(crash{})
	}
}

func (t *turn) saw(format string, args ...any) {
	fmt.Fprintf(&t.past, format+"\n", args...)
}

// open begins a window with the first request that reads.
func (t *turn) open() {
	if t.window == 0 {
		t.world.windows++
		t.window = t.world.windows
	}
}

func (t *turn) PullRequest(ctx context.Context, n int) (pr github.PullRequest, err error) {
	t.await("pull", func() {
		t.open()
		pr, err = t.world.conversation.PullRequest(ctx, n)
		t.saw("pull %v %v", pr, err)
	})
	return pr, err
}

func (t *turn) Comments(ctx context.Context, n int) (list []github.Comment, err error) {
	t.await("list", func() {
		t.open()
		list, err = t.world.conversation.Comments(ctx, n)
		t.saw("list %v %v", list, err)
	})
	return list, err
}

func (t *turn) Comment(ctx context.Context, id int64) (c github.Comment, err error) {
	t.await("read", func() {
		t.open()
		c, err = t.world.conversation.Comment(ctx, id)
		t.saw("read %v %v", c, err)
	})
	return c, err
}

func (t *turn) CreateComment(ctx context.Context, n int, body string) (c github.Comment, err error) {
	t.await("create", func() {
		t.window = 0
		c, err = t.world.conversation.CreateComment(ctx, n, body)
		t.saw("create %v %v", c, err)
	})
	return c, err
}

func (t *turn) UpdateComment(ctx context.Context, id int64, body string) (c github.Comment, err error) {
	t.await("update", func() {
		t.window = 0
		c, err = t.world.conversation.UpdateComment(ctx, id, body)
		t.saw("update %v %v", c, err)
	})
	return c, err
}

func (t *turn) DeleteComment(ctx context.Context, id int64) (err error) {
	t.await("delete", func() {
		t.window = 0
		err = t.world.conversation.DeleteComment(ctx, id)
		t.saw("delete %v", err)
	})
	return err
}

func (t *turn) sleep(context.Context, time.Duration) error {
	t.await("settle", func() { t.window = 0; t.saw("settle") })
	return nil
}

func (t *turn) run() {
	defer func() {
		if r := recover(); r != nil && r != any(crash{}) {
			panic(r)
		}
		t.op, t.ended, t.window = "end", true, 0
		t.world.arrived <- t
	}()
	k, err := New(Options{
		Client: t, Author: bot, PR: prNumber, Sleep: t.sleep,
		Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
	})
	if err != nil {
		panic(err)
	}
	t.outcome = t.job(k)
}

// next waits until t makes a request or has ended.
func (w *world) next() {
	t := <-w.arrived
	if t.op != "settle" {
		return
	}
	t.waits = map[int]bool{}
	for _, other := range w.jobs {
		if other != t && other.window != 0 {
			t.waits[other.window] = true
		}
	}
}

// grant executes t's request.
func (w *world) grant(t *turn) {
	t.effect()
	t.resume <- struct{}{}
	w.next()
}

// ready reports whether t may continue: a settling job waits for the windows that
// were open when it began.
func (w *world) ready(t *turn) bool {
	if t.ended {
		return false
	}
	if t.op == "settle" && !w.free {
		for _, other := range w.jobs {
			if other != t && t.waits[other.window] {
				return false
			}
		}
	}
	return true
}

func (w *world) state() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	fmt.Fprint(&h, w.pr.Head.SHA, w.comments)
	for _, t := range w.jobs {
		fmt.Fprint(&h, t.past.Sum64(), t.op, t.ended, t.window != 0)
		for _, other := range w.jobs {
			fmt.Fprint(&h, t.op == "settle" && t.waits[other.window])
		}
	}
	return h.Sum64()
}

var seed = maphash.MakeSeed()

// The granularity of a scene: each request is a step; reading the pull request and
// the comments is one step; all requests between two writes are one step.
const (
	fine = iota
	middle
	coarse
)

// A scene is a set of concurrent jobs, and the condition that must hold at the end.
type scene struct {
	name   string
	before func(*conversation)
	jobs   []func(*world, *turn) func(*Keeper) Outcome
	grain  int
	crash  bool // the last job may end at any point
	free   bool
	check  func(*world) string
}

// orders runs a scene through every order of its jobs' requests, except for those that
// lead to a state seen before. It returns the number of runs and the first failure.
func (s scene) orders(limit int) (runs int, wrong string) {
	seen := map[uint64]bool{}
	for path := []choice{}; ; runs++ {
		if runs == limit {
			return runs, fmt.Sprintf("more than %d orders", limit)
		}
		w := s.play(&path, seen)
		if w != nil {
			if wrong := s.verdict(w); wrong != "" {
				return runs, fmt.Sprintf("%s\norder: %v", wrong, describe(path))
			}
		}
		for len(path) > 0 && path[len(path)-1].taken+1 == path[len(path)-1].of {
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return runs + 1, ""
		}
		path[len(path)-1].taken++
	}
}

type choice struct {
	taken, of int
	what      string
}

func describe(path []choice) []string {
	var list []string
	for _, c := range path {
		list = append(list, c.what)
	}
	return list
}

func (s scene) verdict(w *world) string {
	if len(w.wrong) > 0 {
		return fmt.Sprintf("sent to GitHub: %q", w.wrong)
	}
	return s.check(w)
}

// play runs one order: the choices of path, then the first choice each time, which
// it appends. It returns nil if the rest has been played before.
func (s scene) play(path *[]choice, seen map[uint64]bool) *world {
	w := &world{conversation: newConversation(), arrived: make(chan *turn), free: s.free}
	if s.before != nil {
		s.before(w.conversation)
	}
	for i, job := range s.jobs {
		t := &turn{world: w, name: fmt.Sprint("job", i+1), resume: make(chan struct{})}
		t.past.SetSeed(seed)
		t.job = job(w, t)
		w.jobs = append(w.jobs, t)
		go t.run()
		w.next()
	}
	given := len(*path)
	for depth := 0; ; depth++ {
		options := s.options(w)
		if len(options) == 0 {
			return w
		}
		if depth >= given {
			if state := w.state(); seen[state] {
				w.abandon()
				return nil
			} else {
				seen[state] = true
			}
			*path = append(*path, choice{of: len(options)})
		}
		at := &(*path)[depth]
		at.what = options[at.taken].what
		options[at.taken].do()
	}
}

type option struct {
	what string
	do   func()
}

func (s scene) options(w *world) []option {
	var list []option
	for _, t := range w.jobs {
		if w.ready(t) {
			list = append(list, option{t.name + " " + t.op, func() { s.step(w, t) }})
		}
	}
	if last := w.jobs[len(w.jobs)-1]; s.crash && !last.ended {
		list = append(list, option{last.name + " ends", func() { w.kill(last) }})
	}
	return list
}

// step executes t's request, and those after it that other jobs cannot tell apart
// from it.
func (s scene) step(w *world, t *turn) {
	op := t.op
	w.grant(t)
	for !t.ended && slices.Contains(together[s.grain], op+" "+t.op) {
		op = t.op
		w.grant(t)
	}
}

var together = [...][]string{
	middle: {"read pull", "read read", "settle read", "settle list"},
	coarse: {"read pull", "read read", "settle read", "settle list", "list pull", "delete delete"},
}

func (w *world) kill(t *turn) {
	t.crashed = true
	t.resume <- struct{}{}
	w.next()
}

// abandon ends the jobs of a world that is not needed any more.
func (w *world) abandon() {
	for _, t := range w.jobs {
		if !t.ended {
			w.kill(t)
		}
	}
}
