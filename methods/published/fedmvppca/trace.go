package fedmvppca

import (
	"math"
	"slices"

	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// trace is how the fit stood after each round.
type trace []point

// point is how the fit stood after a round.
type point struct {
	Round int         `cbor:"round"`
	SDW   wire.Vector `cbor:"sd_w"` // between sites, per view; none before the first round
	SDMu  wire.Vector `cbor:"sd_mu"`
}

// record keeps how the sites spread after a round, and returns it as info.
func (t *trace) record(round int, model *ppca.Prior) method.Info {
	varW, varMu := model.Spread()
	at := point{Round: round, SDW: make(wire.Vector, len(varW)), SDMu: make(wire.Vector, len(varMu))}
	for k := range varW {
		at.SDW[k], at.SDMu[k] = math.Sqrt(varW[k]), math.Sqrt(varMu[k])
	}
	*t = append(*t, at)
	return method.Info{"loadings between sites, largest sd": slices.Max(at.SDW), "means between sites, largest sd": slices.Max(at.SDMu)}
}

// spreadFigure is the figure that draws the spread between sites by round.
const spreadFigure = "between-sites-by-round"

// section is on how the spread between sites settled.
func (t trace) section(set options.Setup) figure.Section {
	sec := figure.Section{ID: "convergence", Title: "How the fit settled"}
	rounds := make(figure.Numbers, len(t))
	sd := figure.Lines{X: figure.Axis{Label: "round", Count: true}, Y: figure.Axis{Label: "standard deviation of the loadings between sites", Log: true}}
	for k := range set.Plan.Views {
		sd.Series = append(sd.Series, figure.Line{Name: set.Plan.Views[k].Name, X: rounds})
	}
	some := false
	for i, p := range t {
		rounds[i] = float64(p.Round)
		for k := range sd.Series {
			x := math.NaN() // zero has no place on a logarithmic axis
			if len(p.SDW) > 0 && p.SDW[k] > 0 {
				x, some = p.SDW[k], true
			}
			sd.Series[k].Y = append(sd.Series[k].Y, x)
		}
	}
	if some {
		sec.Items = append(sec.Items, figure.Item{Figure: &figure.Figure{
			ID: spreadFigure, Title: "Spread of the loadings between sites by round", Chart: sd,
			Caption: "One line for each view, on a logarithmic axis; a spread of exactly zero is not drawn.",
			Alt:     "Lines of the standard deviation of loadings between sites over the rounds, one for each view.",
		}})
	}
	return sec
}
