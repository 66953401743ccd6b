package stages

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/graffl/augment"
	"parley/methods/graffl/setup"
	"parley/methods/graffl/suffiae"
)

// state is what [coordinator] carries: the variant's state, and what the phases around it
// have found.
type state struct {
	Phase   string                   `cbor:"phase"`
	Asked   bool                     `cbor:"asked"` // the phase's tasks are out
	Left    []string                 `cbor:"left"`
	Encoder *suffiae.Encoder         `cbor:"encoder"` // that sites share, trained by one of them
	Linear  map[string]*linearAnswer `cbor:"linear"`
	Ranks   wire.Vector              `cbor:"ranks"` // of calibration, replicate after replicate
	Worth   map[string]*worthAnswer  `cbor:"worth"`
	Variant []byte                   `cbor:"variant"` // inner, encoded

	inner method.State
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) {
	inner, err := s.inner.MarshalBinary()
	if err != nil {
		return nil, err
	}
	out := *s
	out.Variant = inner
	return wire.Marshal(&out)
}

// Restore implements [method.Coordinator].
func (c *coordinator) Restore(data []byte) (method.State, error) {
	s := new(state)
	if err := wire.Unmarshal(data, s); err != nil {
		return nil, err
	}
	var err error
	if s.inner, err = c.inner().Restore(s.Variant); err != nil {
		return nil, err
	}
	s.Variant = nil
	if s.Linear == nil {
		s.Linear = map[string]*linearAnswer{}
	}
	if s.Worth == nil {
		s.Worth = map[string]*worthAnswer{}
	}
	if err := c.checkState(s); err != nil {
		return nil, fmt.Errorf("the state: %w", err)
	}
	return s, nil
}

// checkState holds a state that may have come from anywhere against the plan.
func (c *coordinator) checkState(s *state) error {
	at := slices.Index(c.phases, s.Phase)
	if at < 0 {
		return fmt.Errorf("this plan has no phase %q", s.Phase)
	}
	if s.Encoder != nil || c.Receives() && s.Phase != taskEncoder {
		if !c.Receives() {
			return errors.New("it has an encoder, which this plan's sites do not share")
		}
		if err := checkEncoder(c.Setup, s.Encoder); err != nil {
			return err
		}
	}
	for name, a := range s.Linear {
		if !slices.Contains(c.Plan.Sites, name) || a == nil || !c.Judged() {
			return fmt.Errorf("it has a classifier of %q, which this plan does not ask for", name)
		}
		if err := a.check(len(c.Names)); err != nil {
			return fmt.Errorf("site %s: %w", name, err)
		}
	}
	for name, a := range s.Worth {
		if !slices.Contains(c.Plan.Sites, name) || a == nil || !c.Tested() {
			return fmt.Errorf("it has scores of %q, which this plan does not ask for", name)
		}
		if err := a.check(); err != nil {
			return fmt.Errorf("site %s: %w", name, err)
		}
	}
	if err := c.checkRanks(s, at > slices.Index(c.phases, phaseCalibration)); err != nil {
		return err
	}
	if at > slices.Index(c.phases, phaseMixture) {
		if _, err := c.inner().Draws(s.inner); err != nil {
			return err
		}
	}
	return nil
}

// The tasks of the phases around the variant.
const (
	taskEncoder    = "encoder"
	taskClassifier = "classifier"
	taskWorth      = "worth"
)

// encoderTask and linearTask choose nothing: what is trained and fitted, the plan says.
type (
	encoderTask struct{}
	linearTask  struct{}
)

// encodedTask is any task but encoderTask where sites share an encoder that one of them has
// trained.
type encodedTask struct {
	Encoder *suffiae.Encoder `cbor:"encoder"`
	Body    []byte           `cbor:"body"` // the task itself
}

// encoderAnswer is what the site that trains it answers.
type encoderAnswer struct {
	Encoder *suffiae.Encoder `cbor:"encoder"`
}

// worthAnswer is how all arms did at a site.
type worthAnswer struct {
	Scarce     int              `cbor:"scarce"` // rows of the class that could be learned from
	Other      int              `cbor:"other"`
	Held       int              `cbor:"held"` // rows that could not
	HeldScarce int              `cbor:"held_scarce"`
	Arms       []augment.Result `cbor:"arms"`
	Verdict    augment.Verdict  `cbor:"verdict"` // none: there was nothing to compare
	Gain       float64          `cbor:"gain"`
	GainError  float64          `cbor:"gain_error"`
}

// arms are all that a site may have tried, in their order; verdicts all that it may
// have come to.
var (
	arms     = []augment.Arm{augment.Raw, augment.Oversampled, augment.SMOTEd, augment.Generated, augment.Borrowed}
	verdicts = []augment.Verdict{"", augment.Kept, augment.NotBetter, augment.TooFew, augment.OneClass, augment.NotScarce, augment.NoRows}
)

func (a *worthAnswer) check() error {
	for _, n := range []int{a.Scarce, a.Other, a.Held, a.HeldScarce} {
		if n < 0 || n > setup.MaxRows {
			return fmt.Errorf("%d rows: want 0 to %d", n, setup.MaxRows)
		}
	}
	if a.HeldScarce > a.Held {
		return fmt.Errorf("%d held rows of the class among %d", a.HeldScarce, a.Held)
	}
	if !slices.Contains(verdicts, a.Verdict) {
		return fmt.Errorf("a verdict %q, which is none", a.Verdict)
	}
	if !(math.Abs(a.Gain) <= 1 && a.GainError >= 0 && a.GainError <= 1) {
		return fmt.Errorf("a gain of %v with a standard error of %v: an AUC is from 0 to 1", a.Gain, a.GainError)
	}
	next := 0
	for _, r := range a.Arms {
		at := slices.Index(arms, r.Arm)
		if at < next {
			return fmt.Errorf("an arm %q, which is not known or out of place", r.Arm)
		}
		next = at + 1
		if err := checkArm(r); err != nil {
			return fmt.Errorf("%s: %w", r.Arm, err)
		}
	}
	return nil
}

func checkArm(r augment.Result) error {
	share := func(x *float64) bool { return x == nil || *x >= 0 && *x <= 1 }
	switch h := r.Held; {
	case r.Added < 0 || r.Added > setup.MaxRows:
		return fmt.Errorf("%d rows were added: want 0 to %d", r.Added, setup.MaxRows)
	case r.Problem != "":
		return errors.New("with words, where numbers are released")
	case !share(r.AUC) || h != nil && (!share(h.AUC) || !share(&h.F1)):
		return errors.New("an AUC or F1 that is not from 0 to 1")
	case h != nil && h.LogScore != nil && !(*h.LogScore <= 0 && !math.IsInf(*h.LogScore, -1)):
		return fmt.Errorf("a log score of %v: want a finite number, at most 0", *h.LogScore)
	}
	return nil
}

// siteShare is what sites get back.
type siteShare struct {
	Variant []byte           `cbor:"variant"` // what the variant shares
	Encoder *suffiae.Encoder `cbor:"encoder"`
	Worth   *worthShare      `cbor:"worth"`
}
