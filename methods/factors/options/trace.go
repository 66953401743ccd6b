package options

import (
	"math"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/ppca"
)

// Trace is how the fit stood after each round.
type Trace []Point

// Point is how the fit stood after a round; round 0 is the one shot.
type Point struct {
	Round  int         `cbor:"round"`
	LogLik float64     `cbor:"log_lik"` // of the round's model, mean per subject; 0 until the next round tells
	SDW    wire.Vector `cbor:"sd_w"`    // between sites, per view; none before the first round
	SDMu   wire.Vector `cbor:"sd_mu"`
}

// Record keeps how the sites spread after a round, and returns it as info.
func (t *Trace) Record(round int, model *ppca.Prior) method.Info {
	varW, varMu := model.Spread()
	point := Point{Round: round, SDW: make(wire.Vector, len(varW)), SDMu: make(wire.Vector, len(varMu))}
	for k := range varW {
		point.SDW[k], point.SDMu[k] = math.Sqrt(varW[k]), math.Sqrt(varMu[k])
	}
	*t = append(*t, point)
	return method.Info{"loadings between sites, largest sd": slices.Max(point.SDW), "means between sites, largest sd": slices.Max(point.SDMu)}
}

// Score keeps the log-likelihood per subject of the last model.
func (t Trace) Score(logLik float64) { t[len(t)-1].LogLik = logLik }
