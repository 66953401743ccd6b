package halves

import (
	"errors"
	"fmt"
	"slices"

	"parley/method/rounds"
	"parley/methods/mvppca/options"
)

// check refuses a state from which no study goes on, but for answers that wait in the inbox: these
// are checked when they are worked through.
func (c *Coordinator) check(s *State) error {
	d, views := c.Layout.Features(), c.Layout.Views()
	if s.Inbox == nil || s.Reports == nil {
		return errors.New("it lacks what sites have answered")
	}
	if s.Round < 0 || s.Steps < 0 {
		return fmt.Errorf("round %d, step %d", s.Round, s.Steps)
	}
	for _, site := range s.Left {
		if err := rounds.Member(c.Plan.Sites, site); err != nil {
			return err
		}
	}
	if err := rounds.Kept(s.Reports, c.Plan.Sites, "assessments", c.checkAssessment); err != nil {
		return err
	}
	scaled := !slices.Contains([]string{"", options.TaskAdjust, options.TaskScale}, s.Phase)
	if s.Scale == nil && scaled {
		return errors.New("it lacks a scale")
	}
	if s.Scale != nil {
		if _, err := s.Scale.Unpack(c.Layout); err != nil {
			return err
		}
	}
	if s.Adjusted == nil && c.Options.Asks(c.Plan, options.TaskAdjust) && (scaled || s.Phase == options.TaskScale) {
		return errors.New("it lacks what covariates add to features")
	}
	if s.Adjusted != nil {
		if err := s.Adjusted.Check(d, len(options.Terms(c.Options.Adjust))); err != nil {
			return err
		}
	}
	if fitted := slices.Contains([]string{options.TaskAssess, options.TaskCheck, rounds.Done}, s.Phase); fitted && (s.Model == nil || len(s.Strengths) != c.Options.Latent) {
		return fmt.Errorf("it has no model, or the strengths of %d factors, where there are %d", len(s.Strengths), c.Options.Latent)
	}
	if s.Model != nil {
		if p, err := s.Model.Unpack(c.Layout); err != nil {
			return err
		} else if p.Rank != c.Options.Latent {
			return fmt.Errorf("a model of %d factors, where there are %d", p.Rank, c.Options.Latent)
		}
	}
	if s.SiteMeans != nil {
		if err := s.SiteMeans.Check(c.Layout, c.Plan.Sites); err != nil {
			return err
		}
	}
	for _, a := range s.Apart {
		if !c.place(a.Site, a.View) {
			return fmt.Errorf("values far apart of site %d and view %d", a.Site, a.View)
		}
	}
	for _, a := range s.Standardised {
		if !c.place(a.Site, a.View) {
			return fmt.Errorf("values in units of their own of site %d and view %d", a.Site, a.View)
		}
	}
	for _, p := range s.Trace {
		if n := len(p.SDW); n != len(p.SDMu) || n != 0 && n != views {
			return fmt.Errorf("the spread of %d and %d views, where there are %d", n, len(p.SDMu), views)
		}
	}
	if len(s.Doubt) != 0 && len(s.Doubt) != d || slices.ContainsFunc(s.Doubt, func(x float64) bool { return x < 0 }) {
		return fmt.Errorf("the doubt about %d features, where there are %d", len(s.Doubt), d)
	}
	return c.way.Check(s)
}

// place says whether there is such a site and view.
func (c Common) place(site, view int) bool {
	return site >= 0 && site < len(c.Plan.Sites) && view >= 0 && view < c.Layout.Views()
}

// HasFeatures reports features that are none of the plan's.
func (c Common) HasFeatures(list ...int) error {
	for _, j := range list {
		if j < 0 || j >= c.Layout.Features() {
			return fmt.Errorf("there is no feature %d", j)
		}
	}
	return nil
}
