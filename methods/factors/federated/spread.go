package federated

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/internal/wire"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

const (
	// mostFall is by how many nats per subject the log-likelihood may fall from one round's
	// model to the next, where it does not fall by less than before. A typical site
	// describes pooled rows worse than the one shot does, by many nats where sites differ
	// much: rounds that settle come closer to that by ever smaller steps.
	mostFall = 1
	// smallSpread is what changes of smaller spreads are held against, in standard deviations of
	// a view's features: a thousandth of their variance.
	smallSpread = 0.03
)

// changed is by what share the last round changed the spread of the loadings or means of a
// view between sites, at most: 1 if one round is all there is. Features have a standard deviation
// of sd, by view.
func changed(t options.Trace, sd []float64) float64 {
	n := len(t)
	if n < 3 {
		return 1
	}
	share := 0.0
	for _, spread := range [][2]wire.Vector{{t[n-2].SDW, t[n-1].SDW}, {t[n-2].SDMu, t[n-1].SDMu}} {
		for k, now := range spread[1] {
			before := spread[0][k]
			if most := max(now, before, smallSpread*sd[k]); most > 0 {
				share = max(share, math.Abs(now-before)/most)
			}
		}
	}
	return share
}

// sdOf is the standard deviation of a feature of each view, by the root of their mean variance.
func sdOf(l ppca.Layout, p *ppca.Params) []float64 {
	sum, count := make([]float64, l.Views()), make([]float64, l.Views())
	view, group := l.ViewOf(), l.GroupOf()
	for _, j := range p.Features {
		w := p.W[j*p.Rank:][:p.Rank]
		sum[view[j]] += floats.Dot(w, w) + p.Noise[group[j]]
		count[view[j]]++
	}
	for k := range sum {
		sum[k] = math.Sqrt(sum[k] / max(count[k], 1))
	}
	return sum
}

// settled says whether further rounds would change little: the last changed no spread by more
// than the tolerance, and the model before it was about as likely as its own predecessor.
func settled(t options.Trace, sd []float64, tolerance float64) bool {
	n := len(t)
	return n >= 3 && changed(t, sd) < tolerance && t[n-3].LogLik-t[n-2].LogLik <= mostFall
}

// diverged says whether the last round of which it is known made the model much worse, and
// worse by more than the round before it. The last point is that of a round whose model no
// site has scored yet.
func diverged(t options.Trace) bool {
	n := len(t)
	if n < 4 {
		return false
	}
	fall := t[n-3].LogLik - t[n-2].LogLik
	return fall > mostFall && fall > t[n-4].LogLik-t[n-3].LogLik
}

// spreadNote says whether the spread between sites has settled; nil if one round cannot tell.
func spreadNote(t options.Trace, sd []float64, tolerance float64, undetermined []string, diverged bool) *figure.Note {
	const failed = "The spread between sites could not be estimated"
	if len(undetermined) > 0 {
		return &figure.Note{Title: failed, Warning: true,
			Text: fmt.Sprintf("The subjects of %s do not determine as many factors as the plan has: their values have fewer directions, or are described exactly. The rounds were stopped, and nothing of them is shown or kept. The model itself is that of the one shot, and does not depend on them. With fewer factors, or without these sites, the rounds can go on.", strings.Join(undetermined, ", "))}
	}
	n := len(t)
	if n < 3 {
		return nil
	}
	if diverged {
		return &figure.Note{Title: failed, Warning: true,
			Text: fmt.Sprintf("In round %d the log-likelihood per subject fell from %.2f to %.2f nats: the rounds moved away from the data and were stopped. Nothing of them is shown or kept. The model itself is that of the one shot, and does not depend on them.", t[n-2].Round, t[n-3].LogLik, t[n-2].LogLik)}
	}
	change := changed(t, sd)
	if change > tolerance {
		return &figure.Note{Title: "The spread between sites has not settled", Warning: true,
			Text: fmt.Sprintf("In the last of %d rounds it still changed by %.0f %% in some view. Take it for a rough number, or give the plan more rounds.", t[n-1].Round, 100*change)}
	}
	return &figure.Note{Title: "The spread between sites has settled",
		Text: fmt.Sprintf("In the last of %d rounds no spread changed by more than %.0f %% of itself, or of %v standard deviations of a feature where that is more.", t[n-1].Round, math.Ceil(100*change), smallSpread)}
}
