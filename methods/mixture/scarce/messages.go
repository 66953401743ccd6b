package scarce

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"parley/internal/nn"
	"parley/internal/wire"
	"parley/methods/mixture/options"
)

// The tasks of the phases around the sampler.
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
	Encoder *nn.Encoder `cbor:"encoder"`
	Body    []byte      `cbor:"body"` // the task itself
}

// encoderAnswer is what the site that trains it answers.
type encoderAnswer struct {
	Encoder *nn.Encoder `cbor:"encoder"`
}

// worthAnswer is how all arms did at a site.
type worthAnswer struct {
	Scarce     int      `cbor:"scarce"` // rows of the class that could be learned from
	Other      int      `cbor:"other"`
	Held       int      `cbor:"held"` // rows that could not
	HeldScarce int      `cbor:"held_scarce"`
	Arms       []result `cbor:"arms"`
	Verdict    verdict  `cbor:"verdict"` // none: there was nothing to compare
	Gain       float64  `cbor:"gain"`
	GainError  float64  `cbor:"gain_error"`
}

// arms are all that a site may have tried, in their order; verdicts all that it may
// have come to.
var (
	arms     = []Arm{Raw, Oversampled, SMOTEd, Generated, Borrowed}
	verdicts = []verdict{"", Kept, notBetter, tooFew, oneClass, notScarce, noRows}
)

func (a *worthAnswer) check() error {
	for _, n := range []int{a.Scarce, a.Other, a.Held, a.HeldScarce} {
		if n < 0 || n > options.MaxRows {
			return fmt.Errorf("%d rows: want 0 to %d", n, options.MaxRows)
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

func checkArm(r result) error {
	share := func(x *float64) bool { return x == nil || *x >= 0 && *x <= 1 }
	switch h := r.Held; {
	case r.Added < 0 || r.Added > options.MaxRows:
		return fmt.Errorf("%d rows were added: want 0 to %d", r.Added, options.MaxRows)
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
	Sampler []byte      `cbor:"variant"` // what the sampler shares
	Encoder *nn.Encoder `cbor:"encoder"`
	Worth   *worthShare `cbor:"worth"`
}

// worthShare is what a site needs for it.
type worthShare struct {
	Sample     *options.Sample `cbor:"sample"`     // of the posterior
	Classifier *linearAnswer   `cbor:"classifier"` // of the site From; nil if there is none
	From       string          `cbor:"from"`
}

// linearAnswer is a site's own classifier of the scarce class, by what the mixture sees
// of a subject in [unitsOf].
type linearAnswer struct {
	Weights   wire.Vector `cbor:"weights"` // none: the site has subjects of one class only
	Intercept float64     `cbor:"intercept"`
	Scarce    int         `cbor:"scarce"` // rows of the class that it was fitted to
	Other     int         `cbor:"other"`
}

func (a *linearAnswer) check(d int) error {
	if len(a.Weights) != 0 && len(a.Weights) != d {
		return fmt.Errorf("a classifier with %d weights, where rows have %d numbers", len(a.Weights), d)
	}
	if a.Scarce < 0 || a.Scarce > options.MaxRows || a.Other < 0 || a.Other > options.MaxRows {
		return fmt.Errorf("a classifier of %d rows of the class and %d others: want 0 to %d", a.Scarce, a.Other, options.MaxRows)
	}
	if len(a.Weights) > 0 && (a.Scarce == 0 || a.Other == 0) {
		return fmt.Errorf("a classifier of %d rows of the class and %d others: it takes both", a.Scarce, a.Other)
	}
	// Another site may borrow it, whose scores would else be no numbers.
	for _, v := range append(slices.Clone(a.Weights), a.Intercept) {
		if !(math.Abs(v) <= maxLinear) {
			return fmt.Errorf("a classifier with the number %v: want at most ±%v", v, float64(maxLinear))
		}
	}
	return nil
}

// maxLinear bounds a classifier's weights and intercept.
const maxLinear = 1e9

// classifier returns it in augment's terms; nil if there is none.
func (a *linearAnswer) classifier() *LinearClassifier {
	if a == nil || len(a.Weights) == 0 {
		return nil
	}
	return &LinearClassifier{Weights: a.Weights, Intercept: a.Intercept}
}
