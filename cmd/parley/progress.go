package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"parley/engine"
	"parley/figure"
	"parley/judge"
	"parley/problem"
)

// progress shows how a study goes: a bar on a terminal, plain lines elsewhere.
type progress struct {
	w     io.Writer
	steps io.Writer     // for how far the work is
	bars  *mpb.Progress // nil elsewhere
	bar   *mpb.Bar
	sites atomic.Pointer[string] // of the round that runs: how many have answered
	next  int                    // of a long study, the progress at which the next line is due
}

// A study of up to manySteps steps has a line for each round, a longer one
// about fewLines in all.
const (
	manySteps = 200
	fewLines  = 100
)

// newProgress shows progress where a command's errors go. With --quiet there is none, but
// notes are: what should be known about a result is no progress.
func newProgress(cmd *cobra.Command) *progress {
	w := cmd.ErrOrStderr()
	p := &progress{w: w, steps: w}
	if quiet, err := cmd.Flags().GetBool("quiet"); err == nil && quiet {
		p.steps = io.Discard
		return p
	}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" {
			p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(64))
		}
	}
	return p
}

func (p *progress) line(format string, a ...any) { p.to(p.w, format, a...) }

// step tells how far the work is.
func (p *progress) step(format string, a ...any) { p.to(p.steps, format, a...) }

func (p *progress) to(w io.Writer, format string, a ...any) {
	if p.bars != nil {
		w = p.bars // prints above the bar
	}
	fmt.Fprintf(w, format+"\n", a...)
}

func (p *progress) note(n problem.Problem) { p.line("note: %v", n) }

func (p *progress) event(e engine.Event) {
	switch {
	case e.Resumed:
		p.step("continuing from the last checkpoint")
	case e.Left != nil:
		p.line("note: site %s has left: %v", e.Left.Site, e.Left.Reason)
	case e.Of > 0 && p.bars != nil:
		text := ""
		if e.Asked > 0 {
			text = fmt.Sprintf(", %d of %d sites", e.Answered, e.Asked)
		}
		p.sites.Store(&text)
		if p.bar == nil {
			p.bar = p.bars.AddBar(int64(e.Of),
				mpb.PrependDecorators(decor.Name("round "), decor.CountersNoUnit("%d of %d"),
					decor.Any(func(decor.Statistics) string { return *p.sites.Load() }, decor.WCSyncSpaceR)),
				mpb.AppendDecorators(left(&countdown{now: time.Now}, fewSteps)))
		}
		p.bar.SetTotal(int64(e.Of), false)
		p.bar.SetCurrent(int64(e.Progress))
	}
	if e.Round != nil && p.bars == nil && p.due(e) {
		p.step("%s", roundLine(e))
	}
}

// due says whether a round gets a line: of a long study those do that bring it
// on by another part in a hundred, and the first and the last.
func (p *progress) due(e engine.Event) bool {
	if e.Of <= manySteps {
		return true
	}
	if p.next == 0 {
		p.step("%d steps: a line for about %d of them; rounds.jsonl will have every round", e.Of, fewLines)
	}
	if e.Progress < p.next {
		return false
	}
	p.next = e.Progress + stride(e.Of)
	if e.Progress < e.Of {
		p.next = min(p.next, e.Of)
	}
	return true
}

func stride(steps int) int { return (steps + fewLines - 1) / fewLines }

// roundLine tells of one finished round.
func roundLine(e engine.Event) string {
	var b strings.Builder
	up := 0
	kind := ""
	for _, x := range e.Round.Sites {
		up += x.Up
		kind = x.Kind
	}
	sites := "1 site"
	if n := len(e.Round.Sites); n != 1 {
		sites = fmt.Sprintf("%d sites", n)
	}
	fmt.Fprintf(&b, "round %d: %s; %s sent %d bytes", e.Round.Round, kind, sites, up)
	for name, value := range e.Round.Info.All() {
		digits := 4
		if math.Abs(value) >= 10_000 { // counts are whole
			digits = 6
		}
		fmt.Fprintf(&b, "; %s %.*g", name, digits, value)
	}
	return b.String()
}

func (p *progress) close() {
	if p.bars == nil {
		return
	}
	if p.bar != nil {
		p.bar.Abort(false) // leaves the bar as it stands, complete or not
	}
	p.bars.Wait()
	p.bars, p.bar = nil, nil
}

// share shows how much of some work is done: a bar on a terminal, a line for
// every tenth elsewhere, each with the time that is left if the rest goes as
// fast.
func (p *progress) share(now func() time.Time) func(done, of float64) {
	tenths, rest := 0, countdown{now: now, began: now()}
	return func(done, of float64) {
		if p.bars != nil {
			if p.bar == nil {
				p.bar = p.bars.AddBar(1000, mpb.PrependDecorators(decor.Name("fitting "), decor.Percentage()),
					mpb.AppendDecorators(left(&rest, 0)))
			}
			p.bar.SetCurrent(int64(1000 * done / of))
			return
		}
		if n := int(10 * done / of); n > tenths {
			tenths = n
			p.step("%d %% fitted%s", 10*n, rest.text("; ", done, of))
		}
	}
}

// evaluationProgress tells how far an evaluation is: a bar on a terminal, a
// line for every tenth elsewhere.
type evaluationProgress struct {
	*progress
	rest   countdown
	before int // experiments that were stored when this run began
	tenth  int // last told
}

func (p *evaluationProgress) trials(now judge.Progress) {
	if p.rest.now == nil {
		p.rest, p.before = countdown{now: time.Now, began: time.Now()}, now.Stored
		if now.Stored > 0 {
			p.step("%d of %d experiments are stored already", now.Stored, now.Of)
		}
		if left := now.Of - now.Done; left > 0 {
			p.step("running %s, %d at a time", figure.Plural(left, "experiment"), now.Abreast)
		}
	}
	if p.bars != nil {
		if p.bar == nil {
			p.bar = p.bars.AddBar(int64(now.Of),
				mpb.PrependDecorators(decor.Name("experiment "), decor.CountersNoUnit("%d of %d")),
				mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string {
					return p.remaining(int(s.Current), int(s.Total))
				})))
		}
		p.bar.SetCurrent(int64(now.Done))
		return
	}
	if tenth := 10 * now.Done / max(now.Of, 1); tenth > p.tenth && now.Done > p.before {
		p.tenth = tenth
		p.step("%d of %d experiments%s", now.Done, now.Of, p.remaining(now.Done, now.Of))
	}
}

// remaining goes by the experiments of this run alone, which come in the same
// mixture from beginning to end. Of the first few it says nothing.
func (p *evaluationProgress) remaining(done, of int) string {
	computed := done - p.before
	if computed < min(8, of-p.before) || done == of {
		return ""
	}
	return p.rest.text(", ", float64(computed), float64(of-p.before))
}

// countdown tells the time that is left, if the rest goes as fast as what was done.
type countdown struct {
	now   func() time.Time
	began time.Time // the first call, if it is zero
}

func (c *countdown) text(before string, done, of float64) string {
	now := c.now()
	if c.began.IsZero() {
		c.began = now
	}
	if done <= 0 {
		return ""
	}
	left := time.Duration(float64(now.Sub(c.began)) * max(of-done, 0) / done)
	return before + "about " + left.Round(time.Second).String() + " left"
}

// A study of fewer steps than fewSteps is of rounds that are too unlike for one to tell
// how long the next will take.
const fewSteps = 10

// left shows a countdown beside a bar of at least so many steps, once a tenth is done.
func left(c *countdown, least int64) decor.Decorator {
	return decor.Any(func(s decor.Statistics) string {
		text := c.text(" ", float64(s.Current), float64(s.Total))
		if s.Total < least || 10*s.Current < s.Total || s.Completed {
			return ""
		}
		return text
	})
}
