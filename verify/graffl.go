package verify

import (
	"fmt"

	"parley/internal/vectors"
	"parley/methods/published/graffl"
	"parley/privacy/account"
)

var mixtureFormats = map[string]func([]byte, *vectors.List) error{
	"graffl/priors/1":      vectors.Format((*priorsFile).verify),
	"graffl/setdistance/1": vectors.Format((*setDistanceFile).verify),
	"graffl/privacy/1":     vectors.Format((*privacyFile).verify),
}

// The description's tolerances; the floors keep entries near zero from asking for
// more digits than float64 has.
var (
	tolNumber = vectors.Tolerance{Rel: 1e-9, Floor: 1e-3}
	tolSolved = vectors.Tolerance{Rel: 1e-9, Floor: 1}
)

// flat joins rows that must all have one length.
func flatRows(what string, rows [][]float64, length int) ([]float64, error) {
	var out []float64
	for i, r := range rows {
		if len(r) != length {
			return nil, fmt.Errorf("row %d of %s has %d numbers: want %d", i, what, len(r), length)
		}
		out = append(out, r...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no rows", what)
	}
	return out, nil
}

func width(rows [][]float64) int {
	if len(rows) == 0 {
		return 0
	}
	return len(rows[0])
}

type privacyFile struct {
	Schema        string `json:"schema"`
	Trilateration struct {
		Probes  [][]float64 `json:"probes"`
		Squared []float64   `json:"squared_distances"`
		Row     []float64   `json:"row"`
		Note    string      `json:"note"`
	} `json:"trilateration"`
	Gaussian []struct {
		Epsilon float64 `json:"epsilon"`
		Delta   float64 `json:"delta"`
		Value   float64 `json:"value"`
	} `json:"gaussian_mechanism_sigma_over_sensitivity"`
}

func (f *privacyFile) verify(list *vectors.List) error {
	d := len(f.Trilateration.Row)
	points, err := flatRows("probes", f.Trilateration.Probes, d)
	if err != nil {
		return err
	}
	row, err := graffl.Trilaterate(points, f.Trilateration.Squared, d)
	if err != nil {
		return err
	}
	list.Floats("trilateration.row", f.Trilateration.Row, row, tolSolved)
	for i, c := range f.Gaussian {
		got, err := account.AnalyticGaussian(c.Epsilon, c.Delta)
		if err != nil {
			return err
		}
		list.Float(fmt.Sprintf("gaussian_mechanism_sigma_over_sensitivity[%d]", i), c.Value, got, tolNumber)
	}
	return nil
}
