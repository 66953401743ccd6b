package stages

import (
	"parley/methods/graffl/setup"
	"parley/methods/graffl/suffiae"
)

// maxUnits bounds a row: gross errors are moved there, so that sums of squares are finite.
const maxUnits = 1e9

// units are those in which classifiers see rows. Codes are in common units as they are;
// features are brought there by their public ranges.
func unitsOf(s *setup.Setup) *suffiae.Inputs {
	in := new(suffiae.Inputs)
	for i := range s.Names {
		centre, scale := 0., 1.
		if s.Options.Encoder == nil {
			centre, scale = s.Lo[i]+(s.Hi[i]-s.Lo[i])/2, (s.Hi[i]-s.Lo[i])/(2*setup.InputLimit)
		}
		in.Centre, in.Scale = append(in.Centre, centre), append(in.Scale, scale)
	}
	return in
}

// toUnits brings a row there.
func toUnits(in *suffiae.Inputs, x []float64) []float64 {
	u := make([]float64, len(x))
	for i, v := range x {
		u[i] = min(max((v-in.Centre[i])/in.Scale[i], -maxUnits), maxUnits)
	}
	return u
}

// fromUnits brings a row back.
func fromUnits(in *suffiae.Inputs, u []float64) []float64 {
	x := make([]float64, len(u))
	for i, v := range u {
		x[i] = in.Centre[i] + in.Scale[i]*v
	}
	return x
}
