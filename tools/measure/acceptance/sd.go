package acceptance

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"parley/tools/measure/protocol"
)

// sdFactors is the true number of factors of the synthetic data.
const sdFactors = 5

// synthetic holds the one shot and the default against the central fit on the
// synthetic data: errors in parts of the pooled training range.
func synthetic(ctx context.Context, data string, draws, sites []int) ([]row, error) {
	t := &table{promise: "sd"}
	var all []*draw
	for _, s := range draws {
		d, err := openDraw(ctx, filepath.Join(data, "sd"), s)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	for _, n := range sites {
		for _, sc := range scenarios {
			var whole, shot, rounds []protocol.Result
			for _, d := range all {
				splits, err := d.splits(sc, n)
				if err != nil {
					return nil, err
				}
				for _, m := range []struct {
					fit  protocol.Fit
					into *[]protocol.Result
				}{{central(sdFactors), &whole}, {federated(asIs(sdFactors, 0), 1), &shot}, {federated(asIs(sdFactors, 3), 1), &rounds}} {
					r, err := protocol.CrossValidate(ctx, d.data, splits, "", m.fit)
					if err != nil {
						return nil, fmt.Errorf("draw %d, %v, %d sites: %w", d.number, sc, n, err)
					}
					*m.into = append(*m.into, r...)
				}
			}
			t.against(fmt.Sprintf("%v, %d sites", sc, n), whole, shot, rounds)
		}
	}
	return t.rows, nil
}

// against adds the rows of one scenario.
func (t *table) against(at string, whole, shot, rounds []protocol.Result) {
	want := mean(whole, testError)
	t.add(at, "test error, central", want)
	for _, m := range []struct {
		name    string
		results []protocol.Result
	}{{"one shot", shot}, {"3 rounds", rounds}} {
		ratio, gap := 0.0, 0.0
		for i, r := range m.results {
			ratio = max(ratio, r.Test.MAE/whole[i].Test.MAE)
			gap = max(gap, math.Abs(r.Test.LogLik-whole[i].Test.LogLik))
		}
		got := mean(m.results, testError)
		t.add(at, "test error, "+m.name, got).atMost(1.02*want).note("%.4f × central, worst fold %.4f ×", got/want, ratio)
		more := t.add(at, "log-likelihood per test row, "+m.name+" against central, largest gap of a fold", gap).
			note("mean %+.4f", mean(m.results, testLogLik)-mean(whole, testLogLik))
		if m.name == "one shot" {
			more.atMost(0.15)
		}
	}
}

func testError(r protocol.Result) float64  { return r.Test.MAE }
func testLogLik(r protocol.Result) float64 { return r.Test.LogLik }
func accuracy(r protocol.Result) float64   { return r.Accuracy }

func mean(results []protocol.Result, of func(protocol.Result) float64) float64 {
	s := 0.0
	for _, r := range results {
		s += of(r)
	}
	return s / float64(len(results))
}

func each(results []protocol.Result, of func(protocol.Result) float64) (x []float64) {
	for _, r := range results {
		x = append(x, of(r))
	}
	return x
}
