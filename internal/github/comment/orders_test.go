// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

func says(r Results) func(*world, *turn) func(*Keeper) Outcome {
	return func(*world, *turn) func(*Keeper) Outcome {
		return func(k *Keeper) Outcome { return k.ReplaceResults(context.Background(), r) }
	}
}

func answers(n Notice) func(*world, *turn) func(*Keeper) Outcome {
	return func(*world, *turn) func(*Keeper) Outcome {
		return func(k *Keeper) Outcome { return k.ReplaceNotice(context.Background(), n) }
	}
}

var reviewer = Source{Workflow: "review.yml", Job: "report", Review: true}

func reviews(run int64) func(*world, *turn) func(*Keeper) Outcome {
	r := results(head1, run, 1).of(reviewer)
	r.Body, r.Done = func(Room) string { return fmt.Sprint("review ", run) }, true
	return says(r)
}

// reviewed checks that the comment has the review of a run, and then calls check.
func reviewed(run int64, check func(*world) string) func(*world) string {
	return func(w *world) string {
		for _, c := range w.by(bot) {
			s := readSheet(c.Body)
			if x, _ := s.findSection(reviewer); s.reviewStamp().RunID != run || x.text != fmt.Sprint("review ", run) {
				return fmt.Sprintf("the review of run %d stands with %q, want %d", s.reviewStamp().RunID, x.text, run)
			}
		}
		return check(w)
	}
}

// pushed moves the pull request's head and then writes results, as a run of the new
// commit does.
func pushed(head string, r Results) func(*world, *turn) func(*Keeper) Outcome {
	return func(w *world, t *turn) func(*Keeper) Outcome {
		return func(k *Keeper) Outcome {
			t.await("push", func() { w.pr.Head.SHA = head })
			return k.ReplaceResults(context.Background(), r)
		}
	}
}

func standing(c *conversation) {
	body, err := layout{limit: MaxBody}.formatBody(sheet{State: State{Starts: []Start{{RunID: 5, Day: 20000}}}}, head1)
	if err != nil {
		panic(err)
	}
	c.post(bot, body)
}

// one checks that there is one comment, with the results of a run, the answer to a
// comment and the number of starts given.
func one(run, comment int64, starts int) func(*world) string {
	return func(w *world) string {
		ours := w.by(bot)
		if len(ours) != 1 {
			return fmt.Sprintf("%d comments of ours", len(ours))
		}
		s := readSheet(ours[0].Body)
		section, _ := s.findSection(unit)
		switch {
		case run != 0 && (section.RunID != run || section.text != fmt.Sprintf("results of run %d.1", run)):
			return fmt.Sprintf("run %d stands with %q, want %d", section.RunID, section.text, run)
		case comment != 0 && (s.Notice.Comment != comment || s.notice != answer(comment).Text):
			return fmt.Sprintf("the answer to %d stands with %q, want %d", s.Notice.Comment, s.notice, comment)
		case s.CountStarts() != starts:
			return fmt.Sprintf("%d starts are counted, want %d", s.CountStarts(), starts)
		}
		for _, t := range w.jobs {
			if t.outcome.Did == Refused {
				return fmt.Sprintf("%s: %+v", t.name, t.outcome.Failure)
			}
		}
		return ""
	}
}

func starting(comment, run int64) Notice {
	n := answer(comment)
	n.Start, n.Time = run, time.Unix(1_800_000_000, 0)
	return n
}

// has checks that the comment has the results of several sources, and then calls check.
func has(check func(*world) string, want ...Results) func(*world) string {
	return func(w *world) string {
		for _, c := range w.by(bot) {
			s := readSheet(c.Body)
			for _, r := range want {
				if x, _ := s.findSection(r.Source); x.Stamp != r.Stamp || x.Mark != r.dropInvalid().Mark || x.text != fmt.Sprintf("results of run %d.%d", r.RunID, r.Attempt) {
					return fmt.Sprintf("%s has run %d.%d with mark %q and %q, want run %d.%d", r.Label(), x.RunID, x.Attempt, x.Mark, x.text, r.RunID, r.Attempt)
				}
			}
			if len(s.Sections) != len(want) {
				return fmt.Sprintf("%d sections, want %d", len(s.Sections), len(want))
			}
		}
		return check(w)
	}
}

type jobs = []func(*world, *turn) func(*Keeper) Outcome

func TestOrders(t *testing.T) {
	lanetest.SkipShort(t)
	scenes := []scene{
		{name: "two runs, no comment yet", jobs: jobs{says(results(head1, 11, 1)), says(results(head1, 12, 1))}, check: one(12, 0, 0)},
		{name: "two runs, one comment", before: standing, jobs: jobs{says(results(head1, 12, 1)), says(results(head1, 11, 1))}, check: one(12, 0, 1)},
		{name: "a run and an answer, no comment yet", jobs: jobs{says(results(head1, 11, 1)), answers(answer(900))}, check: one(11, 900, 0)},
		{name: "a run and an answer", before: standing, jobs: jobs{says(results(head1, 11, 1)), answers(starting(900, 11))}, check: one(11, 900, 2)},
		{name: "a run and a review, no comment yet", jobs: jobs{says(results(head1, 11, 1)), reviews(12)}, check: reviewed(12, one(11, 0, 0))},
		{name: "two reviews and an answer", grain: coarse, before: standing, jobs: jobs{reviews(13), reviews(12), answers(answer(900))}, check: reviewed(13, one(0, 900, 1))},
		{name: "two answers", before: standing, jobs: jobs{answers(starting(900, 11)), answers(starting(901, 12))}, check: one(0, 901, 3)},
		{name: "a push between two runs", before: standing, jobs: jobs{says(results(head1, 12, 1)), pushed(head2, results(head2, 11, 1))}, check: one(11, 0, 1)},
		{name: "three runs, one comment", grain: middle, before: standing, jobs: jobs{says(results(head1, 12, 1)), says(results(head1, 13, 1)), says(results(head1, 11, 1))}, check: one(13, 0, 1)},
		{name: "two jobs, no comment yet", jobs: jobs{says(results(head1, 11, 1).red()), says(results(head1, 11, 1).of(lint))},
			check: has(one(0, 0, 0), results(head1, 11, 1).red(), results(head1, 11, 1).of(lint))},
		{name: "two workflows, one comment", before: standing, jobs: jobs{says(results(head1, 11, 1).red()), says(results(head1, 12, 1).of(nightly))},
			check: has(one(0, 0, 1), results(head1, 11, 1).red(), results(head1, 12, 1).of(nightly))},
		{name: "two legs without a name", before: standing, jobs: jobs{says(results(head1, 11, 1).red().at(5)), says(results(head1, 11, 1).at(6))},
			check: has(one(0, 0, 1), results(head1, 11, 1).red().at(5))},
		{name: "an older run, run again", before: standing, jobs: jobs{says(results(head1, 12, 1).red().at(5)), says(results(head1, 11, 2).at(6))},
			check: has(one(0, 0, 1), results(head1, 11, 2).at(6))},
		{name: "two attempts, and another job", grain: coarse, before: standing, jobs: jobs{says(results(head1, 11, 1).red()), says(results(head1, 11, 2)), says(results(head1, 11, 1).of(lint))},
			check: has(one(0, 0, 1), results(head1, 11, 2), results(head1, 11, 1).of(lint))},
		{name: "a bot between two workflows", grain: coarse, before: standing, jobs: jobs{says(results(head1, 11, 1).red()), says(results(head1, 12, 1).of(requested)), says(results(head1, 13, 1).of(nightly))},
			check: has(one(0, 0, 1), results(head1, 11, 1).red(), results(head1, 12, 1).of(requested), results(head1, 13, 1).of(nightly))},
		{name: "a fork's run beside the repository's", grain: coarse, jobs: jobs{says(results(head1, 11, 1).red()), says(results(head1, 12, 1).of(forks)), answers(answer(900))},
			check: has(one(0, 900, 0), results(head1, 11, 1).red(), results(head1, 12, 1).of(forks))},
		{name: "two runs and an answer", grain: coarse, before: standing, jobs: jobs{says(results(head1, 12, 1)), says(results(head1, 11, 1)), answers(starting(900, 11))}, check: one(12, 900, 2)},
		{name: "three runs, no comment yet", grain: coarse, jobs: jobs{says(results(head1, 12, 1)), says(results(head1, 13, 1)), says(results(head1, 11, 1))}, check: one(13, 0, 0)},
	}
	if !sample.IsWhole() {
		scenes = slices.DeleteFunc(scenes, func(s scene) bool { return len(s.jobs) > 2 }) // nine of ten orders are of three jobs
	}
	for _, s := range sample.EveryNth(t, scenes, 1, 4) {
		t.Run(s.name, func(t *testing.T) {
			start := time.Now()
			runs, wrong := s.orders(300_000)
			t.Logf("%d orders in %v", runs, time.Since(start).Round(time.Millisecond))
			if wrong != "" {
				t.Errorf("after %d orders: %s", runs, wrong)
			}
		})
	}
}

// TestOrdersNeedSettling shows that the search finds the lost content if the
// assumption about time does not hold.
func TestOrdersNeedSettling(t *testing.T) {
	s := scene{before: standing, free: true, jobs: jobs{says(results(head1, 12, 1)), says(results(head1, 11, 1))}, check: one(12, 0, 1)}
	if runs, wrong := s.orders(10_000); wrong == "" {
		t.Errorf("in %d orders without settling nothing was lost", runs)
	}
}

// next lets another job write afterwards and then calls check.
func next(check func(*world) string) func(*world) string {
	return func(w *world) string {
		k, err := New(Options{Client: w.conversation, Author: bot, PR: prNumber, Sleep: func(context.Context, time.Duration) error { return nil }})
		if err != nil {
			return err.Error()
		}
		if o := k.ReplaceNotice(context.Background(), answer(999)); o.Did == Refused {
			return fmt.Sprint(o.Failure)
		}
		return check(w)
	}
}

func TestOrdersWithAJobKilled(t *testing.T) {
	lanetest.SkipShort(t)
	anyRun := func(w *world) string {
		if n := len(w.by(bot)); n != 1 {
			return fmt.Sprintf("%d comments of ours", n)
		}
		return ""
	}
	older, newer := says(results(head1, 11, 1)), says(results(head1, 12, 1))
	scenes := []scene{
		{name: "the older, no comment yet", jobs: jobs{newer, older}, check: next(one(12, 999, 0))},
		{name: "the older", before: standing, jobs: jobs{newer, older}, check: next(one(12, 999, 1))},
		{name: "the newer, no comment yet", jobs: jobs{older, newer}, check: next(anyRun)},
		{name: "the newer", before: standing, jobs: jobs{older, newer}, check: next(anyRun)},
	}
	for _, s := range sample.EveryNth(t, scenes, 1, 4) {
		t.Run(s.name, func(t *testing.T) {
			s.crash = true
			if runs, wrong := s.orders(100_000); wrong != "" {
				t.Errorf("after %d orders: %s", runs, wrong)
			}
		})
	}
}

// TestOrdersWithACommentDeleted lets a person delete the comment at any point. It
// is recreated, unless the deletion was the last event.
func TestOrdersWithACommentDeleted(t *testing.T) {
	lanetest.SkipShort(t)
	deletes := func(w *world, t *turn) func(*Keeper) Outcome {
		return func(*Keeper) Outcome {
			t.await("person", func() {
				w.ops = append(w.ops, "person")
				for _, c := range w.by(bot) {
					w.remove(c.ID)
				}
			})
			return Outcome{}
		}
	}
	s := scene{grain: coarse, before: standing, jobs: jobs{says(results(head1, 11, 1)), answers(answer(900)), deletes}, check: func(w *world) string {
		if ops := strings.TrimRight(strings.Join(w.ops, " "), " pul"); len(w.by(bot)) == 0 && strings.HasSuffix(ops, "person") {
			return "" // no job has read the comment since
		}
		if len(w.by(bot)) == 0 {
			return fmt.Sprint("no comment after ", w.ops)
		}
		return one(0, 0, readSheet(w.by(bot)[0].Body).CountStarts())(w)
	}}
	if runs, wrong := s.orders(100_000); wrong != "" {
		t.Errorf("after %d orders: %s", runs, wrong)
	}
}
