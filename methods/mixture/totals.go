package mixture

import (
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
	"parley/privacy/masks"
	"parley/study"
)

var _ method.Additive = Method{}

// sumOfAll is the one total of a study with a secure sum.
const sumOfAll = "sums of cosines and sines at the plan's frequencies, number of subjects, and of those who lack a feature"

// Summable implements [study.Summable]: all that sites release are sums.
func (o *Options) Summable(*study.Plan, study.Report) {}

// Totals implements [method.Additive].
func (Method) Totals(p *study.Plan, _ string) ([]privacy.Total, error) {
	s, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return []privacy.Total{{Name: sumOfAll, Numbers: s.Of.Len() + 2, Grid: masks.Standardised}}, nil
}

// Numbers implements [method.Additive].
func (Method) Numbers(_ *study.Plan, _ method.Task, body []byte) (map[string][]float64, error) {
	var a sumsAnswer
	err := wire.Unmarshal(body, &a)
	return map[string][]float64{sumOfAll: append(a.Sums, float64(a.Rows), float64(a.Lacking))}, err
}

// Answer implements [method.Additive].
func (Method) Answer(_ *study.Plan, _ string, sums map[string][]float64) ([]byte, error) {
	v := sums[sumOfAll]
	n := len(v) - 2
	return wire.Marshal(sumsAnswer{Sums: v[:n], Rows: int(v[n]), Lacking: int(v[n+1])})
}
